"""What reaches a call from outside: a cancellation, a settlement. People's decisions: `deciding`."""

from __future__ import annotations

from toolgate.authority import Verb, check_human
from toolgate.errors import ConflictError, DecisionConflictError, UsageError
from toolgate.kernel.call import Call, Status
from toolgate.kernel.change import Change, Durability
from toolgate.kernel.context import Principal
from toolgate.kernel.output import Result, result_of
from toolgate.kernel.record import evolve
from toolgate.kernel.undo import UndoRecord, UndoState
from toolgate.pipeline import steps
from toolgate.pipeline.driver import Driver
from toolgate.pipeline.flight import Flights
from toolgate.pipeline.outcome import decode
from toolgate.pipeline.plan import REMOTE
from toolgate.ports.runner import RemoteRunner
from toolgate.ports.store import ApprovalQuery


class Answers:
    """Each method re-reads and tries again when somebody else changes the row; the first one wins."""

    def __init__(self, driver: Driver, flights: Flights) -> None:
        self._driver = driver
        self._flights = flights

    async def cancel(self, project: str, call_id: str, *, reason: str) -> Result:
        """End a call that has not run, or ask one that runs to stop.

        A final call is returned as it is. One that runs at a client and may have effects is asked to stop, and
        its runner's report is what counts. Raises ConflictError where it runs in another process.
        """
        masked = self._driver.masker.text(reason)
        while True:
            call = await self._driver.read(project, call_id)
            if call.is_final:
                return result_of(call, data=decode(call.result))
            if call.status is Status.EXECUTING and call.placement in REMOTE:
                if call.runner is not None and call.has_effects:
                    return result_of(await self._recall(call, masked))
            elif call.status is Status.EXECUTING:
                if self._flights.stop(project, call_id, "cancelled", masked):
                    return result_of(call)
                if await self._flights.bury(project, call_id):
                    continue
                raise ConflictError(f"Call {call_id} is executing elsewhere and cannot be stopped from here.")
            try:
                change = await self._cancellation(call, masked)
            except DecisionConflictError:
                continue  # it was decided in between: look again
            done = await self._try(change)
            if done is not None:
                return result_of(done)

    async def _recall(self, call: Call, reason: str) -> Call:
        """Ask whoever runs the call to stop, and write that down: they may be connected to another process."""
        driver = self._driver
        while call.recalled is None and call.status is Status.EXECUTING:
            asked = evolve(call.stay(), recalled=reason)
            change = Change(project=call.project, at=driver.now(), call=asked, expect=call.version)
            done = await self._try(evolve(change, durability=Durability.COMMITTED))
            call = done or await driver.read(call.project, call.id)
        runner = driver.runners.get(call.placement)
        if isinstance(runner, RemoteRunner):
            runner.recall(call, reason)
        return call

    async def settle(self, project: str, call_id: str, *, happened: bool | None, by: Principal, reason: str) -> Result:
        """Say what an UNKNOWN call really did. Only a person may, and must say why they know.

        None for `happened`: they looked and do not know yet. That is recorded, and the call stays UNKNOWN.
        """
        driver = self._driver
        check_human(Verb.SETTLE, by)
        if not reason.strip():
            raise UsageError("Settling an unknown outcome needs a reason: how is it known?")
        call = await driver.read(project, call_id)
        if call.status is not Status.UNKNOWN:
            raise ConflictError(f"Call {call_id} is {call.status}; only an UNKNOWN call can be settled.")
        now, why = driver.now(), driver.masker.text(reason)
        if happened is None:
            await driver.commit(steps.still_unknown(call, now=now, by=by.name, reason=why))
            return result_of(call)
        change = steps.settle(call, now=now, happened=happened, by=by.name, reason=why)
        undo = await settled_undo(driver, call, happened)
        if undo is not None:
            change = evolve(change, undo=undo)
        done = await self._try(change)
        if done is None:
            raise ConflictError(f"Call {call_id} was settled by somebody else.")
        return result_of(done)

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
        change = steps.fail(call, now=now, status=Status.CANCELLED, code="cancelled", error=error, reason=reason)
        if call.status is not Status.AWAITING_APPROVAL:
            return change
        found = await driver.store.approvals(ApprovalQuery(project=call.project, id=call.approval_id))
        closed, event = steps.close(found[0], reason="cancelled", now=now)
        return evolve(change, approvals=(closed,), events=(event, *change.events))


async def settled_undo(driver: Driver, call: Call, happened: bool) -> UndoRecord | None:
    """The undo record a settlement leaves: an undo call's original is done or free again, a call's own is usable."""
    undo = await driver.store.undo(call.project, call.undo_of or call.id)
    if undo is None:
        return None
    if call.undo_of is not None and undo.claimed_by == call.id:
        return evolve(undo, state=UndoState.DONE, data=b"{}") if happened else evolve(undo, state=UndoState.AVAILABLE)
    if happened and undo.state is UndoState.PREPARED:
        return evolve(undo, state=UndoState.AVAILABLE)
    return None
