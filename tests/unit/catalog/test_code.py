"""Programs in the sandbox: commands by grammar, Git, linters and tests."""

from __future__ import annotations

import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.sandboxes import needs_bubblewrap, needs_sandbox

import toolgate
from toolgate.adapters.runners.sandbox import Sandbox, SandboxRunner
from toolgate.catalog import built_in_tools
from toolgate.catalog.git import parse_status
from toolgate.guards.edges import Edges
from toolgate.guards.files import Workspace
from toolgate.guards.grammar import Command, Flag, Limits, Positional, Value, pin
from toolgate.kernel.policy import Word
from toolgate.kernel.tool import Placement

pytestmark = needs_sandbox
PATHS = Positional(name="path", value=Value(kind="path"), maximum=None)
COMMANDS = (
    Command(name="cat", positionals=(PATHS,)),
    Command(name="ls", flags=(Flag(names=("-a",)),), positionals=(PATHS,)),
    Command(name="grep", flags=(Flag(names=("-r",)),), positionals=(Positional(name="pattern", minimum=1), PATHS)),
    Command(name="sleep", positionals=(Positional(name="seconds"),), limits=Limits(timeout_s=60)),
    Command(
        name="touch",
        writes=True,
        positionals=(Positional(name="path", value=Value(kind="path", access="write"), maximum=None),),
    ),
    Command(name="sh", writes=True, flags=(Flag(names=("-c",), value=Value()),)),
    Command(name="git", writes=True, subcommands=(Command(name="add", writes=True, positionals=(PATHS,)),)),
    Command(name="env", environment=("SHOWN",)),
    Command(name="rm", word=Word.DENY, positionals=(PATHS,)),
    Command(name="yes", limits=Limits(timeout_s=1, output_bytes=100)),
)


@pytest.fixture
async def gate(workspace: Path) -> AsyncIterator[toolgate.Gate]:
    with Workspace(workspace) as opened:
        edges = Edges(workspace=opened, commands={item.name: pin(item) for item in COMMANDS})
        runner = SandboxRunner(Sandbox(lambda: edges))
        made = toolgate.open("memory://", tools=built_in_tools(edges), approver=lambda _approval: True)
        made._driver.runners[Placement.SANDBOX.value] = runner  # type: ignore[index]  # the edges under test
        async with made:
            yield made
        await runner.close()


async def run(gate: toolgate.Gate, command: str, *args: str, **more: object) -> toolgate.Result:
    return await gate.call("execute_command", {"command": command, "args": list(args), **more})


async def test_a_command_runs_in_the_workspace(gate: toolgate.Gate) -> None:
    data = (await run(gate, "cat", "notes.txt")).unwrap()
    assert (data["stdout"], data["exit_code"]) == ("one\ntwo\nthree\n", 0)
    assert (await run(gate, "ls", cwd="src")).unwrap()["stdout"] == "main.py\n"
    assert (await run(gate, "cat", "main.py", cwd="src")).success


async def test_an_exit_code_is_data(gate: toolgate.Gate) -> None:
    data = (await run(gate, "cat", "missing")).unwrap()
    assert data["exit_code"] == 1
    assert "No such file" in data["stderr"]


@pytest.mark.parametrize(
    ("command", "args"),
    [
        ("cat", ["../x"]),
        ("cat", ["/etc/passwd"]),
        ("cat", [".env"]),
        ("cat", ["src/../.env"]),
        ("cat", ["-n", "notes.txt"]),
        ("rm", ["notes.txt"]),
        ("touch", [".git/hooks/x"]),
        ("./cat", ["notes.txt"]),
        ("/bin/cat", ["notes.txt"]),
        ("bash", ["-c", "cat $HOME"]),
        ("bash", ["notes.txt"]),
        ("cat notes.txt", ["x"]),
    ],
)
async def test_what_the_policy_does_not_know_does_not_run(gate: toolgate.Gate, command: str, args: list[str]) -> None:
    result = await run(gate, command, *args)
    assert (result.status, result.error_code) == ("DENIED", "denied")
    assert "canary" not in str(result)


@needs_bubblewrap
async def test_a_search_does_not_find_what_is_hidden(gate: toolgate.Gate) -> None:
    data = (await run(gate, "grep", "-r", "canary", ".")).unwrap()
    assert (data["stdout"], data["exit_code"]) == ("", 1)


@needs_bubblewrap
async def test_only_commands_that_write_write(gate: toolgate.Gate, workspace: Path) -> None:
    assert (await run(gate, "touch", "made")).unwrap()["exit_code"] == 0
    assert (workspace / "made").exists()


@needs_bubblewrap
async def test_a_command_that_changes_files_that_run_later_says_so(gate: toolgate.Gate, workspace: Path) -> None:
    (workspace / "Makefile").write_text("all:\n")
    data = (await run(gate, "touch", "made", "Makefile", "src/conftest.py")).unwrap()
    assert data["run_later"] == ["Makefile", "src/conftest.py"]
    assert data["note"] == "It changed 2 files that run later: Makefile, src/conftest.py."
    assert "run_later" not in (await run(gate, "touch", "made")).unwrap()


@needs_bubblewrap
async def test_what_steers_programs_stays_as_it_is_whatever_runs(gate: toolgate.Gate, workspace: Path) -> None:
    git(workspace, "init", "-q")
    (workspace / "toolgate.yaml").write_text("version: 1\n")
    script = (
        "echo x > .git/config; echo x > .git/hooks/pre-commit; echo x > toolgate.yaml; echo x > free; echo x > .env"
    )
    await run(gate, "sh", "-c", script)
    assert (workspace / "free").read_text() == "x\n"
    assert (workspace / "toolgate.yaml").read_text() == "version: 1\n"
    assert "x\n" not in (workspace / ".git" / "config").read_text().splitlines(keepends=True)
    assert not (workspace / ".git" / "hooks" / "pre-commit").exists()
    assert (workspace / ".env").read_text() == "TOKEN=canary-secret"
    assert (await run(gate, "git", "add", "notes.txt")).unwrap()["exit_code"] == 0


