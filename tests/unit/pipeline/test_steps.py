"""The pure parts of the path: validation, rulings, plans, steps and outcomes."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any

import orjson
import pytest
from pydantic import AfterValidator

from toolgate import Policy, ToolDefinition, ToolOutput, tool
from toolgate.errors import (
    ConflictError,
    DecisionConflictError,
    ToolInputError,
    ToolOutputError,
)
from toolgate.kernel.approval import ApprovalStatus, digest_of
from toolgate.kernel.assessment import ApprovalLevel
from toolgate.kernel.call import Status
from toolgate.kernel.change import Durability
from toolgate.kernel.context import Mode
from toolgate.kernel.doubt import doubt_of
from toolgate.kernel.marks import Marks
from toolgate.kernel.policy import SILENCE, Facts, Judgement, Score, Stance, Verdict, Word
from toolgate.kernel.ruling import assess, permit
from toolgate.kernel.text.canonical import DEFAULT_LIMITS
from toolgate.kernel.tool import Thresholds
from toolgate.kernel.undo import UndoState
from toolgate.pipeline import steps
from toolgate.pipeline.outcome import Outcome, decode, interpret, interrupted
from toolgate.pipeline.plan import compile_plan
from toolgate.pipeline.validate import revalidate, validate
from toolgate.testing.clock import NOON
from toolgate.testing.conformance.rows import a_call, an_approval, an_undo

MARKS = Marks.fresh()


def a_tool(**options: Any) -> ToolDefinition:
    return ToolDefinition(name="write", handler=lambda _given: ToolOutput.ok(), **options)


def even(value: int) -> int:
    if value % 2:
        raise ValueError("odd")
    return value


Even = Annotated[int, AfterValidator(even)]


@tool
async def halve(number: complex | Even) -> int:
    return 1


def test_validate_names_the_tool_and_the_location() -> None:
    strict = a_tool(input_schema={"type": "object", "properties": {"n": {"type": "integer"}}})
    assert validate(strict, {"n": 1}, DEFAULT_LIMITS).canonical == b'{"n":1}'
    with pytest.raises(ToolInputError) as caught:
        validate(strict, {"n": "x"}, DEFAULT_LIMITS)
    assert (caught.value.tool, caught.value.location) == ("write", "/n")
    with pytest.raises(ToolInputError) as caught:
        validate(strict, "{", DEFAULT_LIMITS)
    assert caught.value.tool == "write"


def test_validate_asks_typed_parameters_too() -> None:
    picky = ToolDefinition(name="picky", handler=lambda _given: None, bind=_refusing("number"))
    with pytest.raises(ToolInputError, match="at /number") as caught:
        validate(picky, {"number": 3}, DEFAULT_LIMITS)
    assert caught.value.location == "/number"
    lenient = ToolDefinition(name="lenient", handler=lambda _given: None, bind=orjson.loads)
    assert validate(lenient, {"number": 3}, DEFAULT_LIMITS).value == {"number": 3}


def _refusing(name: str) -> Any:
    from pydantic import TypeAdapter

    adapter = TypeAdapter(dict[str, Even])

    def bind(encoded: bytes) -> dict[str, Any]:
        assert name in orjson.loads(encoded)
        return adapter.validate_json(encoded)

    return bind


def test_revalidate_checks_stored_arguments_against_the_definition_of_now() -> None:
    revalidate(a_tool(), b'{"n":1}')
    with pytest.raises(ToolInputError):
        revalidate(a_tool(input_schema={"type": "object", "maxProperties": 0}), b'{"n":1}')


def _says(word: Word) -> Any:
    return lambda _call, _tool, _facts: Verdict(word, "because", "rule")


@pytest.mark.parametrize("word", list(Word))
def test_permit_returns_what_the_rules_say(word: Word) -> None:
    judgement = permit(a_call(), a_tool(), Policy(), (_says(word),), Facts(Mode.NORMAL, NOON))
    assert judgement.word is word


@pytest.mark.parametrize(
    ("said", "asks", "word"),
    [
        (Word.ASK, False, Word.ALLOW),
        (Word.ALLOW, False, Word.ALLOW),
        (Word.DENY, False, Word.DENY),
        (Word.DENY, True, Word.DENY),
        (Word.ALLOW, True, Word.ASK),
    ],
)
def test_an_undo_is_asked_about_only_where_the_policy_says_so(said: Word, asks: bool, word: Word) -> None:
    policy = Policy(undo_asks=asks)
    judgement = permit(a_call(undo_of="c0"), a_tool(), policy, (_says(said),), Facts(Mode.NORMAL, NOON))
    assert judgement.word is word


def test_a_free_undo_needs_nobody() -> None:
    found = assess(a_call(undo_of="c0"), a_tool(risk_level="high"), SILENCE, Policy())
    assert found.level is ApprovalLevel.AUTO


def test_an_undo_the_policy_asks_about_is_assessed() -> None:
    asked = Judgement(Word.ASK, (Verdict(Word.ASK, "because", "undo"),))
    found = assess(a_call(undo_of="c0"), a_tool(risk_level="high"), asked, Policy(undo_asks=True))
    assert found.level is ApprovalLevel.FULL


@pytest.mark.parametrize(
    ("score", "level"),
    [
        (lambda _call, _tool: Score(90), ApprovalLevel.AUTO),
        (lambda _call, _tool: Score(70), ApprovalLevel.QUICK),
        (lambda _call, _tool: Score(10), ApprovalLevel.FULL),
        (lambda _call, _tool: 1 / 0, ApprovalLevel.FULL),
        (None, ApprovalLevel.QUICK),
    ],
    ids=["sure", "fair", "poor", "broken", "built in"],
)
def test_confidence_chooses_the_level_and_a_broken_score_none(score: Any, level: ApprovalLevel) -> None:
    policy = Policy(thresholds=Thresholds(), score=score)
    assert assess(a_call(), a_tool(), SILENCE, policy).level is level


def test_a_plan_has_its_ruling_where_nothing_about_a_call_has_a_say() -> None:
    for mode in Mode:
        plan = compile_plan(a_tool(), Policy(), (mode,))
        assert plan.fixed is not None
        assert plan.fixed.word is (Word.DENY if mode is Mode.LOCKDOWN else Word.ALLOW)
    asking = compile_plan(a_tool(risk_level="medium"), Policy(), (Mode.NORMAL,))
    assert asking.fixed is not None
    assert asking.fixed.word is Word.ASK
    assert (asking.template.level, asking.template.risk) == ("quick", "medium")


@pytest.mark.parametrize(
    ("options", "policy"),
    [
        ({"allowed_behaviors": ("build",)}, Policy()),
        ({"thresholds": Thresholds()}, Policy()),
        ({}, Policy(thresholds=Thresholds())),
        ({}, Policy(rules=(_says(Word.ALLOW),))),
        ({}, Policy(inspectors=(object(),))),  # type: ignore[arg-type]  # it is not asked
    ],
)
def test_a_plan_has_no_ruling_where_something_looks_at_the_call(options: dict[str, Any], policy: Policy) -> None:
    assert compile_plan(a_tool(**options), policy, (Mode.NORMAL,)).fixed is None


def test_the_time_to_decide_is_the_calls_the_tools_the_policys_or_the_levels() -> None:
    quick = ApprovalLevel.QUICK
    slow, hasty = Policy(approval_timeout_s=30), a_tool(approval_timeout_seconds=20)
    assert steps.timeout_s(a_call(approval_timeout_s=10), hasty, slow, quick) == 10
    assert steps.timeout_s(a_call(), hasty, slow, quick) == 20
    assert steps.timeout_s(a_call(), a_tool(), slow, quick) == 30
    assert steps.timeout_s(a_call(), a_tool(), Policy(), quick) == 300
    assert steps.timeout_s(a_call(), a_tool(), Policy(), ApprovalLevel.FULL) == 600


def test_a_request_parks_the_call_with_an_approval_bound_to_it() -> None:
    call = a_call(status=Status.PENDING, version=0, shown={"a": 1})
    change = steps.ask(call, a_tool(), id="a1", nonce="n", now=NOON, timeout=100, mode=0, marks=MARKS)
    asked, approval = change.call, change.approvals[0]
    assert asked is not None
    assert (asked.status, asked.approval_id, change.expect) == (Status.AWAITING_APPROVAL, "a1", None)
    assert approval.digest == digest_of(asked, nonce="n")
    assert (approval.message, approval.expires_at) == ("Run write?", NOON + timedelta(seconds=100))
    assert asked.due_at == approval.warn_at == NOON + timedelta(seconds=50)


def test_a_tools_own_question_is_asked() -> None:
    call = a_call(status=Status.PENDING)
    asked = a_tool(approval_message="Really?")
    change = steps.ask(call, asked, id="a", nonce="n", now=NOON, timeout=9, mode=0, marks=MARKS)
    assert change.approvals[0].message == "Really?"


def test_a_decision_closes_the_approval_and_moves_the_call() -> None:
    call, approval = a_call(status=Status.AWAITING_APPROVAL), MARKS.put(an_approval())
    yes = steps.decide(call, approval, approve=True, by="ann", reason=None, now=NOON, marks=MARKS)
    no = steps.decide(call, approval, approve=False, by="ann", reason="bad", now=NOON, marks=MARKS)
    assert yes.call is not None
    assert no.call is not None
    assert (yes.call.status, yes.call.approved_by, yes.approvals[0].status) == (
        Status.APPROVED,
        "ann",
        ApprovalStatus.APPROVED,
    )
    assert (no.call.status, no.call.error, no.approvals[0].status) == (
        Status.REJECTED,
        "Approval was denied by ann: bad",
        ApprovalStatus.DENIED,
    )


def test_a_decision_after_the_expiry_is_refused() -> None:
    call, approval = a_call(status=Status.AWAITING_APPROVAL), MARKS.put(an_approval())
    with pytest.raises(DecisionConflictError):
        steps.decide(call, approval, approve=True, by="ann", reason=None, now=approval.expires_at, marks=MARKS)
    with pytest.raises(DecisionConflictError):
        steps.extend(call, approval, seconds=60, by="ann", now=approval.expires_at, marks=MARKS)


def test_an_expired_undo_request_is_told_as_a_failed_undo() -> None:
    call = a_call(status=Status.AWAITING_APPROVAL, undo_of="c0")
    change = steps.expire(call, an_approval(), now=NOON)
    assert [draft[0] for draft in change.events] == ["approval.expired", "tool.undo_failed"]


def test_a_warning_is_given_once() -> None:
    change = steps.warn(a_call(status=Status.AWAITING_APPROVAL), an_approval(warn_at=NOON), now=NOON)
    assert change.call is not None
    assert (change.approvals[0].warn_at, change.call.due_at) == (None, an_approval().expires_at)


NOW: dict[str, Any] = {"now": NOON, "owner": "me", "mode": 7, "durability": Durability.FSYNCED}


def test_a_claim_names_who_allowed_it_and_since_when() -> None:
    change = steps.claim(a_call(approved_by="ann"), **NOW)
    assert change.call is not None
    assert (change.call.status, change.call.owner, change.call.attempt) == (Status.EXECUTING, "me", 1)
    assert change.events[-1][2]["approved_by"] == "ann"
    assert (change.durability, change.mode_seen) == (Durability.FSYNCED, 7)
    free = steps.claim(a_call(), **NOW).call
    assert free is not None
    assert (free.approved_by, free.approved_at) == ("policy:auto", NOON)


@pytest.mark.parametrize(("effects", "durability"), [(None, Durability.FSYNCED), ("read", Durability.COMMITTED)])
def test_a_claim_must_survive_power_loss_unless_the_tool_may_run_again(
    effects: str | None, durability: Durability
) -> None:
    assert compile_plan(a_tool(effects=effects), Policy(), (Mode.NORMAL,)).durability is durability


def test_a_plan_reserves_the_rate_and_not_for_an_undo() -> None:
    plan = compile_plan(a_tool(rate_limit_per_hour=5), Policy(), (Mode.NORMAL,))
    assert [(one.key, one.limit) for one in plan.reservations(a_call(), {})] == [("tool:write", 5)]
    assert plan.reservations(a_call(undo_of="c0"), {}) == ()


def test_the_claim_of_an_undo_expects_what_it_undoes_to_be_there() -> None:
    assert steps.claim(a_call(undo_of="c0"), **NOW, undo=an_undo("c0")).undo_expect is UndoState.AVAILABLE


def test_a_claim_for_another_place_carries_a_fence_and_a_deadline() -> None:
    due = NOON + timedelta(seconds=5)
    change = steps.claim(a_call(), **NOW, fence="f", due_at=due)
    assert change.call is not None
    assert (change.call.fence, change.call.due_at) == ("f", due)
    again = steps.claim(a_call(due_at=due), **NOW)
    assert again.call is not None
    assert again.call.due_at is None


def test_a_call_that_runs_cannot_be_claimed() -> None:
    with pytest.raises(ConflictError):
        steps.claim(a_call(status=Status.EXECUTING), **NOW)


def test_the_value_of_a_function_is_its_output() -> None:
    function = a_tool(function=lambda: None)
    assert interpret(function, {"a": 1}) == Outcome(Status.COMPLETED, b'{"a":1}')
    assert interpret(a_tool(function=lambda: None, undoable=True), 1).undo == b"{}"
    with pytest.raises(ToolOutputError):
        interpret(a_tool(function=lambda: None, output_schema={"type": "string"}), 1)
    with pytest.raises(ToolOutputError, match="instead of ToolOutput"):
        interpret(a_tool(), 1)


def test_an_output_says_what_happened() -> None:
    done = interpret(a_tool(undoable=True), ToolOutput.ok(1, undo_metadata={"old": 0}, artifacts=[2]))
    assert (done.status, done.result, done.undo, done.artifacts) == (Status.COMPLETED, b"1", b'{"old":0}', b"[2]")
    assert interpret(a_tool(undoable=True), ToolOutput.ok()).undo == b"{}"
    assert interpret(a_tool(output_schema={"type": "integer"}), ToolOutput.ok(1)).status is Status.COMPLETED
    failed = interpret(a_tool(), ToolOutput.fail("no"))
    assert (failed.status, failed.error) == (Status.FAILED, "no")


@pytest.mark.parametrize("truthy", [1, "yes", None])
def test_only_true_is_success(truthy: object) -> None:
    assert interpret(a_tool(), ToolOutput(success=truthy)).status is Status.FAILED  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("why", "stopped", "effects", "status"),
    [
        ("timeout", True, None, Status.FAILED),
        ("timeout", False, None, Status.UNKNOWN),
        ("timeout", False, "read", Status.FAILED),
        ("cancelled", True, None, Status.CANCELLED),
        ("cancelled", False, "irreversible", Status.UNKNOWN),
        ("timeout", True, "irreversible", Status.UNKNOWN),
        ("cancelled", True, "reversible", Status.UNKNOWN),
        ("shutdown", False, "read", Status.CANCELLED),
    ],
)
def test_what_may_be_said_of_a_handler_that_was_cut_short(
    why: str, stopped: bool, effects: str | None, status: Status
) -> None:
    cut = a_tool(effects=effects)
    outcome = interrupted(cut, doubt_of(cut, Stance()), why=why, stopped=stopped, began=True, detail="ann asked")
    assert outcome.status is status
    assert "ann asked" in str(outcome.error)


def test_stored_data_is_decoded_anew_for_each_reader() -> None:
    stored = orjson.dumps({"a": [1]})
    first, second = decode(stored), decode(stored)
    first["a"].append(2)
    assert second == {"a": [1]}
    assert decode(None) is None


def test_a_completed_call_keeps_no_deadline() -> None:
    call = a_call(status=Status.EXECUTING, due_at=NOON)
    change = steps.complete(call, now=NOON, duration_ms=1.0, result=b"1", shown=1, summary=1)
    assert change.call is not None
    assert (change.call.due_at, change.call.status) == (None, Status.COMPLETED)


@pytest.mark.parametrize(
    ("status", "undo_of", "name"),
    [
        (Status.FAILED, None, "tool.failed"),
        (Status.UNKNOWN, None, "tool.failed"),
        (Status.CANCELLED, None, "tool.cancelled"),
        (Status.CANCELLED, "c0", "tool.undo_failed"),
        (Status.FAILED, "c0", "tool.undo_failed"),
    ],
)
def test_the_last_word_of_a_call_that_did_not_succeed(status: Status, undo_of: str | None, name: str) -> None:
    call = a_call(status=Status.EXECUTING, undo_of=undo_of)
    change = steps.fail(call, now=NOON, status=status, code="x", error="y", duration_ms=2.0)
    assert change.events[-1][0] == name


def test_a_denied_call_is_told_with_its_reason() -> None:
    change = steps.fail(a_call(), now=NOON, status=Status.DENIED, code="denied", error="no", reason="modes")
    assert change.events[-1][0] == "tool.denied"
    assert change.events[-1][3] == {"reason": "modes", "message": "no"}


def test_a_very_long_error_is_cut() -> None:
    change = steps.fail(a_call(), now=NOON, status=Status.FAILED, code="x", error="y" * 5000)
    assert change.call is not None
    assert len(str(change.call.error)) == 1000
