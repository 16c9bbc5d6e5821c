"""How records become rows and rows become records again, for every SQL store.

Readable columns are masked already; `sealed_*` columns hold the real arguments, results and undo data. Arguments and
undo data too large to be written with every change of their row are in a row of their own beside it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import orjson

from toolgate.adapters.sealing import Sealer
from toolgate.adapters.sql.large import is_apart, join_view, split_view
from toolgate.errors import StoreError
from toolgate.kernel.approval import Approval, ApprovalStatus, Note
from toolgate.kernel.call import Call, Status
from toolgate.kernel.context import DEFAULT_CONTEXT, Context, Principal
from toolgate.kernel.event import Event, genesis
from toolgate.kernel.grant import Grant, Use
from toolgate.kernel.record import build
from toolgate.kernel.terms import NO_TERMS, ApprovalTerms
from toolgate.kernel.undo import UndoRecord, UndoState
from toolgate.ports.store import Head, Question

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\Z")
_dumps, _loads = orjson.dumps, orjson.loads

Row = tuple[Any, ...]
"""A row to be written. Rows are tuples, for many wait at once and the garbage collector soon leaves those alone."""

CALL_COLUMNS = (
    "project_id", "id", "call_id", "user_id", "principal", "session_id", "pipeline_run_id", "tool_name", "created_at",
    "tool_params", "sealed_params",
    "approval_id", "result", "risk_level", "requires_approval", "status", "error", "error_type", "execution_time_ms",
    "started_at", "approved_at", "completed_at", "due_at", "version", "owner", "detail", "sealed_result",
)  # fmt: skip
PARAMS, CHANGING = 9, 11
"""Columns before PARAMS never change after a call is inserted; those before CHANGING only when it asks again."""

LARGE_PARAMS_COLUMNS = ("project_id", "action_id", "call_id", "tool_params", "sealed_params")


def call_columns(table: str = "tool_executions") -> str:
    """What is selected of a call: its row, named `table` in the statement, and what is kept beside it."""
    beside = f"FROM large_params AS l WHERE l.project_id={table}.project_id AND l.action_id={table}.id"
    large = (f"(SELECT l.{name} {beside})" for name in LARGE_PARAMS_COLUMNS[3:])
    return ", ".join([*(f"{table}.{name}" for name in CALL_COLUMNS), *large])


_IN_COLUMNS = frozenset(
    {
        "project", "id", "tool_name", "context", "created_at", "arguments", "shown", "preconditions",
        "result", "shown_result", "artifacts", "risk", "status", "error", "error_code", "started_at", "approved_at",
        "completed_at", "due_at", "version", "owner",
    }
)  # fmt: skip


@lru_cache(maxsize=4096)
def uuid_hex(text: str) -> str:
    """The UUID of an id as 32 hex digits: its own where it is one, else one derived from it."""
    if _UUID.match(text):
        return text.replace("-", "")
    return uuid5(NAMESPACE_URL, f"toolgate:id:{text}").hex


@lru_cache(maxsize=4096)
def _principal_hex(name: str) -> str:
    return Principal.of(name).id.hex


def moment(at: datetime | None) -> str | None:
    """A time as its column holds it: UTC, without offset, with microseconds."""
    return None if at is None else _moment(at)


@lru_cache(maxsize=32)  # one change writes the same time into several columns and events; a large cache is slower
def _moment(at: datetime) -> str:
    if at.microsecond == 0:
        return at.isoformat(" ", "microseconds")[:26]
    text = _dumps(at)  # the same digits as isoformat in a third of the time, as b'"2026-01-31T23:59:59.123456+00:00"'
    return (text[1:11] + b" " + text[12:27]).decode()


def time_of(kept: str | datetime | None) -> datetime | None:
    """A time as it was before it became a column, where it has one."""
    return None if kept is None else required_time(kept)


def required_time(kept: str | datetime) -> datetime:
    """A time as it was before it became a column; PostgreSQL gives it back as one."""
    return datetime.fromisoformat(kept + "+00:00") if isinstance(kept, str) else kept


def call_row(call: Call, sealer: Sealer, params: Params) -> Row:
    """Every column of a call, in the order of CALL_COLUMNS; `params` are what `params_of` returns."""
    context = call.context
    return (
        call.project,
        uuid_hex(call.id),
        call.id,
        _principal_hex(context.user or context.principal),
        context.principal,
        context.session_id,
        None if context.run_id is None else uuid_hex(context.run_id),
        call.tool_name,
        moment(call.created_at),
        *params[:2],
        *call_changes(call, sealer),
    )


Params = tuple[str | None, bytes, Row | None]
"""The columns that only asking again can change, and the row beside the call's where they are large."""


