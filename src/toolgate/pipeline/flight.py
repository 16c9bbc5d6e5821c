"""One handler in the air: claimed, started, watched, stopped if it must be, and its end written down.

A flight that has to wait runs in a task of its own, so a caller who goes away changes nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Mapping
from time import perf_counter
from typing import Any, NamedTuple

from toolgate.errors import ConflictError, StoreError, ToolOutputError, UsageError
from toolgate.kernel.call import Call, Status
from toolgate.kernel.change import Change
from toolgate.kernel.doubt import Doubt
from toolgate.kernel.output import Result, result_of
from toolgate.kernel.policy import Policy
from toolgate.kernel.record import evolve
from toolgate.kernel.signature import keywords
from toolgate.kernel.tool import Hook, Placement, ToolDefinition, is_async
from toolgate.kernel.transient import is_transient
from toolgate.kernel.undo import UndoRecord
from toolgate.pipeline import eager, steps
from toolgate.pipeline.binding import input_of, metadata_of
from toolgate.pipeline.driver import Driver
from toolgate.pipeline.outcome import (
    Outcome,
    decode,
    interpret,
    interrupted,
    is_of_the_machine,
    raised,
    undone,
    unheard,
    unusable,
)
from toolgate.pipeline.plan import REMOTE, Plan
from toolgate.pipeline.recording import Recorder
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

log = logging.getLogger("toolgate.flight")


class Taker(NamedTuple):
    """Whoever made a call and runs it now: with `function` here, or elsewhere as `by`, who reports with `fence`."""

    function: Hook | None = None
    by: str | None = None
    fence: str | None = None


NO_TAKER = Taker()


class CallerRunner:
    """Runs what its caller runs in a process of their own: the claim is all there is to do here."""

    async def run(self, _job: Job) -> object:
        return PARKED

    async def close(self) -> None:
        """Nothing is held."""


CALLER_RUNNER = CallerRunner()


class Stop(NamedTuple):
    """Why somebody wants a handler to end, and in whose words."""

    why: str
    detail: str | None = None


class Flight(Job):
    """A job with the handle by which others may end it.

    `started` is the monotonic time at which the hook was entered, 0.0 while it does not run. Where it has to wait, it
    has a `task`, and an `end` that others wait for. `is_taken` says that its hook is its caller's own function,
    `has_returned` that it came to its end although nobody waited any more, and `doubt` what it means where it does not.
    """

    doubt: Doubt
    stop: Stop | None = None
    started: float = 0.0
    task: asyncio.Task[Result] | None = None
    end: asyncio.Future[Result] | None = None
    is_taken: bool = False
    has_returned: bool = False

    @property
    def key(self) -> tuple[str, str]:
        return self.call.project, self.call.id

    @property
    def loop(self) -> asyncio.AbstractEventLoop | None:
        """Where it runs, if it has to wait."""
        return None if self.task is None else self.task.get_loop()

    @property
    def is_over(self) -> bool:
        return self.task is None or self.task.done()

    def cut_short(self, *, stopped: bool | None = None) -> Outcome:
        """What may be said of it when it was made to end."""
        stopped = self.stoppable if stopped is None else stopped
        stop, began = self.stop or Stop("shutdown"), self.began and self.started != 0.0
        return interrupted(self.tool, self.doubt, why=stop.why, stopped=stopped, began=began, detail=stop.detail)


class Flights:
    """Runs claimed calls and keeps the handles by which they can be ended."""

    def __init__(self, driver: Driver, recorder: Recorder) -> None:
        self._driver = driver
        self._recorder = recorder
        self._flying: dict[tuple[str, str], list[Flight]] = {}
        """By call: the one that runs it, and those that have yet to find out that somebody else does."""

    async def fly(
        self,
        claim: Change,
        plan: Plan,
        undo: UndoRecord | None = None,
        kwargs: dict[str, Any] | None = None,
        *,
        runner: Runner | None = None,
        inside: str | None = None,
        taker: Taker | None = None,
    ) -> Result:
        """Claim and run a call once, and return how it ended; whoever waits here may go away.

        `runner` runs it instead of its placement's, as if placed `inside`; of a `taker` it runs the function. Where the
        claim fails, ConflictError is raised, and nothing ran.
        """
        started = self.launch(claim, plan, undo, kwargs, runner=runner, inside=inside, taker=taker)
        return await eager.finish(started) if isinstance(started, asyncio.Future) else started

    def launch(
        self,
        claim: Change,
        plan: Plan,
        undo: UndoRecord | None = None,
        kwargs: dict[str, Any] | None = None,
        *,
        runner: Runner | None = None,
        inside: str | None = None,
        taker: Taker | None = None,
    ) -> Result | asyncio.Future[Result]:
        """Start what `fly` waits for: its result where it never has to wait, or else the future of it."""
        call, tool = claim.call, plan.tool
        assert call is not None
        flight = Flight(call, tool, tool.function or tool.handler, tool.is_async, undo)  # type: ignore[arg-type]  # checked
        flight.doubt = plan.doubt
        if taker is not None:
            runner, inside = self._at_the_caller(flight, taker), Placement.INLINE.value
        flight.inside = inside or call.placement
        flight.sandbox = plan.stance.sandbox
        started = eager.start(self._run(flight, claim, runner or self._driver.runners[call.placement], kwargs))
        return self._watch(flight, started) if isinstance(started, asyncio.Task) else started

    def _at_the_caller(self, flight: Flight, taker: Taker) -> Runner:
        """Have a flight run its caller's own function; where that is elsewhere, wait for the report."""
        if taker.function is None:
            return CALLER_RUNNER
        flight.hook, flight.is_async, flight.is_taken = taker.function, is_async(taker.function), True
        return self._driver.runners[Placement.INLINE.value]

    def _watch(self, flight: Flight, task: asyncio.Task[Result]) -> asyncio.Future[Result]:
        """Keep the handle of a flight that waits, and a timer for it; return the future of its end."""
        loop = task.get_loop()
        flight.task, end = task, loop.create_future()
        flight.end = end
        self._flying.setdefault(flight.key, []).append(flight)
        timer = loop.call_later(flight.tool.timeout_seconds, self._on_timeout, flight)

        def forget(_task: object) -> None:
            timer.cancel()
            self._drop(flight)
            if flight.is_async:
                self._driver.lingering.discard(flight.key)
            if not end.done():
                _pass_on(task, end)

        task.add_done_callback(forget)
        return end

    def _drop(self, flight: Flight) -> None:
        others = [other for other in self._flying.get(flight.key, ()) if other is not flight]
        if others:
            self._flying[flight.key] = others
        else:
            self._flying.pop(flight.key, None)

    def running(self) -> tuple[Flight, ...]:
        """Return what runs in this process and has to wait for something."""
        return tuple(one for flights in tuple(self._flying.values()) for one in tuple(flights) if one.started)

    def stop(self, project: str, call_id: str, why: str, detail: str | None = None) -> bool:
        """Ask a running call of this process to end; False where it does not run here."""
        asked = False
        for flight in tuple(self._flying.get((project, call_id), ())):
            loop = flight.loop
            if loop is not None and not loop.is_closed():
                loop.call_soon_threadsafe(self._stop, flight, Stop(why, detail))
                asked = True
        return asked

    async def bury(self, project: str, call_id: str) -> bool:
        """Record the end of a call whose event loop was closed under it; False where there is no such call."""
        flights = self._flying.get((project, call_id), ())
        buried = [flight for flight in flights if flight.loop is None or flight.loop.is_closed()]
        for flight in buried:
            self._drop(flight)
            lost = interrupted(flight.tool, flight.doubt, why="shutdown", stopped=False, began=True)
            await self._recorder.finish(flight, lost, 0.0)
        return bool(buried)

    async def drain(self) -> None:
        """Ask everything that runs here to stop and wait until it is recorded how each ended."""
        for project, call_id in tuple(self._flying):
            self.stop(project, call_id, "shutdown")
        with contextlib.suppress(TimeoutError):  # what ignores its cancellation is recorded as unknown by then
            async with asyncio.timeout(STOP_GRACE_S * 2):
                while any(self._is_running(key) for key in tuple(self._flying)):  # noqa: ASYNC110  # they run on other loops
                    await asyncio.sleep(0.005)

    def _is_running(self, key: tuple[str, str]) -> bool:
        return any(one.loop is not None and one.loop.is_running() for one in tuple(self._flying.get(key, ())))

    def _on_timeout(self, flight: Flight) -> None:
        loop = flight.loop
        if flight.is_over or loop is None:
            return
        allowed = flight.tool.timeout_seconds
        left = allowed - (perf_counter() - flight.started) if flight.started else allowed
        if left > 0:
            loop.call_later(left, self._on_timeout, flight)
        else:
            self._stop(flight, Stop("timeout"))

    def _stop(self, flight: Flight, stop: Stop) -> None:
        task = flight.task
        if task is None or task.done() or flight.stop is not None:
            return
        flight.stop = stop
        if flight.started:
            task.cancel()
            task.get_loop().call_later(STOP_GRACE_S, self._on_grace_over, flight)

    def _on_grace_over(self, flight: Flight) -> None:
        if not flight.is_over and flight.started:
            duration_ms = (perf_counter() - flight.started) * 1000
            self._driver.spawn(self._give_up(flight, flight.cut_short(stopped=False), duration_ms))

    async def _give_up(self, flight: Flight, outcome: Outcome, duration_ms: float) -> None:
        """Record that a handler ignores its cancellation, and let go those who wait for it."""
        if not flight.is_over:
            self._driver.lingering.add(flight.key)
        result = await self._recorder.finish(flight, outcome, duration_ms)
        end = flight.end
        if end is not None and not end.get_loop().is_closed():
            end.get_loop().call_soon_threadsafe(_let_go, end, result)

    async def _run(self, flight: Flight, claim: Change, runner: Runner, kwargs: dict[str, Any] | None) -> Result:
        driver = self._driver
        policy = driver.policy  # the one it was judged by: another may come while the claim is written
        writing = driver.write(claim)
        if writing is not None:
            await self._held(writing, flight.call)
        if driver.has_realms and (refusal := await self._tell(flight)) is not None:
            return await self._recorder.finish(flight, refusal, 0.0)
        if flight.stop is not None:
            return await self._recorder.finish(flight, flight.cut_short(stopped=True), 0.0)
        self._bind(flight, kwargs)
        flight.started = began = perf_counter()
        outcome = await self._attempt(flight, runner)
        if outcome is None:
            return result_of(flight.call)
        if outcome.cause is not None and self._may_retry(flight, outcome.cause):
            outcome = await self._retry(flight, runner, outcome, claim, policy)
        flight.started = 0.0  # nobody can stop it any more: what happened must be written down
        result = await self._recorder.finish(flight, outcome, (perf_counter() - began) * 1000)
        if flight.is_async and not isinstance(outcome.cause, Exception | SystemExit | None):
            raise outcome.cause  # on this thread it may be a person who stops the program; first it was written down
        return result

    async def _attempt(self, flight: Flight, runner: Runner) -> Outcome | None:
        """Run the hook once and say how that ended; None where it runs elsewhere."""
        call, tool = flight.call, flight.tool
        try:
            raw = await runner.run(flight)
            if raw is PARKED:
                return None
            return interpret(tool, raw) if call.undo_of is None else undone(raw)
        except asyncio.CancelledError:
            if flight.began and not flight.stoppable:
                self._driver.lingering.add(flight.key)
                if flight.has_returned:  # between the two
                    self._driver.lingering.discard(flight.key)
            return _cancelled(flight)
        except ToolOutputError as error:
            return unusable(flight.doubt, error)
        except GeneratorExit:  # its event loop is gone: nothing can be awaited any more
            raise
        except BaseException as error:  # noqa: BLE001  # whatever it raises is its failure
            if is_of_the_machine(error) and self._driver.on_exhausted is not None:
                self._driver.on_exhausted(f"`{tool.name}` ran out of resources ({type(error).__name__})")
            return raised(call, flight.doubt, error, began=flight.began)

    def _may_retry(self, flight: Flight, error: BaseException) -> bool:
        """Whether a first attempt that failed may be made once more: a passing error of what may be repeated."""
        call, driver = flight.call, self._driver
        if flight.stop is not None or call.undo_of is not None or call.attempt > 1 or not is_transient(error):
            return False
        if call.placement in REMOTE:  # whoever holds a lease is offered it again
            return False
        said = driver.plan_of(flight.tool, call.context).stance.may_retry
        return flight.tool.can_retry if said is None else said

    async def _retry(self, flight: Flight, runner: Runner, failed: Outcome, claim: Change, policy: Policy) -> Outcome:
        """Make the second attempt on the same call; where it cannot be claimed or told, the first failure stands."""
        driver, held = self._driver, flight.call
        log.warning("call %s failed with %s, which may pass", held.id, type(failed.cause).__name__)
        flight.started = 0.0  # nobody may cut the claim short; who wants it to stop is heard after
        await asyncio.sleep(RETRY_AFTER_S)
        mode = driver.store.brakes.serial if claim.mode_seen is None else claim.mode_seen
        now, owner = driver.now(), driver.owner
        again = steps.reclaim(held, now=now, owner=owner, mode=mode, fence=held.fence, due_at=held.due_at)
        try:
            if driver.refresh is not None:
                await driver.refresh()
            if driver.policy is not policy:
                return failed
            await driver.commit(again)
        except (ConflictError, StoreError):
            return failed
        assert again.call is not None
        flight.call = again.call
        if driver.has_realms and await self._tell(flight) is not None:
            return failed
        if flight.stop is not None:
            return flight.cut_short(stopped=True)
        self._bind(flight, None)  # the first attempt may have changed what it was given
        flight.started = perf_counter()
        return await self._attempt(flight, runner) or failed

    async def _held(self, writing: Awaitable[None], call: Call) -> None:
        """Wait for a claim; what others gave up as a dead process's meanwhile is a ConflictError, and does not run."""
        asked = perf_counter()
        await writing
        if perf_counter() - asked < SLOW_CLAIM_S:
            return
        found = await self._driver.read(call.project, call.id)
        if found.status is not Status.EXECUTING or (found.owner, found.attempt) != (call.owner, call.attempt):
            raise ConflictError(f"Call {call.id[:64]} was given up by others while its claim was being written.")

    async def _tell(self, flight: Flight) -> Outcome | None:
        """Tell the project's sink of the claim; how the call ends where the sink is required and will not listen."""
        call, relay = flight.call, self._driver.relay(flight.call.project)
        try:
            if relay is None or not relay.required:
                if relay is not None:
                    await relay.moment()
                return None
            if not relay.is_ours:  # another process must tell it: otherwise a claim is nobody's news
                self._driver.bus.publish(
                    Hint(call.project, call.id, call.status, call.tool_name, call.version, call.owner)
                )
            if await relay.insist():
                return None
        except asyncio.CancelledError:  # nothing ran yet, and the claim is made: the end must be written down
            return _cancelled(flight)
        return unheard(flight.tool, relay.trouble)

    def _bind(self, flight: Flight, kwargs: dict[str, Any] | None) -> None:
        """Give the hook its input: the original's undo data, a function's keywords, or a ToolInput.

        `kwargs` are the arguments as its function or handler takes them, where they are at hand as a copy nobody else
        holds.
        """
        call, tool = flight.call, flight.tool
        if flight.is_taken:
            flight.args = (decode(call.arguments),)
        elif call.undo_of is not None:
            assert flight.undo is not None
            assert tool.undo_handler is not None
            flight.hook, flight.is_async = tool.undo_handler, is_async(tool.undo_handler)
            flight.args = (metadata_of(flight.undo, call),)
        elif tool.function is not None and tool.inject is None:
            flight.kwargs = kwargs if kwargs is not None else _bound(tool, call)
        else:
            given = input_of(call, kwargs if tool.function is None else None)
            given.attach(self._reporter(flight), lambda: flight.stop is not None, self._caller(flight))
            if tool.function is None:
                flight.args = (given,)
            else:
                flight.kwargs = keywords(given, tool.bind, tool.inject)
        if not flight.is_async:
            flight.late = lambda error: self._returned(flight, error)

    def _returned(self, flight: Flight, error: BaseException | None) -> None:
        """A plain hook that could not be stopped has come to its end, on a thread of its own."""
        flight.has_returned = True
        self._driver.lingering.discard(flight.key)
        self._driver.spawn(self._recorder.late(flight.call, error))

    def _reporter(self, flight: Flight) -> Callable[..., Any]:
        async def report(fraction: float | None, message: str | None, data: object) -> None:
            driver = self._driver
            told = await driver.told(flight.call, flight.undo, fraction, message, data)
            if not driver.reports.take(flight.call, driver.now()):
                return
            await driver.commit(steps.progress(flight.call, now=driver.now(), data=told))

        if flight.is_async:
            return report
        loop = asyncio.get_running_loop()
        return lambda *told: asyncio.run_coroutine_threadsafe(report(*told), loop).result()

    def _caller(self, flight: Flight) -> Callable[..., Any]:
        """What a handler calls other tools with: the same gate, the same caller, this call as the parent."""

        def call(tool: str, arguments: Mapping[str, object] | None) -> Any:
            submit, context = self._driver.submit, flight.call.context
            if submit is None or context.depth >= MAX_DEPTH:
                raise UsageError(f"Calls from inside calls go at most {MAX_DEPTH} deep, through a gate.")
            inner = evolve(context, parent_call_id=flight.call.id, depth=context.depth + 1)
            return submit(tool, arguments, context=inner)

        if flight.is_async:
            return call
        loop = asyncio.get_running_loop()
        return lambda *asked: asyncio.run_coroutine_threadsafe(call(*asked), loop).result()


def _bound(tool: ToolDefinition, call: Call) -> dict[str, Any]:
    if tool.bind is not None:
        return tool.bind(call.arguments)
    payload: dict[str, Any] = decode(call.arguments)
    return payload


def _cancelled(flight: Flight) -> Outcome:
    """What a cancelled flight came to; the cancellation is used up, for its end must be written."""
    task = asyncio.current_task()
    if task is not None:
        task.uncancel()
    return flight.cut_short()


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
