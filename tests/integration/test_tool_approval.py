"""A person in the loop, through the executor: asked, answered, too late, gone away, racing, restarted."""

from __future__ import annotations

import asyncio
import json
import shutil
import threading
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from tests.unit.tools.scene import PERSON, Shelf, Sink, act, answer, asked, echo

from toolgate.errors import DecisionConflictError, NotAllowedError
from toolgate.testing.patience import PATIENCE_S
from toolgate.tools import (
    AdvancedToolExecutor,
    ApprovalDecision,
    ApprovalRequest,
    ApprovalService,
    ApprovalStatus,
    ToolApprovalDeniedError,
    ToolApprovalTimeoutError,
    ToolCancelledError,
    ToolDefinition,
    ToolExecutorConfig,
    ToolInput,
    ToolOutput,
    get_approval_service,
    set_approval_service,
)


def asking(shelf: Shelf, **more: Any) -> ToolDefinition:
    return ToolDefinition("put", {}, shelf.put, requires_approval=True, **more)


async def test_a_question_is_asked_and_nothing_runs_until_it_is_answered() -> None:
    shelf, action = Shelf(), act("put", state="new")
    executor = AdvancedToolExecutor([asking(shelf, approval_message="Change the shelf?")])
    running = asyncio.ensure_future(executor.execute(action, {"pipeline_run_id": uuid4(), "user_id": "bob"}))
    question = await asked()
    assert (question.action_id, question.tool_name) == (action.id, "put")
    assert (question.message, question.approval_message) == ("Change the shelf?", "Change the shelf?")
    assert (question.payload, question.status) == ({"state": "new"}, ApprovalStatus.PENDING)
    assert isinstance(question.id, UUID)
    assert question.artifact.to_dict()["options"] == ["approve", "deny"]
    assert (question.artifact.request_id, question.artifact.arguments) == (str(question.id), {"state": "new"})
    assert question.artifact.action_summary == 'put(state="new")'
    await asyncio.sleep(0.02)
    assert (shelf.runs, running.done()) == (0, False)
    await answer(True)
    assert (await running).data == {"state": "new"}
    assert await get_approval_service().get_status(action.id) is ApprovalStatus.APPROVED
    decided = await get_approval_service().get_request(action.id)
    assert decided.decided_by == PERSON


async def test_a_no_is_told_and_raised() -> None:
    shelf, sink, action = Shelf(), Sink(), act("put")
    executor = AdvancedToolExecutor([asking(shelf)], event_sink=sink)
    running = asyncio.ensure_future(executor.execute(action))
    question = await asked()
    await get_approval_service().record_decision(question.id or "", False, "ann", reason="not today")
    with pytest.raises(ToolApprovalDeniedError, match="not today") as refused:
        await running
    assert (refused.value.tool, refused.value.reason, shelf.runs) == ("put", "not today", 0)
    assert sink.types == ["tool.invoked", "approval.requested", "approval.decided", "tool.denied"]
    assert sink.of("tool.denied")["reason"] == "approval_denied"
    assert (sink.of("approval.decided")["decision"], sink.of("approval.decided")["decided_by"]) == ("denied", "ann")


async def test_nobody_answers() -> None:
    shelf, sink, action = Shelf(), Sink(), act("put")
    config = ToolExecutorConfig(approval_timeout_seconds=0.05)
    executor = AdvancedToolExecutor([asking(shelf)], config=config, event_sink=sink)
    with pytest.raises(ToolApprovalTimeoutError) as late:
        await executor.execute(action)
    assert (late.value.tool, late.value.timeout_seconds, shelf.runs) == ("put", 0.05, 0)
    assert isinstance(late.value.request_id, UUID)
    assert sink.types == ["tool.invoked", "approval.requested", "tool.denied"]
    service = get_approval_service()
    assert await service.get_status(action.id) is ApprovalStatus.EXPIRED
    with pytest.raises(DecisionConflictError):
        await service.record_decision(action.id, True, "ann")
    assert await service.get_status(action.id) is ApprovalStatus.EXPIRED
    await asyncio.sleep(0.02)
    assert shelf.runs == 0


