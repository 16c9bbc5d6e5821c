"""Brings results to the server until it has acknowledged or refused each, however long that takes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import orjson

from toolgate.errors import ConflictError, NotFoundError, ToolgateError, UsageError
from toolgate.interfaces.client.backoff import delays
from toolgate.interfaces.client.client import Client
from toolgate.interfaces.runner.ledger import Delivery, Ledger, SignalRecord
from toolgate.interfaces.runner.local import LocalGate
from toolgate.interfaces.runner.notices import Kind, Notice, Tell
from toolgate.interfaces.runner.report import NOT_BEGUN, Report, report_of, without_data
from toolgate.interfaces.runner.signals import printable
from toolgate.kernel.call import Call
from toolgate.ports.store import CallQuery
from toolgate.wire.claims import ResultAnswer

LONGEST_S = 15.0


class Courier:
    """One task per result that has yet to be delivered. What is left at the end is delivered at the next start."""

    def __init__(self, local: LocalGate, ledger: Ledger, server: Client, tell: Tell) -> None:
        self._local = local
        self._ledger = ledger
        self._server = server
        self._tell = tell
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def bring(self, tool_id: str) -> None:
        """Deliver how a call ended that is final in the journal."""
        if tool_id in self._tasks:
            return
        task = self._tasks[tool_id] = asyncio.get_running_loop().create_task(self._bring(tool_id))
        task.add_done_callback(lambda _task: self._tasks.pop(tool_id, None))

    async def settle(self, seconds: float) -> int:
        """Wait up to so long for deliveries under way, stop the others, and return how many are left."""
        if self._tasks:
            await asyncio.wait(tuple(self._tasks.values()), timeout=seconds)
        left = tuple(self._tasks.values())
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        return len(self._ledger.open_signals())

    async def made_here(self, tool_id: str, undo_of: str | None) -> Call | None:
        """Return the call a signal led to here; None where it led to none."""
        local = self._local
        try:
            if undo_of is None:
                return await local.gate.calls.get(tool_id, project=local.project)
        except NotFoundError:
            return None
        made = await local.gate.calls.list(CallQuery(project=local.project, run_id=tool_id))
        return next((call for call in reversed(made) if call.undo_of == undo_of), None)

    async def _bring(self, tool_id: str) -> None:
        waits = delays(longest_s=LONGEST_S)
        while (record := self._ledger.open_signal(tool_id)) is not None:
            call = await self.made_here(tool_id, record.undo_of)
            if call is not None and not call.is_final:
                return  # it was offered again and is at work; its end brings us back
            if await self._try(record, call, waits):
                return

    async def _try(self, record: SignalRecord, call: Call | None, waits: Iterator[float]) -> bool:
        """Post once; True when nothing is left to do. Otherwise it waited before it returns."""
        report = await self._report(record, call)
        try:
            answer = await self._post(record, report, has_effects=call is None or call.has_effects)
        except ConflictError as error:
            where = f"; it is {printable(error.tool_status)} there" if error.tool_status else ""
            return self._refused(record, f"the server no longer waits for it{where}")
        except (NotFoundError, UsageError) as error:
            return self._refused(record, printable(str(error)))
        except ToolgateError as error:  # nobody took it, whatever the reason: it is brought again
            pause_s = max(next(waits), getattr(error, "retry_after_s", None) or 0.0)
            self._notice(Kind.KEPT, record, f"not delivered yet: {printable(str(error))}", retry_s=round(pause_s, 2))
            await asyncio.sleep(pause_s)
            return False
        if self._ledger.close_signal(record, Delivery.DELIVERED):
            text = "" if answer.success else f"the server cannot use it: {printable(answer.message)}"
            self._notice(Kind.DELIVERED, record, text, status=report.status)
            return True
        return False  # offered again meanwhile: the new offer wants its answer, too

    async def _report(self, record: SignalRecord, call: Call | None) -> Report:
        if call is None:
            return Report("failed", error=record.note or NOT_BEGUN)
        gate, project = self._local.gate, self._local.project
        is_undoable = call.undo_of is None and await gate.host.undo_data(call.id, project=project) is not None
        return report_of(await gate.get(call.id, project=project), undoable=is_undoable)

    async def _post(self, record: SignalRecord, report: Report, *, has_effects: bool) -> ResultAnswer:
        try:
            return await self._send(record, report)
        except UsageError:  # too large, or otherwise not to be taken: at least how it ended must arrive
            if report.result is None:
                raise
            size = len(orjson.dumps(report.result))
            return await self._send(record, without_data(report, size, has_effects=has_effects))

    async def _send(self, record: SignalRecord, report: Report) -> ResultAnswer:
        return await self._server.remote.result(
            record.tool_id,
            report.result,
            status=report.status,
            error=report.error,
            fence=record.fence,
            undo=report.undo,
            retry_s=0.0,
        )

    def _refused(self, record: SignalRecord, why: str) -> bool:
        if not self._ledger.close_signal(record, Delivery.REFUSED, why):
            return False
        self._notice(Kind.REFUSED, record, f"the result was not taken: {why}")
        return True

    def _notice(self, kind: Kind, record: SignalRecord, text: str, **data: object) -> None:
        self._tell(Notice(kind=kind, text=text, tool_id=record.tool_id, tool_name=record.tool_name, data=data))
