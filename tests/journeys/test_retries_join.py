"""An agent that tries again: the same call of a run joins the open question, gets the same no, or asks once more."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from tests.journeys.scene import Open, saying

from toolgate import Context, Gate, Result, ToolDefinition, ToolInput, ToolOutput
from toolgate.errors import ConflictError, EffectHeldError, NotExecuted
from toolgate.kernel.call import Status
from toolgate.kernel.change import Change
from toolgate.kernel.holding import How, Move
from toolgate.testing.patience import until

ASK, ALLOW = saying("ask"), saying("allow")
RUN = Context(run_id="run-1")


class Shop:
    """Sends parcels, and then does what the test says."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.error: Exception | None = None

    async def send(self, given: ToolInput) -> ToolOutput:
        self.sent.append(given.payload["to"])
        if self.error is not None:
            raise self.error
        return ToolOutput.ok(f"sent to {given.payload['to']}")

    def tool(self, **options: Any) -> ToolDefinition:
        standard: dict[str, Any] = {"input_schema": {}, "handler": self.send, "effects": "irreversible"}
        return ToolDefinition(name="send", **{**standard, **options})


@pytest.fixture
def shop() -> Shop:
    return Shop()


async def send(gate: Gate, to: str = "ann", *, context: Context = RUN, wait: bool = False, **options: Any) -> Result:
    return await gate.call("send", {"to": to}, context=context, wait=wait, **options)


def pass_time(gate: Gate, much: timedelta) -> None:
    now = gate._driver.now
    gate._driver.now = lambda: now() + much


def step(number: int) -> Context:
    return Context(run_id="run-1", step_id=f"step-{number}")


async def test_three_retries_make_one_question_and_one_yes_one_effect(open_gate: Open, shop: Shop) -> None:
    async with open_gate(tools=[shop.tool()], policy=ASK) as gate:
        first = await send(gate, call_id="call-1")
        waiting = [asyncio.create_task(send(gate, wait=True, call_id=f"call-{number}")) for number in (2, 3)]
        await until(lambda: _count(gate, "tool.joined", 2))
        assert [approval.call_id for approval in await gate.pending()] == [first.call_id]
        await gate.decide(str(first.approval_id), "approve", by="ann")
        results = [await task for task in waiting]
        assert {(one.call_id, one.status, one.data, one.joined) for one in results} == {
            ("call-1", Status.COMPLETED, "sent to ann", True)
        }
        assert shop.sent == ["ann"]


async def _count(gate: Gate, kind: str, number: int) -> bool:
    return len([event for event in await gate.events() if event.type == kind]) == number


async def test_a_yes_that_nobody_claimed_yet_is_joined(open_gate: Open, shop: Shop) -> None:
    async with open_gate(tools=[shop.tool(placement="caller", handler=None)], policy=ASK) as gate:
        first = await send(gate)
        await gate.decide(str(first.approval_id), "approve", by="ann")
        again = await send(gate)
        assert (again.call_id, again.status, again.joined) == (first.call_id, Status.APPROVED, True)
        ran = await gate.run_here(first.call_id, lambda given: given["to"])
        assert ran.data == "ann"
        later = await send(gate)
        assert (later.joined, later.call_id == first.call_id) == (False, False)


async def test_a_call_that_waits_for_its_caller_unasked_is_joined(open_gate: Open, shop: Shop) -> None:
    async with open_gate(tools=[shop.tool(placement="caller", handler=None)], policy=ALLOW) as gate:
        first, again = await send(gate), await send(gate)
        assert (again.call_id, again.joined, again.status) == (first.call_id, True, Status.APPROVED)


async def test_later_repeats_are_new_calls(open_gate: Open, shop: Shop) -> None:
    async with open_gate(tools=[shop.tool()], policy=ALLOW) as gate:
        for _ in range(3):
            assert not (await send(gate)).joined
        assert shop.sent == ["ann"] * 3


