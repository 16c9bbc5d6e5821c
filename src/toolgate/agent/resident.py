"""All runs of the agent in one process: takes messages, works, waits without a task, and takes up what others left.

A run that waits for people is a row: its task has ended. Whoever hears that its calls ended takes the row by saving
its next version; only one can. A run whose process died is taken up the same way.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

from toolgate.agent.calls import Caller
from toolgate.agent.discretion import Discretion
from toolgate.agent.history import AgentSaid, PersonSaid, content_of, role_of, shown_of
from toolgate.agent.limits import Limits
from toolgate.agent.loop import AgentLoop, Resources
from toolgate.agent.model import Model
from toolgate.errors import ConflictError, GateClosedError, NotFoundError, ToolgateError, UsageError
from toolgate.gate import Gate
from toolgate.kernel.ids import check_context
from toolgate.kernel.record import evolve
from toolgate.ports.agent import Host, Turn
from toolgate.ports.bus import Hint
from toolgate.ports.threads import Message, Run, RunQuery, RunStatus, Threads

SWEEP_S = 10.0
"""How often runs are looked after whose wake-up was lost or whose process died."""
TITLE = 80
MANY = 10_000
CANCELLED = "I stopped: the run was cancelled."
_CALL_OF_RUN = re.compile(r"(.+)\.\d+\.\d+\Z", re.DOTALL)
log = logging.getLogger("toolgate.agent")

Key = tuple[str, str]
utc_now: Callable[[], datetime] = partial(datetime.now, UTC)


class Resident:
    """Keeps the ResidentAgent port on one gate. The threads and the model are its own: they are closed with it."""

    def __init__(
        self,
        gate: Gate,
        threads: Threads,
        model: Model,
        *,
        limits: Limits | None = None,
        instructions: str = "",
        retries: int = 2,
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        self.threads = threads
        self._gate = gate
        self._model = model
        self._now = now
        self._resources = Resources(
            gate=gate,
            threads=threads,
            model=model,
            limits=limits or Limits(),
            now=now,
            instructions=instructions,
            retries=retries,
        )
        self._host: Host | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._tasks: dict[Key, asyncio.Task[None]] = {}
        self._again: set[Key] = set()
        self._joiners: dict[Key, set[Key]] = {}
        self._accepting: set[Key] = set()
        self._sweeping: asyncio.Task[None] | None = None
        self._leave: Callable[[], None] | None = None

    @property
    def at_work(self) -> int:
        """How many runs are being worked on here; those that wait are not among them."""
        return len(self._tasks)

    async def begin(self, host: Host) -> None:
        self._host = host
        self._loop = asyncio.get_running_loop()
        self._leave = self._gate.host.on_hint(self._on_hint)
        self._sweeping = self._loop.create_task(self._sweep(), name="toolgate-agent")

    async def accept(self, turn: Turn) -> Run:
        context, now = turn.context, self._now()
        if self._host is None or context.run_id is None:
            raise UsageError("Start the agent first, and give the turn's context a run_id.")
        check_context(evolve(context, session_id=turn.session_id), self._gate.host.masker)
        run = Run(
            project=context.project,
            id=context.run_id,
            account=turn.account or context.user or context.principal,
            conversation_id=turn.session_id,
            message_id=turn.message_id,
            context=context,
            created_at=now,
            updated_at=now,
            owner=self._gate.host.owner,
        )
        said, mask = PersonSaid(text=turn.content), Discretion(self._gate.host.masker)
        message = Message(
            project=run.project,
            id=turn.message_id,
            account=run.account,
            conversation_id=run.conversation_id,
            run_id=run.id,
            role=role_of(said),
            content=content_of(said),
            shown=shown_of(said, mask),
            created_at=now,
        )
        title = " ".join(mask.text(turn.content).split())[:TITLE]
        key = (run.project, run.id)
        self._accepting.add(key)
        try:
            await self.threads.save(run, messages=[message], title=title)
            self._spawn(key, self._work(run))
        finally:
            self._accepting.discard(key)
        return run

    async def cancel(self, project: str, run_id: str, *, by: str) -> Run:
        while True:
            run = await self.threads.run(project, run_id)
            if run is None:
                raise NotFoundError(f"There is no run {run_id[:64]} in project '{project}'.")
            if run.status.is_final:
                return run
            agent_loop = AgentLoop(self._resources, run, partial(self._say, run))
            await agent_loop.read()
            calls, reason = agent_loop.open_calls, f"cancelled by {by}"
            try:
                await agent_loop.end(RunStatus.CANCELLED, AgentSaid(text=CANCELLED, is_notice=True), error=reason)
            except ConflictError:
                continue  # it moved on meanwhile: look again
            task = self._tasks.get((project, run_id))
            if task is not None:
                task.cancel()
            await self._cancel_calls(run, calls, reason)
            return agent_loop.run

    async def _cancel_calls(self, run: Run, calls: tuple[str, ...], reason: str) -> None:
        for call_id in calls:
            try:
                await self._gate.cancel(call_id, project=run.project, reason=reason, wait=False)
            except (NotFoundError, ConflictError):
                continue  # never made, or running elsewhere: it ends by itself

    async def close(self) -> None:
        if self._leave is not None:
            self._leave()
        tasks = [*self._tasks.values(), *([] if self._sweeping is None else [self._sweeping])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._model.close()
        await self.threads.close()

    def _on_hint(self, hint: Hint) -> None:
        """Called on any thread: a call moved, perhaps one a run waits for."""
        loop = self._loop
        if not hint.status.is_final or loop is None or loop.is_closed():
            return
        found = _CALL_OF_RUN.match(hint.call_id)
        if found is not None:
            loop.call_soon_threadsafe(self._wake, (hint.project, found[1]))
        if (hint.project, hint.call_id) in self._joiners:
            loop.call_soon_threadsafe(self._wake_joiners, (hint.project, hint.call_id))

    def _wake_joiners(self, call: Key) -> None:
        """Wake the runs that wait for a call which is none of theirs."""
        for key in self._joiners.pop(call, ()):
            self._wake(key)

    def _join(self, run: Run) -> None:
        """Remember what a run waits for that its own calls joined; where it is forgotten, the sweep finds it."""
        for call_id in run.waiting:
            if not call_id.startswith(f"{run.id}."):
                self._joiners.setdefault((run.project, call_id), set()).add((run.project, run.id))

    def _wake(self, key: Key) -> None:
        if key in self._tasks:
            self._again.add(key)  # it may be about to wait: then it is looked at once more
        else:
            self._spawn(key, self._resume(key))

    def _spawn(self, key: Key, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work, name=f"toolgate-run-{key[1]}")
        self._tasks[key] = task
        task.add_done_callback(partial(self._done, key))

    def _done(self, key: Key, task: asyncio.Task[None]) -> None:
        del self._tasks[key]
        if task.cancelled():
            return
        error = task.exception()
        if error is not None:
            log.error("a run of the agent failed with %s", type(error).__name__)
        if key in self._again:
            self._again.discard(key)
            self._wake(key)

    async def _resume(self, key: Key) -> None:
        """Take up a run whose calls have ended, unless somebody else does."""
        run = await self.threads.run(*key)
        if run is None or run.status is not RunStatus.WAITING or not await Caller(self._gate, run).all_ended():
            return
        await self._take_up(run)

    async def _take_up(self, run: Run) -> None:
        assert self._host is not None
        context = await self._host.context_of(run)
        taken = replace(run.next(self._now()), status=RunStatus.RUNNING, owner=self._gate.host.owner, waiting=())
        if context is not None:
            taken = replace(taken, context=context)
        try:
            await self.threads.save(taken)
        except ConflictError:
            return
        if context is None:
            said = AgentSaid(text="I stopped: the account may not ask in this project any more.", is_notice=True)
            await AgentLoop(self._resources, taken, partial(self._say, taken)).end(
                RunStatus.STOPPED, said, error="not allowed"
            )
            return
        await self._work(taken)

    async def _work(self, run: Run) -> None:
        """Work on a run that is ours until it waits or ends. What breaks it is told and ends it."""
        agent_loop = AgentLoop(self._resources, run, partial(self._say, run))
        try:
            await self._say(run, "chat.run", {"status": "running"})
            await agent_loop.go_on()
            self._join(agent_loop.run)
            if agent_loop.run.status is RunStatus.WAITING and await Caller(self._gate, agent_loop.run).all_ended():
                self._again.add((run.project, run.id))  # they ended between looking and waiting
        except (ConflictError, GateClosedError):
            return  # somebody else ended it or took it; or we are closing, and it is taken up later
        except ToolgateError as error:
            await self._break(agent_loop, error.code, str(error))
        except Exception as error:  # noqa: BLE001  # a model is somebody else's code: its failure is told, not raised
            log.error("the agent failed on run %s with %s", run.id, type(error).__name__)
            await self._break(agent_loop, "agent_failed", "The agent failed; see the server's log.")

    async def _break(self, agent_loop: AgentLoop, code: str, text: str) -> None:
        shown = self._gate.host.masker.text(text)
        try:
            said = AgentSaid(text=f"I cannot go on: {shown}", is_notice=True)
            await agent_loop.end(RunStatus.FAILED, said, error=shown)
        except ToolgateError as error:  # what broke it may keep it from being recorded: it is taken up later
            log.error("a run could not be ended: %s", error.code)
        await self._say(agent_loop.run, "chat.error", {"error": shown, "code": code, "reason": "failed"})

    async def _say(self, run: Run, name: str, data: Mapping[str, Any]) -> None:
        if self._host is not None:
            await self._host.say(run, name, data)

    async def _sweep(self) -> None:
        while True:
            try:
                await self._look_after()
            except ToolgateError as error:
                log.warning("the agent's runs cannot be looked after now: %s", error.code)
            await asyncio.sleep(SWEEP_S)

    async def _look_after(self) -> None:
        """Take up the runs of dead processes, those nobody works on here any more, and those whose wake-up was lost."""
        for run in await self.threads.orphans():
            self._adopt(run)
        for run in await self.threads.runs(RunQuery(statuses=frozenset({RunStatus.RUNNING}), limit=MANY)):
            if run.owner == self._gate.host.owner:
                self._adopt(run)
        for run in await self.threads.runs(RunQuery(statuses=frozenset({RunStatus.WAITING}), limit=MANY)):
            key = (run.project, run.id)
            if key not in self._tasks and await Caller(self._gate, run).all_ended():
                self._wake(key)

    def _adopt(self, run: Run) -> None:
        key = (run.project, run.id)
        if key not in self._tasks and key not in self._accepting:
            self._spawn(key, self._take_up(run))
