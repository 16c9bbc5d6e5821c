"""A policy file that a sandboxed run could have written takes effect by a person's word alone."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.postgres import needs_postgres
from typer.testing import CliRunner

import toolgate
from toolgate.errors import ConflictError, NotAllowedError, PolicyHeldError
from toolgate.interfaces.cli.app import app
from toolgate.kernel.context import SYSTEM_PROJECT
from toolgate.testing.patience import until

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


def open_on(folder: Path, *, database: str = "", **more: str) -> toolgate.Gate:
    return toolgate.open(
        database or folder.parent / "gate.db",
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


@needs_postgres
def test_a_killed_run_is_not_forgotten_on_postgresql(folder: Path, postgres_url: str) -> None:
    script(folder, "cat looser.yaml > toolgate.yaml; echo > done; sleep 600")
    with subprocess.Popen([sys.executable, "-c", DYING, postgres_url, str(folder)]) as process:
        while not (folder / "done").exists():
            assert process.poll() is None
        process.kill()
    words = ["policy", "accept", "--policy", str(folder), "--workspace", str(folder), "--database", postgres_url]
    with pytest.raises(PolicyHeldError):
        open_on(folder, database=postgres_url)
    told = CliRunner().invoke(app, words)
    assert (told.exit_code, "+  read_file: {decision: allow}" in told.output) == (1, True)
    with pytest.raises(PolicyHeldError) as held:
        open_on(folder, database=postgres_url)
    assert CliRunner().invoke(app, [*words, held.value.revision, "--by", "ann"]).exit_code == 0
    with open_on(folder, database=postgres_url) as gate:
        assert gate.sync.host.held_policy() is None
        events = [one.type for one in gate.sync.events(project=SYSTEM_PROJECT) if one.type.startswith("policy.")]
    assert {"policy.window_opened", "policy.accepted"} <= {*events}


def test_a_run_that_leaves_it_alone_holds_nothing(folder: Path) -> None:
    script(folder, "true")
    with open_on(folder) as gate:
        gate.sync.call("execute_command", {"command": "./build.sh", "args": []}).unwrap()
        (folder / "toolgate.yaml").write_text(LOOSER)
        before = gate.policy.revision
        assert gate.sync.host.reload_policy(by="ann").revision != before


WAITING = """
echo > started
while [ ! -e go ]; do sleep 0.02; done
echo '# by the run' >> toolgate.yaml
true
"""


async def edited_during_a_run(folder: Path, edit: Callable[[Path], object]) -> list[str]:
    """Edit the policy while a run that wants to write it is in bubblewrap; return what the record says of windows."""
    policy = folder / "toolgate.yaml"
    policy.write_text(POLICY.replace("none", "bubblewrap"))
    script(folder, WAITING)
    async with open_on(folder) as gate:
        running = asyncio.create_task(gate.call("execute_command", {"command": "./build.sh", "args": []}))
        await until((folder / "started").exists)
        edit(policy)
        (folder / "go").touch()
        (await running).unwrap()
        told = [one.type for one in await gate.events(project="_system") if one.call_id == "policy"]
        if told[-1] == "policy.held":
            with pytest.raises(PolicyHeldError):
                await gate.host.reload_policy(by="ann")
        else:
            await gate.host.reload_policy(by="ann")
            assert gate.policy.texts()[str(policy)] == policy.read_text()
    return told


def write_in_place(policy: Path) -> None:
    policy.write_text(policy.read_text() + "  read_file: {decision: deny}\n")


def save_as_editors_do(policy: Path) -> None:
    """Put a new file at the name: that takes the mount away which kept the old one from the run."""
    new = policy.with_suffix(".new")
    new.write_text(policy.read_text() + "  write_file: {decision: deny}\n")
    new.chmod(0o666)
    new.rename(policy)


async def test_a_person_may_edit_in_place_what_a_mount_keeps_from_the_run(folder: Path) -> None:
    told = await edited_during_a_run(folder, write_in_place)
    assert told == ["policy.window_opened", "policy.window_closed"]
    assert "by the run" not in (folder / "toolgate.yaml").read_text()
    await open_on(folder).aclose()


async def test_what_an_editor_saved_during_a_run_that_could_write_it_then_is_held(folder: Path) -> None:
    assert await edited_during_a_run(folder, save_as_editors_do) == ["policy.window_opened", "policy.held"]
    assert (folder / "toolgate.yaml").read_text().endswith("  write_file: {decision: deny}\n# by the run\n")
    with pytest.raises(PolicyHeldError):
        open_on(folder)


async def test_a_person_s_edits_while_nothing_runs_take_effect_at_once_with_an_event(folder: Path) -> None:
    policy = folder / "toolgate.yaml"
    policy.write_text(POLICY.replace("none", "bubblewrap"))
    script(folder, "echo '# by the run' >> toolgate.yaml; mv looser.yaml toolgate.yaml; true")
    async with open_on(folder) as gate:
        for edit in (write_in_place, save_as_editors_do):
            (await gate.call("execute_command", {"command": "./build.sh", "args": []})).unwrap()
            before = gate.policy.revision
            edit(policy)
            assert (await gate.host.reload_policy(by="ann")).texts()[str(policy)] == policy.read_text()
            changed = [one.data for one in await gate.events(project="_system") if one.type == "policy.changed"]
            assert (changed[-1]["from"], changed[-1]["to"]) == (before, gate.policy.revision)
    assert "by the run" not in policy.read_text()
    await open_on(folder).aclose()


async def test_a_run_that_reaches_no_policy_file_opens_no_window(folder: Path) -> None:
    elsewhere = folder.parent / "policy.yaml"
    elsewhere.write_text(POLICY.replace("none", "bubblewrap"))
    script(folder, "true")
    async with toolgate.open(
        folder.parent / "gate.db", workspace=folder, policy=elsewhere, built_in_tools=True, approver=lambda _: True
    ) as gate:
        (await gate.call("execute_command", {"command": "./build.sh", "args": []})).unwrap()
        assert [one for one in await gate.events(project="_system") if one.call_id == "policy"] == []


def test_the_doctor_says_what_is_held(folder: Path) -> None:
    where = ["doctor", str(folder), "--database", str(folder.parent / "gate.db")]
    tamper(folder)
    told = CliRunner().invoke(app, where)
    assert told.exit_code == 1
    assert "PROBLEM  held policy: The policy is held: " in told.stdout
    assert "toolgate policy accept" in told.stdout
    (folder / "toolgate.yaml").write_text(POLICY)
    assert "held policy" not in CliRunner().invoke(app, where).stdout
