"""What a command makes where programs, or Toolgate itself, look for what steers them, is put aside."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.sandboxes import needs_sandbox

import toolgate
from toolgate.adapters.runners.sandbox.backend import NOBODY, Files
from toolgate.adapters.runners.sandbox.planted import Planted
from toolgate.errors import SandboxError
from toolgate.guards.edges import Edges
from toolgate.guards.files import Workspace
from toolgate.guards.patterns import STEERING, PathPatterns
from toolgate.guards.steering import steering_names
from toolgate.kernel.output import ToolOutput
from toolgate.policy.profiles import render

PLANTS = {
    "the policy": "echo 'version: 1' > toolgate.yaml",
    "its second place": "mkdir -p config/governance; echo 'version: 1' > config/governance/tools.yaml",
    "a link to a policy": "echo 'version: 1' > mine; ln -s mine toolgate.yaml",
    "a repository": "mkdir -p .git/hooks; echo evil > .git/hooks/pre-commit",
    "a pointer to one": "echo 'gitdir: /elsewhere' > .git",
    "a nested repository": "mkdir -p a/b/.git; echo evil > a/b/.git/config",
    "one of another letter case": "mkdir -p a/.GIT; echo evil > a/.GIT/config",
    "one whose folder is closed": "mkdir -p a/.git; echo evil > a/.git/config; chmod 555 a",
    "a bare repository": "mkdir -p a/objects a/refs; echo 'ref: refs/heads/main' > a/HEAD; echo evil > a/config",
    "another system's repository": "mkdir .hg; echo evil > .hg/hgrc",
    "a shell's settings": "echo evil > .bashrc",
    "a database": "echo evil > toolgate.db",
}


@pytest.fixture
def edges(workspace: Path) -> Edges:
    locked = PathPatterns(STEERING, base=str(workspace), ignore_case=True, tree=True)
    return Edges(workspace=Workspace(str(workspace)), locked=locked)


def shell(workspace: Path, line: str) -> None:
    """Do what a command would, as the sandbox's user."""
    is_root = os.geteuid() == 0
    subprocess.run(["/bin/sh", "-c", line], cwd=workspace, check=True, user=NOBODY if is_root else None)


def steering(edges: Edges) -> set[str]:
    return set(steering_names([edges.workspace.path], edges.locked))


def test_a_folder_that_a_run_closed_is_opened_and_looked_into(workspace: Path, edges: Edges, tmp_path: Path) -> None:
    planted = Planted(str(tmp_path), edges, [str(workspace)])
    planted.begin()
    shell(workspace, "mkdir -p a/.git; echo evil > a/.git/config; chmod 111 a")
    was = os.geteuid()
    os.seteuid(NOBODY if was == 0 else was)  # root can list everything
    try:
        planted.look(makes_repositories=False)
    finally:
        os.seteuid(was)
    assert not (workspace / "a" / ".git").exists()
    assert "put aside" in str(planted.reported(ToolOutput.ok({})))


@pytest.mark.parametrize("plant", PLANTS)
def test_what_a_run_made_is_put_aside_and_the_call_fails(
    plant: str, workspace: Path, edges: Edges, tmp_path: Path
) -> None:
    planted = Planted(str(tmp_path), edges, [str(workspace)])
    planted.begin()
    shell(workspace, PLANTS[plant])
    planted.look(makes_repositories=False)
    planted.end()
    assert steering(edges) == set()
    output = planted.reported(ToolOutput.ok({"exit_code": 0}))
    assert isinstance(output, ToolOutput)
    assert (output.success, output.data) == (False, {"exit_code": 0})
    assert "put aside" in str(output.error)
    assert "aside-" in str(output.error)
    assert os.listdir(tmp_path) == []
    for path in workspace.rglob("*"):
        if path.is_dir():
            path.chmod(0o755)


