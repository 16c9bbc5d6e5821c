"""What a dead process left behind: nothing is guessed, and nothing with effects runs twice.

A call that was executing when its process died becomes UNKNOWN if it may have had an effect; its
`reconcile` handler (`reconciling`), or a person, says what happened. One that only reads, or is idempotent, is tried
again on the same call. One that nobody had begun to run, approved or still being prepared, is taken over by one
process that can run it, and goes on there as it would have: judged again before it runs.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta

from toolgate.errors import ConflictError
from toolgate.kernel.call import Call, Status
from toolgate.kernel.change import Change, Durability
from toolgate.kernel.event import ENDED
from toolgate.kernel.output import Result
from toolgate.kernel.record import evolve
from toolgate.kernel.tool import ToolDefinition
from toolgate.pipeline import steps
from toolgate.pipeline.driver import Driver
from toolgate.pipeline.evidence import is_told
from toolgate.pipeline.flight import Flights
from toolgate.pipeline.plan import CALLER, REMOTE
from toolgate.pipeline.recording import Recorder
from toolgate.pipeline.remote.leasing import denial_of
from toolgate.pipeline.time.reconciling import Reconciling
from toolgate.ports.store import ApprovalQuery

BATCH = 100
log = logging.getLogger("toolgate.recovery")


class Recovery:
    """Looks after the calls of dead owners. Several processes may do so at once: the first commit wins."""

    def __init__(self, driver: Driver, flights: Flights, recorder: Recorder, offer: Callable[[Call], None]) -> None:
        self._driver = driver
        self._flights = flights
        self._recorder = recorder
        self._offer = offer
        self.reconciling = Reconciling(driver)

    async def recover(self) -> None:
        """Settle what can be settled about every orphaned or unknown call this process knows the tool of."""
        await self.look_after_orphans()
        await self.reconciling.ask_all()

    async def look_after_orphans(self) -> None:
        """Take up, try again or give up the calls of dead processes."""
        await self._recorder.record_again()
        await self._look_after(Status.EXECUTING, self._take_over)
        for status in (Status.PENDING, Status.APPROVED):
            await self._look_after(status, self._inherit)
        if self._driver.on_asked is not None:
            await self._look_after(Status.AWAITING_APPROVAL, self._ask_again)
        if self._driver.on_recovered is not None:
            await self._driver.on_recovered()

    async def _look_after(self, status: Status, handle: Callable[[Call], Awaitable[None]]) -> None:
        seen: set[tuple[str, str, int]] = set()
        while True:
            orphans = await self._driver.store.orphans(status=status, limit=BATCH + len(seen))
            fresh = [call for call in orphans if (call.project, call.id, call.version) not in seen]
            for call in fresh:
                seen.add((call.project, call.id, call.version))
                try:
                    await handle(call)
                except ConflictError:
                    log.debug("call %s was recovered by another process", call.id)
            if len(fresh) < BATCH:
                return

    async def _inherit(self, call: Call) -> None:
        """Take over a call of a dead process that nobody began to run, where it can run here."""
        driver = self._driver
        if not driver.can_run(call):
            return
        # Not due at once: whoever handles what is due would change the row under the one who takes it up.
        due_at = None if call.due_at is None else driver.now() + timedelta(seconds=driver.grace_s(call.project))
        self._offer(await self._own(call, driver.owner, due_at))

    async def _own(self, call: Call, owner: str | None, due_at: datetime | None) -> Call:
        """Give a call to another owner; the commit lets one process do so."""
        taken = evolve(call.stay(), owner=owner, due_at=due_at)
        change = Change(project=call.project, at=self._driver.now(), call=taken, expect=call.version)
        await self._driver.commit(evolve(change, durability=Durability.COMMITTED))
        return taken

    async def _ask_again(self, call: Call) -> None:
        """Put the question of a dead process to this one's channels; one that no channel carried is left to itself."""
        driver = self._driver
        found = await driver.store.approvals(ApprovalQuery(project=call.project, id=call.approval_id))
        is_silent = found[0].silent
        await self._own(call, None if is_silent else driver.owner, call.due_at)
        assert driver.on_asked is not None
        if not is_silent:
            driver.on_asked(found[0])

    async def _take_over(self, call: Call) -> None:
        driver = self._driver
        tool = driver.realm(call.project).registry.find(call.tool_name)
        if call.placement in REMOTE or (call.placement == CALLER and call.fence is not None):
            await self._adopt(call, tool)
            return
        if call.placement == CALLER:
            await self._give_up(call, "whether its effect happened is unknown" if call.has_effects else "make it again")
            return
        retriable = not call.has_effects or call.idempotent
        if not retriable or call.undo_of is not None:
            await self._give_up(call, "whether its effect happened is unknown")
        elif tool is not None and tool.can_retry and tool.hash == call.definition_hash:
            await self.try_again(call, tool)
        # Otherwise a process that holds this very tool will try it again.

    async def _adopt(self, call: Call, tool: ToolDefinition | None) -> None:
        """Look after a call that runs elsewhere: its runner may live on, so its lease decides, not its owner's death.

        One without a runner was sent to nobody, and is offered again whatever its effects.
        """
        if tool is None or tool.hash != call.definition_hash:
            return  # a process that holds this very tool will look after it; its deadline ends it otherwise
        if call.runner is None:
            await self.try_again(call, tool)
        else:
            kept = evolve(call.stay(), owner=self._driver.owner)
            await self._driver.commit(
                Change(project=call.project, at=self._driver.now(), call=kept, expect=call.version)
            )

    async def try_again(self, call: Call, tool: ToolDefinition) -> None:
        """Make another attempt, if the rules of now still allow it."""
        driver = self._driver
        if driver.refresh is not None:
            await driver.refresh()
        mode, plan, now = driver.store.brakes.serial, driver.plan_of(tool, call.context), driver.now()
        has_ended = await is_told(driver.store, call, ENDED)
        denial = "its events tell that it has ended" if has_ended else await denial_of(driver, call, plan, now)
        if denial is not None:
            await self._give_up(call, f"it is not tried again, because it is denied now: {denial}")
            return
        undo = await driver.store.undo(call.project, call.undo_of) if call.undo_of is not None else None
        is_remote = call.placement in REMOTE
        again = steps.reclaim(
            call,
            now=now,
            owner=driver.owner,
            mode=mode,
            fence=driver.new_id() if is_remote else None,
            due_at=now + timedelta(seconds=plan.offer_s) if is_remote else None,
        )
        started = self._flights.launch(again, plan, undo)
        if isinstance(started, asyncio.Future):
            started.add_done_callback(_hear)
            if is_remote:
                await started  # only until it is offered

    async def _give_up(self, call: Call, why: str) -> None:
        driver = self._driver
        status, code = (Status.UNKNOWN, "unknown") if call.has_effects else (Status.FAILED, "denied")
        if call.placement == CALLER and not call.has_effects:
            code = "execution_failed"
        error = f"The process that ran this call died; {why}."
        await driver.commit(steps.fail(call, now=driver.now(), status=status, code=code, error=error))


def _hear(attempt: asyncio.Future[Result]) -> None:
    """Nobody waits for an attempt made here; hear what it raised, so that nobody is told it was lost."""
    error = None if attempt.cancelled() else attempt.exception()
    if error is not None:
        log.debug("an attempt was not made or not recorded: %s", type(error).__name__)