def params_of(call: Call, sealer: Sealer) -> Params:
    """What would run, for people and for the handler."""
    name = row_name(call.project, call.id, "params")
    sealed = sealer.seal(_pack(call.arguments, call.preconditions), name)
    if not is_apart(call.arguments):
        return None if call.shown is None else _dumps(call.shown).decode(), sealed, None
    said, whole = split_view(call.shown, call.arguments)
    beside = (call.project, uuid_hex(call.id), call.id, whole, sealed)
    return said, sealer.seal(_pack(None, None), name), beside


def call_changes(call: Call, sealer: Sealer) -> Row:
    """The columns that every change of a call may change: those from CHANGING on."""
    fields = call.__dict__
    detail = {name: fields[name] for name in fields.keys() - _IN_COLUMNS}
    detail["context"] = _context_json(call.context)
    return (
        None if call.approval_id is None else uuid_hex(call.approval_id),
        None if call.shown_result is None else _dumps(call.shown_result).decode(),
        call.risk.upper(),
        call.approval_id is not None,
        call.status.value,
        call.error,
        call.error_code,
        None if call.duration_ms is None else round(call.duration_ms),
        None if call.started_at is None else _moment(call.started_at),
        None if call.approved_at is None else _moment(call.approved_at),
        None if call.completed_at is None else _moment(call.completed_at),
        None if call.due_at is None else _moment(call.due_at),
        call.version,
        call.owner,
        _dumps(detail).decode(),
        None if call.result is None else _seal_result(call, sealer),
    )


_IN_CONTEXT = frozenset({"host", "project", "principal"})
_last_context: tuple[Context, orjson.Fragment] = (DEFAULT_CONTEXT, orjson.Fragment(b"{}"))


def _context_json(context: Context) -> orjson.Fragment:
    """What is set in a context and has no column, encoded. A call's changes share one context, so the last is kept."""
    global _last_context
    known, encoded = _last_context
    if context is not known:
        kept = {name: value for name, value in context.__dict__.items() if value is not None}
        for name in _IN_CONTEXT:
            kept.pop(name, None)
        kept["roles"] = sorted(context.roles)
        encoded = orjson.Fragment(_dumps(kept))
        _last_context = (context, encoded)
    return encoded


def row_name(project: str, call_id: str, what: str) -> bytes:
    """What a sealed value is bound to: it opens in this row and column only."""
    return f"{what}\x00{project}\x00{call_id}".encode()


def _seal_result(call: Call, sealer: Sealer) -> bytes:
    artifacts = _dumps(list(call.artifacts)) if call.artifacts else None
    return sealer.seal(_pack(call.result or b"", artifacts), row_name(call.project, call.id, "result"))


_SECOND, _APART = 1, 2


def _pack(first: bytes | None, second: bytes | None) -> bytes:
    """Two values in one; None as the first says that it is kept beside this row."""
    mark = (0 if second is None else _SECOND) | (_APART if first is None else 0)
    kept = first or b""
    return b"".join((bytes((mark,)), len(kept).to_bytes(8, "big"), kept, second or b""))


def _unpack(packed: bytes) -> tuple[bytes | None, bytes | None]:
    mark, size = packed[0], int.from_bytes(packed[1:9], "big")
    first = None if mark & _APART else packed[9 : 9 + size]
    return first, packed[9 + size :] if mark & _SECOND else None


def _unpack_whole(packed: bytes) -> tuple[bytes, bytes | None]:
    """Return both values of what holds both."""
    first, second = _unpack(packed)
    if first is None:
        raise StoreError("A sealed value is not where it belongs; it is not used.")
    return first, second


def _open_large(box: bytes | None, name: bytes, sealer: Sealer) -> tuple[bytes, bytes | None]:
    """Return what is kept beside a row that says so."""
    if box is None:
        raise StoreError("A large value that a row refers to is missing; the row cannot be used.")
    return _unpack_whole(sealer.open(box, name))


