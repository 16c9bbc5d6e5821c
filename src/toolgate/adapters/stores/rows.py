"""How records become rows and rows become records again, for every SQL store.

Readable columns are masked already; `sealed_*` columns hold the real arguments, results and undo data.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Protocol
from uuid import NAMESPACE_URL, uuid5

import orjson

from toolgate.adapters.stores.sealing import Sealer
from toolgate.kernel.approval import Approval, ApprovalStatus
from toolgate.kernel.call import Call, Status
from toolgate.kernel.context import Context, Principal
from toolgate.kernel.event import Event
from toolgate.kernel.undo import UndoRecord, UndoState

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\Z")
_dumps, _loads = orjson.dumps, orjson.loads

CALL_COLUMNS = (
    "project_id", "id", "call_id", "user_id", "principal", "session_id", "pipeline_run_id", "tool_name", "created_at",
    "approval_id", "tool_params", "result", "risk_level", "requires_approval", "status", "error", "error_type",
    "execution_time_ms", "started_at", "approved_at", "completed_at", "due_at", "version", "owner", "detail",
    "sealed_params", "sealed_result",
)  # fmt: skip
BORN = 9
"""The first columns never change after a call is inserted."""

_IN_COLUMNS = frozenset(
    {
        "project", "id", "tool_name", "context", "created_at", "arguments", "shown", "preconditions",
        "result", "shown_result", "artifacts", "risk", "status", "error", "error_code", "started_at", "approved_at",
        "completed_at", "due_at", "version", "owner",
    }
)  # fmt: skip


class Columns(Protocol):
    """A row whose columns are found by name."""

    def __getitem__(self, name: str, /) -> Any: ...


def uuid_hex(text: str) -> str:
    """The UUID of an id as 32 hex digits: its own where it is one, else one derived from it."""
    if _UUID.match(text):
        return text.replace("-", "")
    return _derived(text)


@lru_cache(maxsize=4096)
def _derived(text: str) -> str:
    return uuid5(NAMESPACE_URL, f"toolgate:id:{text}").hex


@lru_cache(maxsize=4096)
def _principal_hex(name: str) -> str:
    return Principal.of(name).id.hex


def moment(at: datetime | None) -> str | None:
    """A time as its column holds it: UTC, without offset, with microseconds."""
    return None if at is None else at.isoformat(" ", "microseconds")[:26]


def time_of(text: str | None) -> datetime | None:
    """A time as it was before it became a column."""
    return None if text is None else datetime.fromisoformat(text).replace(tzinfo=UTC)


def call_row(call: Call, sealer: Sealer) -> list[Any]:
    """Every column of a call, in the order of CALL_COLUMNS."""
    context = call.context
    row: list[Any] = [
        call.project,
        uuid_hex(call.id),
        call.id,
        _principal_hex(context.user or context.principal),
        context.principal,
        context.session_id,
        None if context.run_id is None else uuid_hex(context.run_id),
        call.tool_name,
        moment(call.created_at),
    ]
    row += call_changes(call, sealer)
    row[-2] = seal_params(call, sealer)
    return row


def call_changes(call: Call, sealer: Sealer) -> list[Any]:
    """The columns that may change, after the first BORN; `sealed_params` is left None (see `seal_params`)."""
    fields = call.__dict__
    return [
        None if call.approval_id is None else uuid_hex(call.approval_id),
        None if call.shown is None else _dumps(call.shown).decode(),
        None if call.shown_result is None else _dumps(call.shown_result).decode(),
        call.risk.upper(),
        call.approval_id is not None,
        call.status.value,
        call.error,
        call.error_code,
        None if call.duration_ms is None else round(call.duration_ms),
        moment(call.started_at),
        moment(call.approved_at),
        moment(call.completed_at),
        moment(call.due_at),
        call.version,
        call.owner,
        _dumps(
            {
                **{name: value for name, value in fields.items() if name not in _IN_COLUMNS},
                "context": _context_fields(call.context),
            }
        ).decode(),
        None,
        None if call.result is None else _seal_result(call, sealer),
    ]


def _context_fields(context: Context) -> dict[str, Any]:
    kept = {name: value for name, value in context.__dict__.items() if name not in ("host", "project", "principal")}
    if "roles" in kept:
        kept["roles"] = sorted(kept["roles"])
    return kept


def _row_name(project: str, call_id: str, what: str) -> bytes:
    return f"{what}\x00{project}\x00{call_id}".encode()


def seal_params(call: Call, sealer: Sealer) -> bytes:
    """Arguments and preconditions, sealed together for this call."""
    return sealer.seal(_pack(call.arguments, call.preconditions), _row_name(call.project, call.id, "params"))


def _seal_result(call: Call, sealer: Sealer) -> bytes:
    artifacts = _dumps(list(call.artifacts)) if call.artifacts else None
    return sealer.seal(_pack(call.result or b"", artifacts), _row_name(call.project, call.id, "result"))


def _pack(first: bytes, second: bytes | None) -> bytes:
    mark = b"\x00" if second is None else b"\x01"
    return mark + len(first).to_bytes(8, "big") + first + (second or b"")


def _unpack(packed: bytes) -> tuple[bytes, bytes | None]:
    size = int.from_bytes(packed[1:9], "big")
    return packed[9 : 9 + size], packed[9 + size :] if packed[0] else None


def call_of(row: Columns, sealer: Sealer) -> Call:
    """The call a row holds."""
    detail: dict[str, Any] = _loads(row["detail"])
    context = detail.pop("context")
    if "roles" in context:
        context["roles"] = frozenset(context["roles"])
    project, call_id = row["project_id"], row["call_id"]
    arguments, preconditions = b"{}", None
    if row["sealed_params"] is not None:  # None: forgotten by retention
        arguments, preconditions = _unpack(sealer.open(row["sealed_params"], _row_name(project, call_id, "params")))
    result: bytes | None = None
    artifacts: bytes | None = None
    if row["sealed_result"] is not None:
        result, artifacts = _unpack(sealer.open(row["sealed_result"], _row_name(project, call_id, "result")))
    if "reasons" in detail:
        detail["reasons"] = tuple(detail["reasons"])
    return Call.make(
        **detail,
        id=call_id,
        project=project,
        tool_name=row["tool_name"],
        context=Context.make(**context, project=project, principal=row["principal"]),
        created_at=time_of(row["created_at"]),
        arguments=arguments,
        preconditions=preconditions,
        shown=_json(row["tool_params"]),
        status=Status(row["status"]),
        version=row["version"],
        risk=row["risk_level"].lower(),
        approved_at=time_of(row["approved_at"]),
        owner=row["owner"],
        due_at=time_of(row["due_at"]),
        started_at=time_of(row["started_at"]),
        completed_at=time_of(row["completed_at"]),
        result=result,
        shown_result=_json(row["result"]),
        artifacts=tuple(_loads(artifacts)) if artifacts is not None else (),
        error=row["error"],
        error_code=row["error_type"],
    )


def _json(text: str | None) -> Any:
    return None if text is None else _loads(text)


APPROVAL_COLUMNS = (
    "id", "project_id", "pipeline_run_id", "action_id", "call_id", "tool_name", "approval_message", "created_at",
    "digest", "status", "decided_by", "decided_by_name", "decided_at", "expires_at", "detail",
)  # fmt: skip

_APPROVAL_DETAIL = (
    "nonce", "definition_hash", "requester", "user", "run_id", "session_id", "correlation_id", "level", "risk",
    "confidence", "arguments", "preview", "undoable", "requires_reason", "reason",
)  # fmt: skip


def approval_row(approval: Approval) -> list[Any]:
    """Every column of an approval, in the order of APPROVAL_COLUMNS."""
    detail: dict[str, Any] = {name: getattr(approval, name) for name in _APPROVAL_DETAIL}
    detail["reasons"] = list(approval.reasons)
    detail["warn_at"] = moment(approval.warn_at)
    detail["id"] = approval.id
    return [
        uuid_hex(approval.id),
        approval.project,
        None if approval.run_id is None else uuid_hex(approval.run_id),
        uuid_hex(approval.call_id),
        approval.call_id,
        approval.tool_name,
        approval.message,
        moment(approval.created_at),
        approval.digest,
        approval.status.value,
        None if approval.decided_by is None else _principal_hex(approval.decided_by),
        approval.decided_by,
        moment(approval.decided_at),
        moment(approval.expires_at),
        _dumps(detail).decode(),
    ]


def approval_of(row: Columns) -> Approval:
    """The approval a row holds."""
    detail: dict[str, Any] = _loads(row["detail"])
    detail["reasons"] = tuple(detail["reasons"])
    detail["warn_at"] = time_of(detail["warn_at"])
    return Approval.make(
        **detail,
        project=row["project_id"],
        call_id=row["call_id"],
        tool_name=row["tool_name"],
        message=row["approval_message"],
        created_at=time_of(row["created_at"]),
        digest=row["digest"],
        status=ApprovalStatus(row["status"]),
        decided_by=row["decided_by_name"],
        decided_at=time_of(row["decided_at"]),
        expires_at=time_of(row["expires_at"]),
    )


UNDO_COLUMNS = (
    "project_id", "action_id", "call_id", "tool_name", "state", "sealed_data", "claimed_by", "created_at", "expires_at",
)  # fmt: skip


def undo_row(undo: UndoRecord, sealer: Sealer) -> list[Any]:
    """Every column of an undo record, in the order of UNDO_COLUMNS."""
    return [
        undo.project,
        uuid_hex(undo.call_id),
        undo.call_id,
        undo.tool_name,
        undo.state.value,
        sealer.seal(_pack(undo.data, undo.fingerprint), _row_name(undo.project, undo.call_id, "undo")),
        undo.claimed_by,
        moment(undo.created_at),
        moment(undo.expires_at),
    ]


def undo_of(row: Columns, sealer: Sealer) -> UndoRecord:
    """The undo record a row holds."""
    packed = sealer.open(row["sealed_data"], _row_name(row["project_id"], row["call_id"], "undo"))
    data, fingerprint = _unpack(packed)
    return UndoRecord.make(
        project=row["project_id"],
        call_id=row["call_id"],
        tool_name=row["tool_name"],
        state=UndoState(row["state"]),
        data=data,
        fingerprint=fingerprint,
        claimed_by=row["claimed_by"],
        created_at=time_of(row["created_at"]),
        expires_at=time_of(row["expires_at"]),
    )


def event_of(row: Sequence[Any]) -> Event:
    """The event of a row selected as project_id, seq, type, at, call_id, body, prev, hash."""
    project, seq, name, at, call_id, body, prev, link = row
    moment_of = time_of(at)
    assert moment_of is not None
    return Event(project, seq, name, moment_of, call_id, body, prev, link)