async def test_an_id_that_joined_joins_again_when_the_first_has_run(open_gate: Open, shop: Shop) -> None:
    """The reply to a request was lost, and the client sends it again: it must not be a new call then."""
    async with open_gate(tools=[shop.tool()], policy=ASK) as gate:
        first = await send(gate, call_id="call-1")
        assert (await send(gate, call_id="call-2")).call_id == "call-1"
        await gate.decide(str(first.approval_id), "approve", by="ann")
        assert (await gate.wait("call-1")).success
        lost = await send(gate, call_id="call-2")
        assert (lost.call_id, lost.data, lost.joined, shop.sent) == ("call-1", "sent to ann", True, ["ann"])
        with pytest.raises(ConflictError, match="is taken by another call"):
            await send(gate, "bob", call_id="call-2")
        with pytest.raises(ConflictError, match="is taken by another call"):
            await send(gate, call_id="call-2", context=Context(run_id="run-1", principal="agent:other"))


async def test_the_same_no_for_five_minutes(open_gate: Open, shop: Shop) -> None:
    async with open_gate(tools=[shop.tool()], policy=ASK) as gate:
        first = await send(gate)
        await gate.decide(str(first.approval_id), "deny", by="ann", reason="not today")
        again = await send(gate)
        assert (again.call_id, again.status, again.reason, again.joined) == (
            first.call_id,
            Status.REJECTED,
            "not today",
            True,
        )
        assert (await send(gate, "bob")).status is Status.AWAITING_APPROVAL
        pass_time(gate, timedelta(minutes=5, seconds=1))
        assert (await send(gate)).approval_id not in (None, first.approval_id)


async def test_an_answer_instead_of_running_is_given_again(open_gate: Open, shop: Shop) -> None:
    async with open_gate(tools=[shop.tool()], policy=ASK) as gate:
        first = await send(gate)
        await gate.approvals.respond(str(first.approval_id), {"use": "the other address"}, by="ann")
        again = await send(gate)
        assert (again.call_id, again.data, again.joined) == (first.call_id, {"use": "the other address"}, True)


@pytest.mark.parametrize("ended", ["cancelled", "expired"])
async def test_a_question_that_was_closed_without_an_answer_is_asked_anew(
    open_gate: Open, shop: Shop, ended: str
) -> None:
    async with open_gate(tools=[shop.tool()], policy=ASK) as gate:
        first = await send(gate, approval_timeout_s=0.01 if ended == "expired" else None)
        if ended == "cancelled":
            await gate.cancel(first.call_id, reason="changed its mind")
        assert (await gate.wait(first.call_id)).status in (Status.CANCELLED, Status.TIMEOUT)
        assert (await send(gate)).approval_id not in (None, first.approval_id)


@pytest.mark.parametrize(
    ("tool", "context", "options"),
    [
        ({}, Context(), {}),
        ({}, Context(run_id="run-2"), {}),
        ({}, Context(run_id="run-1", principal="agent:other"), {}),
        ({}, Context(run_id="run-1", user="bob"), {}),
        ({}, RUN, {"distinct": True}),
        ({"effects": None}, RUN, {}),
        ({"effects": "read"}, RUN, {}),
    ],
    ids=["no run", "another run", "another agent", "another user", "distinct", "undeclared", "read"],
)
async def test_what_does_not_join(
    open_gate: Open, shop: Shop, tool: dict[str, Any], context: Context, options: dict[str, Any]
) -> None:
    async with open_gate(tools=[shop.tool(**tool)], policy=ASK) as gate:
        first = await send(gate)
        again = await send(gate, context=context, **options)
        assert (again.joined, again.approval_id == first.approval_id) == (False, False)
        assert len(await gate.pending()) == 2


async def test_two_alike_in_one_step_are_two_and_a_retry_in_the_next_joins(open_gate: Open, shop: Shop) -> None:
    async with open_gate(tools=[shop.tool()], policy=ASK) as gate:
        first, second = await send(gate, context=step(1)), await send(gate, context=step(1))
        assert (second.joined, second.approval_id == first.approval_id) == (False, False)
        assert (await send(gate, context=step(2))).call_id == first.call_id
        assert (await send(gate)).call_id == first.call_id
        for one in (first, second):
            await gate.decide(str(one.approval_id), "approve", by="ann")
            assert (await gate.wait(one.call_id)).success
        assert len(shop.sent) == 2


