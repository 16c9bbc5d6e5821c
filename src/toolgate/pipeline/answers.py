"""What reaches a call from outside while it waits: a decision, a result, a cancellation, a settlement."""

from __future__ import annotations

from toolgate.errors import (
    ConflictError,
    DecisionConflictError,
    NotAllowedError,
    NotFoundError,
    StaleFenceError,
    UsageError,
)
from toolgate.kernel.approval import Approval
from toolgate.kernel.call import Call, Status
from toolgate.kernel.change import Change
from toolgate.kernel.context import Mode, Principal
from toolgate.kernel.output import Result, ToolOutput, result_of
from toolgate.kernel.payload import encode, summarize
from toolgate.kernel.tool import Placement
from toolgate.kernel.undo import UndoRecord, UndoState
from toolgate.pipeline import approve, record
from toolgate.pipeline.driver import Driver
from toolgate.pipeline.execute import decode
from toolgate.pipeline.perform import Performer
from toolgate.ports.store import ApprovalQuery


class Answers:
    """Each method re-reads and tries again when somebody else changes the row; the first one wins."""

    def __init__(self, driver: Driver, performer: Performer) -> None:
        self._driver = driver
        self._performer = performer

    async def decide(
        self,
        approval_id: str,
        *,
        approve_it: bool,
        by: Principal,
        reason: str | None = None,
        digest: str | None = None,
        project: str | None = None,
    ) -> Result:
        """Record a person's answer and return where the call then stands.

        Raises DecisionConflictError where the approval is decided, expired, frozen by LOCKDOWN or not
        what `digest` says was shown; NotAllowedError where `by` may not decide.
        """
        while True:
            call, approval = await self._asked(approval_id, project)
            self._may_decide(by, call)
            if digest is not None and digest != approval.digest:
                raise DecisionConflictError(
                    f"Approval {approval.id} covers something else than what was shown; review it again."
                )
            if not approve_it and approval.requires_reason and not (reason or "").strip():
                raise UsageError(f"Rejecting `{approval.tool_name}` needs a reason; give one.")
            if self._driver.store.mode is Mode.LOCKDOWN and approval.is_pending:
                raise DecisionConflictError("Nothing can be decided in LOCKDOWN; change the mode first.")
            shown_reason = None if reason is None else self._driver.masker.text(reason)
            change = approve.decide(
                call, approval, approve=approve_it, by=by.name, reason=shown_reason, now=self._driver.now()
            )
            done = await self._try(change.evolve(mode_seen=self._driver.store.mode))
            if done is not None:
                return result_of(done)

    async def extend(self, approval_id: str, *, seconds: float, by: Principal, project: str | None = None) -> Approval:
        """Give people `seconds` from now to decide; raise DecisionConflictError where it is too late."""
        if not 0 < seconds < float("inf"):
            raise UsageError("An approval is extended by a positive number of seconds.")
        while True:
            call, approval = await self._asked(approval_id, project)
            self._may_decide(by, call)
            change = approve.extend(call, approval, seconds=seconds, by=by.name, now=self._driver.now())
            if await self._try(change) is not None:
                return change.approvals[0]

    async def cancel(self, project: str, call_id: str, *, reason: str) -> Result:
        """End a call that has not run, or ask one that runs to stop.

        A final call is returned as it is. Raises ConflictError where it runs in another process.
        """
        masked = self._driver.masker.text(reason)
        while True:
            call = await self._driver.read(project, call_id)
            if call.is_final:
                return result_of(call, data=decode(call.result))
            if call.status is Status.EXECUTING:
                if self._performer.stop(project, call_id, "cancelled", masked):
                    return result_of(call)
                if await self._performer.bury(project, call_id):
                    continue
                raise ConflictError(f"Call {call_id} is executing elsewhere and cannot be stopped from here.")
            try:
                change = await self._cancellation(call, masked)
            except DecisionConflictError:
                continue  # it was decided in between: look again
            done = await self._try(change)
            if done is not None:
                return result_of(done)

    async def complete(self, project: str, call_id: str, output: ToolOutput, *, fence: str | None) -> Result:
        """Record the result of a call that runs on a client or worker. Only the holder of the claim is heard.

        Raises StaleFenceError where the call does not wait for this result; the first result counts.
        """
        driver = self._driver
        call = await driver.read(project, call_id)
        is_here = call.placement == Placement.INLINE  # its own run reports, nobody else
        if call.status is not Status.EXECUTING or is_here or (fence is not None and fence != call.fence):
            raise StaleFenceError(f"Call {call_id} is {call.status} and does not wait for this result.")
        result = encode(output.data)
        veil = driver.veil(call)
        shown = veil(decode(result))
        if output.success:
            change = record.completed(
                call,
                now=driver.now(),
                duration_ms=_since(call, driver),
                result=result,
                shown=shown,
                summary=summarize(shown, len(result)),
            )
        else:
            change = record.failed(
                call,
                now=driver.now(),
                status=Status.FAILED,
                code="execution_failed",
                error=veil.text(output.error or "the runner reported failure without saying why"),
                duration_ms=_since(call, driver),
                result=result,
                shown=shown,
            )
        done = await self._try(change)
        if done is None:
            raise StaleFenceError(f"Call {call_id} no longer waits for this result.")
        return result_of(done, data=decode(result))

    async def settle(self, project: str, call_id: str, *, happened: bool, by: Principal, reason: str) -> Result:
        """Say what an UNKNOWN call really did. Only a person may, and must say why they know."""
        driver = self._driver
        if not by.can_decide:
            raise NotAllowedError(f"{by.name} is an {by.kind}; only a person settles an unknown outcome.")
        if not reason.strip():
            raise UsageError("Settling an unknown outcome needs a reason: how is it known?")
        call = await driver.read(project, call_id)
        if call.status is not Status.UNKNOWN:
            raise ConflictError(f"Call {call_id} is {call.status}; only an UNKNOWN call can be settled.")
        change = record.settled(
            call, now=driver.now(), happened=happened, by=by.name, reason=driver.masker.text(reason)
        )
        undo = await settled_undo(driver, call, happened)
        if undo is not None:
            change = change.evolve(undo=undo)
        done = await self._try(change)
        if done is None:
            raise ConflictError(f"Call {call_id} was settled by somebody else.")
        return result_of(done)

    async def _asked(self, approval_id: str, project: str | None) -> tuple[Call, Approval]:
        query = ApprovalQuery(id=approval_id, project=project)
        found = await self._driver.store.approvals(query)
        if not found:
            raise NotFoundError(f"There is no approval {approval_id[:64]}.")
        call = await self._driver.read(found[0].project, found[0].call_id)
        # Again, because an approval read before its call may look undecided beside a call that moved on.
        return call, (await self._driver.store.approvals(query) or found)[0]

    async def _try(self, change: Change) -> Call | None:
        """Commit; None where the row changed meanwhile and the caller should look again."""
        try:
            await self._driver.commit(change)
        except ConflictError:
            return None
        return change.call

    async def _cancellation(self, call: Call, reason: str) -> Change:
        driver = self._driver
        now = driver.now()
        error = f"The call was cancelled: {reason}."
        change = record.failed(call, now=now, status=Status.CANCELLED, code="cancelled", error=error, reason=reason)
        if call.status is not Status.AWAITING_APPROVAL:
            return change
        found = await driver.store.approvals(ApprovalQuery(project=call.project, id=call.approval_id))
        closed, event = approve.close(found[0], reason="cancelled", now=now)
        return change.evolve(approvals=(closed,), events=(event, *change.events))

    @staticmethod
    def _may_decide(by: Principal, call: Call) -> None:
        if not by.can_decide:
            raise NotAllowedError(f"{by.name} is an {by.kind}; only people decide.")
        if by.name == call.context.principal:
            raise NotAllowedError(f"{by.name} asked for this call and cannot approve it.")


async def settled_undo(driver: Driver, call: Call, happened: bool) -> UndoRecord | None:
    """The undo record a settlement leaves: an undo call's original is done or free again, a call's own is usable."""
    undo = await driver.store.undo(call.project, call.undo_of or call.id)
    if undo is None:
        return None
    if call.undo_of is not None and undo.claimed_by == call.id:
        return undo.evolve(state=UndoState.DONE, data=b"{}") if happened else undo.evolve(state=UndoState.AVAILABLE)
    if happened and undo.state is UndoState.PREPARED:
        return undo.evolve(state=UndoState.AVAILABLE)
    return None


def _since(call: Call, driver: Driver) -> float:
    began = call.started_at or call.created_at
    return (driver.now() - began).total_seconds() * 1000