def test_what_is_empty_leaves_nothing(workspace: Path, edges: Edges, tmp_path: Path) -> None:
    planted = Planted(str(tmp_path), edges, [str(workspace)])
    planted.begin()
    before = sorted(os.listdir(workspace))
    shell(workspace, "mkdir .git; : > toolgate.yaml")
    planted.look(makes_repositories=False)
    assert sorted(os.listdir(workspace)) == before
    assert "empty, removed" in str(getattr(planted.reported(None), "error", ""))


def test_what_was_there_stays_and_a_quiet_run_is_as_it_was(workspace: Path, edges: Edges, tmp_path: Path) -> None:
    shell(workspace, "mkdir .git; echo mine > .git/config")
    planted = Planted(str(tmp_path), edges, [str(workspace)])
    planted.begin()
    shell(workspace, "echo code > main.py")
    planted.look(makes_repositories=False)
    assert planted.reported("as it was") == "as it was"
    assert (workspace / ".git/config").read_text() == "mine\n"


def test_git_makes_repositories_and_nothing_else(workspace: Path, edges: Edges, tmp_path: Path) -> None:
    planted = Planted(str(tmp_path), edges, [str(workspace)])
    planted.begin()
    shell(workspace, "mkdir -p lib/.git; echo made > lib/.git/HEAD; echo evil > toolgate.yaml")
    planted.look(makes_repositories=True)
    planted.look(makes_repositories=False)
    assert steering(edges) == {str(workspace / "lib/.git")}


def test_what_cannot_be_put_aside_is_named(
    workspace: Path, edges: Edges, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planted = Planted(str(tmp_path), edges, [str(workspace)])
    planted.begin()
    shell(workspace, "echo evil > toolgate.yaml")

    def refuse(*_names: str) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "rename", refuse)
    with pytest.raises(SandboxError, match=r"toolgate\.yaml.*could not be put aside") as raised:
        planted.look(makes_repositories=False)
    assert raised.value.may_have_run


DYING = """
import os, signal, sys
from toolgate.adapters.runners.sandbox.backend import Files
from toolgate.adapters.runners.sandbox.planted import Planted
from toolgate.guards.edges import Edges
from toolgate.guards.files import Workspace
files = Files()
Planted(files.path, Edges(workspace=Workspace(sys.argv[1])), [sys.argv[1]]).begin()
os.mkdir(os.path.join(sys.argv[1], ".git"))
open(os.path.join(sys.argv[1], ".git", "config"), "w").write("evil")
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_the_next_gate_puts_aside_what_a_killed_one_did_not(workspace: Path) -> None:
    if os.geteuid() == 0:
        os.chown(workspace, 0, 0)
    ended = subprocess.run([sys.executable, "-c", DYING, str(workspace)], check=False)
    assert ended.returncode == -signal.SIGKILL
    assert (workspace / ".git/config").exists()
    Files().close()
    assert not (workspace / ".git").exists()
    assert [path.read_text() for path in workspace.glob("aside-*-git/config")] == ["evil"]
    (workspace / ".git").mkdir()
    (workspace / ".git/config").write_text("a person's own")
    Files().close()
    assert (workspace / ".git/config").read_text() == "a person's own"


@needs_sandbox
async def test_a_command_through_the_gate_fails_with_the_report(workspace: Path, tmp_path: Path) -> None:
    shell(workspace, "mkdir -p one/.hg; echo evil > one/.hg/hgrc; echo code > one/code")
    for name, text in render("developer").items():
        (tmp_path / name).write_text(text)
    async with toolgate.open(
        "memory://",
        workspace=workspace,
        policy=str(tmp_path / "toolgate.yaml"),
        built_in_tools=True,
        approver=lambda _approval: True,
    ) as gate:
        result = await gate.call("execute_command", {"command": "cp", "args": ["-r", "one", "two"]})
        assert result.status == "FAILED", result.data
        assert f"{workspace}/two/.hg (now " in str(result.error)
        assert not (workspace / "two/.hg").exists()
        assert (workspace / "one/.hg/hgrc").exists()
        assert (workspace / "two/code").exists()
        made = await gate.call("execute_command", {"command": "mkdir", "args": ["free"]})
        assert made.unwrap()["exit_code"] == 0
