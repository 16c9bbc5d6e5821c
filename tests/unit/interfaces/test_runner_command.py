"""`toolgate runner` on the command line: what is wrong is said before anything is connected."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from toolgate.errors import ToolgateError
from toolgate.interfaces.cli.app import app

SERVER = ["runner", "--server", "http://127.0.0.1:9", "--project", "demo"]


def said(*options: str, **environment: Any) -> str:
    """What the command refuses with."""
    answer = CliRunner().invoke(app, [*SERVER, *options], env={"TOOLGATE_TOKEN": "", **environment})
    assert isinstance(answer.exception, ToolgateError), answer.output
    return str(answer.exception)


def test_a_token_is_needed_and_never_an_option(tmp_path: Path) -> None:
    assert "TOOLGATE_TOKEN is not set" in said()
    assert "toolgate token create" in said()
    (tmp_path / "empty").write_text("\n")
    (tmp_path / "empty").chmod(0o600)
    assert "is empty" in said("--token-file", str(tmp_path / "empty"))
    assert "cannot be read" in said("--token-file", str(tmp_path / "missing"))


def test_a_token_does_not_go_to_another_machine_unencrypted(tmp_path: Path) -> None:
    text = said("--server", "http://example.com", "--workspace", str(tmp_path), TOOLGATE_TOKEN="tg_secret")
    assert "unencrypted" in text
    assert "tg_secret" not in text


def test_asking_here_and_trusting_the_server_exclude_each_other() -> None:
    refused = CliRunner().invoke(app, [*SERVER, "--confirm", "--trust-approvals"], env={"TOOLGATE_TOKEN": "tg_x"})
    assert refused.exit_code == 2
    assert "--trust-approvals has no effect" in refused.output


def test_the_workspace_must_be_there_and_have_a_policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert "is not a folder" in said("--workspace", str(tmp_path / "missing"), TOOLGATE_TOKEN="tg_x")
    (tmp_path / "ws").mkdir()
    assert "toolgate init" in said("--workspace", str(tmp_path / "ws"), TOOLGATE_TOKEN="tg_x")
    token = tmp_path / "ws" / "token"
    token.write_text("tg_x")
    token.chmod(0o600)
    options = ["--workspace", str(tmp_path / "ws"), "--profile", "readonly", "--token-file", str(token)]
    assert "a server could see what is private" in said(*options)