async def test_a_call_that_would_run_unasked_joins_the_open_question_of_the_same_call(
    open_gate: Open, shop: Shop
) -> None:
    async with open_gate(tools=[shop.tool()], policy=ASK) as gate:
        first = await send(gate)
        await gate.set_policy(ALLOW, by="ann")
        again = await send(gate)
        assert (again.call_id, again.joined, shop.sent) == (first.call_id, True, [])


async def test_an_edited_call_is_joined_by_what_it_was_made_with(open_gate: Open, shop: Shop) -> None:
    async with open_gate(tools=[shop.tool()], policy=ASK) as gate:
        first = await send(gate)
        await gate.approvals.edit(str(first.approval_id), {"to": "bob"}, by="ann", reason="she moved")
        assert (await gate.wait(first.call_id)).data == "sent to bob"


@pytest.mark.parametrize("context", [RUN, Context(), Context(principal="agent:other")], ids=["run", "none", "other"])
async def test_after_an_unknown_outcome_the_same_call_asks_with_the_story(
    open_gate: Open, shop: Shop, context: Context
) -> None:
    shop.error = ConnectionResetError("the line is dead")
    async with open_gate(tools=[shop.tool()], policy=ALLOW) as gate:
        first = await send(gate)
        assert first.status is Status.UNKNOWN
        shop.error = None
        assert (await send(gate, "bob")).success
        again = await send(gate, context=context)
        assert (again.status, shop.sent) == (Status.AWAITING_APPROVAL, ["ann", "bob"])
        (question,) = await gate.pending()
        (story,) = question.reasons[-1:]
        assert story.startswith(f"It repeats call {first.call_id}")
        assert ("line is dead" in story) == (context.principal == RUN.principal), "others' words are not told"
        await gate.decide(question.id, "approve", by="ann")
        assert (await gate.wait(again.call_id)).success
        assert (await send(gate, context=context)).status is Status.AWAITING_APPROVAL, "the first is still unknown"


@pytest.mark.parametrize("happened", [True, False])
async def test_once_somebody_says_what_happened_the_same_call_is_an_ordinary_one(
    open_gate: Open, shop: Shop, happened: bool
) -> None:
    shop.error = ConnectionResetError("the line is dead")
    async with open_gate(tools=[shop.tool()], policy=ALLOW) as gate:
        first = await send(gate)
        shop.error = None
        await gate.settle(first.call_id, happened=happened, by="ann", reason="she looked")
        assert (await send(gate)).success


async def test_reversible_effects_leave_no_doubt_behind(open_gate: Open, shop: Shop) -> None:
    shop.error = ConnectionResetError("the line is dead")
    async with open_gate(tools=[shop.tool(effects="reversible")], policy=ALLOW) as gate:
        assert (await send(gate)).status is Status.UNKNOWN
        shop.error = None
        assert (await send(gate)).success


async def test_a_yes_given_before_the_doubt_is_asked_for_again(open_gate: Open, shop: Shop) -> None:
    async with open_gate(tools=[shop.tool()], policy=ASK) as gate:
        early, other = await send(gate), await send(gate, distinct=True)
        shop.error = ConnectionResetError("the line is dead")
        await gate.decide(str(other.approval_id), "approve", by="ann")
        assert (await gate.wait(other.call_id)).status is Status.UNKNOWN
        shop.error = None
        await gate.decide(str(early.approval_id), "approve", by="ann")
        await until(lambda: _asks(gate, early.call_id, str(early.approval_id)))
        (question,) = await gate.pending()
        assert other.call_id in " ".join(question.reasons)
        assert shop.sent == ["ann"]
        await gate.decide(question.id, "approve", by="ann")
        assert (await gate.wait(early.call_id)).success


async def _asks(gate: Gate, call_id: str, answered: str) -> bool:
    return any(one.call_id == call_id and one.id != answered for one in await gate.pending())


async def test_what_a_repeat_rests_on_is_looked_at_when_it_starts(open_gate: Open, shop: Shop) -> None:
    shop.error = ConnectionResetError("the line is dead")
    async with open_gate(tools=[shop.tool(effect_key="send:{to}", input_schema=_SCHEMA)], policy=ALLOW) as gate:
        first = await send(gate)
        again = await send(gate)
        shop.error = None
        await gate.settle(first.call_id, happened=True, by="ann", reason="it arrived")
        await gate.decide(str(again.approval_id), "approve", by="ann")
        await until(lambda: _asks(gate, again.call_id, str(again.approval_id)))
        (question,) = await gate.pending()
        assert "which ended COMPLETED" in " ".join(question.reasons)
        assert shop.sent == ["ann"]


