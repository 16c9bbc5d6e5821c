"""Calls that run elsewhere: who holds the lease of one, what its holder reports, and what its end means.

A claimed call is offered until somebody takes it. Taking it is a commit that names the holder, made before
the real parameters are sent: a call without a holder was sent to nobody, whatever died meanwhile.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta

from toolgate.authority import check_holder, check_maker
from toolgate.errors import (
    AlreadyToldError,
    ConflictError,
    StaleFenceError,
    ToolExecutionError,
    ToolOutputError,
    UsageError,
)
from toolgate.kernel.assessment import ApprovalLevel
from toolgate.kernel.call import Call, Status
from toolgate.kernel.change import Change
from toolgate.kernel.context import Principal
from toolgate.kernel.narration import tell
from toolgate.kernel.output import Result, ToolOutput, result_of
from toolgate.kernel.record import evolve
from toolgate.kernel.tool import Placement, ToolDefinition
from toolgate.pipeline import steps
from toolgate.pipeline.driver import Driver
from toolgate.pipeline.evidence import lapse_of, refusal_of
from toolgate.pipeline.flight import Taker
from toolgate.pipeline.lane import aside, is_large
from toolgate.pipeline.outcome import Outcome, decode, interpret, raised, unusable
from toolgate.pipeline.plan import OFFER_AGAIN_S, REMOTE, Plan
from toolgate.pipeline.recording import Recorder
from toolgate.ports.runner import Job
from toolgate.ports.store import ApprovalQuery, GrantQuery

Take = Callable[[str, str, Taker], Awaitable[Result]]
"""How the caller of an approved call comes to run it: `Pipeline.take`."""
MOST_ATTEMPTS = 3
"""How often a call that may be repeated is offered before it fails."""
MOST_IN_QUEUE_S = 3600.0
"""How long a call waits for a worker before it fails; nothing ran then."""
MOST_BETWEEN_S = 60.0
"""How long at most until the order of a waiting call is sent again."""


async def denial_of(driver: Driver, call: Call, plan: Plan, now: datetime) -> str | None:
    """Why a call that was claimed, maybe by another process, may not start now; None where it may.

    The rules of now are asked, and whether the yes it was claimed with is there. Whether the chain has told its end
    already is left to the commit that starts it.
    """
    subject = call if call.undo_of is None else await driver.read(call.project, call.undo_of)
    _, ruling = await plan.judge_aside(call, decode(subject.arguments), now)
    if ruling.denial is not None:
        return ruling.denial.reason
    assert ruling.assessment is not None
    level, terms = ruling.assessment.level, ruling.assessment.terms
    missing = f"approval at level '{level}' is needed, and it has none"
    if call.approval_id is None:
        return None if level is ApprovalLevel.AUTO or await _is_granted(driver, call) else missing
    found = await driver.store.approvals(ApprovalQuery(project=call.project, id=call.approval_id))
    refusal = await refusal_of(driver.store, call, found[0] if found else None)
    if refusal is not None:
        return refusal[1]
    return None if level is ApprovalLevel.AUTO or found[0].satisfies(level, terms) else missing


async def _is_granted(driver: Driver, call: Call) -> bool:
    """Whether the claim of this call used a grant, which counts still."""
    id = (call.approved_by or "").removeprefix("grant:")
    for grant in await driver.store.grants(GrantQuery(id=id, project=call.project)):
        if any(use.call_id == call.id for use in grant.used):
            return await lapse_of(driver, grant) is None
    return False


class Leases:
    """Gives claimed calls to those who run them, and hears what they report. The first report counts."""

    def __init__(self, driver: Driver, recorder: Recorder, take: Take) -> None:
        self._driver = driver
        self._recorder = recorder
        self._take = take

    async def dispatch(self, project: str, call_id: str, *, to: Principal) -> Call:
        """Give the call to `to` alone and return it with its real arguments and its fence, to be sent at once.

        The arguments of an undo are the undo data. Durable before it returns.
        Raises ConflictError where somebody has it, or it does not wait for anybody.
        """
        while True:
            change = await self.handover(project, call_id, to=to)
            leased = change.call
            assert leased is not None
            try:
                if await self._try(change):
                    break  # otherwise the row changed meanwhile, and is looked at again
            except AlreadyToldError:
                await self.end_told(leased, change.expect)
        if leased.undo_of is None:
            return leased
        undo = await self._driver.store.undo(project, leased.undo_of)
        return leased if undo is None else evolve(leased, arguments=undo.data)

    async def claim(self, project: str, call_id: str, *, by: Principal, fence: str) -> Call:
        """Let the caller of an approved call run it elsewhere; returns it with its real arguments."""
        if not fence:
            raise UsageError("Whoever claims a call names a token of their own, its `fence`, to report with.")
        call = await self._driver.read(project, call_id)
        check_maker(by, call)
        if call.waits_for_caller:
            await self._take(project, call_id, Taker(by=by.name, fence=fence))
            call = await self._driver.read(project, call_id)
        if call.status is not Status.EXECUTING or call.fence != fence:
            raise ConflictError(f"Call {call_id} is {call.status} and does not wait for its caller to run it.")
        return call

    async def handover(self, project: str, call_id: str, *, to: Principal, lease_s: float | None = None) -> Change:
        """Return the change that gives a waiting call to `to` alone, if the rules of now still allow it.

        With `lease_s` it is to run in this process, which must hold the very tool. Raises ConflictError where the
        call waits for nobody, or not for this process. One that is denied now ends, and nothing ran.
        """
        driver = self._driver
        if driver.refresh is not None:
            await driver.refresh()
        while True:
            call = await driver.read(project, call_id)
            if call.status is not Status.EXECUTING or call.placement not in REMOTE or call.runner is not None:
                raise ConflictError(f"Call {call_id} is {call.status} and waits for nobody to run it.")
            tool = driver.realm(project).registry.find(call.tool_name)
            if lease_s is not None and (tool is None or tool.hash != call.definition_hash):
                raise ConflictError(
                    f"Call {call_id} needs the tool `{call.tool_name}` as it was when it was asked for."
                )
            now, mode = driver.now(), driver.store.brakes.serial
            denial = None if tool is None else await denial_of(driver, call, driver.plan_of(tool, call.context), now)
            if denial is None:
                break
            await self._refuse(call, denial)
        term = self._term(call) if lease_s is None else timedelta(seconds=lease_s)
        return steps.take(call, by=to.name, now=now, lease=term, mode=mode)

    async def _refuse(self, call: Call, denial: str) -> None:
        """End a call that is denied now, and raise ConflictError; return where its row changed meanwhile."""
        driver = self._driver
        text = f"`{call.tool_name}` did not run: it is denied now: {driver.masker.text(denial)}"
        if await self._try(steps.fail(call, now=driver.now(), status=Status.FAILED, code="denied", error=text)):
            raise ConflictError(f"Call {call.id} is denied now and did not run.")

    async def end_told(self, taken: Call, expect: int | None) -> None:
        """End a call whose row says that it waits to be run, and whose events say that it ended."""
        await self._refuse(evolve(taken, version=expect or 0, runner=None), "its events tell that it has ended")

    async def renew(self, call: Call, lease_s: float) -> Call:
        """Hold the call for longer; ConflictError where its row is not as given any more."""
        now = self._driver.now()
        renewed = evolve(call.stay(), due_at=now + timedelta(seconds=lease_s))
        await self._driver.commit(steps.moved(renewed, call, now=now, events=()))
        return renewed

    async def progress(
        self,
        project: str,
        call_id: str,
        *,
        by: Principal | None,
        fence: str | None,
        fraction: float | None,
        message: str | None,
        data: object,
    ) -> Result:
        """Record how far the holder is, unless it said so too often, and renew its lease."""
        driver, is_kept = self._driver, None
        while True:
            call = await self._held(project, call_id, by, fence)
            told = await driver.told(call, None, fraction, message, data)
            now = driver.now()
            if is_kept is None:
                is_kept = driver.reports.take(call, now)
            renewed = evolve(call.stay(), due_at=now + self._term(call))
            events = (tell(renewed, "tool.progress", {}, told),) if is_kept else ()
            if await self._try(steps.moved(renewed, call, now=now, events=events)):
                return result_of(renewed)

    async def complete(
        self, project: str, call_id: str, output: ToolOutput, *, fence: str | None, by: Principal | None = None
    ) -> Result:
        """Record the result of a call that ran elsewhere, as if its handler had returned it here.

        Raises StaleFenceError where the call does not wait for this result, NotAllowedError where `by` does not
        hold the lease.
        """
        driver = self._driver
        tried: Call | None = None
        while True:
            try:
                call = await self._held(project, call_id, by, fence)
            except StaleFenceError:
                await self._keep_evidence(project, call_id, by, fence, tried)
                raise
            tool = driver.realm(call.project).registry.find(call.tool_name)
            if tool is None:
                raise ConflictError(f"Call {call_id} needs tool `{call.tool_name}` here to check its result.")
            job = Job(call, tool, tool.handler, tool.is_async, None)  # type: ignore[arg-type]  # a tool has a handler
            job.undo = await driver.store.undo(project, call.undo_of or call.id)
            reported = (call, driver.plan_of(tool, call.context), output)
            outcome = await aside(_outcome, *reported) if is_large(output.data) else _outcome(*reported)
            result = await self._recorder.record(job, outcome, self._since(call))
            if result is not None:
                return result
            tried = call

    async def doubt(
        self,
        project: str,
        call_id: str,
        reason: str,
        *,
        kinds: frozenset[str] = frozenset(),
        fence: str | None,
        by: Principal | None = None,
    ) -> Result:
        """Record that the holder cannot say what its run did: UNKNOWN where it may have had an effect, else FAILED.

        `kinds` name the error its function raised, where it did: that ends as it would have ended here.
        """
        driver = self._driver
        while True:
            call = await self._held(project, call_id, by, fence)
            tool = driver.realm(project).registry.find(call.tool_name)
            if kinds and tool is not None:
                result = await self._recorder.record(
                    *_raised(call, driver.plan_of(tool, call.context), reason, kinds), 0.0
                )
                if result is not None:
                    return result
                continue
            change = _unsure(call, driver.now(), driver.masker_of(call).text(reason))
            if await self._try(change):
                return result_of(change.call)  # type: ignore[arg-type]  # an end has a call

    async def _keep_evidence(
        self, project: str, call_id: str, by: Principal | None, fence: str | None, tried: Call | None
    ) -> None:
        """Remember that the runner did report, although too late: of a call in doubt, that may be all there is."""
        call = tried or await self._driver.read(project, call_id)
        is_holder = fence == call.fence if fence is not None else by is not None and by.name == call.runner
        if tried is not None or (call.status is Status.UNKNOWN and is_holder):
            await self._recorder.late(call, None)

    async def _try(self, change: Change) -> bool:
        """Commit; False where the row changed meanwhile and has to be looked at again."""
        try:
            await self._driver.commit(change)
        except AlreadyToldError:
            raise
        except ConflictError:
            return False
        return True

    async def _held(self, project: str, call_id: str, by: Principal | None, fence: str | None) -> Call:
        call = await self._driver.read(project, call_id)
        if call.status is not Status.EXECUTING or (call.placement not in REMOTE and call.fence is None):
            raise StaleFenceError(f"Call {call_id} is {call.status} and does not wait for this result.")
        if fence is not None and fence != call.fence:
            raise StaleFenceError(f"Call {call_id} was given to another runner and does not wait for this result.")
        if by is not None:
            check_holder(by, call, has_fence=fence is not None)
        return call

    def waits_in_queue(self, call: Call) -> bool:
        """Whether a call still waits for a worker, and may wait on: then its order is sent again."""
        began = call.started_at or call.created_at
        is_early = self._driver.now() < began + timedelta(seconds=MOST_IN_QUEUE_S)
        return call.placement == Placement.WORKER and call.runner is None and is_early

    async def send_again(self, call: Call, tool: ToolDefinition | None) -> None:
        """Send the order of a waiting call once more, less often the longer it waits."""
        driver = self._driver
        now = driver.now()
        waited_s = (now - (call.started_at or call.created_at)).total_seconds()
        later = now + timedelta(seconds=min(max(OFFER_AGAIN_S, waited_s), MOST_BETWEEN_S))
        waiting = evolve(call.stay(), due_at=later)
        await driver.commit(steps.moved(waiting, call, now=now, events=()))
        runner = driver.runners.get(call.placement)
        if tool is not None and runner is not None:
            await runner.run(Job(waiting, tool, tool.handler, tool.is_async, None))  # type: ignore[arg-type]  # a tool has a handler

    def ended(self, call: Call) -> Change:
        """What a lease that ran out means: nobody took the call, it failed, or nobody knows."""
        now = self._driver.now()
        if call.runner is None and call.placement in REMOTE:
            error = f"Nobody was there to run `{call.tool_name}` in time; nothing was sent and nothing ran."
            return steps.fail(call, now=now, status=Status.FAILED, code="no_runner", error=error)
        if _is_repeatable(call):
            error = "The call timed out: nobody reported a result in time."
            return steps.fail(call, now=now, status=Status.FAILED, code="timeout", error=error, timed_out=True)
        error = "The call timed out: nobody reported a result in time. Whether the effect happened is unknown."
        return steps.fail(call, now=now, status=Status.UNKNOWN, code="unknown", error=error, timed_out=True)

    def can_offer_again(self, call: Call) -> bool:
        """Whether a call whose lease ran out is offered again: it may be repeated and was not too often."""
        repeatable = _is_repeatable(call) and call.undo_of is None
        is_wanted = call.recalled is None and call.attempt < MOST_ATTEMPTS
        return call.placement in REMOTE and call.runner is not None and repeatable and is_wanted

    def _term(self, call: Call) -> timedelta:
        tool = self._driver.realm(call.project).registry.find(call.tool_name)
        return timedelta(seconds=30.0 if tool is None else tool.timeout_seconds)

    def _since(self, call: Call) -> float:
        return (self._driver.now() - (call.started_at or call.created_at)).total_seconds() * 1000


def _is_repeatable(call: Call) -> bool:
    return not call.has_effects or call.idempotent


def _unsure(call: Call, now: datetime, reason: str) -> Change:
    """The end of a call whose holder does not know how it ended. `reason` is masked already."""
    if _is_repeatable(call):
        return steps.fail(call, now=now, status=Status.FAILED, code="execution_failed", error=reason)
    error = f"Its runner does not know whether the effect happened: {reason}"
    return steps.fail(call, now=now, status=Status.UNKNOWN, code="unknown", error=error)


def _raised(call: Call, plan: Plan, reason: str, kinds: frozenset[str]) -> tuple[Job, Outcome]:
    """What it means that the function of a call's holder raised an error of these kinds."""
    tool, error = plan.tool, ToolExecutionError(reason)
    error.kinds = kinds
    return Job(call, tool, tool.handler, tool.is_async, None), raised(call, plan.doubt, error)  # type: ignore[arg-type]  # a tool has a handler


def _outcome(call: Call, plan: Plan, output: ToolOutput) -> Outcome:
    """What a reported output means for the call: checked like a handler's own."""
    if call.undo_of is not None:
        code = "undo_failed"
        return Outcome(Status.COMPLETED) if output.success else Outcome(Status.FAILED, error=output.error, code=code)
    try:
        return interpret(plan.tool, output)
    except ToolOutputError as error:
        return unusable(plan.doubt, error)
