"""A lost reply never pays twice: calls with the same effect key join, repeat with a person's yes, or conflict."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.journeys.scene import Open, park, saying

import toolgate
from toolgate import Context, Gate, Prepared, Result, ToolDefinition, ToolInput, ToolOutput, UndoMetadata
from toolgate.adapters.sqlite.upkeep import prune
from toolgate.errors import (
    ConflictError,
    DefinitionError,
    EffectHeldError,
    InvalidIdError,
    NotExecuted,
    NotFoundError,
    ToolDeniedError,
    ToolInputError,
)
from toolgate.kernel.approval import Approval
from toolgate.kernel.call import Status
from toolgate.kernel.effect import effect_key
from toolgate.kernel.input import Action
from toolgate.testing.patience import until
from toolgate.tools import AdvancedToolExecutor

ALLOW = saying("allow")
SCHEMA = {
    "type": "object",
    "properties": {"payment_id": {"type": "string"}, "amount": {"type": "integer"}},
    "required": ["payment_id"],
}


class Bank:
    """Pays, notes the keys it was given, and then does what the test says."""

    def __init__(self) -> None:
        self.paid: list[str | None] = []
        self.undone = 0
        self.error: Exception | None = None
        self.hold: asyncio.Event | None = None

    async def pay(self, given: ToolInput) -> ToolOutput:
        self.paid.append(given.effect_key)
        if self.hold is not None:
            await self.hold.wait()
        if self.error is not None:
            raise self.error
        return ToolOutput.ok("paid", undo_metadata={"id": given.payload["payment_id"]})

    async def close(self, given: ToolInput) -> ToolOutput:
        self.paid.append(given.effect_key)
        return ToolOutput.ok("closed")

    def take_back(self, _metadata: UndoMetadata) -> None:
        self.undone += 1

    def tool(self, **options: Any) -> ToolDefinition:
        standard: dict[str, Any] = {"input_schema": SCHEMA, "effects": "irreversible", "effect_key": "pay:{payment_id}"}
        return ToolDefinition(name="pay", **{"handler": self.pay, **standard, **options})


async def pay(gate: Gate, payment_id: str = "p1", *, wait: bool = False, **options: Any) -> Result:
    return await gate.call("pay", {"payment_id": payment_id, "amount": 5}, wait=wait, **options)


async def anew(gate: Gate, answered: str) -> list[Approval]:
    """Return what waits for a person once a question other than the answered one does."""
    await until(lambda: _waits_anew(gate, answered))
    return await gate.pending()


async def _waits_anew(gate: Gate, answered: str) -> bool:
    return any(question.id != answered for question in await gate.pending())


@pytest.fixture
def bank() -> Bank:
    return Bank()


async def test_a_second_call_gets_the_first_ones_result(open_gate: Open, bank: Bank) -> None:
    async with open_gate(tools=[bank.tool()], policy=ALLOW) as gate:
        first, again = await pay(gate), await pay(gate)
        assert (again.call_id, again.data, again.joined, first.joined) == (first.call_id, "paid", True, False)
        assert bank.paid == ["pay:p1"]
        assert not (await pay(gate, "p2")).joined


async def test_a_second_call_waits_for_the_one_that_runs(open_gate: Open, bank: Bank) -> None:
    bank.hold = asyncio.Event()
    async with open_gate(tools=[bank.tool()], policy=ALLOW) as gate:
        both = [asyncio.create_task(pay(gate, wait=True, own=own)) for own in (False, True)]
        await until(lambda: bool(bank.paid))
        later = asyncio.create_task(pay(gate, wait=True))
        await asyncio.sleep(0)
        bank.hold.set()
        results = [await task for task in (*both, later)]
        assert {result.data for result in results} == {"paid"}
        assert len({result.call_id for result in results}) == 1
        assert len(bank.paid) == 1


async def test_a_second_call_gets_the_open_question(open_gate: Open, bank: Bank) -> None:
    async with open_gate(tools=[bank.tool()], policy=saying("ask")) as gate:
        approval = await park(gate, "pay", {"payment_id": "p1", "amount": 5})
        again = await pay(gate)
        assert (again.approval_id, again.joined, len(await gate.pending())) == (approval.id, True, 1)


async def test_other_arguments_with_the_same_key_are_a_conflict_that_names_the_call(
    open_gate: Open, bank: Bank
) -> None:
    async with open_gate(tools=[bank.tool()], policy=ALLOW) as gate:
        first = await pay(gate)
        with pytest.raises(EffectHeldError, match=first.call_id) as refused:
            await gate.call("pay", {"payment_id": "p1", "amount": 6})
        assert (refused.value.code, refused.value.holder) == ("effect_held", first.call_id)
        assert len(bank.paid) == 1


async def test_somebody_else_hears_nothing_of_the_call_that_holds_the_key(open_gate: Open, bank: Bank) -> None:
    async with open_gate(tools=[bank.tool()], policy=ALLOW) as gate:
        first = await pay(gate)
        with pytest.raises(EffectHeldError) as refused:
            await pay(gate, context=Context(principal="agent:other"))
        assert refused.value.holder is None
        assert first.call_id not in str(refused.value)
        assert not (await pay(gate, context=Context(project="elsewhere"))).joined


async def test_an_end_without_effect_frees_the_key(open_gate: Open, bank: Bank) -> None:
    bank.error = NotExecuted("the bank is closed")
    async with open_gate(tools=[bank.tool()], policy=ALLOW) as gate:
        assert (await pay(gate)).status is Status.FAILED
        bank.error = None
        assert (await pay(gate)).status is Status.COMPLETED
        assert len(bank.paid) == 2


async def test_after_a_no_the_same_call_is_asked_about_anew(open_gate: Open, bank: Bank) -> None:
    async with open_gate(tools=[bank.tool()], policy=saying("ask")) as gate:
        approval = await park(gate, "pay", {"payment_id": "p1", "amount": 5})
        await gate.decide(approval.id, "deny", by="ann", reason="no")
        assert (await pay(gate)).approval_id not in (None, approval.id)


async def test_after_an_unknown_outcome_the_same_call_always_asks_and_tells_why(open_gate: Open, bank: Bank) -> None:
    bank.error = ConnectionResetError("the line is dead")
    async with open_gate(tools=[bank.tool(effects=None)], policy=ALLOW) as gate:
        first = await pay(gate)
        assert first.status is Status.UNKNOWN
        again = await pay(gate)
        assert again.status is Status.AWAITING_APPROVAL
        (question,) = await gate.pending()
        assert f"It repeats call {first.call_id}, which ended UNKNOWN" in " ".join(question.reasons)
        assert (await pay(gate)).call_id == again.call_id
        await gate.decide(question.id, "deny", by="ann", reason="wait for the bank")
        third = await pay(gate)
        assert (third.status, len(bank.paid)) == (Status.AWAITING_APPROVAL, 1)
        assert (await gate.calls.get(third.call_id)).repeat_of == first.call_id


async def test_a_repeat_runs_after_a_yes_and_holds_the_key_from_then_on(open_gate: Open, bank: Bank) -> None:
    bank.error = ConnectionResetError("the line is dead")
    async with open_gate(tools=[bank.tool()], policy=ALLOW) as gate:
        await pay(gate)
        again, bank.error = await pay(gate), None
        await gate.decide(str(again.approval_id), "approve", by="ann", reason="the bank has nothing")
        assert (await gate.wait(again.call_id)).data == "paid"
        assert ((await pay(gate)).call_id, len(bank.paid)) == (again.call_id, 2)


async def test_what_was_settled_meanwhile_is_asked_about_anew(open_gate: Open, bank: Bank) -> None:
    bank.error = ConnectionResetError("the line is dead")
    async with open_gate(tools=[bank.tool()], policy=ALLOW) as gate:
        first, again = await pay(gate), await pay(gate)
        await gate.settle(first.call_id, happened=True, by="ann", reason="seen at the bank")
        await gate.decide(str(again.approval_id), "approve", by="bob", reason="fine")
        (question,) = await anew(gate, str(again.approval_id))
        assert (question.call_id, len(bank.paid)) == (again.call_id, 1)
        assert "which ended COMPLETED" in " ".join(question.reasons)


async def test_settled_as_not_happened_frees_the_key(open_gate: Open, bank: Bank) -> None:
    bank.error = ConnectionResetError("the line is dead")
    async with open_gate(tools=[bank.tool()], policy=ALLOW) as gate:
        first, again = await pay(gate), await pay(gate)
        await gate.settle(first.call_id, happened=False, by="ann", reason="the bank has nothing")
        await gate.decide(str(again.approval_id), "deny", by="ann", reason="ask again")
        bank.error = None
        assert (await pay(gate, wait=True)).data == "paid"


async def test_retries_at_once_after_an_unknown_outcome_make_one_question(open_gate: Open, bank: Bank) -> None:
    bank.error = ConnectionResetError("the line is dead")
    async with open_gate(tools=[bank.tool()], policy=ALLOW) as gate:
        await pay(gate)
        retries = await asyncio.gather(*(pay(gate) for _ in range(10)))
        assert len({retry.approval_id for retry in retries}) == len(await gate.pending()) == 1


async def test_again_on_purpose_always_asks_and_is_told_of(open_gate: Open, bank: Bank) -> None:
    async with open_gate(tools=[bank.tool()], policy=ALLOW) as gate:
        first = await pay(gate)
        again = await pay(gate, repeat_of=first.call_id)
        assert again.status is Status.AWAITING_APPROVAL
        told = (await gate.events(call_id=again.call_id))[0]
        assert (told.type, told.data["repeat_of"]) == ("tool.invoked", first.call_id)
        with pytest.raises(EffectHeldError):
            await pay(gate, repeat_of=first.call_id)
        await gate.decide(str(again.approval_id), "deny", by="ann", reason="once is enough")
        assert (await pay(gate)).call_id == first.call_id


async def test_only_what_is_ones_own_has_ended_and_is_the_same_is_repeated(open_gate: Open, bank: Bank) -> None:
    async with open_gate(tools=[bank.tool()], policy=saying("ask")) as gate:
        open_call = (await park(gate, "pay", {"payment_id": "p1", "amount": 5})).call_id
        with pytest.raises(ConflictError, match="only what has ended"):
            await pay(gate, repeat_of=open_call)
        with pytest.raises(ConflictError, match="another effect"):
            await pay(gate, "p2", repeat_of=open_call)
        for context in (Context(principal="agent:other"), Context(project="elsewhere")):
            with pytest.raises(NotFoundError):
                await pay(gate, repeat_of=open_call, context=context)


@pytest.mark.parametrize("id", [5, "", "\ud800", "x" * 5000], ids=["number", "empty", "half", "long"])
async def test_what_can_be_no_id_is_not_repeated(open_gate: Open, bank: Bank, id: Any) -> None:
    async with open_gate(tools=[bank.tool()], policy=ALLOW) as gate:
        with pytest.raises(InvalidIdError, match="A call id"):
            await pay(gate, repeat_of=id)


async def test_an_undo_has_a_key_of_its_own_and_frees_the_one_of_what_it_undid(open_gate: Open, bank: Bank) -> None:
    tool = bank.tool(effects="reversible", undoable=True, undo_handler=bank.take_back)
    async with open_gate(tools=[tool], policy=ALLOW) as gate:
        first = await pay(gate)
        undo = await gate.undo(first.call_id)
        assert (undo.status, bank.undone) == (Status.COMPLETED, 1)
        assert (await gate.calls.get(undo.call_id)).effect_key == "undo:pay:p1"
        second = await pay(gate)
        assert not second.joined
        assert (await gate.undo(second.call_id)).status is Status.COMPLETED


async def test_a_key_is_held_for_its_window(open_gate: Open, bank: Bank) -> None:
    policy = saying("allow", effect=effect_key("once:{payment_id}", per_s=3600.0))
    async with open_gate(tools=[bank.tool(effect_key=None)], policy=policy) as gate:
        first = await pay(gate)
        assert bank.paid == ["once:p1"]
        assert (await pay(gate)).call_id == first.call_id
        now = gate._driver.now
        gate._driver.now = lambda: now() + timedelta(hours=2)
        assert not (await pay(gate)).joined


@pytest.mark.parametrize(
    ("arguments", "why"),
    [({}, "must be given"), ({"id": None}, "must be given"), ({"id": ""}, "not empty"), ({"id": "x" * 300}, "256")],
)
async def test_arguments_that_make_no_key_fail_before_anything_runs(
    open_gate: Open, bank: Bank, arguments: dict[str, object], why: str
) -> None:
    async with open_gate(tools=[bank.tool(input_schema={}, effect_key="pay:{id}")], policy=ALLOW) as gate:
        result = await gate.call("pay", arguments, wait=False)
        assert (result.status, result.error_code, bank.paid) == (Status.FAILED, "invalid_arguments", [])
        assert why in str(result.error)


async def test_no_key_is_made_of_a_secret(open_gate: Open, bank: Bank) -> None:
    secret = "ghp_" + "c4n4ry" * 6
    async with open_gate(tools=[bank.tool()], policy=ALLOW) as gate:
        result = await gate.call("pay", {"payment_id": secret}, wait=False)
        assert (result.status, bank.paid) == (Status.FAILED, [])
        assert "holds a secret" in str(result.error)
        assert "c4n4ry" not in str(result.error)


async def test_an_edit_may_not_change_the_key(open_gate: Open, bank: Bank) -> None:
    async with open_gate(tools=[bank.tool()], policy=saying("ask")) as gate:
        approval = await park(gate, "pay", {"payment_id": "p1", "amount": 5})
        with pytest.raises(ToolInputError, match="may not change what the effect"):
            await gate.approvals.edit(approval.id, {"payment_id": "p2", "amount": 5}, by="ann")
        await gate.approvals.edit(approval.id, {"payment_id": "p1", "amount": 4}, by="ann")
        assert (await pay(gate)).call_id == approval.call_id


async def test_whoever_is_asked_about_an_edited_repeat_is_told_what_it_repeats(open_gate: Open, bank: Bank) -> None:
    bank.error = ConnectionResetError("the line is dead")
    async with open_gate(tools=[bank.tool()], policy=ALLOW) as gate:
        first, again = await pay(gate), await pay(gate)
        edited = {"payment_id": "p1", "amount": 4}
        await gate.approvals.edit(again.approval_id or "", edited, by="ann", look=lambda _shown: True)
        (question,) = await gate.pending()
        assert question.id != again.approval_id
        assert any(f"It repeats call {first.call_id}" in reason for reason in question.reasons)


@pytest.mark.parametrize("before", [None, "refund:{payment_id}"])
async def test_a_call_whose_key_is_another_by_now_does_not_run(open_gate: Open, bank: Bank, before: str | None) -> None:
    ruled = saying("ask", effect=None if before is None else effect_key(before))
    async with open_gate(tools=[bank.tool(effect_key=None)], policy=ruled) as gate:
        asked = await pay(gate)
        gate._driver.policy = saying("ask", effect=effect_key("pay:{payment_id}"))
        await gate.decide(asked.approval_id or "", "approve", by="ann")
        ended = await gate.wait(asked.call_id)
        assert (ended.status, bank.paid) == (Status.FAILED, [])
        assert "is another than when this call was made" in str(ended.error)


async def test_a_call_whose_tool_has_no_key_any_more_runs_with_the_one_it_holds(open_gate: Open, bank: Bank) -> None:
    ruled = saying("ask", effect=effect_key("pay:{payment_id}"))
    async with open_gate(tools=[bank.tool(effect_key=None)], policy=ruled) as gate:
        asked = await pay(gate)
        gate._driver.policy = saying("ask")
        await gate.decide(asked.approval_id or "", "approve", by="ann")
        assert (await gate.wait(asked.call_id)).success
        assert bank.paid == ["pay:p1"]


async def test_a_call_that_prepares_for_long_holds_its_key(open_gate: Open, bank: Bank) -> None:
    async def prepare(_given: ToolInput) -> Prepared:
        await asyncio.sleep(0.2)
        return Prepared(preview="soon")

    async with open_gate(tools=[bank.tool(prepare=prepare)], policy=ALLOW) as gate:
        results = await asyncio.gather(*(pay(gate, wait=True) for _ in range(3)))
        assert len({result.call_id for result in results}) == 1
        assert len(bank.paid) == 1


async def test_a_nested_call_has_a_key_too(open_gate: Open, bank: Bank) -> None:
    async def both(given: ToolInput) -> ToolOutput:
        inner = [await given.call("pay", {"payment_id": "p1", "amount": 5}) for _ in range(2)]
        return ToolOutput.ok([result.joined for result in inner])

    outer = ToolDefinition(name="both", handler=both)
    async with open_gate(tools=[bank.tool(), outer], policy=ALLOW) as gate:
        assert (await gate.call("both")).data == [False, True]


@pytest.mark.parametrize("through", ["pay", "other"])
async def test_a_call_from_inside_the_one_that_has_its_key_is_refused_rather_than_waiting_for_itself(
    open_gate: Open, bank: Bank, through: str
) -> None:
    async def inside(given: ToolInput) -> ToolOutput:
        with pytest.raises(EffectHeldError, match="would wait for itself"):
            await given.call("pay", given.payload)
        return ToolOutput.ok("refused")

    async def pass_on(given: ToolInput) -> ToolOutput:
        return ToolOutput.ok((await given.call("other", given.payload)).data)

    tools = [bank.tool(handler=inside if through == "pay" else pass_on), ToolDefinition(name="other", handler=inside)]
    async with open_gate(tools=tools, policy=ALLOW) as gate:
        assert (await pay(gate, wait=True)).data == "refused"


@pytest.mark.parametrize("is_approved", [True, False])
async def test_a_repeat_does_not_give_its_key_back_to_a_call_that_was_undone_meanwhile(
    open_gate: Open, bank: Bank, is_approved: bool
) -> None:
    tool = bank.tool(effects="reversible", undoable=True, undo_handler=bank.take_back)
    async with open_gate(tools=[tool], policy=ALLOW) as gate:
        first = await pay(gate)
        repeat = await pay(gate, repeat_of=first.call_id)
        await gate.undo(first.call_id)
        await gate.decide(repeat.approval_id or "", "approve" if is_approved else "deny", by="ann", reason="so")
        if is_approved:
            assert (await gate.wait(repeat.call_id)).success
            assert (await gate.undo(repeat.call_id)).success
        assert not (await pay(gate)).joined


async def test_a_caller_that_runs_its_own_call_holds_the_key(open_gate: Open, bank: Bank) -> None:
    async with open_gate(tools=[bank.tool(placement="caller")], policy=ALLOW) as gate:
        first, again = await pay(gate), await pay(gate)
        assert (again.call_id, again.joined) == (first.call_id, True)
        ran = [await gate.run_here(first.call_id, lambda _given: "done") for _ in range(2)]
        assert [result.data for result in ran] == ["done", "done"]
        assert (await pay(gate)).data == "done"


@pytest.mark.parametrize(
    ("template", "why"),
    [
        ("pay:{nobody}", "no argument"),
        ("pay:{amount}", "need not be given"),
        ("pay {payment_id}", "is not an effect key"),
        ("", "is not an effect key"),
        ("pay:{}", "is not an effect key"),
        ("{payment_id}-{amount}", "kept apart"),
        ("undo:{payment_id}", "does not begin"),
        (5, "not int"),
        ("p" * 256 + "{payment_id}", "at least 257 bytes"),
        ("pay:{card_token}", "names a secret"),
    ],
)
def test_a_template_that_makes_no_key_is_refused(bank: Bank, template: Any, why: str) -> None:
    with pytest.raises(DefinitionError, match=why):
        bank.tool(effect_key=template)


def test_an_argument_that_is_no_plain_value_makes_no_key(bank: Bank) -> None:
    schema = {"properties": {"a": {"type": "array"}, "b": True}, "required": ["a", "b"]}
    with pytest.raises(DefinitionError, match="not a plain text"):
        bank.tool(input_schema=schema, effect_key="pay:{a}")
    assert bank.tool(input_schema=schema, effect_key="pay:{b}").effect is not None


@pytest.mark.parametrize(
    "declared",
    [
        {"anyOf": [{"type": "string"}, {"type": "null"}]},
        {"oneOf": [{"type": "integer"}, {"anyOf": [{"const": None}]}]},
        {"enum": ["card", None]},
    ],
)
def test_an_argument_that_may_be_null_makes_no_key(bank: Bank, declared: dict[str, Any]) -> None:
    with pytest.raises(DefinitionError, match="not a plain text"):
        bank.tool(input_schema={"properties": {"a": declared}, "required": ["a"]}, effect_key="pay:{a}")


@pytest.mark.parametrize("declared", [{"anyOf": [{"type": "string"}, {"type": "integer"}]}, {"enum": ["card", 5]}])
def test_an_argument_of_several_plain_kinds_makes_a_key(bank: Bank, declared: dict[str, Any]) -> None:
    schema = {"properties": {"a": declared}, "required": ["a"]}
    assert bank.tool(input_schema=schema, effect_key="pay:{a}").effect is not None


async def test_an_undo_that_was_asked_about_goes_by_the_key_it_has(open_gate: Open, bank: Bank) -> None:
    tool = bank.tool(effects="reversible", undoable=True, undo_handler=bank.take_back)
    async with open_gate(tools=[tool], policy=saying("allow", undo_asks=True)) as gate:
        first = await pay(gate)
        undoing = asyncio.create_task(gate.undo(first.call_id))
        await until(gate.pending)
        await gate.decide((await gate.pending())[0].id, "approve", by="ann")
        assert (await undoing).success
        assert bank.undone == 1


async def test_a_call_whose_arguments_were_pruned_is_not_joined(tmp_path: Path, bank: Bank) -> None:
    file, tools = tmp_path / "gate.db", [bank.tool(input_schema={}, effect_key="nightly", handler=bank.close)]
    async with toolgate.open(file, tools=tools, policy=ALLOW) as gate:
        assert (await gate.call("pay", {}, call_id="first")).success
    prune(file, datetime.now(UTC) + timedelta(seconds=1), by="ann")
    async with toolgate.open(file, tools=tools, policy=ALLOW) as gate:
        with pytest.raises(EffectHeldError, match=r"Call first .* its arguments are not kept any more"):
            await gate.call("pay", {})
    assert len(bank.paid) == 1


async def test_an_executor_says_that_an_effect_is_held(bank: Bank) -> None:
    executor = AdvancedToolExecutor([bank.tool(risk_level="low")])
    first = await executor.execute_tool("pay", {"payment_id": "p1"})
    again = await executor.execute_tool("pay", {"payment_id": "p1"})
    assert (first.status, again.status, again.error_type) == ("completed", "failed", "effect_held")
    with pytest.raises(ToolDeniedError, match=str(first.tool_id)):
        await executor.execute(Action(type="pay", payload={"payment_id": "p1"}))
    assert len(bank.paid) == 1


def test_no_two_values_make_one_key() -> None:
    key = effect_key("pay:{a}/{b}")
    values = [("x", "y"), ("x/y", "y"), ("x", "y/y"), ("é", "y"), ("%C3%A9", "y"), (1.5, True), (-1, False)]
    made = {key.of({"a": a, "b": b}, {"a": a, "b": b}, "pay") for a, b in values}
    assert len(made) == len(values)
    assert "pay:%C3%A9/y" in made


def test_an_argument_cannot_make_the_key_of_an_undo() -> None:
    key = effect_key("{what}:{id}")
    assert key.of({"what": "pay", "id": "p1"}, {"what": "pay", "id": "p1"}, "act") == "pay:p1"
    with pytest.raises(ToolInputError, match="as those of undos do"):
        key.of({"what": "undo", "id": "pay"}, {"what": "undo", "id": "pay"}, "act")