_SCHEMA = {"type": "object", "properties": {"to": {"type": "string"}}, "required": ["to"]}


async def test_a_distinct_call_conflicts_where_its_effect_is_held(open_gate: Open, shop: Shop) -> None:
    async with open_gate(tools=[shop.tool(effect_key="send:{to}", input_schema=_SCHEMA)], policy=ALLOW) as gate:
        first = await send(gate)
        with pytest.raises(EffectHeldError, match=first.call_id):
            await send(gate, distinct=True, call_id="again")
        refused = await gate.get("again")
        assert (refused.status, refused.error_code) == (Status.DENIED, "effect_held")
        assert shop.sent == ["ann"]


async def test_the_doubt_about_an_edited_call_is_about_what_ran(open_gate: Open, shop: Shop) -> None:
    shop.error = ConnectionResetError("the line is dead")
    async with open_gate(tools=[shop.tool()], policy=ASK) as gate:
        first, other = await send(gate), await send(gate, "cid")
        await gate.approvals.edit(str(first.approval_id), {"to": "bob"}, by="ann", reason="she moved")
        assert (await gate.wait(first.call_id)).status is Status.UNKNOWN
        shop.error = None
        edited = await gate.approvals.edit(str(other.approval_id), {"to": "bob"}, by="ann", reason="he too")
        await until(lambda: _asks(gate, other.call_id, str(edited.approval_id)))
        (question,) = await gate.pending()
        assert f"It repeats call {first.call_id}" in " ".join(question.reasons)
        assert shop.sent == ["bob"]
        asked = await send(gate, "bob", context=Context())
        assert (await gate.calls.get(asked.call_id)).repeat_of == first.call_id


async def hold(gate: Gate, key: str, call_id: str) -> None:
    change = Change(project="default", at=gate._driver.now(), joins=(Move(key, None, call_id, how=How.ALWAYS),))
    await gate._driver.commit(change)


async def test_a_key_whose_holder_is_gone_or_has_no_claim_to_it_is_taken(open_gate: Open, shop: Shop) -> None:
    async with open_gate(tools=[shop.tool()], policy=ASK) as gate:
        ran = await send(gate, "bob")
        await gate.cancel(ran.call_id, reason="no need")
        for number, holder in enumerate(("pruned", ran.call_id)):
            first = await gate.calls.get((await send(gate, f"to-{number}")).call_id)
            await gate.cancel(first.id, reason="to have its key")
            await hold(gate, str(first.ask_key), holder)
            await hold(gate, str(first.doubt_key), holder)
            assert not (await send(gate, f"to-{number}")).joined
        assert [approval.arguments for approval in await gate.pending()] == [{"to": "to-0"}, {"to": "to-1"}]


async def test_an_effect_of_a_call_that_was_pruned_is_had_again_only_with_a_yes(open_gate: Open, shop: Shop) -> None:
    async with open_gate(tools=[shop.tool(effect_key="send:{to}", input_schema=_SCHEMA)], policy=ALLOW) as gate:
        await hold(gate, "send:ann", "pruned")
        asked = await send(gate)
        (question,) = await gate.pending()
        assert "It repeats call pruned, which had this effect and is not kept any more." in question.reasons
        await gate.decide(question.id, "approve", by="ann")
        assert (await gate.wait(asked.call_id)).success
        assert (await send(gate)).call_id == asked.call_id


