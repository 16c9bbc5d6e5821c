from __future__ import annotations

from datetime import date
from typing import Any

from tests.journeys.scene import Open, park

from toolgate import Policy, Prepared, ToolInput, ToolOutput, tool
from toolgate.kernel.approval import Approval
from toolgate.kernel.tool import ToolDefinition

seen: list[Any] = []


@tool(requires_approval=True)
async def write(path: str, lines: list[str]) -> str:
    seen.append((path, list(lines)))
    lines.append("changed by the handler")
    return path


def arguments() -> dict[str, Any]:
    return {"path": "/a", "lines": ["one"]}


async def test_a_caller_who_changes_the_arguments_changes_nothing(open_gate: Open) -> None:
    seen.clear()
    async with open_gate(tools=[write]) as gate:
        given = arguments()
        approval = await park(gate, "write", given)
        given["path"] = "/etc/passwd"
        given["lines"].append("two")
        await gate.decide(approval.id, "approve", by="ann")
        assert (await gate.wait(approval.call_id)).data == "/a"
        assert seen == [("/a", ["one"])]


async def test_an_approver_who_changes_what_was_shown_changes_nothing(open_gate: Open) -> None:
    seen.clear()

    def meddle(approval: Approval) -> bool:
        approval.arguments["path"] = "/etc/passwd"
        approval.arguments["lines"].append("two")
        return True

    async with open_gate(tools=[write], approver=meddle) as gate:
        result = await gate.call("write", arguments())
        assert seen == [("/a", ["one"])]
        assert (await gate.calls.get(result.call_id)).shown == arguments()
        assert (await gate.approvals.get(str(result.approval_id))).arguments == arguments()


async def test_whoever_looks_at_pending_approvals_cannot_change_what_others_see(open_gate: Open) -> None:
    async with open_gate(tools=[write]) as gate:
        approval = await park(gate, "write", arguments())
        (await gate.pending())[0].arguments["path"] = "/harmless"
        (await gate.approvals.get(approval.id)).arguments["path"] = "/harmless"
        assert (await gate.pending())[0].arguments == arguments()


class Meddling:
    """A rule that writes into what it is shown."""

    name = "meddling"

    def __call__(self, _call: Any, _tool: Any, facts: Any) -> None:
        facts.arguments["path"] = "/etc/passwd"
        facts.arguments["lines"].append("two")


async def test_a_rule_that_changes_what_it_is_shown_changes_nothing_that_runs(open_gate: Open) -> None:
    seen.clear()

    @tool(effects="read")
    async def plain(path: str, lines: list[str]) -> None:
        seen.append((path, lines))

    @tool(effects="read")
    async def dated(path: str, lines: list[str], day: date) -> None:
        seen.append((path, lines, day.year))

    async def look(given: ToolInput) -> Prepared:
        return Prepared(preview={"shows": given.payload["path"]})

    async def take(given: ToolInput) -> ToolOutput:
        return ToolOutput.ok(given.payload)

    looked = ToolDefinition("looked", {}, take, prepare=look)
    async with open_gate(tools=[write, plain, dated, looked], policy=Policy(rules=(Meddling(),))) as gate:
        typed = await gate.call("dated", given := {**arguments(), "day": "2026-01-01"})
        assert (await gate.calls.get(typed.call_id)).shown == given
        assert seen.pop() == ("/a", ["one"], 2026)
        hidden = await gate.call("dated", {**given, "lines": ["password=hunter2222"]})
        assert "hunter2222" not in str((await gate.calls.get(hidden.call_id)).shown)
        assert seen.pop() == ("/a", ["password=hunter2222"], 2026)
        shown = await gate.call("looked", arguments())
        assert (shown.data, (await gate.calls.get(shown.call_id)).preview) == (arguments(), {"shows": "/a"})
        result = await gate.call("plain", arguments())
        assert seen == [("/a", ["one"])]
        assert (await gate.calls.get(result.call_id)).shown == arguments()
        approval = await park(gate, "write", arguments())
        assert approval.arguments == arguments()
        await gate.decide(approval.id, "approve", by="ann")
        await gate.wait(approval.call_id)
        assert seen == 2 * [("/a", ["one"])]


async def test_a_handler_that_changes_its_input_changes_no_record(open_gate: Open) -> None:
    async def meddle(given: ToolInput) -> ToolOutput:
        given.payload["path"] = "/etc/passwd"
        given.action.payload.clear()
        return ToolOutput.ok()

    definition = ToolDefinition(name="meddle", handler=meddle)
    async with open_gate(tools=[definition]) as gate:
        result = await gate.call("meddle", {"path": "/a"})
        record = await gate.calls.get(result.call_id)
        assert (record.arguments, record.shown) == (b'{"path":"/a"}', {"path": "/a"})


async def test_a_caller_who_changes_the_result_changes_no_record(open_gate: Open) -> None:
    async def give(_given: ToolInput) -> ToolOutput:
        return ToolOutput.ok({"rows": [1]}, artifacts=[{"kind": "file"}])

    async with open_gate(tools=[ToolDefinition(name="give", handler=give)]) as gate:
        result = await gate.call("give")
        result.data["rows"].append(2)
        result.artifacts[0]["kind"] = "other"
        again = await gate.get(result.call_id)
        assert again.data == {"rows": [1]}
        assert again.artifacts == ({"kind": "file"},)


async def test_what_the_handler_keeps_of_its_output_stays_apart_from_the_result(open_gate: Open) -> None:
    kept: dict[str, Any] = {"rows": [1]}

    async def give(_given: ToolInput) -> ToolOutput:
        return ToolOutput.ok(kept)

    async with open_gate(tools=[ToolDefinition(name="give", handler=give)]) as gate:
        result = await gate.call("give")
        kept["rows"].append(2)
        assert result.data == {"rows": [1]}
        assert (await gate.get(result.call_id)).data == {"rows": [1]}