def call_of(row: Sequence[Any], sealer: Sealer | None) -> Call:
    """The call of a row selected as `call_columns`; a sealer is needed where something sealed was selected."""
    (
        project, _, call_id, _, principal, _, _, tool_name, created_at, said, sealed_params,
        _, shown_result, risk, _, status, error, error_code, _,
        started_at, approved_at, completed_at, due_at, version, owner, detail, sealed_result, whole, large_params,
    ) = row  # fmt: skip
    fields: dict[str, Any] = _loads(detail)
    context = fields["context"]
    if "roles" in context:
        context["roles"] = frozenset(context["roles"])
    for name in ("reasons", "factors"):
        if name in fields:
            fields[name] = tuple(fields[name])
    context["project"], context["principal"] = project, principal
    fields["context"] = Context(**context)
    fields["shown"] = _json(said)
    if sealed_params is not None and sealer is not None:  # None: forgotten by retention
        whose = row_name(project, call_id, "params")
        arguments, preconditions = _unpack(sealer.open(sealed_params, whose))
        if arguments is None:
            arguments, preconditions = _open_large(large_params, whose, sealer)
            fields["shown"] = join_view(fields["shown"], whole, arguments)
        fields["arguments"], fields["preconditions"] = arguments, preconditions
    if sealed_result is not None and sealer is not None:
        opened = sealer.open(sealed_result, row_name(project, call_id, "result"))
        fields["result"], artifacts = _unpack_whole(opened)
        fields["artifacts"] = tuple(_loads(artifacts)) if artifacts is not None else ()
    fields.update(
        id=call_id,
        project=project,
        tool_name=tool_name,
        created_at=required_time(created_at),
        status=Status(status),
        version=version,
        risk=risk.lower(),
        approved_at=time_of(approved_at),
        owner=owner,
        due_at=time_of(due_at),
        started_at=time_of(started_at),
        completed_at=time_of(completed_at),
        shown_result=_json(shown_result),
        error=error,
        error_code=error_code,
    )
    return build(Call, fields)


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
_APPROVAL_RARE = (
    "claim", "input_schema", "undo_ttl_s", "approve_label", "reject_label", "escalated", "edited_from", "difference",
    "silent", "mark", "facts",
)  # fmt: skip


def approval_row(approval: Approval) -> Row:
    """Every column of an approval, in the order of APPROVAL_COLUMNS."""
    detail: dict[str, Any] = {name: getattr(approval, name) for name in _APPROVAL_DETAIL}
    detail["reasons"] = list(approval.reasons)
    detail["warn_at"] = moment(approval.warn_at)
    detail["id"] = approval.id
    if approval.terms is not NO_TERMS:
        detail["terms"] = approval.terms.as_json()
    kept = approval.__dict__
    detail.update({name: kept[name] for name in _APPROVAL_RARE if kept.get(name)})
    if approval.factors:
        detail["factors"] = list(approval.factors)
    if approval.escalate_at is not None:
        detail["escalate_at"] = moment(approval.escalate_at)
    for name in ("votes", "comments"):
        if name in kept:
            detail[name] = [(note.by, moment(note.at), note.text, *note.roles) for note in kept[name]]
    lent = [vote.on_behalf_of for vote in kept.get("votes", ())]
    if any(lent):
        detail["lent"] = lent
    return (
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
    )


def approval_of(row: Sequence[Any]) -> Approval:
    """The approval of a row selected as APPROVAL_COLUMNS."""
    (
        _, project, _, _, call_id, tool_name, message, created_at,
        digest, status, _, decided_by, decided_at, expires_at, detail,
    ) = row  # fmt: skip
    fields: dict[str, Any] = _loads(detail)
    fields["reasons"] = tuple(fields["reasons"])
    fields["warn_at"] = time_of(fields["warn_at"])
    if "terms" in fields:
        fields["terms"] = ApprovalTerms.of_json(fields["terms"])
    if "factors" in fields:
        fields["factors"] = tuple(fields["factors"])
    if "escalate_at" in fields:
        fields["escalate_at"] = time_of(fields["escalate_at"])
    lent = fields.pop("lent", None)
    for name in ("votes", "comments"):
        if name in fields:
            fields[name] = tuple(
                Note(by, required_time(at), text, roles=tuple(roles)) for by, at, text, *roles in fields[name]
            )
    if lent is not None:
        pairs = zip(fields["votes"], lent, strict=True)
        fields["votes"] = tuple(vote._replace(on_behalf_of=giver) for vote, giver in pairs)
    return Approval(
        **fields,
        project=project,
        call_id=call_id,
        tool_name=tool_name,
        message=message,
        created_at=required_time(created_at),
        digest=digest,
        status=ApprovalStatus(status),
        decided_by=decided_by,
        decided_at=time_of(decided_at),
        expires_at=required_time(expires_at),
    )


QUESTION = (
    f"SELECT {', '.join(f'a.{name}' for name in APPROVAL_COLUMNS)}, {call_columns('c')} "
    "FROM approval_requests AS a JOIN tool_executions AS c "
    "ON c.project_id=a.project_id AND c.id=a.action_id AND c.call_id=a.call_id"
)
"""An approval beside its call; `a` is the approval."""


def question_of(row: Sequence[Any], sealer: Sealer) -> Question:
    """What a row selected as QUESTION holds."""
    return Question(approval_of(row[: len(APPROVAL_COLUMNS)]), call_of(row[len(APPROVAL_COLUMNS) :], sealer))


UNDO_COLUMNS = (
    "project_id", "action_id", "call_id", "tool_name", "state", "sealed_data", "claimed_by", "created_at", "expires_at",
)  # fmt: skip


