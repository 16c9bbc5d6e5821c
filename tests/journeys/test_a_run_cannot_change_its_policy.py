"""A policy file that a sandboxed run could have written takes effect by a person's word alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import toolgate
from toolgate.errors import ConflictError, NotAllowedError, PolicyHeldError
from toolgate.interfaces.cli.app import app

POLICY = """
version: 1
tools:
  execute_command:
    decision: allow
    commands: {unknown: ask}
    sandbox: {backend: none}
"""
LOOSER = POLICY + "# looser\n  read_file: {decision: allow}\n"
DYING = """
import sys, toolgate
url, folder = sys.argv[1:]
gate = toolgate.open(url, workspace=folder, policy=folder, built_in_tools=True, approver=lambda _: True)
gate.sync.call("execute_command", {"command": "./build.sh", "args": []})
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    workspace.chmod(0o777)
    (workspace / "toolgate.yaml").write_text(POLICY)
    (workspace / "toolgate.yaml").chmod(0o666)
    for above in (tmp_path, *tmp_path.parents[:2]):
        above.chmod(0o755)
    return workspace


def script(folder: Path, text: str) -> None:
    (folder / "build.sh").write_text(f"#!/bin/sh\n{text}\n")
    (folder / "build.sh").chmod(0o755)
    (folder / "looser.yaml").write_text(LOOSER)


def open_on(folder: Path, **more: str) -> toolgate.Gate:
    return toolgate.open(
        folder.parent / "gate.db",
        workspace=folder,
        policy=folder,
        built_in_tools=True,
        approver=lambda _approval: True,
        **more,  # type: ignore[arg-type]
    )


def tamper(folder: Path) -> str:
    """Let a run write the policy; return the revision that was in force, and stayed so."""
    script(folder, "cat looser.yaml > toolgate.yaml")
    with open_on(folder) as gate:
        before = gate.policy.revision
        gate.sync.call("execute_command", {"command": "./build.sh", "args": []}).unwrap()
        with pytest.raises(PolicyHeldError):
            gate.sync.host.reload_policy(by="ann")
        assert gate.policy.revision == before
        held = gate.sync.host.held_policy()
        assert held is not None
        assert "+  read_file: {decision: allow}" in held.diff
        with pytest.raises(NotAllowedError):
            gate.sync.host.accept_policy(held.revision, by="agent:coder")
        with pytest.raises(ConflictError):
            gate.sync.host.accept_policy(before, by="ann")
        told = [one.type for one in gate.sync.events(project="_system") if one.call_id == "policy"]
    assert told == ["policy.window_opened", "policy.held"]
    return before


def test_a_start_fails_closed_until_a_person_accepts(folder: Path) -> None:
    tamper(folder)
    with pytest.raises(PolicyHeldError, match="toolgate policy accept") as refused:
        open_on(folder)
    where = ["--policy", str(folder), "--database", str(folder.parent / "gate.db"), "--workspace", str(folder)]
    shown = CliRunner().invoke(app, ["policy", "accept", *where])
    assert (shown.exit_code, "+# looser" in shown.stdout) == (1, True)
    done = CliRunner().invoke(app, ["policy", "accept", refused.value.revision[:12], *where, "--by", "ann"])
    assert done.exit_code == 0, done.output
    with open_on(folder) as gate:
        assert gate.policy.revision == refused.value.revision
    (folder / "toolgate.yaml").write_text(POLICY)  # an ordinary edit
    open_on(folder).close()


def test_an_unattended_start_names_what_it_accepts(folder: Path) -> None:
    tamper(folder)
    with pytest.raises(PolicyHeldError) as refused:
        open_on(folder, accept_policy="0" * 12)
    open_on(folder, accept_policy=refused.value.revision).close()
    open_on(folder).close()


def test_putting_the_file_back_ends_it(folder: Path) -> None:
    before = tamper(folder)
    (folder / "toolgate.yaml").write_text(POLICY)
    with open_on(folder) as gate:
        assert gate.policy.revision == before
        (folder / "toolgate.yaml").write_text(LOOSER)
        assert gate.sync.host.reload_policy(by="ann").revision != before


def test_a_killed_run_is_not_forgotten(folder: Path) -> None:
    script(folder, "cat looser.yaml > toolgate.yaml; echo > done; sleep 600")
    url = str(folder.parent / "gate.db")
    with subprocess.Popen([sys.executable, "-c", DYING, url, str(folder)]) as process:
        while not (folder / "done").exists():
            assert process.poll() is None
        process.kill()
    with pytest.raises(PolicyHeldError):
        open_on(folder)
    (folder / "toolgate.yaml").write_text(POLICY)
    open_on(folder).close()


def test_a_run_that_leaves_it_alone_holds_nothing(folder: Path) -> None:
    script(folder, "true")
    with open_on(folder) as gate:
        gate.sync.call("execute_command", {"command": "./build.sh", "args": []}).unwrap()
        (folder / "toolgate.yaml").write_text(LOOSER)
        before = gate.policy.revision
        assert gate.sync.host.reload_policy(by="ann").revision != before
