"""What a dead process left behind: nothing is guessed, and nothing with effects runs twice.

A call that was executing when its process died becomes UNKNOWN if it may have had an effect; its
`reconcile` handler, or a person, says what happened. One that only reads, or is idempotent, is tried
again on the same call.
"""

from __future__ import annotations

import asyncio
import logging

from toolgate.errors import ConflictError
from toolgate.kernel.call import Call, Status
from toolgate.kernel.output import ToolOutput
from toolgate.kernel.payload import encode
from toolgate.kernel.tool import ToolDefinition, is_async
from toolgate.pipeline import record
from toolgate.pipeline.binding import input_of
from toolgate.pipeline.driver import Driver
from toolgate.pipeline.execute import decode
from toolgate.pipeline.walk import Walk
from toolgate.ports.store import CallQuery

BATCH = 100
RECONCILER = "reconcile"
log = logging.getLogger("toolgate.recovery")


class Recovery:
    """Looks after the calls of dead owners. Several processes may do so at once: the first commit wins."""

    def __init__(self, driver: Driver, walk: Walk) -> None:
        self._driver = driver
        self._walk = walk
        self._reconciled: set[tuple[str, str]] = set()

    async def recover(self) -> None:
        """Settle what can be settled about every orphaned or unknown call this process knows the tool of."""
        for call in await self._driver.store.orphans(limit=BATCH):
            try:
                await self._take_over(call)
            except ConflictError:
                log.debug("call %s was recovered by another process", call.id)
        if any(tool.reconcile is not None for tool in self._driver.registry):
            await self._reconcile_all()

    async def _take_over(self, call: Call) -> None:
        driver = self._driver
        tool = driver.registry.find(call.tool_name)
        retriable = not call.has_effects or call.idempotent
        if retriable and call.undo_of is None:
            if tool is not None and tool.can_retry and tool.hash == call.definition_hash:
                driver.spawn(self._retry(call, tool))
            return  # a process that holds this very tool will try it again
        error = "The process that ran this call died; whether its effect happened is unknown."
        await driver.commit(record.failed(call, now=driver.now(), status=Status.UNKNOWN, code="unknown", error=error))

    async def _retry(self, call: Call, tool: ToolDefinition) -> None:
        try:
            await self._walk.retry(call, tool)
        except ConflictError:
            log.debug("call %s is retried by another process", call.id)

    async def _reconcile_all(self) -> None:
        query = CallQuery(statuses=frozenset({Status.UNKNOWN}), limit=BATCH)
        for call in await self._driver.store.calls(query):
            tool = self._driver.registry.find(call.tool_name)
            key = (call.project, call.id)
            if tool is None or tool.reconcile is None or call.undo_of is not None or key in self._reconciled:
                continue
            self._reconciled.add(key)
            try:
                await self._reconcile(call, tool)
            except ConflictError:
                log.debug("call %s was settled by somebody else", call.id)

    async def _reconcile(self, call: Call, tool: ToolDefinition) -> None:
        """Ask the tool what its interrupted run did; None or an error leaves it to a person."""
        driver = self._driver
        assert tool.reconcile is not None
        try:
            async with asyncio.timeout(tool.timeout_seconds):
                given = input_of(call)
                found = tool.reconcile(given) if is_async(tool.reconcile) else asyncio.to_thread(tool.reconcile, given)
                output = await found
            if output is not None and not isinstance(output, ToolOutput):
                raise TypeError("reconcile returns a ToolOutput or None")
            result = None if output is None else encode(output.data)
        except Exception as error:  # noqa: BLE001  # whatever it raises, the outcome stays unknown
            log.warning("reconciling call %s failed with %s; a person must settle it", call.id, type(error).__name__)
            return
        if output is None:
            return
        await driver.commit(
            record.settled(
                call,
                now=driver.now(),
                happened=output.success,
                by=RECONCILER,
                reason=driver.masker.text(output.error or "the tool's reconcile handler found out"),
                result=result,
                shown=driver.masker(decode(result)),
            )
        )
