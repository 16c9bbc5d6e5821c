"""Writing down how a flight ended: the only end of a call that ran, whoever ran it."""

from __future__ import annotations

import logging
from datetime import datetime
from typing import Any

import orjson

from toolgate.errors import ConflictError, StoreError
from toolgate.kernel.call import Call, Status
from toolgate.kernel.change import Change
from toolgate.kernel.output import Result, result_of
from toolgate.kernel.payload import LARGE, SUMMARY_BYTES, summarize
from toolgate.kernel.record import evolve
from toolgate.kernel.undo import UndoRecord, UndoState
from toolgate.pipeline import steps
from toolgate.pipeline.binding import take_fingerprint
from toolgate.pipeline.driver import Driver
from toolgate.pipeline.lane import insist
from toolgate.pipeline.outcome import Outcome, decode
from toolgate.ports.runner import Job

log = logging.getLogger("toolgate.recording")
_loads = orjson.loads


Told = tuple[Any, Any, str]
"""What a run gave, what of it is shown, and its error, masked."""


def _is_long(call: Call, undo: UndoRecord | None, error: str | None) -> bool:
    """Whether much has to be looked at for what the words of a run may quote, or the words are long themselves."""
    hidden = len(call.arguments) if call.hides else 0
    return max(len(error or ""), 0 if undo is None else len(undo.data), hidden) > LARGE


class Recorder:
    """Commits the ends of calls, and keeps those that could not be written yet."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._unrecorded: list[Change] = []

    async def finish(self, ran: Job, outcome: Outcome, duration_ms: float) -> Result:
        """Commit how the run ended; a run that lost its claim leaves evidence and returns what stands."""
        result = await self.record(ran, outcome, duration_ms)
        while result is None and await self._still_holds(ran):
            result = await self.record(ran, outcome, duration_ms)
        if result is not None:
            return result
        await self.late(ran.call, outcome.cause)
        standing = await self._driver.read(ran.call.project, ran.call.id)
        return result_of(standing, data=decode(standing.result))

    async def _still_holds(self, ran: Job) -> bool:
        """Whether the row changed without the claim: a lease was renewed, or somebody asked for a stop."""
        held = ran.call
        if held.fence is None:
            return False
        standing = await self._driver.read(held.project, held.id)
        if (standing.status, standing.fence, standing.runner) != (held.status, held.fence, held.runner):
            return False
        ran.call = standing
        return True

    async def record(self, ran: Job, outcome: Outcome, duration_ms: float) -> Result | None:
        """Commit how a claimed call ended; None where its row has changed meanwhile."""
        driver, call, result = self._driver, ran.call, outcome.result
        is_long = result is not None and len(result) > LARGE
        if ran.undo is not None or outcome.error is not None or call.hides:
            is_long = is_long or _is_long(call, ran.undo, outcome.error)
        data, shown, error = self._told(ran, outcome) if not is_long else await insist(self._told, ran, outcome)
        now = driver.now()
        undo = await self._undo_after(ran, outcome, now) if ran.undo is not None or outcome.undo else None
        is_stored = undo is not None and ran.undo is not None and undo.data is ran.undo.data
        if outcome.status is Status.COMPLETED:
            change = steps.complete(
                call,
                now=now,
                duration_ms=duration_ms,
                result=result,
                shown=shown,
                summary=shown if result is None or len(result) <= SUMMARY_BYTES else summarize(shown, len(result)),
                artifacts=tuple(decode(outcome.artifacts)) if outcome.artifacts else (),
                artifact_type=ran.tool.artifact_type,
                undo=undo,
                undo_stored=is_stored,
            )
        else:
            change = steps.fail(
                call,
                now=now,
                status=outcome.status,
                code=outcome.code or "execution_failed",
                error=error,
                timed_out=outcome.timed_out or outcome.code == "timeout",
                duration_ms=duration_ms,
                result=result,
                shown=shown,
                undo=undo,
                undo_stored=is_stored,
            )
        try:
            writing = driver.write(change)
            if writing is not None:
                await writing
        except StoreError:
            log.error("call %s ended %s but it could not be recorded yet", call.id, outcome.status)
            self._unrecorded.append(change)
            raise
        except ConflictError:
            return None
        return result_of(change.call, data=data, cause=outcome.cause, output=outcome.output)  # type: ignore[arg-type]  # an end has a call

    def _told(self, ran: Job, outcome: Outcome) -> Told:
        """Return what a run gave, for its caller and, masked, for everybody else."""
        result, error = outcome.result, outcome.error or ""
        masker = self._driver.masker_of(ran.call, ran.undo, len(result or b"") + len(error))
        if error:
            error = masker.text(error)
        if result is None:
            return None, None, error
        data = _loads(result)
        return data, masker.of(data, result), error

    async def record_again(self) -> None:
        """Record the ends that could not be written when they came; StoreError where they still cannot."""
        while self._unrecorded:
            change = self._unrecorded[0]
            try:
                await self._driver.commit(change)
            except ConflictError:
                log.debug("call %s was settled before its end could be recorded", change.call and change.call.id)
            self._unrecorded.remove(change)

    async def _undo_after(self, ran: Job, outcome: Outcome, now: datetime) -> UndoRecord | None:
        """The undo record this end leaves: the original's, done or given back; or this call's own."""
        driver, call, tool = self._driver, ran.call, ran.tool
        if call.undo_of is not None:
            assert ran.undo is not None
            if outcome.status is Status.COMPLETED:
                return evolve(ran.undo, state=UndoState.DONE, data=b"{}")
            # Nobody knows what an unknown undo did, so nobody may try it again blindly.
            return None if outcome.status is Status.UNKNOWN else evolve(ran.undo, state=UndoState.AVAILABLE)
        if outcome.status is not Status.COMPLETED or outcome.undo is None or not driver.realm(call.project).keeps_undo:
            return None
        if ran.undo is None and tool.prepare is not None and outcome.undo == b"{}":
            return None  # neither what prepared it nor what ran it has anything to undo it with
        data = ran.undo.data if ran.undo is not None and outcome.undo == b"{}" else outcome.undo
        ttl_s = driver.undo_ttl(tool, call.context)
        made = steps.undo_record(call, data=data, now=now, ttl_s=ttl_s, state=UndoState.AVAILABLE)
        return evolve(made, fingerprint=await take_fingerprint(tool, made)) if tool.fingerprint else made

    async def late(self, call: Call, error: BaseException | None) -> None:
        """Leave evidence of an end that came when the claim was lost already."""
        summary = {"raised": None if error is None else type(error).__name__}
        await self._driver.commit(steps.late(call, now=self._driver.now(), summary=summary))
