"""Taking a call's effect back. An undo is a call of its own, on the same path and in the same audit."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import NamedTuple

from toolgate.errors import ConflictError, NotAllowedError
from toolgate.kernel.call import Call, Status
from toolgate.kernel.change import Change
from toolgate.kernel.context import Context
from toolgate.kernel.narration import tell
from toolgate.kernel.output import Result, result_of
from toolgate.kernel.payload import encode
from toolgate.kernel.tool import ToolDefinition
from toolgate.kernel.undo import UndoMetadata, UndoRecord, UndoState
from toolgate.pipeline import record
from toolgate.pipeline.binding import is_unchanged, metadata_of
from toolgate.pipeline.driver import Driver
from toolgate.pipeline.walk import Walk
from toolgate.ports.store import CallQuery

PAGE = 500


class UndoReport(NamedTuple):
    """What undoing a run did: the undo call's result for each call tried, last call first."""

    run_id: str
    results: tuple[Result, ...]
    skipped: tuple[str, ...]

    @property
    def success(self) -> bool:
        return all(result.success for result in self.results)


class Undoing:
    """Undoes calls, one at a time, refusing whatever it cannot undo truthfully."""

    def __init__(self, driver: Driver, walk: Walk) -> None:
        self._driver = driver
        self._walk = walk

    async def undo(self, project: str, call_id: str, context: Context, *, force: bool = False) -> Result:
        """Return the undo call's result. A refusal is a FAILED result with `undo_failed` or `undo_conflict`.

        Raises NotFoundError for an unknown call. `force` runs it although the world changed since.
        """
        driver = self._driver
        original = await driver.read(project, call_id)
        call = Call.make(
            id=driver.new_id(),
            project=project,
            tool_name=original.tool_name,
            context=context.evolve(project=project, run_id=context.run_id or original.context.run_id),
            created_at=driver.now(),
            undo_of=call_id,
            forced=force,
            policy_revision=driver.policy_of(project).revision,
        )
        tool = driver.realm(project).registry.find(original.tool_name)
        undo = await driver.store.undo(project, call_id)
        refusal = self._refusal(original, tool, undo)
        if refusal is not None or tool is None or undo is None:
            return await self._refuse(call, "undo_failed", refusal or "there is nothing to undo")
        if undo.fingerprint is not None and not force and not await is_unchanged(tool, undo):
            return await self._refuse(
                call, "undo_conflict", "the state has changed since; look at it, or force the undo"
            )
        call = call.evolve(
            definition_hash=tool.hash,
            has_effects=True,
            placement=tool.runs_in.value,
            shown={"undo_of": call_id, "forced": force},
        )
        claimed = undo.evolve(state=UndoState.CLAIMED, claimed_by=call.id)
        return await self._walk.submit_undo(call, tool, claimed)

    async def kept(self, project: str, call_id: str) -> UndoMetadata | None:
        """Return what is kept for the undo of a call; None where nothing is, or it was used."""
        undo = await self._driver.store.undo(project, call_id)
        if undo is None or undo.state is not UndoState.AVAILABLE or undo.is_expired(self._driver.now()):
            return None
        return metadata_of(undo)

    async def adopt(self, metadata: UndoMetadata, context: Context) -> None:
        """Bring in a call made elsewhere by the undo data that was kept of it; one that is known is left alone."""
        driver, now, project = self._driver, self._driver.now(), context.project
        call_id, tool_name = str(metadata.action_id), metadata.tool_name
        tool = driver.realm(project).registry.find(tool_name)
        call = Call.make(
            id=call_id,
            project=project,
            tool_name=tool_name if tool is None else tool.name,
            context=context,
            created_at=now,
            completed_at=now,
            status=Status.COMPLETED,
            version=1,
            policy_revision=driver.policy_of(project).revision,
        )
        ttl_s = driver.undo_ttl_s if tool is None else driver.undo_ttl(tool, project)
        data = encode(metadata.undo_data, what="undo data")
        undo = record.undo_record(call, data=data, now=metadata.created_at, ttl_s=ttl_s, state=UndoState.AVAILABLE)
        undo = undo.evolve(expires_at=now + timedelta(seconds=ttl_s))
        event = tell(call, "tool.adopted", {"kept_since": metadata.created_at})
        change = Change.make(project=project, at=now, call=call, undo=undo, events=(event,))
        with contextlib.suppress(ConflictError):
            await driver.commit(change)

    def _refusal(self, original: Call, tool: ToolDefinition | None, undo: UndoRecord | None) -> str | None:
        """Why this call cannot be undone, or None."""
        if original.undo_of is not None:
            raise NotAllowedError("An undo is not undone; run the tool again.")
        if original.status is not Status.COMPLETED:
            return f"it is {original.status}, not COMPLETED"
        if undo is not None and undo.state is UndoState.DONE:
            return "it was undone already"
        if undo is not None and undo.state is UndoState.CLAIMED:
            return "another undo of it is running"
        if undo is None or undo.is_expired(self._driver.now()):
            return "no undo data is kept for it (the tool is not undoable, or its time is over)"
        if tool is None:
            return "its tool is not registered here"
        if tool.undo_handler is None:
            return "its tool has no undo handler"
        return None

    async def _refuse(self, call: Call, code: str, reason: str) -> Result:
        text = f"Call {call.undo_of} (`{call.tool_name}`) was not undone: {reason}."
        change = record.failed(call, now=self._driver.now(), status=Status.FAILED, code=code, error=text)
        await self._driver.commit(change)
        assert change.call is not None
        return result_of(change.call)

    async def undo_run(
        self,
        run_id: str,
        context: Context,
        undo_one: Callable[..., Awaitable[Result]],
        *,
        force: bool,
        skip_failures: bool,
    ) -> UndoReport:
        """Undo the calls of a run that can be undone, last first. `skipped` are those with nothing to undo."""
        calls = await self._calls_of(context.project, run_id)
        results: list[Result] = []
        skipped: list[str] = []
        for call in reversed(calls):
            undo = await self._driver.store.undo(call.project, call.id)
            if undo is None or undo.state is not UndoState.AVAILABLE:
                skipped.append(call.id)
                continue
            result = await undo_one(call.id, context=context, force=force)
            results.append(result)
            if not result.success and not skip_failures:
                break
        return UndoReport(run_id, tuple(results), tuple(skipped))

    async def _calls_of(self, project: str, run_id: str) -> list[Call]:
        found: list[Call] = []
        done = frozenset({Status.COMPLETED})
        while True:
            after = found[-1] if found else None
            query = CallQuery(project=project, run_id=run_id, statuses=done, after=after, limit=PAGE)
            page = await self._driver.store.calls(query)
            found += page
            if len(page) < PAGE:
                return [call for call in found if call.undo_of is None]
