"""One retry for passing errors of tools that may be repeated, on the same call; never for any other."""

from __future__ import annotations

import asyncio
import logging
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from tests.journeys.scene import Open

import toolgate
from toolgate import governance
from toolgate.gate import policies
from toolgate.kernel.call import Status
from toolgate.kernel.registry import ToolRegistry
from toolgate.policy import read_policy
from toolgate.testing.patience import until


class Shaky:
    """Fails a number of times, then works."""

    def __init__(self, failures: int = 1, error: Exception | None = None) -> None:
        self.failures = failures
        self.error = error or ConnectionResetError("the line went dead")
        self.seen: list[Any] = []

    async def look(self, names: list[str]) -> int:
        self.seen.append(list(names))
        names.append("changed by the handler")
        if len(self.seen) <= self.failures:
            raise self.error
        return len(self.seen)

    def tool(self, **options: Any) -> toolgate.ToolDefinition:
        return toolgate.tool(name="look", **options)(self.look)


@pytest.mark.parametrize(
    "options", [{"effects": "read"}, {"idempotent": True}, {"effects": "reversible", "idempotent": True}]
)
async def test_a_tool_that_may_be_repeated_is_tried_once_more(open_gate: Open, options: dict[str, Any]) -> None:
    shaky = Shaky()
    async with open_gate(tools=[shaky.tool(**options)]) as gate:
        result = await gate.call("look", {"names": ["a"]})
        assert (result.status, result.data) == (Status.COMPLETED, 2)
        assert shaky.seen == [["a"], ["a"]]  # the second attempt gets the arguments as they were approved
        events = await gate.events(call_id=result.call_id)
        assert [event.data["attempt"] for event in events if event.type == "tool.started"] == [1, 2]
        assert [event.type for event in events][-1] == "tool.completed"


async def test_typed_parameters_are_read_anew_for_the_second_attempt(open_gate: Open) -> None:
    seen: list[date] = []

    @toolgate.tool(effects="read")
    async def look(days: list[date]) -> int:
        seen.append(days.pop())
        if len(seen) == 1:
            raise ConnectionResetError("the line went dead")
        return len(days)

    async with open_gate(tools=[look]) as gate:
        assert (await gate.call("look", {"days": ["2026-01-01", "2026-01-02"]})).data == 1
        assert seen == [date(2026, 1, 2)] * 2


async def test_a_plain_handler_is_tried_once_more_as_well(open_gate: Open) -> None:
    seen: list[int] = []

    @toolgate.tool(effects="read")
    def look() -> int:
        seen.append(1)
        if len(seen) == 1:
            raise TimeoutError("the service did not answer")
        return len(seen)

    async with open_gate(tools=[look]) as gate:
        assert gate.sync.call("look").data == 2


@pytest.mark.parametrize(
    ("options", "error", "status"),
    [
        ({}, ConnectionResetError("undeclared effects"), Status.UNKNOWN),
        ({}, ConnectionRefusedError("undeclared effects"), Status.FAILED),
        ({"effects": "irreversible"}, ConnectionResetError("effects"), Status.UNKNOWN),
        ({"effects": "read"}, ValueError("not a passing one"), Status.FAILED),
    ],
)
async def test_anything_else_ends_at_once(
    open_gate: Open, options: dict[str, Any], error: Exception, status: Status
) -> None:
    shaky = Shaky(1, error)
    async with open_gate(tools=[shaky.tool(**options, risk_level="low")]) as gate:
        result = await gate.call("look", {"names": []})
        assert (result.status, str(error) in str(result.error), len(shaky.seen)) == (status, True, 1)


async def test_a_second_failure_is_the_end(open_gate: Open) -> None:
    shaky = Shaky(5)
    async with open_gate(tools=[shaky.tool(effects="read")]) as gate:
        result = await gate.call("look", {"names": []})
        assert (result.status, len(shaky.seen)) == (Status.FAILED, 2)
        assert isinstance(result.cause, ConnectionResetError)


@pytest.mark.parametrize(("may", "effects", "tries"), [("false", "read", 1), ("true", "reversible", 2)])
async def test_the_policy_says_which_tools_are_tried_again(open_gate: Open, may: str, effects: str, tries: int) -> None:
    shaky = Shaky()
    policy = read_policy(f"tools: {{look: {{decision: allow, may_retry: {may}}}}}")
    async with open_gate(tools=[shaky.tool(effects=effects)], policy=policy) as gate:
        await gate.call("look", {"names": []})
        assert len(shaky.seen) == tries


def test_the_governance_door_says_which_tools_are_tried_again() -> None:
    for options, text, tries in (
        ({}, "tools: {}", 1),
        ({"effects": "read"}, "tools: {}", 2),
        ({"idempotent": True}, "tools: {}", 2),
        ({}, "tools: {look: {may_retry: true}}", 2),
        ({"effects": "read"}, "tools: {look: {may_retry: false}}", 1),
    ):
        shaky = Shaky()
        registry = governance.ToolRegistry()
        definition = governance.ToolDefinition(
            name="look",
            description="",
            category="x",
            parameters=[governance.ToolParameter(name="names", type="array", description="")],
            risk_level="low",
            allowed_modes=["NORMAL"],
            **options,
        )
        registry.register(definition, shaky.look)
        with governance.ToolExecutionLayer(registry, text, governance.ModeManager()) as layer:
            result = layer.execute_tool("look", {"names": ["a"]})
        assert (result.success, len(shaky.seen)) == (tries == 2, tries), (options, text)