async def test_the_tools_own_time_comes_before_the_configurations() -> None:
    config = ToolExecutorConfig(approval_timeout_seconds=600)
    executor = AdvancedToolExecutor([asking(Shelf(), approval_timeout_seconds=0.05)], config=config)
    with pytest.raises(ToolApprovalTimeoutError):
        await executor.execute(act("put"))


async def test_a_hundred_deciders_and_one_decision() -> None:
    shelf = Shelf()
    executor = AdvancedToolExecutor([asking(shelf)])
    running = asyncio.ensure_future(executor.execute(act("put")))
    question = await asked()
    service = get_approval_service()
    votes = [service.record_decision(question.id or "", number % 2 == 0, f"person-{number}") for number in range(100)]
    answers = await asyncio.gather(*votes, return_exceptions=True)
    won = [said for said in answers if isinstance(said, ApprovalDecision)]
    assert len(won) == 1
    assert all(isinstance(said, DecisionConflictError) for said in answers if said is not won[0])
    if won[0].granted:
        await running
    else:
        with pytest.raises(ToolApprovalDeniedError):
            await running
    assert shelf.runs == int(won[0].granted)


async def test_what_was_approved_is_what_runs() -> None:
    shelf, action = Shelf(), act("put", state={"deep": ["reviewed"]})
    running = asyncio.ensure_future(AdvancedToolExecutor([asking(shelf)]).execute(action))
    question = await asked()
    action.payload["state"]["deep"].append("sneaked in")
    action.payload["more"] = 1
    question.payload["state"]["deep"].append("sneaked in")
    await answer(True)
    await running
    assert shelf.state == {"deep": ["reviewed"]}


async def test_going_away_closes_the_question_and_tells_the_end() -> None:
    shelf, sink, action = Shelf(), Sink(), act("put")
    executor = AdvancedToolExecutor([asking(shelf)], event_sink=sink)
    running = asyncio.ensure_future(executor.execute(action))
    question = await asked()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    service = get_approval_service()
    assert await service.list_pending() == []
    assert await service.get_status(action.id) is ApprovalStatus.EXPIRED
    assert sink.types == ["tool.invoked", "approval.requested", "tool.failed"]
    assert sink.of("tool.failed")["error_code"] == "cancelled"
    with pytest.raises(DecisionConflictError):
        await service.record_decision(question.id or "", True, "ann")
    assert shelf.runs == 0


async def test_the_one_who_joined_may_leave_without_ending_the_call() -> None:
    shelf, action = Shelf(), act("put")
    executor = AdvancedToolExecutor([asking(shelf)])
    first = asyncio.ensure_future(executor.execute(action))
    await asked()
    second = asyncio.ensure_future(executor.execute(action))
    await asyncio.sleep(0.02)
    second.cancel()
    with pytest.raises(asyncio.CancelledError):
        await second
    third = asyncio.ensure_future(executor.execute(action))
    await answer(True)
    assert (await first).data == (await third).data == {"state": "new"}
    assert shelf.runs == 1


async def test_somebody_else_cancels_the_request() -> None:
    shelf = Shelf()
    running = asyncio.ensure_future(AdvancedToolExecutor([asking(shelf)]).execute(act("put")))
    question = await asked()
    service = get_approval_service()
    assert await service.cancel_request(question.id or "")
    with pytest.raises(ToolCancelledError):
        await running
    assert not await service.cancel_request(question.id or "")
    assert not await service.cancel_request("nobody asked this")


async def test_an_agent_does_not_decide() -> None:
    running = asyncio.ensure_future(AdvancedToolExecutor([asking(Shelf())]).execute(act("put")))
    question = await asked()
    for who in ("agent:other", "agent:local"):
        with pytest.raises(NotAllowedError):
            await get_approval_service().record_decision(question.id or "", True, who)
    await answer(False)
    with pytest.raises(ToolApprovalDeniedError):
        await running


