"""Calls, approvals and tools as the wire shows them: eight statuses, upper-case risks, masked values."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import orjson

from toolgate.gate import Gate
from toolgate.kernel.approval import Approval, ApprovalStatus
from toolgate.kernel.artifact import deed_of
from toolgate.kernel.call import Call, Status
from toolgate.kernel.delegation import Delegation
from toolgate.kernel.grant import Grant
from toolgate.kernel.output import Result
from toolgate.kernel.tool import ToolDefinition
from toolgate.pipeline.people.undoing import UndoReport
from toolgate.wire.brakes import BrakeRecord, BrakesAnswer
from toolgate.wire.delegations import DelegationRecord
from toolgate.wire.schemas import (
    ApprovalRecord,
    ExecuteAnswer,
    Execution,
    ExecutionRecord,
    GrantRecord,
    NoteRecord,
    ToolInfo,
    UndoRunAnswer,
    UndoStepRecord,
    UseRecord,
)

WIRE_STATUS: dict[Status, Any] = {
    Status.PENDING: "pending",
    Status.AWAITING_APPROVAL: "awaiting_approval",
    Status.APPROVED: "approved",
    Status.EXECUTING: "executing",
    Status.COMPLETED: "completed",
    Status.FAILED: "failed",
    Status.DENIED: "failed",
    Status.UNKNOWN: "failed",
    Status.REJECTED: "rejected",
    Status.CANCELLED: "rejected",
    Status.TIMEOUT: "rejected",
}
"""What an answer calls a status. A timeout answers `rejected`, with the error type `timeout`."""

ROW_STATUS: dict[Status, Any] = WIRE_STATUS | {Status.TIMEOUT: "timeout"}
"""What a stored call calls it: here a timeout has its own word."""

APPROVAL_STATUS: dict[ApprovalStatus, Any] = {
    ApprovalStatus.PENDING: "pending",
    ApprovalStatus.APPROVED: "approved",
    ApprovalStatus.DENIED: "rejected",
    ApprovalStatus.EXPIRED: "timeout",
}


def execution(result: Result) -> Execution:
    """What who asked gets: the real result."""
    return Execution(
        success=result.success,
        tool_id=result.call_id,
        tool_name=result.tool_name,
        status=WIRE_STATUS[result.status],
        internal_status=result.status.value,
        result=result.data,
        error=_error(result.status, result.error_code, result.error),
        error_type=error_type(result.status, result.error_code),
        rule=result.rule,
        reason=result.reason,
        timed_out=result.timed_out,
        approval_id=result.approval_id,
        execution_time_ms=_milliseconds(result.duration_ms),
    )


def executed(result: Result, asked_as: str | None) -> ExecuteAnswer:
    """What who asked for a call gets, with the id they asked under where there was one.

    The same request sent again is not said to have joined: it is the same call, and is answered alike.
    """
    return ExecuteAnswer(**dict(execution(result)), joined=result.joined and result.call_id != asked_as)


def _error(status: Status, code: str | None, error: str | None) -> str | None:
    return f"timeout: {error}" if error_type(status, code) == "timeout" and status is Status.TIMEOUT else error


def _milliseconds(duration_ms: float | None) -> int | None:
    return None if duration_ms is None else round(duration_ms)


def error_type(status: Status, code: str | None) -> str | None:
    """The short reason of an end: a timeout of the approval is `timeout` on the wire."""
    return "timeout" if status is Status.TIMEOUT and code != "unclaimed" else code


def record(call: Call, *, is_own: bool) -> ExecutionRecord:
    """A call as readers see it: masked, but for who asked, who gets the real result."""
    result = orjson.loads(call.result) if is_own and call.result is not None else call.shown_result
    return ExecutionRecord(
        success=call.status is Status.COMPLETED,
        tool_id=call.id,
        tool_name=call.tool_name,
        status=ROW_STATUS[call.status],
        internal_status=call.status.value,
        placement=call.placement,
        result=result,
        error=_error(call.status, call.error_code, call.error),
        error_type=error_type(call.status, call.error_code),
        rule=call.rule,
        reason=call.reason,
        timed_out=call.timed_out,
        approval_id=call.approval_id,
        project_id=call.project,
        session_id=call.context.session_id,
        run_id=call.context.run_id,
        step_id=call.context.step_id,
        user=call.context.user,
        requester=call.context.principal,
        tool_params=call.shown,
        risk_level=risk(call.risk),
        requires_approval=call.approval_id is not None,
        approved_by=call.approved_by,
        runner=call.runner,
        attempt=call.attempt,
        effect_key=call.effect_key or call.held_key or None,
        repeat_of=call.repeat_of,
        settled_by=call.settled_by,
        undo_of=call.undo_of,
        unchecked=call.unchecked,
        parent_id=call.context.parent_call_id,
        artifacts=list(call.artifacts) if is_own else [],
        execution_time_ms=_milliseconds(call.duration_ms),
        created_at=call.created_at,
        started_at=call.started_at,
        approved_at=call.approved_at,
        completed_at=call.completed_at,
    )


def undo_report(report: UndoReport) -> UndoRunAnswer:
    """What undoing a run did, or would do."""
    steps = [
        UndoStepRecord(
            tool_id=one.call_id,
            tool_name=one.tool_name,
            step=one.step.value,
            reason=one.reason,
            unchecked=one.unchecked,
        )
        for one in report.steps
    ]
    return UndoRunAnswer(success=report.success, run_id=report.run_id, steps=steps)


def risk(word: str) -> Any:
    return word.upper()


def approval(one: Approval) -> ApprovalRecord:
    """A question as approvers see it."""
    return ApprovalRecord(
        approval_id=one.id,
        tool_id=one.call_id,
        tool_name=one.tool_name,
        status=APPROVAL_STATUS[one.status],
        risk_level=risk(one.risk),
        level=one.level,
        description=deed_of(one),
        arguments=one.arguments,
        preview=one.preview,
        facts=one.facts,
        digest=one.digest,
        reasons=list(one.reasons),
        claim=one.claim,
        quorum=one.terms.quorum,
        approvers=[sorted(roles) for roles in one.terms.approvers],
        including=[sorted(roles) for roles in one.terms.including],
        votes=[
            NoteRecord(by=note.who, at=note.at, text=note.text, on_behalf_of=note.on_behalf_of, roles=list(note.roles))
            for note in one.votes
        ],
        comments=[NoteRecord(by=note.by, at=note.at, text=note.text) for note in one.comments],
        edited_from=one.edited_from,
        difference=one.difference,
        confidence=one.confidence,
        factors=list(one.factors),
        requester=one.requester,
        user=one.user,
        session_id=one.session_id,
        run_id=one.run_id,
        undoable=one.undoable,
        undo_ttl_s=one.undo_ttl_s,
        requires_reason=one.requires_reason,
        timeout_seconds=(one.expires_at - one.created_at).total_seconds(),
        created_at=one.created_at,
        expires_at=one.expires_at,
        decided_by=one.decided_by,
        decided_at=one.decided_at,
        reason=one.reason,
    )


def _parameter(schema: Any) -> dict[str, Any]:
    """What a parameter is in a few words; `input_schema` has all of them."""
    return {word: schema[word] for word in ("type", "description") if isinstance(schema, dict) and word in schema}


def tool_info(tool: ToolDefinition, timeout_s: float) -> ToolInfo:
    """A tool as callers see it. `timeout_s` is how long a person may take; 0 where none is asked."""
    schema = dict(tool.input_schema)
    return ToolInfo(
        name=tool.name,
        description=tool.description,
        parameters={name: _parameter(one) for name, one in schema.get("properties", {}).items()},
        input_schema=schema,
        requires_approval=timeout_s > 0,
        risk_level=risk(tool.risk.value),
        timeout_seconds=timeout_s,
        placement=tool.runs_in.value,
        undoable=tool.undoable,
    )


def grant(one: Grant, now: datetime) -> GrantRecord:
    """A remembered yes as people see it."""
    return GrantRecord(
        grant_id=one.id,
        project_id=one.project,
        tool_name=one.tool_name,
        requester=one.requester,
        user=one.user,
        pattern=dict(one.shown),
        level=one.level,
        approval_id=one.approval_id,
        granted_by=one.granted_by,
        created_at=one.created_at,
        expires_at=one.expires_at,
        max_uses=one.max_uses,
        uses=len(one.used),
        used=[UseRecord(tool_id=use.call_id, at=use.at) for use in one.used],
        is_live=one.is_valid and one.is_live(now),
        is_valid=one.is_valid,
        invalid_because=one.invalid_because,
        revoked_at=one.revoked_at,
        revoked_by=one.revoked_by,
        reason=one.reason,
    )


def delegation(one: Delegation, now: datetime) -> DelegationRecord:
    """A lent vote as people see it."""
    return DelegationRecord(
        delegation_id=one.id,
        project_id=one.project,
        giver=one.giver,
        delegate=one.delegate,
        tools=list(one.tools),
        reason=one.reason,
        created_at=one.created_at,
        expires_at=one.expires_at,
        is_live=one.is_valid and one.is_live(now),
        is_valid=one.is_valid,
        invalid_because=one.invalid_because,
        ended_at=one.ended_at,
        ended_by=one.ended_by,
    )


def brakes(gate: Gate, project: str | None) -> BrakesAnswer:
    """The brakes that people of a project see: everybody's, and those in it; of all projects for None."""
    pulled = gate.brakes
    seen = [brake for brake in pulled.active if project is None or brake.scope.project in (None, project)]
    records = [
        BrakeRecord(
            mode=brake.mode.value,
            **brake.scope._asdict(),
            by=brake.by,
            at=brake.at,
            reason=brake.reason,
            holds=list(brake.holds),
        )
        for brake in seen
    ]
    return BrakesAnswer(mode=pulled.mode.value, brakes=records, fault=pulled.fault)
