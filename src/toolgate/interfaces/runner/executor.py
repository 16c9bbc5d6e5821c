"""Does what is signalled: each signal once, under the local policy, with its lease kept alive while it lasts."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any

import orjson

from toolgate.errors import ConflictError, EffectHeldError, NotFoundError, ToolgateError
from toolgate.interfaces.client.client import Client
from toolgate.interfaces.runner.delivery import Courier
from toolgate.interfaces.runner.holding import Hold
from toolgate.interfaces.runner.ledger import Delivery, Ledger, SignalRecord, Taken
from toolgate.interfaces.runner.local import LocalGate
from toolgate.interfaces.runner.notices import Kind, Notice, Tell
from toolgate.interfaces.runner.signals import Recall, Signal, printable
from toolgate.kernel.call import Status
from toolgate.kernel.change import Change
from toolgate.kernel.output import Result

MOST_HELD = 64
"""How many signals are at work at once; a server that sends more is told so."""
BEAT_S = 15.0
"""How often a lease is renewed at the latest."""
TOLD_S = 1.0
"""How often progress is passed on at most."""
_NOT_BEGUN = frozenset({Status.PENDING, Status.AWAITING_APPROVAL, Status.APPROVED})


@dataclass(slots=True)
class RunningSignal:
    """One signal at work: its task, and the latest progress not passed on yet."""

    hold: Hold
    task: asyncio.Task[None] | None = None
    beat: asyncio.Task[None] | None = None
    news: asyncio.Event = field(default_factory=asyncio.Event)
    progress: dict[str, Any] | None = None


class SignalExecutor:
    """Takes signals and sees each through to its delivery."""

    def __init__(self, local: LocalGate, ledger: Ledger, server: Client, tell: Tell) -> None:
        self._local = local
        self._ledger = ledger
        self._server = server
        self._tell = tell
        self._running: dict[str, RunningSignal] = {}
        self._loop = asyncio.get_running_loop()
        self._leave = local.gate.host.on_change(self._on_commit)
        self.courier = Courier(local, ledger, server, tell)
        self.is_stopping = False

    @property
    def running(self) -> int:
        return len(self._running)

    async def take(self, signal: Signal) -> None:
        """Do what a signal says, unless it was done before or is none of ours."""
        if self.is_stopping:
            return  # nothing was noted: the lease ends, and the server says what that means
        taken = await asyncio.to_thread(self._ledger.take, signal)
        if taken is Taken.FOREIGN:
            self._ignore(signal, "its id was used for another call")
        elif taken is Taken.DUPLICATE:
            self._ignore(signal, "it came before")
        elif signal.tool_id in self._running:  # offered again while it runs: the same run answers for both
            running = self._running[signal.tool_id]
            running.hold = self._local.holding.take(signal)
            self._keep_alive(running)
        elif len(self._running) >= MOST_HELD:
            why = f"The runner has {MOST_HELD} calls running already; nothing ran. Ask for it again later."
            self._ledger.note(signal.tool_id, why)
            self._ignore(signal, why)
            self.courier.bring(signal.tool_id)
        else:
            what = "undo" if signal.undo_of is not None else "run"
            again = f", attempt {signal.attempt}" if taken is Taken.AGAIN else ""
            self._notice(Kind.SIGNAL, signal, f"the server wants it {what}{again}")
            self._begin(signal, self._perform(signal))

    def _begin(self, signal: Signal, doing: Coroutine[Any, Any, Result]) -> None:
        running = self._running[signal.tool_id] = RunningSignal(self._local.holding.take(signal))
        self._keep_alive(running)
        running.task = self._loop.create_task(self._see_through(signal.tool_id, running, doing), name="toolgate-signal")

    def _keep_alive(self, running: RunningSignal) -> None:
        if running.beat is None or running.beat.done():  # it ends where the server no longer waits
            running.beat = self._loop.create_task(self._beat(running), name="toolgate-lease")

    async def _see_through(self, tool_id: str, running: RunningSignal, doing: Coroutine[Any, Any, Result]) -> None:
        result: Result | None = None
        try:
            result = await self._outcome(running, doing)
            await asyncio.sleep(0)  # so that its beginning is told before its end
        except ConflictError as error:  # the id is another call's: reporting would end that one
            record = self._ledger.open_signal(tool_id)
            if record is not None:
                self._ledger.close_signal(record, Delivery.REFUSED, "another call's id")
            self._ignore(running.hold.signal, printable(str(error)))
            return
        finally:
            if running.beat is not None:
                running.beat.cancel()
            self._running.pop(tool_id, None)
            self._local.holding.release(tool_id)
        if result is not None:
            text = printable(result.error or "")
            data = {"status": result.status.value, "duration_ms": result.duration_ms, "joined": result.joined}
            self._notice(Kind.ENDED, running.hold.signal, text, **data)
        self.courier.bring(tool_id)

    async def _outcome(self, running: RunningSignal, doing: Coroutine[Any, Any, Result]) -> Result | None:
        """How the call ended; None where it never began."""
        signal = running.hold.signal
        try:
            return await doing
        except ToolgateError as error:
            if isinstance(error, ConflictError) and not isinstance(error, EffectHeldError):
                raise
            why = f"It did not begin at the runner: {error}"
        made = await self.courier.made_here(signal.tool_id, signal.undo_of)
        if made is not None:  # its end could not be written down yet
            return await self._local.gate.wait(made.id, project=self._local.project)
        self._ledger.note(signal.tool_id, why)
        self._notice(Kind.ENDED, signal, printable(why), status="not_begun")
        return None

    async def _perform(self, signal: Signal) -> Result:
        local = self._local
        context = local.context(signal.tool_id)
        if signal.undo_of is not None:
            return await local.gate.undo(signal.undo_of, context=context)
        return await local.gate.call(
            signal.tool_name,
            signal.params,
            context=context,
            call_id=signal.tool_id,
            held_key=signal.effect_key,  # whether it is another call over again, the server's gate has decided
            distinct=True,  # and where it knows of no such thing, a report is of the call that was signalled
        )

    async def _beat(self, running: RunningSignal) -> None:
        """Renew the lease and pass progress on until the call is over or the server no longer waits for it."""
        while not running.hold.is_lost:
            every_s = min(max(running.hold.signal.lease_s / 3, 0.2), BEAT_S)
            try:
                async with asyncio.timeout(every_s):
                    await running.news.wait()
            except TimeoutError:
                pass
            running.news.clear()
            told, running.progress = running.progress, None
            await self._renew(running, told or {})
            await asyncio.sleep(min(TOLD_S, every_s / 2))

    async def _renew(self, running: RunningSignal, told: dict[str, Any]) -> None:
        hold, since = running.hold, time.monotonic()
        signal = hold.signal
        try:
            await self._server.remote.progress(signal.tool_id, fence=signal.fence, **told)
        except (ConflictError, NotFoundError):
            if running.hold is hold:
                hold.is_lost = True
                self._notice(Kind.LOST, signal, "the server no longer waits for it")
                await self._drop_unbegun(signal, "the server no longer waits for it")
        except ToolgateError:
            return  # the next beat tries again; when the lease is over, the rule knows
        else:
            self._local.holding.renew(hold, since=since)

    async def recall(self, recall: Recall) -> None:
        """Stop a call the server wants stopped."""
        running = self._running.get(recall.tool_id)
        if running is None:
            return
        self._notice(Kind.RECALLED, running.hold.signal, f"the server wants it stopped: {recall.reason}")
        await self._stop(running.hold.signal, f"the server wants it stopped: {recall.reason}")

    async def _stop(self, signal: Signal, why: str) -> None:
        made = await self.courier.made_here(signal.tool_id, signal.undo_of)
        if made is None or made.is_final:
            return
        try:
            await self._local.gate.cancel(made.id, reason=why, project=self._local.project, wait=False)
        except ConflictError as error:
            self._notice(Kind.PROGRESS, signal, f"it cannot be stopped: {printable(str(error))}")

    async def _drop_unbegun(self, signal: Signal, why: str) -> None:
        """End a call that still waits for somebody here; one that runs is left to finish, as evidence."""
        made = await self.courier.made_here(signal.tool_id, signal.undo_of)
        if made is not None and made.status in _NOT_BEGUN:
            await self._stop(signal, why)

    async def recover(self) -> int:
        """Look after what an earlier runner left: deliver what ended, go on with what can. Returns how many."""
        await self._local.gate.recover()
        left = self._ledger.open_signals()
        for record in left:
            await self._recover(record)
        return len(left)

    async def _recover(self, record: SignalRecord) -> None:
        made = await self.courier.made_here(record.tool_id, record.undo_of)
        if made is None or made.is_final:
            self.courier.bring(record.tool_id)
            return
        signal = record.signal
        self._begin(signal, self._local.gate.wait(made.id, project=self._local.project))
        running = self._running[signal.tool_id]
        running.hold.until = 0.0  # it is ours again when the server says so, and not before
        running.news.set()

    async def drain(self, seconds: float) -> None:
        """Take no more; hand back what waits for somebody, give what runs so long to end, then stop it."""
        self.is_stopping = True
        for running in tuple(self._running.values()):
            await self._drop_unbegun(running.hold.signal, "the runner stops")
        await self._until_idle(seconds)
        for running in tuple(self._running.values()):
            await self._stop(running.hold.signal, "the runner stops")
        await self._until_idle(3.0)

    async def _until_idle(self, seconds: float) -> None:
        tasks = [running.task for running in self._running.values() if running.task is not None]
        if tasks:
            await asyncio.wait(tasks, timeout=seconds)

    async def close(self) -> None:
        """Let go of what is left; the journal knows it."""
        self._leave()
        tasks = [running.task for running in self._running.values() if running.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _on_commit(self, change: Change) -> None:
        if change.project == self._local.project:
            for name, _call_id, facts, content in change.events:
                if name in _HEARD:
                    told = orjson.loads(orjson.dumps({**facts, **(content or {})}))  # a draft may quote bytes of JSON
                    self._loop.call_soon_threadsafe(self._hear, name, told)

    def _hear(self, name: str, data: dict[str, Any]) -> None:
        """What the journal says of a call at work: shown here, and its progress passed on."""
        running = self._running.get(str(data.get("pipeline_run_id")))
        if running is None:
            return
        signal = running.hold.signal
        if name == "tool.progress":
            running.progress = {"progress": data["progress"], "message": data["message"], "data": data["data"]}
            running.news.set()
            self._notice(Kind.PROGRESS, signal, printable(str(data["message"] or "")), progress=data["progress"])
        elif name == "approval.requested":
            running.progress = {"message": "the runner's user is asked"}
            running.news.set()
            text = "; ".join(map(str, data["reasons"])) or str(data["message"])
            self._notice(Kind.ASKING, signal, printable(text), approval_id=data["request_id"])
        elif name == "tool.invoked":
            self._notice(Kind.STARTED, signal, "", arguments=data["payload_summary"], began=False)
        else:
            self._notice(Kind.STARTED, signal, f"allowed by {data['approved_by']}", began=True)

    def _ignore(self, signal: Signal, why: str) -> None:
        self._notice(Kind.IGNORED, signal, f"the signal is not acted upon: {why}")

    def _notice(self, kind: Kind, signal: Signal, text: str, **data: object) -> None:
        self._tell(Notice(kind=kind, text=text, tool_id=signal.tool_id, tool_name=signal.tool_name, data=data))


_HEARD = frozenset({"tool.invoked", "tool.started", "tool.undo_started", "tool.progress", "approval.requested"})
