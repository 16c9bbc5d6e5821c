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
from toolgate.kernel.output import Result, ToolOutput
from toolgate.kernel.payload import encode
from toolgate.kernel.policy import Facts
from toolgate.kernel.tool import ToolDefinition, is_async
from toolgate.pipeline import record
from toolgate.pipeline.answers import settled_undo
from toolgate.pipeline.binding import input_of
from toolgate.pipeline.driver import Driver
from toolgate.pipeline.execute import decode
from toolgate.pipeline.perform import Performer
from toolgate.pipeline.permit import permit
from toolgate.ports.store import CallQuery

BATCH = 100
RECONCILER = "reconcile"
log = logging.getLogger("toolgate.recovery")


class Recovery:
    """Looks after the calls of dead owners. Several processes may do so at once: the first commit wins."""

    def __init__(self, driver: Driver, performer: Performer) -> None:
        self._driver = driver
        self._performer = performer
        self._reconciled: set[tuple[str, str]] = set()

    async def recover(self) -> None:
        """Settle what can be settled about every orphaned or unknown call this process knows the tool of."""
        await self._performer.record_again()
        seen: set[tuple[str, str, int]] = set()
        while True:
            orphans = await self._driver.store.orphans(limit=BATCH + len(seen))
            fresh = [call for call in orphans if (call.project, call.id, call.version) not in seen]
            for call in fresh:
                seen.add((call.project, call.id, call.version))
                try:
                    await self._take_over(call)
                except ConflictError:
                    log.debug("call %s was recovered by another process", call.id)
            if len(fresh) < BATCH:
                break
        realms = (self._driver.home, *self._driver.realms.values())
        if any(tool.reconcile is not None for realm in realms for tool in realm.registry):
            await self._reconcile_all()

    async def _take_over(self, call: Call) -> None:
        driver = self._driver
        tool = driver.realm(call.project).registry.find(call.tool_name)
        retriable = not call.has_effects or call.idempotent
        if not retriable or call.undo_of is not None:
            await self._give_up(call, "whether its effect happened is unknown")
        elif tool is not None and tool.can_retry and tool.hash == call.definition_hash:
            await self._try_again(call, tool)
        # Otherwise a process that holds this very tool will try it again.

    async def _try_again(self, call: Call, tool: ToolDefinition) -> None:
        """Make another attempt, if the rules of now still allow it."""
        driver = self._driver
        mode, route = driver.store.mode, driver.route(tool, call.project)
        denial = permit(call, tool, route.policy, route.rules, Facts(mode, driver.now())).denial
        if denial is not None:
            await self._give_up(call, f"it is not tried again, because it is denied now: {denial.reason}")
            return
        started = self._performer.restart(call, tool, mode)
        if isinstance(started, asyncio.Future):
            started.add_done_callback(_hear)

    async def _give_up(self, call: Call, why: str) -> None:
        driver = self._driver
        status, code = (Status.UNKNOWN, "unknown") if call.has_effects else (Status.FAILED, "denied")
        error = f"The process that ran this call died; {why}."
        await driver.commit(record.failed(call, now=driver.now(), status=status, code=code, error=error))

    async def _reconcile_all(self) -> None:
        last: Call | None = None
        while True:
            query = CallQuery(statuses=frozenset({Status.UNKNOWN}), after=last, limit=BATCH)
            unknown = await self._driver.store.calls(query)
            for call in unknown:
                await self._reconcile_once(call)
            if len(unknown) < BATCH:
                return
            last = unknown[-1]

    async def _reconcile_once(self, call: Call) -> None:
        tool = self._driver.realm(call.project).registry.find(call.tool_name)
        key = (call.project, call.id)
        if tool is None or tool.reconcile is None or call.undo_of is not None or key in self._reconciled:
            return
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
        change = record.settled(
            call,
            now=driver.now(),
            happened=output.success,
            by=RECONCILER,
            reason=driver.masker.text(output.error or "the tool's reconcile handler found out"),
            result=result,
            shown=driver.masker(decode(result)),
        )
        await driver.commit(change.evolve(undo=await settled_undo(driver, call, output.success)))


def _hear(attempt: asyncio.Future[Result]) -> None:
    """Nobody waits for an attempt made here; hear what it raised, so that nobody is told it was lost."""
    error = None if attempt.cancelled() else attempt.exception()
    if error is not None:
        log.debug("an attempt was not made or not recorded: %s", type(error).__name__)