async def test_a_call_that_is_cancelled_meanwhile_is_not_tried_again(
    open_gate: Open, caplog: pytest.LogCaptureFixture
) -> None:
    shaky = Shaky(5)
    async with open_gate(tools=[shaky.tool(effects="read")]) as gate:
        with caplog.at_level(logging.WARNING, "toolgate.perform"):
            calling = asyncio.ensure_future(gate.call("look", {"names": []}, call_id="c1"))
            await until(lambda: bool(caplog.records))
            await gate.cancel("c1", wait=False)
            result = await calling
        assert (result.status, len(shaky.seen)) == (Status.CANCELLED, 1)


@pytest.mark.parametrize("change", ["mode", "policy"])
async def test_rules_that_changed_meanwhile_leave_the_first_failure(open_gate: Open, change: str) -> None:
    shaky = Shaky(5)
    async with open_gate(tools=[shaky.tool(effects="read")]) as gate:
        look = shaky.look

        async def changing(names: list[str]) -> int:
            if change == "mode":
                await gate.set_mode("DEGRADED", by="ann")
            else:
                await gate.set_policy(toolgate.Policy(revision="other"), by="ann")
            return await look(names)

        gate.register(toolgate.tool(name="look", effects="read")(changing))
        result = await gate.call("look", {"names": []})
        assert (result.status, len(shaky.seen)) == (Status.FAILED, 1)
        assert result.error == "the line went dead"


async def test_a_second_attempt_does_not_run_unheard_either(open_gate: Open) -> None:
    shaky, heard = Shaky(5), []

    class Sink:
        async def emit(self, *, type: str, data: dict[str, Any]) -> None:
            if shaky.seen:
                raise OSError("the sink is down by now")
            heard.append(type)

    async with open_gate() as gate:
        realm = gate.host.attach("shop", ToolRegistry([shaky.tool(effects="read")]), sink=Sink(), sink_required=True)
        result = await gate.call("look", {"names": []}, context=toolgate.Context(project="shop"))
        assert (result.status, result.error, len(shaky.seen)) == (Status.FAILED, "the line went dead", 1)
        assert heard == ["tool.invoked", "tool.started"]
        assert realm.relay is not None


async def test_an_error_that_cannot_even_be_looked_at_is_a_failure(open_gate: Open) -> None:
    class Unreadable(Exception):
        @property
        def is_transient(self) -> bool:
            raise RuntimeError("not even this can be asked")

    async with open_gate(tools=[Shaky(1, Unreadable("odd")).tool(effects="read")]) as gate:
        result = await gate.call("look", {"names": []})
        assert (result.status, result.error) == (Status.FAILED, "odd")


async def test_a_policy_set_in_the_pause_leaves_the_first_failure(
    open_gate: Open, caplog: pytest.LogCaptureFixture
) -> None:
    shaky = Shaky(5)
    async with open_gate(tools=[shaky.tool(effects="read")]) as gate:
        with caplog.at_level(logging.WARNING, "toolgate.perform"):
            calling = asyncio.ensure_future(gate.call("look", {"names": []}))
            await until(lambda: bool(caplog.records))
            await gate.set_policy(toolgate.Policy(revision="other"), by="ann")
            result = await calling
        assert (result.status, len(shaky.seen)) == (Status.FAILED, 1)


@pytest.mark.parametrize("meanwhile", ["tools: {look: {decision: deny}}", "tools: {look: {may_retry: false}}"])
async def test_a_policy_file_written_while_the_first_attempt_runs_counts_for_the_second(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, meanwhile: str
) -> None:
    monkeypatch.setattr(policies, "LOOK_AFTER_S", 0.0)
    shaky, file = Shaky(5), tmp_path / "toolgate.yaml"
    file.write_text("tools: {look: {decision: allow}}")

    @toolgate.tool(effects="read")
    async def look(names: list[str]) -> int:
        file.write_text(meanwhile)
        return await shaky.look(names)

    async with toolgate.open("memory://", tools=[look], policy=file) as gate:
        first = gate.policy.revision
        result = await gate.call("look", {"names": []})
        assert (result.status, result.error, len(shaky.seen)) == (Status.FAILED, "the line went dead", 1)
        assert gate.policy.revision != first


async def test_a_policy_set_after_the_claim_and_before_the_first_attempt_counts_for_the_second(open_gate: Open) -> None:
    shaky = Shaky(5)

    class Sink:
        async def emit(self, *, type: str, data: dict[str, Any]) -> None:
            if type == "tool.started" and not shaky.seen:
                await gate.set_policy(read_policy("tools: {look: {decision: deny}}"), by="ann")

    async with open_gate() as gate:
        realm = gate.host.attach("shop", ToolRegistry([shaky.tool(effects="read")]), sink=Sink(), sink_required=True)
        result = await gate.call("look", {"names": []}, context=toolgate.Context(project="shop"))
        assert (result.status, len(shaky.seen)) == (Status.FAILED, 1)
        assert realm.relay is not None


async def test_a_policy_file_that_is_no_policy_any_more_does_not_keep_the_second_attempt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(policies, "LOOK_AFTER_S", 0.0)
    shaky, file = Shaky(1), tmp_path / "toolgate.yaml"
    file.write_text("tools: {look: {decision: allow}}")

    @toolgate.tool(effects="read")
    async def look(names: list[str]) -> int:
        file.write_text("tools: [")
        return await shaky.look(names)

    async with toolgate.open("memory://", tools=[look], policy=file) as gate:
        assert (await gate.call("look", {"names": []})).data == 2
