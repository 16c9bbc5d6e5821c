"""A program that could be replaced runs as it was first used; another file in its place is asked about."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import toolgate
from toolgate.interfaces.cli.app import app
from toolgate.kernel.approval import Approval
from toolgate.kernel.call import Status
from toolgate.kernel.context import SYSTEM_PROJECT
from toolgate.kernel.grant import Remember
from toolgate.policy.loader import load_policy

POLICY = """
version: 1
tool_directories: ["${WORKSPACE}/.venv/bin"]
commands:
  lint: {from_workspace: true}
tools:
  execute_command: {decision: allow, commands: {unknown: ask}, sandbox: {backend: none}}
  run_linter: {decision: allow, sandbox: {backend: none}}
"""
Answer = Callable[[Approval], bool]


class Bench:
    """A workspace with a tool of its own; each opening is a process of its own."""

    def __init__(self, folder: Path) -> None:
        self.work = folder / "work"
        self.program = self.work / ".venv" / "bin" / "lint"
        self.program.parent.mkdir(parents=True)
        (self.work / "toolgate.yaml").write_text(POLICY)
        self.database = folder / "gate.db"
        self.asked: list[Approval] = []
        self.write("one")

    def write(self, word: str, path: Path | None = None) -> None:
        path = path or self.program
        path.write_text(f"#!/bin/sh\necho {word}\n")
        path.chmod(0o755)

    def open(self, answer: Answer = lambda _approval: False, **options: Any) -> toolgate.Gate:
        def approver(approval: Approval) -> bool:
            self.asked.append(approval)
            return answer(approval)

        given: dict[str, Any] = {"policy": self.work, "approver": approver} | options
        return toolgate.open(self.database, workspace=self.work, built_in_tools=True, **given)

    def lint(self, answer: Answer = lambda _approval: False, **options: Any) -> tuple[Status, str]:
        with self.open(answer, **options) as gate:
            done = gate.sync.call("execute_command", {"command": "lint"})
            return done.status, done.data["stdout"].strip() if done.data else str(done.error)

    def run(self, *words: str) -> str:
        done = CliRunner().invoke(app, ["programs", *words, "--database", str(self.database)])
        assert done.exit_code in (0, 1, 2), done.output
        return done.output


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_another_file_in_its_place_is_asked_about_and_a_yes_pins_it(bench: Bench) -> None:
    assert bench.lint() == (Status.COMPLETED, "one")
    assert bench.lint() == (Status.COMPLETED, "one")
    bench.write("two")
    assert bench.lint()[0] is Status.REJECTED
    (question,) = bench.asked
    (told,) = question.facts["commands"]["changed_programs"]
    assert told["path"] == str(bench.program)
    assert told["before"]["sha256"] != told["now"]["sha256"]
    assert {"size", "modified", "pinned_at", "pinned_by"} <= told["before"].keys()
    assert any("is not what it was when it was pinned" in reason for reason in question.reasons)
    assert bench.lint(lambda _approval: True) == (Status.COMPLETED, "two")
    assert bench.lint() == (Status.COMPLETED, "two")
    assert len(bench.asked) == 2
    with bench.open() as gate:
        events = [one for one in gate.sync.events(project=SYSTEM_PROJECT) if one.type == "program.pinned"]
    assert [one.data["by"] for one in events] == ["policy:first-use", "callback"]
    assert events[1].data["before"] == told["before"]["sha256"]


def test_the_same_content_installed_again_is_the_same_program(bench: Bench) -> None:
    bench.lint()
    bench.program.unlink()
    bench.write("one")
    assert bench.lint() == (Status.COMPLETED, "one")
    assert not bench.asked


def test_a_yes_holds_for_the_content_that_was_shown(bench: Bench) -> None:
    bench.lint()
    bench.write("two")
    words = iter(("three", "four", "five", "six", "seven"))

    def swap(_approval: Approval) -> bool:
        if len(bench.asked) < 3:
            bench.write(next(words))
        return True

    assert bench.lint(swap) == (Status.COMPLETED, "four")
    assert len(bench.asked) == 3


async def test_a_remembered_yes_does_not_cover_another_program(bench: Bench) -> None:
    bench.write("one", bench.work / "build.sh")
    line = {"command": "./build.sh", "args": []}
    async with bench.open(approver=None) as gate:
        asked = await gate.call("execute_command", line, wait=False)
        assert asked.approval_id is not None
        await gate.decide(asked.approval_id, "approve", by="ann", remember=Remember(uses=5))
        await gate.wait(asked.call_id)
        assert (await gate.call("execute_command", line)).status is Status.COMPLETED
        bench.write("two", bench.work / "build.sh")
        again = await gate.call("execute_command", line, wait=False)
        assert again.status is Status.AWAITING_APPROVAL


def test_without_a_question_a_changed_program_does_not_run(bench: Bench) -> None:
    bench.lint()
    bench.write("two")
    status, _ = bench.lint(policy=load_policy(bench.work, workspace=bench.work))
    assert status is Status.REJECTED  # this policy's own book was read, too
    policy = load_policy(bench.work, workspace=bench.work)
    with bench.open() as gate:
        gate.sync.set_policy(policy, by="ann")  # it knows of no programs
        done = gate.sync.call("execute_command", {"command": "lint"})
    assert done.status is Status.FAILED
    assert f"toolgate programs accept {bench.program}" in str(done.error)
    assert "Nothing ran" in str(done.error)


def test_every_program_of_a_pipe_is_looked_at(bench: Bench) -> None:
    other = bench.program.with_name("show")
    bench.write("show", other)
    line = {"command": "lint | ./.venv/bin/show"}
    with bench.open(lambda _approval: True) as gate:
        assert gate.sync.call("execute_command", line).status is Status.COMPLETED
    listed = json.loads(bench.run("list", "--json"))["programs"]
    assert {one["path"] for one in listed} == {str(bench.program), str(other)}


def test_a_tool_that_chooses_its_program_asks_too(bench: Bench) -> None:
    ruff = bench.program.with_name("ruff")
    bench.write("one", ruff)
    with bench.open(lambda _approval: True) as gate:
        assert gate.sync.call("run_linter", {}).status is Status.COMPLETED
        bench.write("two", ruff)
        done = gate.sync.call("run_linter", {})
        assert (done.status, done.data["stdout"]) == (Status.COMPLETED, "two\n")
        assert gate.sync.call("run_linter", {}).status is Status.COMPLETED
    (question,) = bench.asked
    assert question.facts["programs"][0]["path"] == str(ruff)


def test_what_a_person_says_on_the_command_line_reaches_a_running_gate(bench: Bench) -> None:
    with bench.open() as gate:
        assert gate.sync.call("execute_command", {"command": "lint"}).status is Status.COMPLETED
        bench.write("two")
        assert "changed" in bench.run("list")
        assert "accepted. It was sha256" in bench.run("accept", str(bench.program), "--by", "ann")
        assert gate.sync.call("execute_command", {"command": "lint"}).status is Status.COMPLETED
    assert not bench.asked


def test_programs_are_listed_accepted_and_forgotten(bench: Bench) -> None:
    with bench.open():
        assert "No program is on record." in bench.run("list")
    bench.lint()
    assert "Every program is what it was." in bench.run("list", "--changed")
    assert "Nothing to accept" in bench.run("accept", "--all")
    bench.write("two")
    (listed,) = json.loads(bench.run("list", "--json"))["programs"]
    assert (listed["state"], listed["pinned_by"]) == ("changed", "policy:first-use")
    assert listed["now"]["sha256"] != listed["sha256"]
    (accepted,) = json.loads(bench.run("accept", "--all", "--json"))["accepted"]
    assert accepted["path"] == str(bench.program)
    os.unlink(bench.program)
    assert json.loads(bench.run("list", "--json"))["programs"][0]["state"] == "gone"
    assert "1 forgotten." in bench.run("forget", str(bench.program))
    bench.write("three")
    bench.lint()
    assert json.loads(bench.run("forget", "--all", "--json")) == {"forgotten": [str(bench.program)]}
    assert json.loads(bench.run("forget", "--all", "--json")) == {"forgotten": []}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("accept",), "Name the programs, or say --all."),
        (("forget", "/no/such"), "'/no/such' is not on record"),
        (("accept", "--all", "--by", "agent:coder"), "only people"),
    ],
)
def test_what_cannot_be_done_is_said(bench: Bench, words: tuple[str, ...], said: str) -> None:
    bench.lint()
    done = CliRunner().invoke(app, ["programs", *words, "--database", str(bench.database)])
    assert said in str(done.exception) + done.output


def test_doctor_names_changed_programs(bench: Bench) -> None:
    bench.lint()
    words = ["doctor", str(bench.work), "--database", str(bench.database), "--json"]
    before = json.loads(CliRunner().invoke(app, words).output)["findings"]
    bench.write("two")
    after = json.loads(CliRunner().invoke(app, words).output)["findings"]
    assert [one for one in before if one["what"] == "programs"] == []
    (found,) = [one for one in after if one["what"] == "programs"]
    assert str(bench.program) in found["detail"]
    assert found["is_warning"]
