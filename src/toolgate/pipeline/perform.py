"""Claim, run and record one call, whoever waits for it or stops waiting.

A performance that has to wait runs in a task of its own, so a caller who goes away changes nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime, timedelta
from time import perf_counter
from typing import Any

import orjson

from toolgate.errors import (
    ConflictError,
    StoreError,
    ToolDeniedError,
    ToolOutputError,
    ToolTimeoutError,
    ToolUnknownOutcomeError,
    UsageError,
    text_of,
)
from toolgate.kernel.call import Call, Status
from toolgate.kernel.change import Change
from toolgate.kernel.context import Mode
from toolgate.kernel.output import Result, ToolOutput, result_of
from toolgate.kernel.payload import SUMMARY_BYTES, encode, summarize
from toolgate.kernel.policy import Policy
from toolgate.kernel.record import evolve
from toolgate.kernel.signature import keywords
from toolgate.kernel.tool import Placement, ToolDefinition, is_async
from toolgate.kernel.transient import is_transient
from toolgate.kernel.undo import UndoRecord, UndoState
from toolgate.pipeline import eager, record
from toolgate.pipeline.binding import input_of, metadata_of, take_fingerprint
from toolgate.pipeline.driver import Driver
from toolgate.pipeline.execute import REMOTE, Outcome, decode, interpret, interrupted, offer_s, reclaim
from toolgate.ports.bus import Hint
from toolgate.ports.runner import PARKED, Job, Runner

STOP_GRACE_S = 1.0
"""How long a handler that was asked to stop has before it counts as one that cannot be stopped."""

SLOW_CLAIM_S = 3.0
"""A claim that took longer to be written is looked at again: others may have believed its owner dead meanwhile."""

RETRY_AFTER_S = 0.1
"""How long after a passing error the second attempt begins."""

MAX_DEPTH = 8
"""How many calls may be made inside one another."""

log = logging.getLogger("toolgate.perform")
_COMPLETED = Status.COMPLETED
_loads = orjson.loads
_EXHAUSTED = frozenset((errno.ENOSPC, errno.EDQUOT, errno.ENOMEM, errno.EMFILE, errno.ENFILE))


class Performer:
    """Runs claimed calls and keeps the handles by which they can be ended."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._running: dict[tuple[str, str], list[Job]] = {}
        """By call: the one who runs it, and those who have yet to find out that somebody else does."""
        self._unrecorded: list[Change] = []

    def start(
        self,
        claim: Change,
        tool: ToolDefinition,
        undo: UndoRecord | None,
        payload: dict[str, Any] | None = None,
        *,
        runner: Runner | None = None,
        inside: str | None = None,
    ) -> Result | asyncio.Future[Result]:
        """Claim and run a call once: its result, or the future of a run that goes on without whoever waits for it.

        `payload` is a copy of the arguments for the handler alone, if there is one already. `runner` runs it instead
        of its placement's, as if placed `inside`. Where the claim fails, ConflictError is raised here or by the
        future, and nothing ran.
        """
        job = Job(claim.call, tool, tool.function or tool.handler, tool.is_async, undo)  # type: ignore[arg-type]  # checked
        job.payload = payload
        job.lasting = claim.lasting
        job.runner, job.inside = runner, inside or job.call.placement
        if job.inside == Placement.SANDBOX:
            job.sandbox = self._driver.route(tool, job.call.project).stance.sandbox
        started = eager.start(self._run(job, claim))
        return self._watch(job, started) if isinstance(started, asyncio.Task) else started

    def restart(
        self, call: Call, tool: ToolDefinition, mode: Mode, undo: UndoRecord | None = None
    ) -> Result | asyncio.Future[Result]:
        """Make another attempt at a call whose owner died; only for what may be run again or was never sent."""
        driver = self._driver
        now, owner, is_here = driver.now(), driver.owner, call.placement not in REMOTE
        if is_here:
            return self.start(reclaim(call, now=now, owner=owner, mode=mode), tool, undo)
        due_at = now + timedelta(seconds=offer_s(call.placement, tool))
        again = reclaim(call, now=now, owner=owner, mode=mode, fence=driver.new_id(), due_at=due_at)
        return self.start(again, tool, undo)

    def _watch(self, job: Job, task: asyncio.Task[Result]) -> asyncio.Future[Result]:
        """Keep the handle of a run that waits, and a timer for it; return the future of its end."""
        job.task, job.loop = task, asyncio.get_running_loop()
        end = job.end = job.loop.create_future()
        key = (job.call.project, job.call.id)
        self._running.setdefault(key, []).append(job)
        timer = job.loop.call_later(job.tool.timeout_seconds, self._on_timeout, job)

        def forget(_task: object) -> None:
            timer.cancel()
            self._drop(job)
            if not end.done():
                _pass_on(task, end)

        task.add_done_callback(forget)
        return end

    def _drop(self, job: Job) -> None:
        key = (job.call.project, job.call.id)
        others = [other for other in self._running.get(key, ()) if other is not job]
        if others:
            self._running[key] = others
        else:
            self._running.pop(key, None)

    def running(self) -> tuple[Job, ...]:
        """Return what runs in this process and has to wait for something."""
        return tuple(job for jobs in tuple(self._running.values()) for job in tuple(jobs) if job.started)

    def stop(self, project: str, call_id: str, why: str, detail: str | None = None) -> bool:
        """Ask a running call of this process to end; False where it does not run here."""
        asked = False
        for job in tuple(self._running.get((project, call_id), ())):
            if job.loop is not None and not job.loop.is_closed():
                job.detail = detail
                job.loop.call_soon_threadsafe(self._stop, job, why)
                asked = True
        return asked

    async def bury(self, project: str, call_id: str) -> bool:
        """Record the end of a call whose event loop was closed under it; False where there is no such call."""
        buried = [job for job in self._running.get((project, call_id), ()) if job.loop is None or job.loop.is_closed()]
        for job in buried:
            self._drop(job)
            await self._finish(job, interrupted(job.tool, why="shutdown", stopped=False), 0.0)
        return bool(buried)

    async def drain(self) -> None:
        """Ask everything that runs here to stop and wait until it is recorded how each ended."""
        for project, call_id in tuple(self._running):
            self.stop(project, call_id, "shutdown")
        with contextlib.suppress(TimeoutError):  # what ignores its cancellation is recorded as unknown by then
            async with asyncio.timeout(STOP_GRACE_S * 2):
                while any(self._is_running(key) for key in tuple(self._running)):  # noqa: ASYNC110  # they run on other loops
                    await asyncio.sleep(0.005)

    def _is_running(self, key: tuple[str, str]) -> bool:
        return any(job.loop is not None and job.loop.is_running() for job in tuple(self._running.get(key, ())))

    def _on_timeout(self, job: Job) -> None:
        if job.task is None or job.task.done() or job.loop is None:
            return
        allowed = job.tool.timeout_seconds
        left = allowed - (perf_counter() - job.started) if job.started else allowed
        if left > 0:
            job.loop.call_later(left, self._on_timeout, job)
        else:
            self._stop(job, "timeout")

    def _stop(self, job: Job, why: str) -> None:
        if job.task is None or job.task.done() or job.stop is not None or job.loop is None:
            return
        job.stop = why
        if job.started:
            job.task.cancel()
            job.loop.call_later(STOP_GRACE_S, self._on_grace_over, job)

    def _on_grace_over(self, job: Job) -> None:
        if job.task is None or job.task.done() or not job.started:
            return
        outcome = interrupted(job.tool, why=job.stop or "timeout", stopped=False, detail=job.detail)
        self._driver.spawn(self._give_up(job, outcome, (perf_counter() - job.started) * 1000))

    async def _give_up(self, job: Job, outcome: Outcome, duration_ms: float) -> None:
        """Record that a handler ignores its cancellation, and let go those who wait for it."""
        result = await self._finish(job, outcome, duration_ms)
        end = job.end
        if end is not None and not end.get_loop().is_closed():
            end.get_loop().call_soon_threadsafe(_let_go, end, result)

    async def _run(self, job: Job, claim: Change) -> Result:
        driver, tool, call = self._driver, job.tool, job.call
        writing = driver.write(claim)
        if writing is not None:
            await self._held(writing, call)
        if driver.has_realms and (unheard := await self._tell(job)) is not None:
            return await self._finish(job, unheard, 0.0)
        if job.stop is not None:
            return await self._finish(job, interrupted(tool, why=job.stop, stopped=True, detail=job.detail), 0.0)
        self._bind(job)
        policy = driver.policy
        job.started = began = perf_counter()
        outcome = await self._attempt(job)
        if outcome is None:
            return result_of(call)
        if outcome.cause is not None and self._may_retry(job, outcome.cause):
            outcome = await self._retry(job, outcome, claim, policy)
        job.started = 0.0  # nobody can stop it any more: what happened must be written down
        result = await self._finish(job, outcome, (perf_counter() - began) * 1000)
        if job.is_async and isinstance(outcome.cause, KeyboardInterrupt):
            raise outcome.cause  # on this thread it may be a person who stops the program; first it was written down
        return result

    async def _attempt(self, job: Job) -> Outcome | None:
        """Run the hook once and say how that ended; None where it runs elsewhere."""
        call, tool = job.call, job.tool
        try:
            raw = await (job.runner or self._driver.runners[call.placement]).run(job)
            if raw is PARKED:
                return None
            outcome = interpret(tool, raw) if call.undo_of is None else _undone(raw)
            job.output = raw if isinstance(raw, ToolOutput) else None
            return outcome
        except asyncio.CancelledError:
            return self._cut_short(job)
        except ToolOutputError as error:
            return Outcome(Status.FAILED, error=str(error), code=error.code)
        except (Exception, SystemExit, KeyboardInterrupt) as error:  # noqa: BLE001  # whatever it raises is its failure
            if is_exhaustion(error) and self._driver.on_exhausted is not None:
                self._driver.on_exhausted(f"`{tool.name}` ran out of resources ({type(error).__name__})")
            return Outcome(Status.FAILED, error=text_of(error), code=_code_of(call, error), cause=error)

    def _may_retry(self, job: Job, error: BaseException) -> bool:
        """Whether a first attempt that failed may be made once more: a passing error of what may be repeated."""
        call, driver = job.call, self._driver
        if job.stop is not None or call.undo_of is not None or call.attempt > 1 or not is_transient(error):
            return False
        if call.placement in REMOTE:  # whoever holds a lease is offered it again
            return False
        said = driver.route(job.tool, call.project).stance.may_retry
        return job.tool.can_retry if said is None else said

    async def _retry(self, job: Job, failed: Outcome, claim: Change, policy: Policy) -> Outcome:
        """Make the second attempt on the same call; where it cannot be claimed or told, the first failure stands."""
        driver = self._driver
        log.warning("call %s failed with %s, which may pass", job.call.id, type(failed.cause).__name__)
        job.started = 0.0  # nobody may cut the claim short; who wants it to stop is heard after
        await asyncio.sleep(RETRY_AFTER_S)
        mode = driver.store.mode if claim.mode_seen is None else claim.mode_seen
        held = job.call
        again = reclaim(held, now=driver.now(), owner=driver.owner, mode=mode, fence=held.fence, due_at=held.due_at)
        try:
            if driver.policy is not policy:
                return failed
            await driver.commit(again)
        except (ConflictError, StoreError):
            return failed
        assert again.call is not None
        job.call = again.call
        if driver.has_realms and await self._tell(job) is not None:
            return failed
        if job.stop is not None:
            return interrupted(job.tool, why=job.stop, stopped=True, detail=job.detail)
        job.payload = None  # the first attempt may have changed it
        self._bind(job)
        job.started = perf_counter()
        return await self._attempt(job) or failed

    async def _held(self, writing: Awaitable[None], call: Call) -> None:
        """Wait for a claim; what others gave up as a dead process's meanwhile is a ConflictError, and does not run."""
        asked = perf_counter()
        await writing
        if perf_counter() - asked < SLOW_CLAIM_S:
            return
        found = await self._driver.read(call.project, call.id)
        if found.status is not Status.EXECUTING or (found.owner, found.attempt) != (call.owner, call.attempt):
            raise ConflictError(f"Call {call.id[:64]} was given up by others while its claim was being written.")

    async def _tell(self, job: Job) -> Outcome | None:
        """Tell the project's sink of the claim; how the call ends where the sink is required and will not listen."""
        call, relay = job.call, self._driver.relay(job.call.project)
        try:
            if relay is None or not relay.required:
                if relay is not None:
                    await relay.moment()
                return None
            if not relay.is_ours:  # another process must tell it: otherwise a claim is nobody's news
                self._driver.bus.publish(Hint(call.project, call.id, call.status, call.tool_name))
            if await relay.insist():
                return None
        except asyncio.CancelledError:  # nothing ran yet, and the claim is made: the end must be written down
            return self._cut_short(job)
        return _unheard(job.tool, relay.trouble)

    def _cut_short(self, job: Job) -> Outcome:
        task = asyncio.current_task()
        if task is not None:
            task.uncancel()
        return interrupted(job.tool, why=job.stop or "shutdown", stopped=job.stoppable, detail=job.detail)

    def _bind(self, job: Job) -> None:
        """Give the hook its input: the original's undo data, a function's keywords, or a ToolInput."""
        call, tool = job.call, job.tool
        if call.undo_of is not None:
            assert job.undo is not None
            assert tool.undo_handler is not None
            job.hook, job.is_async = tool.undo_handler, is_async(tool.undo_handler)
            job.args = (metadata_of(job.undo, call),)
        elif tool.function is not None and tool.inject is None:
            payload = decode(call.arguments) if job.payload is None else job.payload
            job.kwargs = payload if tool.bind is None else tool.bind(payload)
        else:
            given = input_of(call)
            given.attach(self._reporter(job), lambda: job.stop is not None, self._caller(job))
            if tool.function is None:
                job.args = (given,)
            else:
                job.kwargs = keywords(given, tool.bind, tool.inject)
        if not job.is_async:
            job.late = lambda error: self._driver.spawn(self.late(job.call, error))

    def _reporter(self, job: Job) -> Callable[..., Any]:
        async def report(fraction: float | None, message: str | None, data: object) -> None:
            driver, veil = self._driver, self._driver.veil(job.call, job.undo)
            told = {"progress": fraction, "message": message, "data": veil(decode(encode(data)))}
            if message is not None:
                told["message"] = veil.text(message)
            await driver.commit(record.progressed(job.call, now=driver.now(), data=told))

        if job.is_async:
            return report
        loop = asyncio.get_running_loop()
        return lambda *told: asyncio.run_coroutine_threadsafe(report(*told), loop).result()

    def _caller(self, job: Job) -> Callable[..., Any]:
        """What a handler calls other tools with: the same gate, the same caller, this call as the parent."""

        def call(tool: str, arguments: Mapping[str, object] | None) -> Any:
            submit, context = self._driver.submit, job.call.context
            if submit is None or context.depth >= MAX_DEPTH:
                raise UsageError(f"Calls from inside calls go at most {MAX_DEPTH} deep, through a gate.")
            return submit(tool, arguments, context=evolve(context, parent_call_id=job.call.id, depth=context.depth + 1))

        if job.is_async:
            return call
        loop = asyncio.get_running_loop()
        return lambda *asked: asyncio.run_coroutine_threadsafe(call(*asked), loop).result()

    async def _finish(self, job: Job, outcome: Outcome, duration_ms: float) -> Result:
        """Commit how the run ended; a run that lost its claim leaves evidence and returns what stands."""
        result = await self.record(job, outcome, duration_ms)
        while result is None and await self._still_holds(job):
            result = await self.record(job, outcome, duration_ms)
        if result is not None:
            return result
        await self.late(job.call, outcome.cause)
        standing = await self._driver.read(job.call.project, job.call.id)
        return result_of(standing, data=decode(standing.result))

    async def _still_holds(self, job: Job) -> bool:
        """Whether the row changed without the claim: a lease was renewed, or somebody asked for a stop."""
        held = job.call
        if held.fence is None:
            return False
        standing = await self._driver.read(held.project, held.id)
        if (standing.status, standing.fence, standing.runner) != (held.status, held.fence, held.runner):
            return False
        job.call = standing
        return True

    async def record(self, job: Job, outcome: Outcome, duration_ms: float) -> Result | None:
        """Commit how a claimed call ended; None where its row has changed meanwhile."""
        driver, call = self._driver, job.call
        result = outcome.result
        data = None if result is None else _loads(result)
        is_veiled = call.hides or job.undo is not None
        shown = driver.veil(call, job.undo)(data) if is_veiled else driver.mask(data)
        now = driver.now()
        undo = await self._undo_after(job, outcome, now) if job.undo is not None or outcome.undo else None
        if outcome.status is _COMPLETED:
            change = record.completed(
                call,
                now=now,
                duration_ms=duration_ms,
                result=result,
                shown=shown,
                summary=shown if result is None or len(result) <= SUMMARY_BYTES else summarize(shown, len(result)),
                artifacts=tuple(decode(outcome.artifacts)) if outcome.artifacts else (),
                artifact_type=job.tool.artifact_type,
                undo=undo,
                lasting=job.lasting,
            )
        else:
            change = record.failed(
                call,
                now=now,
                status=outcome.status,
                code=outcome.code or "execution_failed",
                error=driver.veil(call, job.undo).text(outcome.error or ""),
                timed_out=outcome.timed_out or outcome.code == "timeout",
                duration_ms=duration_ms,
                result=result,
                shown=shown,
                undo=undo,
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
        return result_of(change.call, data=data, cause=outcome.cause, output=job.output)  # type: ignore[arg-type]  # an end has a call

    async def record_again(self) -> None:
        """Record the ends that could not be written when they came; StoreError where they still cannot."""
        while self._unrecorded:
            change = self._unrecorded[0]
            try:
                await self._driver.commit(change)
            except ConflictError:
                log.debug("call %s was settled before its end could be recorded", change.call and change.call.id)
            self._unrecorded.remove(change)

    async def _undo_after(self, job: Job, outcome: Outcome, now: datetime) -> UndoRecord | None:
        """The undo record this end leaves: the original's, done or given back; or this call's own."""
        driver, call, tool = self._driver, job.call, job.tool
        if call.undo_of is not None:
            assert job.undo is not None
            if outcome.status is Status.COMPLETED:
                return evolve(job.undo, state=UndoState.DONE, data=b"{}")
            # Nobody knows what an unknown undo did, so nobody may try it again blindly.
            return None if outcome.status is Status.UNKNOWN else evolve(job.undo, state=UndoState.AVAILABLE)
        if outcome.status is not Status.COMPLETED or outcome.undo is None or not driver.realm(call.project).keeps_undo:
            return None
        data = job.undo.data if job.undo is not None and outcome.undo == b"{}" else outcome.undo
        ttl_s = driver.undo_ttl(tool, call.project)
        made = record.undo_record(call, data=data, now=now, ttl_s=ttl_s, state=UndoState.AVAILABLE)
        return evolve(made, fingerprint=await take_fingerprint(tool, made)) if tool.fingerprint else made

    async def late(self, call: Call, error: BaseException | None) -> None:
        """Leave evidence of an end that came when the claim was lost already."""
        summary = {"raised": None if error is None else type(error).__name__}
        await self._driver.commit(record.late(call, now=self._driver.now(), summary=summary))


def _unheard(tool: ToolDefinition, trouble: str) -> Outcome:
    text = f"Tool `{tool.name}` did not run: the event sink {trouble}, and nothing may run unheard. Repair the sink."
    return Outcome(Status.FAILED, error=text, code="unheard")


def _let_go(end: asyncio.Future[Result], result: Result) -> None:
    if not end.done():
        end.set_result(result)


def _pass_on(task: asyncio.Task[Result], end: asyncio.Future[Result]) -> None:
    if task.cancelled():
        end.cancel()
    elif (error := task.exception()) is not None:
        end.set_exception(error)
    else:
        end.set_result(task.result())


def _undone(raw: object) -> Outcome:
    """An undo handler succeeds by returning; only a failing ToolOutput says otherwise."""
    if getattr(raw, "success", True) is False:
        return Outcome(Status.FAILED, error=str(getattr(raw, "error", None) or "undo failed"), code="undo_failed")
    return Outcome(Status.COMPLETED)


def is_exhaustion(error: BaseException) -> bool:
    """Whether an error says that the machine is out of disk, memory, processes or open files."""
    return isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno in _EXHAUSTED)


def _code_of(call: Call, error: BaseException) -> str:
    if call.undo_of is not None:
        return "undo_failed"
    if isinstance(error, ToolDeniedError):
        return "denied"  # a guard refused what the handler was about to touch
    if isinstance(error, ToolTimeoutError) and not isinstance(error, ToolUnknownOutcomeError):
        return "timeout"  # what the handler started was given a time, and ended with it
    return "resource_exhausted" if is_exhaustion(error) else "execution_failed"
