"""The saga: last effect first, looked at before, stopped or skipped by choice, and told."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from tests.journeys.scene import Open

from toolgate import Context, Gate, Policy, ToolDefinition, ToolInput, ToolOutput
from toolgate.errors import NotFoundError, UsageError
from toolgate.kernel.record import evolve
from toolgate.kernel.undo import UndoMetadata
from toolgate.pipeline.people.undoing import Step
from toolgate.testing.patience import until

RUN = Context(run_id="r1", principal="agent:a", user="ann")


class World:
    """Values by name, written and put back; `broken` names cannot be put back."""

    def __init__(self) -> None:
        self.values: dict[str, int] = {}
        self.broken: set[str] = set()
        self.order: list[str] = []

    async def write(self, given: ToolInput) -> ToolOutput:
        name = given.payload["name"]
        old = self.values.get(name)
        self.values[name] = given.payload["value"]
        return ToolOutput.ok(undo_metadata={"name": name, "old": old})

    async def put_back(self, undo: UndoMetadata) -> None:
        name = undo.undo_data["name"]
        if name in self.broken:
            raise OSError("stuck")
        self.order.append(name)
        self.values[name] = undo.undo_data["old"]

    def look(self, undo: UndoMetadata) -> Any:
        return self.values.get(undo.undo_data["name"])

    def tools(self) -> list[ToolDefinition]:
        async def plain(_given: ToolInput) -> ToolOutput:
            return ToolOutput.ok()

        return [
            ToolDefinition("write", {}, self.write, undoable=True, undo_handler=self.put_back, fingerprint=self.look),
            ToolDefinition("read", {}, plain, effects="read"),
            ToolDefinition("send", {}, plain, effects="irreversible", risk_level="low"),
            ToolDefinition("ask", {}, plain, requires_approval=True),
        ]


@pytest.fixture
def world() -> World:
    return World()


async def write(gate: Gate, name: str, value: int = 1) -> str:
    return (await gate.call("write", {"name": name, "value": value}, context=RUN)).call_id


def steps(report: Any) -> list[tuple[str, Step]]:
    return [(step.tool_name, step.step) for step in report.steps]


async def test_a_preview_changes_nothing_and_says_what_would_happen(open_gate: Open, world: World) -> None:
    async with open_gate(tools=world.tools()) as gate:
        for name in ("a", "b"):
            await write(gate, name)
        await gate.call("read", context=RUN)
        world.values["a"] = 99
        report = await gate.undo_run("r1", preview=True)
        assert steps(report) == [("read", Step.NOTHING), ("write", Step.UNDOABLE), ("write", Step.FAILED)]
        assert "changed since" in report.steps[-1].reason
        assert (report.is_preview, report.success, world.values) == (True, False, {"a": 99, "b": 1})
        assert not [event for event in await gate.events() if event.type.startswith(("run.", "tool.undo"))]


async def test_all_of_a_run_is_undone_last_first_and_told(open_gate: Open, world: World) -> None:
    async with open_gate(tools=world.tools()) as gate:
        ids = [await write(gate, name) for name in ("a", "b", "c")]
        await gate.call("read", context=RUN)
        report = await gate.undo_run("r1", context=RUN)
        assert (world.order, report.success, report.is_preview) == (["c", "b", "a"], True, False)
        (told,) = [event for event in await gate.events() if event.type == "run.undone"]
        assert (told.data["undone"], told.data["by"], told.data["success"]) == (ids[::-1], "ann", True)
        again = await gate.undo_run("r1")
        assert {step.step for step in again.steps} == {Step.NOTHING}


async def test_what_cannot_be_undone_stops_it_and_the_rest_is_left(open_gate: Open, world: World) -> None:
    async with open_gate(tools=world.tools()) as gate:
        await write(gate, "a")
        await gate.call("send", context=RUN)
        await write(gate, "b")
        report = await gate.undo_run("r1")
        assert steps(report) == [("write", Step.UNDONE), ("send", Step.FAILED), ("write", Step.LEFT)]
        assert "no undo data" in report.steps[1].reason
        assert (report.success, world.values) == (False, {"a": 1, "b": None})
        skipped = await gate.undo_run("r1", skip_failures=True)
        assert steps(skipped) == [("write", Step.NOTHING), ("send", Step.FAILED), ("write", Step.UNDONE)]
        assert world.values == {"a": None, "b": None}


async def test_a_conflict_is_found_step_by_step_and_can_be_forced(open_gate: Open, world: World) -> None:
    async with open_gate(tools=world.tools()) as gate:
        await write(gate, "a")
        await write(gate, "b")
        world.values["a"] = 42
        report = await gate.undo_run("r1")
        assert steps(report) == [("write", Step.UNDONE), ("write", Step.FAILED)]
        assert world.values["a"] == 42
        assert (await gate.undo_run("r1", force=True)).success
        assert world.values["a"] is None


async def test_an_undo_that_fails_says_why(open_gate: Open, world: World) -> None:
    async with open_gate(tools=world.tools()) as gate:
        await write(gate, "a")
        world.broken.add("a")
        report = await gate.undo_run("r1")
        assert "stuck" in report.steps[0].reason
        assert report.results[0].error_code is not None


async def test_what_has_not_ended_is_in_the_report(open_gate: Open, world: World) -> None:
    async with open_gate(tools=world.tools()) as gate:
        await write(gate, "a")
        await gate.call("ask", context=RUN, wait=False)
        report = await gate.undo_run("r1", preview=True)
        assert steps(report) == [("ask", Step.FAILED), ("write", Step.LEFT)]
        assert "AWAITING_APPROVAL" in report.steps[0].reason


async def test_each_undo_is_asked_about_where_the_policy_says_so(open_gate: Open, world: World) -> None:
    async with open_gate(tools=world.tools(), policy=Policy(undo_asks=True, revision="asks")) as gate:
        await write(gate, "a")
        undoing = asyncio.ensure_future(gate.undo_run("r1"))
        await until(gate.pending)
        (approval,) = await gate.pending()
        await gate.decide(approval.id, "deny", by="bob")
        report = await undoing
        assert steps(report) == [("write", Step.FAILED)]
        assert "denied by bob" in report.steps[0].reason
        assert world.values == {"a": 1}


async def test_a_run_is_gone_through_page_by_page(
    open_gate: Open, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolgate.pipeline.people.undoing.PAGE", 2)
    async with open_gate(tools=world.tools()) as gate:
        for name in "abcde":
            await write(gate, name)
        assert (await gate.undo_run("r1")).success
        assert world.order == list("edcba")


@pytest.mark.parametrize("preview", [True, False])
async def test_a_run_that_there_is_not_is_said_to_be_unknown(open_gate: Open, world: World, preview: bool) -> None:
    async with open_gate(tools=world.tools()) as gate:
        with pytest.raises(NotFoundError, match=r"There is no run 'r9' in project `default`; it has no runs\."):
            await gate.undo_run("r9", preview=preview)
        await write(gate, "a")
        await gate.call("read", context=evolve(RUN, run_id="r2"))
        await gate.call("read", context=evolve(RUN, run_id=None))
        with pytest.raises(NotFoundError, match=r"its latest runs are: r2, r1\."):
            await gate.undo_run("r9", preview=preview)
        assert not [event for event in await gate.events() if event.type == "run.undone"]


@pytest.mark.parametrize("run", [None, "", 7])
async def test_no_run_at_all_does_not_stand_for_every_run(open_gate: Open, world: World, run: Any) -> None:
    async with open_gate(tools=world.tools()) as gate:
        await write(gate, "a")
        with pytest.raises(UsageError, match="named by its id"):
            await gate.undo_run(run)
        assert world.values == {"a": 1}


async def test_a_run_whose_calls_did_nothing_has_nothing_to_undo(open_gate: Open, world: World) -> None:
    async with open_gate(tools=world.tools()) as gate:
        await gate.call("no_such_tool", context=RUN)
        report = await gate.undo_run("r1")
        assert (report.steps, report.success) == ((), True)


async def test_what_is_undone_unchecked_is_told_apart(open_gate: Open, world: World) -> None:
    tools = [replace(tool, fingerprint=None) if tool.name == "write" else tool for tool in world.tools()]
    async with open_gate(tools=tools) as gate:
        id = await write(gate, "a")
        assert [step.unchecked for step in (await gate.undo_run("r1", preview=True)).steps] == [True]
        report = await gate.undo_run("r1")
        assert [(step.step, step.unchecked) for step in report.steps] == [(Step.UNDONE, True)]
        (told,) = [event for event in await gate.events() if event.type == "run.undone"]
        assert told.data["unchecked"] == [id]


async def test_a_preview_says_what_the_policy_refuses_unchecked(open_gate: Open, world: World) -> None:
    tools = [replace(tool, fingerprint=None) if tool.name == "write" else tool for tool in world.tools()]
    async with open_gate(tools=tools, policy=Policy(refuses_unchecked_undo=True)) as gate:
        await write(gate, "a")
        for preview in (True, False):
            (step,) = (await gate.undo_run("r1", preview=preview)).steps
            assert (step.step, "unchecked" in step.reason) == (Step.FAILED, True)
        (step,) = (await gate.undo_run("r1", force=True)).steps
        assert (step.step, step.unchecked) == (Step.UNDONE, True)
