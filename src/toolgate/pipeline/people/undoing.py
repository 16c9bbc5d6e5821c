"""Taking a call's effect back. An undo is a call of its own, on the same path and in the same audit."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import NamedTuple

from toolgate.errors import ConflictError, NotAllowedError, NotFoundError, UsageError
from toolgate.kernel.call import Call, Status
from toolgate.kernel.change import Change
from toolgate.kernel.context import Context
from toolgate.kernel.effect import UNDO
from toolgate.kernel.output import Result, result_of
from toolgate.kernel.payload import encode
from toolgate.kernel.record import evolve
from toolgate.kernel.ruling import UNCHECKED_REFUSED
from toolgate.kernel.tool import Placement, ToolDefinition
from toolgate.kernel.undo import UndoMetadata, UndoRecord, UndoState
from toolgate.pipeline import Pipeline, steps
from toolgate.pipeline.binding import is_unchanged, metadata_of
from toolgate.pipeline.driver import Driver
from toolgate.ports.store import CallQuery

PAGE = 500
SHOWN = 5
"""How many runs are named where one is unknown."""


class Step(StrEnum):
    """What became of one call when its run was undone, or would."""

    UNDONE = "undone"
    UNDOABLE = "undoable"  # in a preview: it would be undone
    NOTHING = "nothing"  # it had no effect, or was undone before
    FAILED = "failed"  # its effect stays, for the reason given
    LEFT = "left"  # not tried, because one after it failed


class UndoStep(NamedTuple):
    """One call of a run: what became of it and why. `result` is the undo call's, where there was one.

    `unchecked`: nobody could see, or can, whether the state has changed since.
    """

    call_id: str
    tool_name: str
    step: Step
    reason: str = ""
    result: Result | None = None
    unchecked: bool = False


class UndoReport(NamedTuple):
    """What undoing a run did, or would do: one step for each of its calls, last effect first."""

    run_id: str
    steps: tuple[UndoStep, ...]
    is_preview: bool = False

    @property
    def results(self) -> tuple[Result, ...]:
        """The results of the undo calls that were made."""
        return tuple(step.result for step in self.steps if step.result is not None)

    @property
    def skipped(self) -> tuple[str, ...]:
        """The calls there was nothing to undo of."""
        return tuple(step.call_id for step in self.steps if step.step is Step.NOTHING)

    @property
    def success(self) -> bool:
        """Whether no effect is left that should not be."""
        return not any(step.step in (Step.FAILED, Step.LEFT) for step in self.steps)


class Undoing:
    """Undoes calls, one at a time, refusing whatever it cannot undo truthfully."""

    def __init__(self, driver: Driver, pipeline: Pipeline) -> None:
        self._driver = driver
        self._pipeline = pipeline

    async def undo(self, project: str, call_id: str, context: Context, *, force: bool = False) -> Result:
        """Return the undo call's result. A refusal is a FAILED result with `undo_failed` or `undo_conflict`.

        Raises NotFoundError for an unknown call. `force` runs it although the world changed since.
        """
        driver = self._driver
        if driver.refresh is not None:
            await driver.refresh()
        original = await driver.read(project, call_id)
        run_id = context.run_id
        if run_id is None or context.claimed:  # an agent leaves no braked run by naming another
            run_id = original.context.run_id or run_id
        call = Call(
            id=driver.new_id(),
            project=project,
            tool_name=original.tool_name,
            context=evolve(context, project=project, run_id=run_id),
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
        call = evolve(
            call,
            definition_hash=tool.hash,
            has_effects=True,
            placement=_placement_of(tool).value,
            shown={"undo_of": call_id, "forced": force} | ({"unchecked": True} if _is_unchecked(tool, undo) else {}),
            effect_key=None if original.effect_key is None else UNDO + original.effect_key,
            effect_from=original.effect_from,
        )
        claimed = evolve(undo, state=UndoState.CLAIMED, claimed_by=call.id)
        return await self._pipeline.undo(call, tool, claimed)

    async def kept(self, project: str, call_id: str) -> UndoMetadata | None:
        """Return what is kept for the undo of a call; None where nothing is, or it was used."""
        undo = await self._driver.store.undo(project, call_id)
        if undo is None or undo.state is not UndoState.AVAILABLE or undo.is_expired(self._driver.now()):
            return None
        return metadata_of(undo)

    async def adopt(self, metadata: UndoMetadata, context: Context) -> None:
        """Bring in a call made elsewhere by the undo data that was kept of it; one that is known is left alone."""
        driver, project = self._driver, context.project
        tool = driver.realm(project).registry.find(metadata.tool_name)
        change = steps.adopt(
            context,
            id=str(metadata.action_id),
            tool_name=metadata.tool_name if tool is None else tool.name,
            data=encode(metadata.undo_data, what="undo data"),
            kept_since=metadata.created_at,
            now=driver.now(),
            ttl_s=driver.undo_ttl_s if tool is None else driver.undo_ttl(tool, context),
            policy_revision=driver.policy_of(project).revision,
        )
        with contextlib.suppress(ConflictError):
            await driver.commit(change)

    def _refusal(self, original: Call, tool: ToolDefinition | None, undo: UndoRecord | None) -> str | None:
        """Why this call cannot be undone, or None."""
        if original.undo_of is not None:
            raise NotAllowedError("An undo cannot be undone; run the tool again.")
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
        change = steps.fail(call, now=self._driver.now(), status=Status.FAILED, code=code, error=text)
        await self._driver.commit(change)
        assert change.call is not None
        return result_of(change.call)

    async def undo_run(
        self,
        run_id: str,
        context: Context,
        undo_one: Callable[..., Awaitable[Result]] | None,
        *,
        force: bool,
        skip_failures: bool,
    ) -> UndoReport:
        """Undo the calls of a run, last effect first; without `undo_one` only say what would happen.

        Where one cannot be undone, the earlier ones are left alone unless failures are to be skipped: what was done
        before it may be what it stands on. Raises NotFoundError for a run that made no call.
        """
        if not isinstance(run_id, str) or not run_id:  # none would stand for any run
            raise UsageError("A run is named by its id, a string that is not empty.")
        calls = await self._calls_of(context.project, run_id)
        if not calls:
            await self._check_known(context.project, run_id)
        steps: list[UndoStep] = []
        is_stopped = False
        for call in calls:
            step = await self._look(call, context, force=force)
            if is_stopped and step.step is Step.UNDOABLE:
                step = step._replace(step=Step.LEFT, reason="an effect after it could not be taken back")
            elif step.step is Step.UNDOABLE and undo_one is not None:
                step = _after(step, await undo_one(call.id, context=context, force=force))
            is_stopped |= step.step is Step.FAILED and not skip_failures
            steps.append(step)
        report = UndoReport(run_id, tuple(steps), undo_one is None)
        if undo_one is not None:
            await self._tell(report, context)
        return report

    async def _check_known(self, project: str, run_id: str) -> None:
        """Raise NotFoundError, with the runs there are, where nothing was ever called for this one."""
        store = self._driver.store
        if await store.calls(CallQuery(project=project, run_id=run_id, limit=1)):
            return
        latest = await store.calls(CallQuery(project=project, newest_first=True, limit=PAGE))
        runs = list(dict.fromkeys(call.context.run_id for call in latest if call.context.run_id is not None))
        known = f"its latest runs are: {', '.join(run[:64] for run in runs[:SHOWN])}" if runs else "it has no runs"
        raise NotFoundError(f"There is no run {run_id[:64]!r} in project `{project}`; {known}.")

    async def _look(self, call: Call, context: Context, *, force: bool) -> UndoStep:
        """Say whether one call of a run can be undone now."""
        step = UndoStep(call.id, call.tool_name, Step.UNDOABLE)
        tool = self._driver.realm(call.project).registry.find(call.tool_name)
        undo = await self._driver.store.undo(call.project, call.id)
        if undo is not None and undo.state is UndoState.DONE:
            return step._replace(step=Step.NOTHING, reason="it was undone already")
        if call.status is Status.COMPLETED and not call.has_effects and undo is None:
            return step._replace(step=Step.NOTHING, reason="it only reads")
        refusal = self._refusal(call, tool, undo)
        if refusal is not None:
            return step._replace(step=Step.FAILED, reason=refusal)
        assert tool is not None
        assert undo is not None
        if undo.fingerprint is not None and not force and not await is_unchanged(tool, undo):
            return step._replace(step=Step.FAILED, reason="the state has changed since; look at it, or force the undo")
        if not _is_unchecked(tool, undo):
            return step
        if self._driver.plan_of(tool, context).stance.refuses_unchecked_undo and not force:
            return step._replace(step=Step.FAILED, reason=UNCHECKED_REFUSED)
        return step._replace(unchecked=True)

    async def _tell(self, report: UndoReport, context: Context) -> None:
        by_step = {step: [each.call_id for each in report.steps if each.step is step] for step in Step}
        data = {
            "run_id": report.run_id,
            "success": report.success,
            "undone": by_step[Step.UNDONE],
            "failed": by_step[Step.FAILED],
            "left": by_step[Step.LEFT],
            "nothing": by_step[Step.NOTHING],
            "unchecked": [each.call_id for each in report.steps if each.step is Step.UNDONE and each.unchecked],
            "by": context.user or context.principal,
        }
        event = ("run.undone", None, data, None)
        await self._driver.commit(Change(project=context.project, at=self._driver.now(), events=(event,)))

    async def _calls_of(self, project: str, run_id: str) -> list[Call]:
        """The calls of a run that did something, or still may, the last effect first."""
        found: list[Call] = []
        after: Call | None = None
        while True:
            query = CallQuery(project=project, run_id=run_id, statuses=_WITH_EFFECT, after=after, limit=PAGE)
            page = await self._driver.store.calls(query)
            found += [call for call in page if call.undo_of is None]
            if len(page) < PAGE:
                found.sort(key=lambda call: call.completed_at or self._driver.now())
                return found[::-1]
            after = page[-1]


_WITH_EFFECT = frozenset(
    {Status.COMPLETED, Status.UNKNOWN, Status.EXECUTING, Status.APPROVED, Status.AWAITING_APPROVAL}
)


def _placement_of(tool: ToolDefinition) -> Placement:
    """Where an undo of this tool runs. A call of it may run at its caller; its undo handler is here."""
    return Placement.INLINE if tool.runs_in is Placement.CALLER else tool.runs_in


def _is_unchecked(tool: ToolDefinition, undo: UndoRecord) -> bool:
    """Whether nothing says how the effect was left. Whoever ran a call at a client looks there, before undoing it."""
    return undo.fingerprint is None and tool.runs_in is not Placement.CLIENT


def _after(step: UndoStep, result: Result) -> UndoStep:
    if result.success:
        return step._replace(step=Step.UNDONE, result=result)
    return step._replace(step=Step.FAILED, reason=result.error or str(result.status), result=result)