async def test_variables_are_those_the_policy_lets_be_set(gate: toolgate.Gate) -> None:
    data = (await run(gate, "env", environment={"SHOWN": "yes"})).unwrap()
    assert "SHOWN=yes" in data["stdout"]
    assert not (await run(gate, "env", environment={"LD_PRELOAD": "x"})).success


async def test_a_command_that_takes_too_long_is_stopped(gate: toolgate.Gate) -> None:
    result = await run(gate, "sleep", "60", timeout=1)
    assert (result.status, result.error) == ("FAILED", "Command timed out")
    assert result.data["exit_code"] == -1


async def test_output_is_capped_and_says_so(gate: toolgate.Gate) -> None:
    result = await run(gate, "yes")
    assert "bytes left out" in result.data["stdout"]


async def test_a_directory_to_start_in_must_be_one(gate: toolgate.Gate) -> None:
    assert "not a directory" in str((await run(gate, "ls", cwd="notes.txt")).error)


def git(workspace: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=Ada", "-c", "user.email=ada@example.com"]
    subprocess.run(["git", "-C", str(workspace), *identity, *arguments], check=True, capture_output=True)


async def test_git_tells_branch_and_changes(gate: toolgate.Gate, workspace: Path) -> None:
    git(workspace, "init", "-q", "-b", "trunk")
    git(workspace, "add", "notes.txt", "src")
    git(workspace, "commit", "-q", "-m", "first")
    git(workspace, "mv", "src/main.py", "src/app.py")
    (workspace / "notes.txt").write_text("changed")
    (workspace / "new file").write_text("x")
    data = (await gate.call("git_status")).unwrap()
    found = {entry["path"]: (entry["index"], entry["worktree"]) for entry in data["files"]}
    assert (data["branch"], data["clean"]) == ("trunk", False)
    assert found["src/app.py"] == ("R", ".")
    assert found["notes.txt"] == (".", "M")
    assert found["new file"] == ("?", "?")


async def test_git_runs_nothing_that_a_repository_names(gate: toolgate.Gate, workspace: Path) -> None:
    git(workspace, "init", "-q")
    mark = workspace / "ran"
    hook = workspace / ".git" / "evil.sh"
    hook.write_text(f"#!/bin/sh\ntouch {mark}\n")
    hook.chmod(0o755)
    git(workspace, "config", "core.fsmonitor", str(hook))
    assert (await gate.call("git_status")).success
    assert not mark.exists()


async def test_where_there_is_no_repository_git_says_so(gate: toolgate.Gate) -> None:
    result = await gate.call("git_status")
    assert result.status == "FAILED"
    assert "not a git repository" in str(result.error)


def test_a_status_is_read() -> None:
    text = "# branch.oid (initial)\0# branch.head (detached)\0# branch.upstream o/m\0# branch.ab +2 -3\0"
    text += "u UU N... 1 2 3 4 a b c name with blank\0! ignored\0"
    found = parse_status(text)
    assert (found["commit"], found["branch"], found["upstream"]) == (None, None, "o/m")
    assert (found["ahead"], found["behind"]) == (2, 3)
    assert [entry["path"] for entry in found["files"]] == ["name with blank", "ignored"]


@needs_bubblewrap
async def test_linters_tell_what_they_find(gate: toolgate.Gate, workspace: Path) -> None:
    (workspace / "bad.py").write_text("import os\n\nx: int = 'text'\n")
    ruff = (await gate.call("run_linter", {"path": "bad.py"})).unwrap()
    assert not ruff["clean"]
    assert "F401" in ruff["stdout"]
    mypy = (await gate.call("run_linter", {"path": "bad.py", "linter": "mypy"})).unwrap()
    assert "Incompatible types" in mypy["stdout"]
    assert (await gate.call("run_linter", {"path": "src/main.py"})).success
    assert not (await gate.call("run_linter", {"path": "../"})).success


async def test_tests_are_run_where_they_can_harm_nothing(gate: toolgate.Gate, workspace: Path) -> None:
    # What our own environment plugs into pytest takes seconds to load, three times over.
    (workspace / "pytest.ini").write_text("[pytest]\naddopts = -p no:hypothesispytest -p no:randomly -p no:anyio\n")
    (workspace / "test_it.py").write_text(
        "from pathlib import Path\n"
        "def test_good(): pass\n"
        "def test_bad():\n"
        f"    Path('{workspace}/written').write_text('x')\n"
    )
    data = (await gate.call("run_tests", {"path": "test_it.py"})).unwrap()
    assert not data["passed"]
    assert "1 failed, 1 passed" in data["stdout"]
    assert (await gate.call("run_tests", {"path": "test_it.py", "keyword": "good"})).unwrap()["passed"]
    assert not (workspace / "written").exists()
    assert "could not run" in str((await gate.call("run_tests", {"path": "missing.py"})).error)


async def test_without_a_sandbox_runner_nothing_runs(workspace: Path) -> None:
    with Workspace(workspace) as opened:
        for tool in built_in_tools(Edges(workspace=opened)):
            if tool.placement is Placement.SANDBOX:
                with pytest.raises(toolgate.errors.ToolExecutionError, match="sandbox alone"):
                    await tool.handler(toolgate.ToolInput())  # type: ignore[misc]  # it has one
