"""`toolgate token` and `toolgate serve`: what they say, and what they refuse."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import orjson
import pytest
from typer.testing import CliRunner

from toolgate.errors import PolicyError, ToolgateError, UsageError
from toolgate.interfaces.cli.app import app


def run(*words: str) -> Any:
    return CliRunner().invoke(app, list(words))


def error_of(answer: Any) -> ToolgateError:
    assert isinstance(answer.exception, ToolgateError), answer.output
    return answer.exception


@pytest.fixture
def database(tmp_path: Path, empty_database: Path) -> str:
    shutil.copy(empty_database, tmp_path / "toolgate.db")
    shutil.copy(f"{empty_database}.key", tmp_path / "toolgate.db.key")
    return str(tmp_path / "toolgate.db")


def test_a_login_link_is_made_for_an_account_that_exists(database: str) -> None:
    assert "There is no account ann" in str(error_of(run("token", "link", database, "ann")))
    run("token", "create", database, "ann", "--kind", "person", "--project", "demo")
    link = run("token", "link", database, "ann", "--url", "https://gate.example/").output.splitlines()[0]
    assert link.startswith("https://gate.example/login#ticket=tg_")
    told = orjson.loads(run("token", "link", database, "ann", "--expires", "1h", "--json").output)
    assert told["account"] == "ann"
    assert told["url"] != link
    labels = [token["label"] for token in orjson.loads(run("token", "list", database, "--json").output)["tokens"]]
    assert labels == ["", "login link", "login link"]


def test_tokens_are_made_listed_and_revoked(database: str) -> None:
    made = run(
        "token", "create", database, "ann", "--kind", "person", "--project", "demo=lead,finance", "--label", "laptop"
    )
    text = made.output.splitlines()[0]
    assert text.startswith("tg_")
    again = run("token", "create", database, "ann", "--project", "other", "--expires", "1s", "--json")
    assert orjson.loads(again.output)["account"] == "ann"
    listed = orjson.loads(run("token", "list", database, "--json").output)
    assert listed["accounts"] == [
        {"name": "ann", "kind": "person", "acts_for": None, "roles": {"demo": ["finance", "lead"], "other": []}}
    ]
    assert [token["label"] for token in listed["tokens"]] == ["laptop", ""]
    assert text not in str(listed)
    token_id = listed["tokens"][0]["id"]
    assert "revoked" in run("token", "revoke", database, token_id).output
    assert orjson.loads(run("token", "revoke", database, token_id, "--json").output)["revoked"] is True
    shown = run("token", "list", database, "--account", "ann").output
    assert "ann: person, demo=finance+lead, other\n" in shown
    assert "revoked" in shown


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--kind", "wizard"], "person, an agent"),
        (["--kind", "policy"], "person, an agent"),
        (["--kind", "person", "--only", "fly"], "read, ask"),
        (["--kind", "person", "--expires", "soon"], "soon"),
    ],
)
def test_a_token_with_an_option_that_means_nothing_is_refused(database: str, options: list[str], told: str) -> None:
    refused = run("token", "create", database, "ann", *options)
    assert refused.exit_code == 2
    assert told in refused.output
    assert orjson.loads(run("token", "list", database, "--json").output)["tokens"] == []


def test_a_new_account_needs_a_kind(database: str) -> None:
    assert "--kind" in str(error_of(run("token", "create", database, "ann")))
    assert orjson.loads(run("token", "list", database, "--json").output)["tokens"] == []


def test_an_account_stays_what_it_is(database: str) -> None:
    run(
        "token",
        "create",
        database,
        "bot",
        "--kind",
        "agent",
        "--acts-for",
        "ann",
        "--only",
        "read",
        "--only-project",
        "p",
    )
    assert "is a agent" in str(error_of(run("token", "create", database, "bot", "--kind", "person")))
    assert "printable" in str(error_of(run("token", "create", database, "x\x00y", "--kind", "person")))
    listed = orjson.loads(run("token", "list", database, "--json").output)
    assert (listed["accounts"][0]["acts_for"], listed["tokens"][0]["abilities"]) == ("ann", ["read"])


def test_a_token_that_is_not_there_cannot_be_revoked(database: str) -> None:
    assert "no token" in str(error_of(run("token", "revoke", database, "gone")))


def test_the_server_does_not_start_without_a_policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    answer = run("serve", "--port", "0", "--database", "memory://")
    assert isinstance(error_of(answer), PolicyError)
    answer = run("serve", "--port", "0", "--database", "memory://", "--policy", "gone.yaml")
    assert isinstance(error_of(answer), PolicyError)


def test_the_server_does_not_start_with_settings_that_do_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLGATE_MAX_STREAMS", "none")
    assert "max_streams" in str(error_of(run("serve", "--host", "0.0.0.0")))


def test_two_tools_of_one_name_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "toolgate.yaml").write_text("version: 1\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    twice = "tests.unit.interfaces.server.house:TOOLS"
    answer = run(
        "serve", "--database", "memory://", "--tools", twice, "--tools", twice, "--host", "0.0.0.0", "--port", "0"
    )
    error = error_of(answer)
    assert isinstance(error, UsageError)
    assert "twice" in str(error)
    assert "TLS" in answer.output


def test_a_server_that_cannot_listen_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "toolgate.yaml").write_text("version: 1\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    answer = run("serve", "--database", "memory://", "--host", "192.0.2.1", "--port", "1")
    assert answer.exit_code != 0


@pytest.mark.parametrize(("first", "second"), [("ann", "agent:ann"), ("agent:ann", "ann")])
def test_nobody_is_named_like_somebodys_client(database: str, first: str, second: str) -> None:
    kinds = {"ann": "person", "agent:ann": "agent"}
    assert run("token", "create", database, first, "--kind", kinds[first]).exit_code == 0
    refused = error_of(run("token", "create", database, second, "--kind", kinds[second]))
    assert f"There is an account {first}" in str(refused)
    assert run("token", "create", database, first).exit_code == 0