async def test_only_true_is_a_yes() -> None:
    shelf = Shelf()
    running = asyncio.ensure_future(AdvancedToolExecutor([asking(shelf)]).execute(act("put")))
    question = await asked()
    said = await get_approval_service().record_decision(question.id or "", "false", "ann")  # type: ignore[arg-type]  # a caller's mistake
    assert not said.granted
    with pytest.raises(ToolApprovalDeniedError):
        await running
    assert shelf.runs == 0


def test_a_decision_from_another_thread_wakes_the_waiter_at_once() -> None:
    shelf, action = Shelf(), act("put")
    service = get_approval_service()

    def decide() -> None:
        asyncio.run(answer(True, service))

    async def main() -> ToolOutput:
        async with asyncio.timeout(PATIENCE_S):
            return await AdvancedToolExecutor([asking(shelf)]).execute(action)

    person = threading.Thread(target=decide)
    person.start()
    assert asyncio.run(main()).data == {"state": "new"}
    person.join()


async def test_who_watches_a_question_does_not_end_it() -> None:
    shelf, action = Shelf(), act("put")
    running = asyncio.ensure_future(AdvancedToolExecutor([asking(shelf)]).execute(action))
    question = await asked()
    service = get_approval_service()
    with pytest.raises(ToolApprovalTimeoutError):
        await service.await_decision(question.id or "", 0.01)
    watching = asyncio.ensure_future(service.await_decision(action.id, 10))
    await answer(True)
    assert (await watching).decided_by == PERSON
    assert (await running).success


@pytest.mark.parametrize(
    ("flag", "demands", "risk", "is_asked"),
    [
        (True, False, "high", True),
        (True, False, "low", False),
        (False, False, "high", False),
        (False, True, "low", True),
        (False, True, "high", True),
    ],
)
async def test_risk_asks_where_the_configuration_says_so(flag: bool, demands: bool, risk: str, is_asked: bool) -> None:
    shelf = Shelf()
    tool = ToolDefinition("put", {}, shelf.put, requires_approval=demands, risk_level=risk)
    config = ToolExecutorConfig(require_approval_for_risky=flag)
    running = asyncio.ensure_future(AdvancedToolExecutor([tool], config=config).execute(act("put")))
    if is_asked:
        await asked()
        assert shelf.runs == 0
        await answer(True)
    await running
    assert shelf.runs == 1


async def test_a_service_of_its_own_asks_there_and_nowhere_else() -> None:
    service, shelf = ApprovalService(), Shelf()
    executor = AdvancedToolExecutor([asking(shelf)], approval_service=service)
    running = asyncio.ensure_future(executor.execute(act("put")))
    await asked(service)
    assert await get_approval_service().list_pending() == []
    await answer(True, service)
    await running
    await service.close()


async def test_the_process_wide_service_can_be_replaced() -> None:
    service, shelf = ApprovalService(), Shelf()
    executor = AdvancedToolExecutor([asking(shelf)])
    first = asyncio.ensure_future(executor.execute(act("put")))
    await answer(True)
    await first
    await get_approval_service().close()
    set_approval_service(service)
    second = asyncio.ensure_future(executor.execute(act("put")))
    await answer(True, service)
    await second
    assert shelf.runs == 2


class ForeignService:
    """An approval service of somebody else's, in document 000's shape."""

    def __init__(self, granted: bool) -> None:
        self.granted = granted
        self.asked: list[tuple[Any, Any, Any]] = []

    async def request_approval(self, action: Any, ctx: Any, tool: Any) -> ApprovalRequest:
        self.asked.append((action, ctx, tool))
        return ApprovalRequest(action.id, tool.name, id="r-1")

    async def await_decision(self, request_id: str, timeout_seconds: float) -> ApprovalDecision:
        assert (request_id, timeout_seconds) == ("r-1", 300.0)
        return ApprovalDecision(self.granted, request_id, "ann", "because")


class ForeignService001(ForeignService):
    """The same in document 001's shape."""

    request_approval = None  # type: ignore[assignment]  # it has the other method

    async def request(self, request: ApprovalRequest) -> ApprovalRequest:
        self.asked.append((request, None, None))
        request.id = "r-1"
        return request


