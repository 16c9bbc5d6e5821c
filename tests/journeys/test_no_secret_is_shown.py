"""Canary secrets are planted wherever a call carries text, and then looked for wherever people look."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.journeys.scene import Open, park, saying

from toolgate import Context, Gate, Policy, Result, ToolDefinition, ToolInput, ToolOutput
from toolgate.kernel.approval import Approval
from toolgate.kernel.policy import Score, Word
from toolgate.kernel.tool import Prepared, Thresholds
from toolgate.kernel.undo import UndoMetadata
from toolgate.ports.store import ApprovalQuery, CallQuery
from toolgate.testing.patience import PATIENCE_S, until

CANARY = "canary-7f3a91c2e8"
KEYED = "sw0rdfish-by-key-only"


@pytest.fixture
def shown(caplog: pytest.LogCaptureFixture) -> Any:
    caplog.set_level(logging.DEBUG)

    async def look(gate: Gate, *results: Result) -> str:
        """Everything a reader of this gate can see, as one text."""
        seen: list[object] = []
        for project in ("default", "_system"):
            seen += [event.body for event in await gate.events(project=project, limit=10_000)]
        seen += await gate._driver.store.approvals(ApprovalQuery())
        for call in await gate.calls.list(CallQuery(limit=10_000)):
            seen += [call.shown, call.shown_result, call.preview, call.error, call.reasons, call.tool_name, call.id]
        seen += [(result.error, result.error_code, result) for result in results if result.data is None]
        seen += [record.getMessage() for record in caplog.records]
        return repr(seen)

    return look


async def give(given: ToolInput) -> ToolOutput:
    await given.progress(0.5, f"using {CANARY}", {"token": KEYED, "note": f"with {CANARY}"})
    return ToolOutput.ok(
        {"echo": given.payload, "password": KEYED, "text": f"got {CANARY}"}, undo_metadata={"secret": CANARY}
    )


async def test_arguments_results_and_progress_are_masked(open_gate: Open, shown: Any) -> None:
    async with open_gate(tools=[ToolDefinition(name="give", handler=give)], secrets=[CANARY]) as gate:
        result = await gate.call("give", {"api_key": KEYED, "text": f"my key is {CANARY}", "list": [CANARY]})
        assert result.data["echo"]["api_key"] == KEYED, "the caller gets the real result"
        seen = await shown(gate)
        assert CANARY not in seen
        assert KEYED not in seen


async def test_the_handler_gets_the_real_arguments(open_gate: Open) -> None:
    async with open_gate(tools=[ToolDefinition(name="give", handler=give)], secrets=[CANARY]) as gate:
        result = await gate.call("give", {"password": KEYED, "text": CANARY})
        assert result.data["echo"] == {"password": KEYED, "text": CANARY}


@pytest.mark.parametrize("kind", [ValueError, SystemExit])
async def test_what_a_handler_raises_is_masked(open_gate: Open, shown: Any, kind: type[BaseException]) -> None:
    async def broken(_given: ToolInput) -> ToolOutput:
        raise kind(f"could not log in with {CANARY} (password={KEYED})")

    def broken_plainly(_given: ToolInput) -> ToolOutput:
        raise kind(f"could not log in with {CANARY} (password={KEYED})")

    tools = [ToolDefinition(name="one", handler=broken), ToolDefinition(name="two", handler=broken_plainly)]
    async with open_gate(tools=tools, secrets=[CANARY]) as gate:
        results = [await gate.call(name) for name in ("one", "two")]
        seen = await shown(gate, *results)
        assert "could not log in" in seen
        assert CANARY not in seen
        assert KEYED not in seen


async def test_reported_failures_are_masked(open_gate: Open, shown: Any) -> None:
    async def broken(_given: ToolInput) -> ToolOutput:
        return ToolOutput.fail(f"refused {CANARY}", data={"token": KEYED})

    async with open_gate(tools=[ToolDefinition(name="broken", handler=broken)], secrets=[CANARY]) as gate:
        seen = await shown(gate, await gate.call("broken"))
        assert CANARY not in seen
        assert KEYED not in seen


async def test_approvals_and_previews_are_masked(open_gate: Open, shown: Any) -> None:
    asked: list[Approval] = []

    async def prepare(_given: ToolInput) -> Prepared:
        return Prepared(preview={"diff": f"+ {CANARY}", "token": KEYED}, preconditions={"k": CANARY})

    async def approver(approval: Approval) -> bool:
        asked.append(approval)
        return True

    tool = ToolDefinition(name="give", handler=give, requires_approval=True, prepare=prepare)
    async with open_gate(tools=[tool], secrets=[CANARY], approver=approver) as gate:
        assert (await gate.call("give", {"password": KEYED, "text": CANARY})).success
        seen = await shown(gate) + repr(asked)
        assert CANARY not in seen
        assert KEYED not in seen


async def test_reasons_people_give_are_masked(open_gate: Open, shown: Any) -> None:
    tool = ToolDefinition(name="give", handler=give, requires_approval=True)
    async with open_gate(tools=[tool], secrets=[CANARY]) as gate:
        denied = await park(gate, "give")
        await gate.decide(denied.id, "deny", by="ann", reason=f"do not use {CANARY}")
        cancelled = await gate.cancel((await park(gate, "give")).call_id, reason=f"leaked {CANARY}")
        await gate.set_mode("ALERT", by="ann", reason=f"{CANARY} leaked")
        assert CANARY not in await shown(gate, cancelled, await gate.get(denied.call_id))


@pytest.mark.parametrize("word", [Word.ASK, Word.DENY, Word.ALLOW])
async def test_reasons_rules_give_are_masked(open_gate: Open, shown: Any, word: Word) -> None:
    tool = ToolDefinition(name="give", handler=give)
    policy = saying(word, f"the argument {CANARY} looks odd")
    async with open_gate(tools=[tool], secrets=[CANARY], policy=policy) as gate:
        result = await gate.call("give", wait=False)
        assert CANARY not in await shown(gate, result)


async def test_factors_of_a_score_are_masked(open_gate: Open, shown: Any) -> None:
    policy = Policy(thresholds=Thresholds(), score=lambda _call, _tool: Score(10, (f"unusual {CANARY}",)))
    async with open_gate(tools=[ToolDefinition(name="give", handler=give)], secrets=[CANARY], policy=policy) as gate:
        assert CANARY not in await shown(gate, await gate.call("give", wait=False))


async def test_names_of_unknown_tools_and_bad_arguments_are_masked(open_gate: Open, shown: Any) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "additionalProperties": False}
    tool = ToolDefinition(name="give", handler=give, input_schema=schema)
    async with open_gate(tools=[tool], secrets=[CANARY]) as gate:
        results = [
            await gate.call(f"tool-{CANARY}"),
            await gate.call("give", {"n": CANARY}),
            await gate.call("give", {CANARY: 1}),
            await gate.call("give", f'{{"n": "{CANARY}'),
        ]
        assert CANARY not in await shown(gate, *results)


async def test_failed_preparations_are_masked(open_gate: Open, shown: Any) -> None:
    def prepare(_given: ToolInput) -> Prepared:
        raise OSError(f"cannot open {CANARY}")

    tool = ToolDefinition(name="give", handler=give, prepare=prepare)
    async with open_gate(tools=[tool], secrets=[CANARY]) as gate:
        assert CANARY not in await shown(gate, await gate.call("give"))


async def test_undo_errors_are_masked(open_gate: Open, shown: Any) -> None:
    def put_back(undo: UndoMetadata) -> None:
        raise OSError(f"cannot restore {undo.undo_data['secret']}")

    tool = ToolDefinition(name="give", handler=give, undoable=True, undo_handler=put_back)
    async with open_gate(tools=[tool], secrets=[CANARY]) as gate:
        written = await gate.call("give")
        assert CANARY not in await shown(gate, await gate.undo(written.call_id))


async def test_settlements_are_masked(open_gate: Open, shown: Any) -> None:
    import threading

    release = threading.Event()

    def stuck(_given: ToolInput) -> ToolOutput:
        release.wait(PATIENCE_S)
        raise ValueError(CANARY)

    tool = ToolDefinition(name="stuck", handler=stuck, timeout_seconds=0.5)
    async with open_gate(tools=[tool], secrets=[CANARY]) as gate:
        unknown = await gate.call("stuck")
        release.set()
        await until(lambda: _has_event(gate, "tool.late_result"))
        settled = await gate.settle(unknown.call_id, happened=False, by="ann", reason=f"log says {CANARY}")
        assert CANARY not in await shown(gate, unknown, settled)


async def _has_event(gate: Gate, name: str) -> bool:
    return any(event.type == name for event in await gate.events())


async def test_a_broken_approver_does_not_tell_its_secret(open_gate: Open, shown: Any) -> None:
    def broken(_approval: Approval) -> bool:
        raise ValueError(f"token {CANARY} is invalid")

    tool = ToolDefinition(name="give", handler=give, requires_approval=True)
    async with open_gate(tools=[tool], secrets=[CANARY], approver=broken) as gate:
        await gate.call("give", wait=False)
        await until(lambda: not gate._messenger._asking)
        seen = await shown(gate)
        assert "ValueError" in seen
        assert CANARY not in seen


async def test_a_secret_learned_later_is_masked_from_then_on(open_gate: Open, shown: Any) -> None:
    async with open_gate(tools=[ToolDefinition(name="give", handler=give)]) as gate:
        gate.host.masker.add(CANARY)
        await gate.call("give", {"text": CANARY})
        assert CANARY not in await shown(gate)


async def test_followers_see_masked_events(open_gate: Open) -> None:
    async with open_gate(tools=[ToolDefinition(name="give", handler=give)], secrets=[CANARY]) as gate:
        following: AsyncIterator[Any] = gate.follow()
        reading = asyncio.ensure_future(_read(following, "tool.completed"))
        await gate.call("give", {"text": CANARY, "password": KEYED}, context=Context(run_id="r1"))
        seen = repr(await reading)
        assert CANARY not in seen
        assert KEYED not in seen


async def _read(following: AsyncIterator[Any], last: str) -> list[Any]:
    events = []
    async for event in following:
        events.append(event)
        if event.type == last:
            break
    await following.aclose()  # type: ignore[attr-defined]  # it is a generator
    return events
