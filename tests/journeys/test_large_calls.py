"""A megabyte goes through like anything else: whole for its caller, masked for everybody, and others go on."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from tests.journeys.scene import Open, park, saying
from tests.turns import Turns

import toolgate
from toolgate import ToolDefinition, ToolInput, ToolOutput
from toolgate.kernel.call import Status
from toolgate.kernel.event import Event
from toolgate.kernel.tool import Prepared
from toolgate.kernel.undo import UndoMetadata
from toolgate.pipeline.lane import aside
from toolgate.ports.store import ApprovalQuery, CallQuery
from toolgate.testing.patience import PATIENCE_S, until

MEGABYTE = 1_000_000
TEXT = ("a line of plain words, and another one after it.\n" * 25_000)[:MEGABYTE]
CANARY = "canary-7f3a91c2e8"
KEYED = "sw0rdfish-by-key-only"


async def everything(gate: toolgate.Gate) -> str:
    """All that readers of this gate can see, as one text."""
    seen: list[object] = [event.body for event in await gate.events(limit=10_000)]
    seen += await gate._driver.store.approvals(ApprovalQuery())
    for call in await gate.calls.list(CallQuery(limit=10_000)):
        seen += [call.shown, call.shown_result, call.preview, call.error, call.reasons]
    return repr(seen)


async def echo(given: ToolInput) -> ToolOutput:
    await given.progress(0.5, f"{TEXT}{CANARY}", {"note": f"{TEXT}{CANARY}"})
    return ToolOutput.ok({"text": given.payload["text"], "quoted": KEYED})


async def test_a_megabyte_is_given_whole_to_its_caller_and_masked_to_everybody(open_gate: Open) -> None:
    async with open_gate(tools=[ToolDefinition("echo", {}, echo)], secrets=[CANARY]) as gate:
        given = {"text": TEXT[: MEGABYTE - 200] + CANARY, "password": KEYED}
        result = await gate.call("echo", given)
        assert result.unwrap() == {"text": given["text"], "quoted": KEYED}
        seen = await everything(gate)
        assert TEXT[:1000] in seen.replace("\\n", "\n")
        assert CANARY not in seen
        assert KEYED not in seen


async def test_a_large_error_is_masked_before_it_is_cut(open_gate: Open) -> None:
    async def fails(_given: ToolInput) -> ToolOutput:
        raise ValueError(f"{'x' * 980} {CANARY} {TEXT}")

    async with open_gate(tools=[ToolDefinition("fails", {}, fails)], secrets=[CANARY]) as gate:
        result = await gate.call("fails", {})
        assert (result.status, len(str(result.error))) == (Status.FAILED, 1000)
        assert "canary" not in str(result.error) + await everything(gate)


async def test_a_large_question_is_asked_masked_and_runs_as_approved(open_gate: Open) -> None:
    ran: list[str] = []

    def prepare(_given: ToolInput) -> Prepared:
        return Prepared(preview=f"{TEXT}{CANARY}", undo_data={"before": TEXT, "token": KEYED})

    def write(given: ToolInput) -> ToolOutput:
        ran.append(given.payload["text"])
        return ToolOutput.ok({"said": KEYED})

    tool = ToolDefinition("write", {}, write, undoable=True, undo_handler=lambda _undo: None, prepare=prepare)
    async with open_gate(tools=[tool], secrets=[CANARY], policy=saying("ask")) as gate:
        approval = await park(gate, "write", {"text": f"{TEXT[:-200]}{CANARY}"})
        await gate.decide(approval.id, "approve", by="ann")
        assert (await gate.wait(approval.call_id)).unwrap() == {"said": KEYED}
        assert ran == [f"{TEXT[:-200]}{CANARY}"]
        seen = await everything(gate)
        assert CANARY not in seen
        assert KEYED not in seen, "the undo data knows it as a token, however much stands beside it"


async def test_a_large_change_is_undone_unless_the_state_changed_since(open_gate: Open) -> None:
    world, threads = {"text": TEXT}, set[str]()

    def write(given: ToolInput) -> ToolOutput:
        before, world["text"] = world["text"], given.payload["text"]
        return ToolOutput.ok(undo_metadata={"before": before})

    def put_back(undo: UndoMetadata) -> None:
        world["text"] = undo.undo_data["before"]

    def look(_undo: UndoMetadata) -> str:
        threads.add(threading.current_thread().name)
        return world["text"][:100]

    tool = ToolDefinition("write", {}, write, undoable=True, undo_handler=put_back, fingerprint=look)
    async with open_gate(tools=[tool]) as gate:
        first, second = [await gate.call("write", {"text": text}) for text in ("one", f"two {TEXT[:-100]}")]
        assert not (await gate.undo(first.call_id)).success, "it is not as the first left it"
        assert (await gate.undo(second.call_id)).success
        assert (await gate.undo(first.call_id)).success
        assert world == {"text": TEXT}
        assert "toolgate-large" in threads


async def test_arguments_a_person_edited_are_hidden_in_the_handlers_words(open_gate: Open) -> None:
    async def sign_in(given: ToolInput) -> ToolOutput:
        raise PermissionError(f"wrong: {given.payload['password']}")

    tool = ToolDefinition("sign_in", {}, sign_in, risk_level="medium")
    async with open_gate(tools=[tool]) as gate:
        approval = await park(gate, "sign_in", {"password": ""})
        await gate.approvals.edit(approval.id, {"password": KEYED}, by="ann")
        result = await gate.wait(approval.call_id)
        assert (result.status, "wrong" in str(result.error)) == (Status.FAILED, True)
        assert KEYED not in await everything(gate)


ROWS = [{"id": number, "name": f"row {number}"} for number in range(4_000)]


async def test_a_large_edit_is_what_runs_and_only_what_it_changes_is_told(open_gate: Open) -> None:
    ran: list[Any] = []

    async def write(given: ToolInput) -> ToolOutput:
        ran.append(given.payload)
        return ToolOutput.ok()

    async with open_gate(tools=[ToolDefinition("write", {}, write, risk_level="medium")]) as gate:
        approval = await park(gate, "write", {"rows": ROWS, "password": KEYED})
        edited = [{**ROWS[0], "id": -1}, *ROWS[1:]]
        async with Turns() as turns:
            await gate.approvals.edit(approval.id, {"rows": edited, "password": "***"}, by="ann")
        assert turns.were_given
        assert (await gate.wait(approval.call_id)).success
        assert ran == [{"rows": edited, "password": KEYED}]
        [fresh] = [one for one in await gate.approvals.list(ApprovalQuery()) if one.edited_from == approval.id]
        assert fresh.difference == {"rows": {"before": ROWS, "after": edited}}


async def test_a_large_answer_instead_of_a_run_is_masked(open_gate: Open) -> None:
    async with open_gate(tools=[ToolDefinition("ask", {}, echo, risk_level="medium")], secrets=[CANARY]) as gate:
        approval = await park(gate, "ask", {"text": ""})
        answer = {"text": f"{TEXT}{CANARY}", "password": KEYED}
        assert (await gate.approvals.respond(approval.id, answer, by="ann")).data == answer
        seen = await everything(gate)
        assert TEXT[:1000] in seen.replace("\\n", "\n")
        assert CANARY not in seen
        assert KEYED not in seen


def deep(levels: int) -> Any:
    value: Any = TEXT
    for _ in range(levels):
        value = [value]
    return value


LARGE_BUT_BAD: dict[str, Any] = {
    "not UTF-8": b'{"text": "' + TEXT[:500_000].replace("\n", " ").encode() + b'\xff"}',
    "half a character in text": '{"text": "%s\ud800"}' % ("x" * 500_000),
    "half a character as an escape": '{"text": "%s\\ud800"}' % ("x" * 500_000),
    "half a character in a mapping": {"text": f"{TEXT[:500_000]}\ud800"},
    "half a character in a key": {f"{TEXT[:500_000]}\ud800": 1},
    "deep text": '{"text": ' + "[" * 400_000 + "]" * 400_000 + "}",
    "a deep mapping": {"text": deep(5000)},
    "a key twice": '{"text": "%s", "text": 1}' % ("x" * 500_000),
    "too large": {"text": TEXT * 13},
}


@pytest.mark.parametrize("raw", LARGE_BUT_BAD.values(), ids=LARGE_BUT_BAD)
async def test_large_arguments_that_cannot_be_used_are_refused_with_a_sentence(open_gate: Open, raw: Any) -> None:
    async with open_gate(tools=[ToolDefinition("echo", {}, echo)]) as gate:
        result = await gate.call("echo", raw)
        assert (result.status, result.error_code) == (Status.FAILED, "invalid_arguments")
        assert 20 < len(str(result.error)) < 300
        assert "xxxxxxxxxx" not in str(result.error) + await everything(gate)


@pytest.mark.parametrize(
    "bad", [f"{TEXT}\ud800", deep(5000), {f"{TEXT}\ud800": 1}, TEXT.encode(), [float("nan")] * 9000]
)
async def test_large_results_that_cannot_be_written_fail_the_call(open_gate: Open, bad: Any) -> None:
    async def give(_given: ToolInput) -> ToolOutput:
        return ToolOutput.ok(bad)

    async with open_gate(tools=[ToolDefinition("give", {}, give)]) as gate:
        result = await gate.call("give", {})
        assert (result.status, result.error_code) == (Status.FAILED, "invalid_output")
        assert len(str(result.error)) < 300


async def test_arguments_that_change_while_they_are_read_are_refused(open_gate: Open) -> None:
    class Changing(dict[str, Any]):
        def items(self) -> Any:
            raise RuntimeError("dictionary changed size during iteration")

    async with open_gate(tools=[ToolDefinition("echo", {}, echo)]) as gate:
        result = await gate.call("echo", Changing(text=TEXT))
        assert (result.status, result.error_code) == (Status.FAILED, "invalid_arguments")
        assert "changed while they were read" in str(result.error)


async def test_small_calls_go_on_while_large_ones_are_worked_on(open_gate: Open) -> None:
    """With the large ones worked on the loop, a small one is answered once, after all of them."""

    @toolgate.tool(effects="read")
    async def look() -> str:
        return "seen"

    @toolgate.tool(effects="read")
    async def repeat(text: str) -> str:
        return text

    turns = 0
    async with open_gate(tools=[look, repeat]) as gate:
        large = [asyncio.ensure_future(gate.call("repeat", {"text": f"{n} {TEXT[:-100]}"})) for n in range(20)]
        while not all(call.done() for call in large):
            assert (await gate.call("look")).unwrap() == "seen"
            turns += 1
            await asyncio.sleep(0)
        assert all(result.success for result in await asyncio.gather(*large))
    assert turns > 3, "the small calls had their turns between the large ones"


async def test_a_loop_that_ends_while_a_large_result_is_worked_on_leaves_it_recorded(open_gate: Open) -> None:
    """As the end of `asyncio.run` does, which cancels every task: what was done is written down first."""
    go_on, flying = threading.Event(), asyncio.Event()
    own: list[Any] = []

    @toolgate.tool
    async def give() -> str:
        await asyncio.sleep(0)
        own.extend([asyncio.current_task(), aside(go_on.wait, PATIENCE_S)])  # what comes after it has to wait
        flying.set()
        return TEXT

    async with open_gate(tools=[give]) as gate:
        calling = asyncio.ensure_future(gate.call("give", call_id="c"))
        await flying.wait()
        flight, held = own
        try:
            await asyncio.sleep(0)  # it is masked by now, or waits for its turn
            flight.cancel()
            assert (await calling).unwrap() == TEXT
            assert (await gate.get("c")).status is Status.COMPLETED
            assert not held.done(), "nothing of it was done aside"
        finally:
            go_on.set()
            await held


def _types(events: list[Event]) -> list[str]:
    return [event.type for event in events]


async def test_who_gives_up_before_a_large_call_is_read_leaves_nothing(open_gate: Open) -> None:
    async with open_gate(tools=[ToolDefinition("echo", {}, echo)]) as gate:
        calling = asyncio.ensure_future(gate.call("echo", {"text": TEXT}))
        await asyncio.sleep(0)
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling
        await until(lambda: not any(thread.name == "toolgate-large" for thread in threading.enumerate()))
        assert _types(await gate.events()) == []