@pytest.mark.parametrize("kind", [ForeignService, ForeignService001])
async def test_somebody_elses_service_is_asked(kind: type[ForeignService]) -> None:
    for granted in (True, False):
        service, shelf, action = kind(granted), Shelf(), act("put", state="x", password="hunter22")
        executor = AdvancedToolExecutor([asking(shelf)], approval_service=service)
        if granted:
            await executor.execute(action)
        else:
            with pytest.raises(ToolApprovalDeniedError, match="because"):
                await executor.execute(action)
        assert shelf.runs == int(granted)
        assert "hunter22" not in repr(service.asked[0][0])


async def test_pending_questions_survive_the_process(tmp_path: Path, empty_database: Path) -> None:
    path = tmp_path / "approvals.db"
    shutil.copy(empty_database, path)
    shutil.copy(f"{empty_database}.key", f"{path}.key")
    url, shelf, action = f"sqlite:///{path}", Shelf(), act("put", password="hunter22")
    before = ApprovalService.open(url)
    executor = AdvancedToolExecutor([asking(shelf)], approval_service=before, project="shelves")
    running = asyncio.ensure_future(executor.execute(action))
    question = await asked(before)
    await before.close()
    with pytest.raises(Exception, match="closed"):
        await running
    after = ApprovalService.open(url)
    assert [(one.id, one.payload) for one in await after.list_pending()] == [(question.id, {"password": "***"})]
    executor = AdvancedToolExecutor([asking(shelf)], approval_service=after, project="shelves")
    running = asyncio.ensure_future(executor.execute(action))  # the same action: it joins the call made before
    await after.record_decision(question.id or "", True, PERSON)
    assert (await running).success
    assert shelf.runs == 1
    await after.close()
    assert b"hunter22" not in path.read_bytes()


async def test_finished_questions_do_not_pile_up() -> None:
    executor = AdvancedToolExecutor([asking(Shelf())])
    for _ in range(20):
        running = asyncio.ensure_future(executor.execute(act("put")))
        await answer(True)
        await running
    store: Any = executor.gate._driver.store
    assert (len(store._open), await get_approval_service().list_pending()) == (0, [])


async def test_a_no_given_while_the_rules_relax_stays_a_no() -> None:
    from toolgate.kernel.policy import Policy

    shelf, action = Shelf(), act("put")
    executor = AdvancedToolExecutor([asking(shelf)])
    running = asyncio.ensure_future(executor.execute(action))
    await answer(False)
    with pytest.raises(ToolApprovalDeniedError):
        await running
    await executor.gate.set_policy(Policy(revision="relaxed"), by="ann")
    with pytest.raises(ToolApprovalDeniedError):
        await executor.execute(action)
    assert shelf.runs == 0


async def test_an_output_is_the_handlers_own_also_after_approval() -> None:
    output = ToolOutput.ok({"pair": (1, 2)}, artifacts=[{"kind": "note"}])

    async def give(_given: ToolInput) -> ToolOutput:
        return output

    executor = AdvancedToolExecutor([ToolDefinition("give", {}, give, requires_approval=True)])
    running = asyncio.ensure_future(executor.execute(act("give")))
    await answer(True)
    assert await running is output


async def test_a_question_by_hand_in_both_shapes() -> None:
    service = ApprovalService()
    tool = ToolDefinition("pay", {}, echo, approval_message="Pay?", approval_timeout_seconds=5)
    action = act("pay", to="ann", api_key="s3cr3t-value")
    asked_for = await service.request_approval(action, {"pipeline_run_id": "r"}, tool)
    assert (asked_for.message, asked_for.payload) == ("Pay?", {"to": "ann", "api_key": "***"})
    assert asked_for.pipeline_run_id == "r"
    assert asked_for.created_at is not None
    assert asked_for.expires_at is not None
    assert round((asked_for.expires_at - asked_for.created_at).total_seconds()) == 5
    said = await service.record_decision(asked_for.id or "", True, PERSON)
    assert (said.granted, said.decided_by) == (True, PERSON)
    assert (await service.await_decision(asked_for.id or "")).granted
    json.dumps(asked_for.artifact.to_dict())
    await service.close()
