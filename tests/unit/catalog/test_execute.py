"""`execute_command` under a policy: what a person is shown of a command without grammar, and what a yes runs."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.sandboxes import needs_bubblewrap, needs_sandbox

import toolgate

pytestmark = needs_sandbox
POLICY = """
version: 1
tools:
  execute_command:
    commands: {unknown: ask}
    paths: {allowed: ["${WORKSPACE}/**"]}
commands:
  cat: {positionals: [{name: path, value: path, at_least: 1, at_most: any}]}
  rm: {decision: deny}
  sort: {decision: ask, from_workspace: true, positionals: [{name: file, value: path}]}
tool_directories: ["${WORKSPACE}/bin"]
"""


class Person:
    """Answers every question the same way, and keeps what was shown."""

    def __init__(self) -> None:
        self.says = True
        self.shown: list[Any] = []
        self.before: Callable[[], object] = list

    def __call__(self, approval: toolgate.Approval) -> bool:
        self.shown.append(approval.preview)
        if len(self.shown) == 1:
            self.before()
        return self.says


@pytest.fixture
def person() -> Person:
    return Person()


@pytest.fixture
async def gate(workspace: Path, person: Person) -> AsyncIterator[toolgate.Gate]:
    policy = workspace.parent / f"{workspace.name}.yaml"
    policy.write_text(POLICY)
    async with toolgate.open(
        "memory://", workspace=workspace, policy=policy, built_in_tools=True, approver=person
    ) as opened:
        yield opened
    policy.unlink()


async def run(gate: toolgate.Gate, command: str, *args: str, **more: object) -> toolgate.Result:
    return await gate.call("execute_command", {"command": command, "args": list(args), **more})


async def test_what_the_grammar_knows_runs_unasked(gate: toolgate.Gate, person: Person) -> None:
    assert (await run(gate, "cat", "notes.txt")).unwrap()["stdout"] == "one\ntwo\nthree\n"
    assert person.shown == []


async def test_a_yes_runs_what_was_shown_in_the_sandbox(gate: toolgate.Gate, person: Person, workspace: Path) -> None:
    data = (await run(gate, "cp", "notes.txt", "copy.txt")).unwrap()
    assert data["exit_code"] == 0
    assert (workspace / "copy.txt").read_text() == "one\ntwo\nthree\n"
    (shown,) = person.shown
    assert shown["argv"] == ["cp", "notes.txt", "copy.txt"]
    assert shown["program"].endswith("/bin/cp")
    assert shown["starts in"] == str(workspace.resolve())
    assert (shown["workspace"], shown["network"]) == ("writable", "none")
    assert "'cp' is not in the policy's table" in shown["asked because"]


async def test_a_no_runs_nothing(gate: toolgate.Gate, person: Person, workspace: Path) -> None:
    person.says = False
    result = await run(gate, "cp", "notes.txt", "copy.txt")
    assert not result.success
    assert not (workspace / "copy.txt").exists()


@needs_bubblewrap
async def test_a_yes_gives_neither_network_nor_secrets(gate: toolgate.Gate, workspace: Path) -> None:
    (workspace / "look.sh").write_text("#!/bin/sh\ncat .en*\nls /sys/class/net 2>&1\ncat /proc/net/dev\n")
    (workspace / "look.sh").chmod(0o755)
    data = (await run(gate, "./look.sh")).unwrap()
    assert "canary" not in data["stdout"]
    assert "eth0" not in data["stdout"]


@pytest.mark.parametrize(
    "line", [["cp", ".env", "x"], ["cp", "../x", "y"], ["rm", "-rf", "src"], ["nice", "rm", "x"], ["no-such-program"]]
)
async def test_what_stays_refused_is_no_question(gate: toolgate.Gate, person: Person, line: list[str]) -> None:
    result = await run(gate, *line)
    assert (result.status, result.error_code) == ("DENIED", "denied")
    assert person.shown == []


async def test_a_yes_holds_for_the_program_as_it_was(gate: toolgate.Gate, person: Person, workspace: Path) -> None:
    script = workspace / "run.sh"
    script.write_text("#!/bin/sh\necho first\n")
    script.chmod(0o755)

    person.before = lambda: script.write_text("#!/bin/sh\necho second\n")
    assert (await run(gate, "./run.sh")).unwrap()["stdout"] == "second\n"
    assert len(person.shown) == 2  # the first yes was for another content


async def test_a_yes_to_a_known_command_holds_for_the_program_it_was(
    gate: toolgate.Gate, person: Person, workspace: Path
) -> None:
    own = workspace / "bin" / "sort"
    own.parent.mkdir()

    def plant(text: str) -> None:
        own.write_text(f"#!/bin/sh\necho {text}\n")
        own.chmod(0o755)

    person.before = lambda: plant("planted")
    assert (await run(gate, "sort", "notes.txt")).unwrap()["stdout"] == "planted\n"
    assert [shown["program"] for shown in person.shown] == [person.shown[0]["program"], str(own.resolve())]
    assert person.shown[0]["program"].startswith("/usr/bin/")
    person.shown.clear()
    person.before = lambda: plant("changed")
    assert (await run(gate, "sort", "notes.txt")).unwrap()["stdout"] == "changed\n"
    assert len(person.shown) == 2


async def line(gate: toolgate.Gate, text: str, **more: object) -> dict[str, Any]:
    data: dict[str, Any] = (await gate.call("execute_command", {"command": text, **more})).unwrap()
    return data


@pytest.mark.parametrize(
    ("text", "stdout", "code"),
    [
        ("cat notes.txt | cat | cat", "one\ntwo\nthree\n", 0),
        ("cd src && cat main.py > /dev/null; cat ../notes.txt", "one\ntwo\nthree\n", 0),
        ("cat missing 2>/dev/null || cat notes.txt", "one\ntwo\nthree\n", 0),
        ("cat missing 2>/dev/null && cat notes.txt", "", 1),
        ("cat < notes.txt", "one\ntwo\nthree\n", 0),
        ("bash -c 'cat notes.txt | cat'", "one\ntwo\nthree\n", 0),
        ("cat missing 2>&1 | cat", "cat: missing: No such file or directory\n", 0),
    ],
)
async def test_a_line_of_known_commands_runs_unasked(
    gate: toolgate.Gate, person: Person, text: str, stdout: str, code: int
) -> None:
    data = await line(gate, text)
    assert (data["stdout"].replace("/usr/bin/", "").replace("/bin/", ""), data["exit_code"]) == (stdout, code)
    assert person.shown == []


async def test_one_question_shows_every_command_of_a_line(gate: toolgate.Gate, person: Person, workspace: Path) -> None:
    data = await line(gate, "cat notes.txt | tac > back.txt && cat back.txt")
    assert data["stdout"] == "three\ntwo\none\n"
    (shown,) = person.shown
    assert shown["line"] == "cat notes.txt | tac > back.txt && cat back.txt"
    assert [one["argv"][0] for one in shown["commands"]] == ["cat", "tac", "cat"]
    assert [one["workspace"] for one in shown["commands"]] == ["read-only", "writable", "read-only"]
    assert "tee" in shown["commands"][1]["asked because"]


@pytest.mark.parametrize("text", ["cat notes.txt || cd src && pwd", "cd src || cd src && pwd", "cat notes.txt; cd"])
async def test_a_directory_that_may_not_be_reached_is_left_to_a_shell(
    gate: toolgate.Gate, person: Person, text: str, workspace: Path
) -> None:
    shell = ["bash", "-c", text]
    expected = await asyncio.to_thread(subprocess.run, shell, cwd=workspace, capture_output=True, text=True, check=True)
    assert (await line(gate, text))["stdout"] == expected.stdout
    assert person.shown[0]["commands"][0]["argv"] == ["bash", "-c", text]


async def test_what_only_a_shell_can_run_is_shown_to_the_letter(gate: toolgate.Gate, person: Person) -> None:
    text = 'for x in 1 2; do echo "n$x"; done'
    assert (await line(gate, text))["stdout"] == "n1\nn2\n"
    assert person.shown[0]["line"] == text
    assert person.shown[0]["commands"][0]["argv"] == ["bash", "-c", text]


@pytest.mark.parametrize(
    "text",
    [
        "cat notes.txt; cat .env",
        "cat notes.txt > .git/config",
        "cat notes.txt > ../out",
        "cd src && cat ../.env",
        "cd .. && cat x",
        "cat < .env",
        "LD_PRELOAD=./x cat notes.txt",
        "cat notes.txt && rm notes.txt",
        "bash -c 'rm notes.txt'",
        "for x in 1; do rm notes.txt; done",
        "echo $(cat .env)",
        "cd src",
    ],
)
async def test_one_word_that_is_refused_refuses_the_line(gate: toolgate.Gate, person: Person, text: str) -> None:
    result = await gate.call("execute_command", {"command": text})
    assert (result.status, result.error_code) == ("DENIED", "denied")
    assert person.shown == []


@needs_bubblewrap
async def test_a_command_gains_no_right_from_its_neighbour(gate: toolgate.Gate, workspace: Path) -> None:
    (workspace / "try.sh").write_text("#!/bin/sh\necho x > .git/config\ncat\n")
    (workspace / "try.sh").chmod(0o755)
    await asyncio.to_thread(subprocess.run, ["git", "init", "-q", str(workspace)], check=True)
    before = (workspace / ".git" / "config").read_text()
    await line(gate, "git add notes.txt | ./try.sh; ./try.sh; git add src")
    assert (workspace / ".git" / "config").read_text() == before
    assert (workspace / ".git" / "index").exists()


async def test_a_line_is_stopped_as_a_whole(gate: toolgate.Gate) -> None:
    result = await gate.call("execute_command", {"command": "sleep 30; cat notes.txt", "timeout": 1})
    assert (result.status, result.error) == ("FAILED", "Command timed out")
    assert "one" not in result.data["stdout"]


async def test_a_line_goes_to_a_directory_that_it_makes(gate: toolgate.Gate, person: Person) -> None:
    data = await line(gate, "mkdir new && cd new && cat ../notes.txt")
    assert (data["stdout"], data["exit_code"]) == ("one\ntwo\nthree\n", 0)
    assert len(person.shown) == 1


async def test_a_link_in_the_place_of_a_new_directory_leads_nowhere_else(gate: toolgate.Gate, workspace: Path) -> None:
    (workspace.parent / "secret.txt").write_text("canary")
    (workspace / "secret.txt").write_text("harmless")
    result = await gate.call("execute_command", {"command": "ln -s . new && cd new && cat ../secret.txt"})
    assert "canary" not in str(result)
    assert result.status == "FAILED"  # the link was made, and the rest did not run


async def test_a_directory_that_is_not_there_ends_the_line(gate: toolgate.Gate) -> None:
    data = await line(gate, "cat notes.txt; cd missing; cat notes.txt")
    assert (data["stdout"], data["exit_code"]) == ("one\ntwo\nthree\n", 1)
    assert "nothing after it ran" in data["stderr"]