async def test_what_a_repeat_rests_on_is_compared_in_the_commit_that_starts_it(
    open_gate: Open, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.error = ConnectionResetError("the line is dead")
    async with open_gate(tools=[shop.tool()], policy=ALLOW) as gate:
        first, again = await send(gate), await send(gate)
        shop.error = None

        async def settled_since(*_: object) -> bool:
            if (await gate.get(first.call_id)).status is Status.UNKNOWN:
                await gate.settle(first.call_id, happened=True, by="ann", reason="it arrived")
            return False

        monkeypatch.setattr("toolgate.pipeline.joining.is_outdated", settled_since)
        await gate.decide(str(again.approval_id), "approve", by="ann")
        await until(lambda: _asks(gate, again.call_id, str(again.approval_id)))
        assert shop.sent == ["ann"]


async def test_many_at_once_are_one(open_gate: Open, shop: Shop) -> None:
    async with open_gate(tools=[shop.tool()], policy=ASK) as gate:
        calls = [send(gate, call_id=f"call-{number % 4}", context=step(number % 4)) for number in range(20)]
        results = await asyncio.gather(*calls)
        assert len({result.call_id for result in results}) == 1
        assert len(await gate.pending()) == 1
        await until(lambda: _count(gate, "tool.joined", 3))


async def test_whoever_says_yes_to_a_second_repeat_is_told_of_the_first(open_gate: Open, shop: Shop) -> None:
    shop.error = ConnectionResetError("the line is dead")
    async with open_gate(tools=[shop.tool()], policy=ALLOW) as gate:
        await send(gate)
        shop.error = None
        one, two = [await send(gate, context=Context(run_id=f"run-{number}")) for number in (2, 3)]
        await gate.decide(one.approval_id or "", "approve", by="ann")
        assert (await gate.wait(one.call_id)).success
        await gate.decide(two.approval_id or "", "approve", by="ann")
        await until(lambda: _is_asked_about(gate, one.call_id))
        assert len(shop.sent) == 2


async def _is_asked_about(gate: Gate, repeated: str) -> bool:
    reasons = [reason for question in await gate.pending() for reason in question.reasons]
    return any(f"It repeats call {repeated}, which ended COMPLETED" in reason for reason in reasons)


async def test_a_second_repeat_tells_of_the_first_although_the_doubt_was_settled(open_gate: Open, shop: Shop) -> None:
    shop.error = ConnectionResetError("the line is dead")
    async with open_gate(tools=[shop.tool()], policy=ALLOW) as gate:
        first, shop.error = await send(gate), None
        one, two = [await send(gate, context=Context(run_id=f"run-{number}")) for number in (2, 3)]
        await gate.decide(one.approval_id or "", "approve", by="ann")
        assert (await gate.wait(one.call_id)).success
        await gate.settle(first.call_id, happened=False, by="ann", reason="not there")
        asked = two.approval_id or ""
        while not await _is_asked_about(gate, one.call_id):
            await gate.decide(asked, "approve", by="ann")
            await until(partial(_waits_anew, gate, asked))
            asked = (await gate.pending())[0].id
        assert len(shop.sent) == 2


async def _waits_anew(gate: Gate, answered: str) -> bool:
    return any(question.id != answered for question in await gate.pending())


async def test_a_repeat_without_effect_gives_the_doubt_back(open_gate: Open, shop: Shop) -> None:
    shop.error = ConnectionResetError("the line is dead")
    async with open_gate(tools=[shop.tool()], policy=ALLOW) as gate:
        first = await send(gate)
        repeat, shop.error = await send(gate), NotExecuted("nothing was sent")
        await gate.decide(repeat.approval_id or "", "approve", by="ann")
        assert (await gate.wait(repeat.call_id)).status is Status.FAILED
        third = await send(gate)
        assert (await gate.calls.get(third.call_id)).repeat_of == first.call_id


@pytest.mark.parametrize("is_lost_again", [True, False])
async def test_nobody_is_asked_once_every_doubt_is_settled(open_gate: Open, shop: Shop, is_lost_again: bool) -> None:
    shop.error = ConnectionResetError("the line is dead")
    async with open_gate(tools=[shop.tool()], policy=ALLOW) as gate:
        first, repeat = await send(gate), await send(gate)
        shop.error = shop.error if is_lost_again else None
        await gate.decide(repeat.approval_id or "", "approve", by="ann")
        await gate.wait(repeat.call_id)
        if is_lost_again:
            await gate.settle(repeat.call_id, happened=True, by="ann", reason="seen")
        shop.error = None
        assert (await send(gate, distinct=True)).status is Status.AWAITING_APPROVAL
        await gate.settle(first.call_id, happened=True, by="ann", reason="seen")
        assert [(await send(gate, distinct=True)).status for _ in range(2)] == [Status.COMPLETED] * 2
