"""`toolgate policy learn`: from a person's yes to a line of the policy, with nothing written unseen."""

from __future__ import annotations

import asyncio
import json
import subprocess
from pathlib import Path

import pytest
from tests.unit.interfaces.at_a_terminal import Seat
from tests.unit.interfaces.test_policy_commands import run

import toolgate

POLICY = """\
tools:
  execute_command: {commands: {unknown: ask}, paths: {allowed: ["${WORKSPACE}/**"]}}
default: deny
"""
COMMANDS = "# Mine.\ncommands:\n  cat: {positionals: [{name: path, value: path}]}\n"


class Place:
    """A workspace with a policy and a gate's database beside it."""

    def __init__(self, folder: Path) -> None:
        self.workspace = folder / "workspace"
        self.workspace.mkdir()
        self.policy = folder / "policy"
        self.policy.mkdir()
        (self.policy / "toolgate.yaml").write_text(f"include: [commands.yaml]\n{POLICY}")
        self.commands = self.policy / "commands.yaml"
        self.commands.write_text(COMMANDS)
        self.commands.chmod(0o640)
        self.database = folder / "calls.db"
        self.asked = 0

    def _yes(self, _approval: toolgate.Approval) -> bool:
        self.asked += 1
        return True

    async def call(self, line: str) -> toolgate.Result:
        async with toolgate.open(
            f"sqlite:///{self.database}",
            policy=self.policy,
            workspace=self.workspace,
            built_in_tools=True,
            approver=self._yes,
        ) as gate:
            return await gate.call("execute_command", {"command": line})

    def words(self, call_id: str, *more: object) -> list[object]:
        where = ("--policy", self.policy, "--database", self.database, "--workspace", self.workspace)
        return ["learn", call_id, *where, *more]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


async def test_a_yes_becomes_a_line_that_is_not_asked_about_again(place: Place) -> None:
    result = await place.call("factor 12")
    assert (result.unwrap()["stdout"], place.asked) == ("12: 2 2 3\n", 1)
    said = await asyncio.to_thread(run, *place.words(result.call_id))
    assert '+      - {args: ["12"], writes: true}' in said
    assert "Nothing was changed" in said
    assert place.commands.read_text() == COMMANDS
    seat = Seat([*map(str, ["policy", *place.words(result.call_id, "--write")])])
    await seat.sees("+  factor:", "Change the policy so?")
    seat.types("y\n")
    assert await seat.leaves() == 0
    assert place.commands.read_text().startswith(COMMANDS)
    assert place.commands.stat().st_mode & 0o777 == 0o640
    assert (await place.call("factor 12")).unwrap()["exit_code"] == 0
    assert place.asked == 1
    await place.call("factor 13")
    assert place.asked == 2
    assert [each.name for each in place.policy.iterdir() if each.name.startswith(".")] == []


async def test_the_diff_is_one_that_patch_applies(place: Place) -> None:
    result = await place.call("factor 12 | rev")
    told = json.loads(await asyncio.to_thread(run, *place.words(result.call_id, "--json")))
    assert told["then"] == "allow"
    done = await asyncio.to_thread(
        subprocess.run, ["git", "apply", "-"], cwd=place.policy, input=told["diff"].encode(), check=False
    )
    assert done.returncode == 0
    assert (await place.call("factor 12 | rev")).success
    assert place.asked == 1


async def test_nothing_is_written_where_nobody_sits_or_said_yes(place: Place) -> None:
    result = await place.call("factor 12")
    said = await asyncio.to_thread(run, *place.words(result.call_id, "--write"), code=2)
    assert "for a person at a terminal" in said
    seat = Seat([*map(str, ["policy", *place.words(result.call_id, "--write")])])
    await seat.sees("Change the policy so?")
    seat.types("n\n")
    assert await seat.leaves() == 1
    assert place.commands.read_text() == COMMANDS


async def test_a_policy_that_the_gate_did_not_read_is_not_written(place: Place) -> None:
    result = await place.call("factor 12")
    place.commands.write_text(f"{COMMANDS}  ls: {{}}\n")
    seat = Seat([*map(str, ["policy", *place.words(result.call_id, "--write")])])
    await seat.sees("has not read this policy")
    assert await seat.leaves() == 2
    assert "factor" not in place.commands.read_text()


async def test_a_file_that_changes_while_the_person_looks_is_left_as_it_is(place: Place) -> None:
    result = await place.call("factor 12")
    seat = Seat([*map(str, ["policy", *place.words(result.call_id, "--write")])])
    await seat.sees("Change the policy so?")
    place.commands.write_text(f"{COMMANDS}  ls: {{}}\n")
    seat.types("y\n")
    await seat.sees("changed meanwhile")
    assert await seat.leaves() == 2
    assert "factor" not in place.commands.read_text()


async def test_a_call_that_is_not_there_or_must_not_be_learned_ends_with_two(place: Place) -> None:
    result = await place.call("env factor 12")
    assert "`env` runs other programs" in await asyncio.to_thread(run, *place.words(result.call_id), code=2)
    assert "toolgate history" in await asyncio.to_thread(run, *place.words("nobody"), code=2)