LARGE_UNDO_COLUMNS = ("project_id", "action_id", "call_id", "sealed_data")
UNDO = (
    f"SELECT {', '.join(UNDO_COLUMNS)}, (SELECT l.sealed_data FROM large_undo AS l WHERE "
    "l.project_id=u.project_id AND l.action_id=u.action_id) FROM undo_records AS u"
)
"""An undo record, and what is kept beside it."""


def undo_row(undo: UndoRecord, sealer: Sealer) -> Row:
    """Every column of an undo record, in the order of UNDO_COLUMNS; large data is not in it."""
    data = None if is_apart(undo.data) else undo.data
    return (
        undo.project,
        uuid_hex(undo.call_id),
        undo.call_id,
        undo.tool_name,
        undo.state.value,
        sealer.seal(_pack(data, undo.fingerprint), row_name(undo.project, undo.call_id, "undo")),
        undo.claimed_by,
        moment(undo.created_at),
        moment(undo.expires_at),
    )


def large_undo_row(undo: UndoRecord, sealer: Sealer) -> Row:
    """The data of an undo record, in the order of LARGE_UNDO_COLUMNS."""
    sealed = sealer.seal(_pack(undo.data, None), row_name(undo.project, undo.call_id, "undo_data"))
    return undo.project, uuid_hex(undo.call_id), undo.call_id, sealed


def undo_of(row: Sequence[Any], sealer: Sealer) -> UndoRecord:
    """The undo record of a row selected as UNDO."""
    project, _, call_id, tool_name, state, sealed_data, claimed_by, created_at, expires_at, large_data = row
    data, fingerprint = _unpack(sealer.open(sealed_data, row_name(project, call_id, "undo")))
    if data is None:
        data, _ = _open_large(large_data, row_name(project, call_id, "undo_data"), sealer)
    return UndoRecord(
        project=project,
        call_id=call_id,
        tool_name=tool_name,
        state=UndoState(state),
        data=data,
        fingerprint=fingerprint,
        claimed_by=claimed_by,
        created_at=required_time(created_at),
        expires_at=required_time(expires_at),
    )


EVENT_COLUMNS = ("project_id", "seq", "type", "at", "call_id", "frame", "content", "prev", "hash")


def event_of(row: Sequence[Any]) -> Event:
    """The event of a row selected as EVENT_COLUMNS."""
    project, seq, name, at, *rest = row
    return Event(project, seq, name, required_time(at), *rest)


def head_of(project: str, found: Sequence[Sequence[Any]]) -> Head:
    """The ends of a project's chain, of its row selected as seq, hash, base_seq, base_hash, if there is one."""
    first = genesis(project)
    seq, hash, base_seq, base_hash = found[0] if found else (0, first, 0, first)
    return Head(seq, hash, base_seq, base_hash if base_seq else first)


GRANT_COLUMNS = (
    "id", "project_id", "tool_name", "requester", "granted_by", "created_at",
    "expires_at", "revoked_at", "uses_left", "version", "detail",
)  # fmt: skip
_GRANT_DETAIL = (
    "id", "definition_hash", "user", "pattern", "shown", "nonce", "level", "escalated", "approval_id", "call_id",
    "max_uses", "revoked_by", "reason", "mark",
)  # fmt: skip


def grant_row(grant: Grant) -> Row:
    """Every column of a grant, in the order of GRANT_COLUMNS."""
    detail: dict[str, Any] = {name: getattr(grant, name) for name in _GRANT_DETAIL}
    detail["terms"] = grant.terms.as_json()
    detail["used"] = [(use.call_id, moment(use.at)) for use in grant.used]
    return (
        uuid_hex(grant.id),
        grant.project,
        grant.tool_name,
        grant.requester,
        grant.granted_by,
        moment(grant.created_at),
        moment(grant.expires_at),
        moment(grant.revoked_at),
        grant.uses_left,
        grant.version,
        _dumps(detail).decode(),
    )


def grant_of(row: Sequence[Any]) -> Grant:
    """The grant of a row selected as GRANT_COLUMNS."""
    _, project, tool_name, requester, granted_by, created_at, expires_at, revoked_at, _, version, detail = row
    fields: dict[str, Any] = _loads(detail)
    fields["terms"] = ApprovalTerms.of_json(fields["terms"])
    fields["used"] = tuple(Use(call_id, required_time(at)) for call_id, at in fields["used"])
    return Grant(
        **fields,
        project=project,
        tool_name=tool_name,
        requester=requester,
        granted_by=granted_by,
        created_at=required_time(created_at),
        expires_at=required_time(expires_at),
        revoked_at=time_of(revoked_at),
        version=version,
    )
