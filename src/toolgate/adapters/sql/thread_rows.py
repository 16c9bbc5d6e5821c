"""How conversations, messages and runs become rows and rows become them again, for every SQL store."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Protocol

import orjson

from toolgate.kernel.context import Context
from toolgate.ports.threads import Conversation, Message, Role, Run, RunStatus, Usage

Row = tuple[Any, ...]

RUN_COLUMNS = (
    "project_id", "id", "account", "conversation_id", "message_id", "created_at",
    "status", "version", "owner", "updated_at", "ended_at", "detail",
)  # fmt: skip
RUN_CHANGING = 6
"""Columns before this one never change."""

MESSAGE_COLUMNS = (
    "project_id", "id", "account", "conversation_id", "run_id", "position", "role", "created_at",
    "shown", "sealed_content",
)  # fmt: skip
CONVERSATION_COLUMNS = ("project_id", "account", "id", "title", "size", "created_at", "updated_at")

_CONTEXT = ("principal", "user", "session_id", "behavior", "trace_id", "span_id", "request_id")


class Seal(Protocol):
    """What keeps the real content of messages from readers of the database."""

    def seal(self, data: bytes, row: bytes) -> bytes: ...

    def open(self, box: bytes, row: bytes) -> bytes: ...


def content_name(project: str, message_id: str) -> bytes:
    """What a sealed message is bound to; the same words as the store's own rows use."""
    return f"message\x00{project}\x00{message_id}".encode()


def text_of(at: datetime | None) -> str | None:
    """A time as its column holds it where times are text: UTC, without offset, with microseconds."""
    return None if at is None else at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")


def time_of(given: str | datetime | None) -> datetime | None:
    """A time as it was before it became a column."""
    return datetime.fromisoformat(given + "+00:00") if isinstance(given, str) else given


def _time(given: Any) -> datetime:
    at = time_of(given)
    assert at is not None
    return at


def run_row(run: Run) -> Row:
    """Every column of a run, in the order of RUN_COLUMNS, with times as they are."""
    context = {name: getattr(run.context, name) for name in _CONTEXT} | {"roles": sorted(run.context.roles)}
    detail = {
        "context": context,
        "steps": run.steps,
        "waiting": list(run.waiting),
        "usage": [run.usage.input_tokens, run.usage.output_tokens, run.usage.cost],
        "worked_s": run.worked_s,
        "error": run.error,
    }
    return (
        run.project,
        run.id,
        run.account,
        run.conversation_id,
        run.message_id,
        run.created_at,
        run.status.value,
        run.version,
        run.owner,
        run.updated_at,
        run.ended_at,
        orjson.dumps(detail).decode(),
    )


def run_of(row: Sequence[Any]) -> Run:
    """The run of a row selected as RUN_COLUMNS."""
    project, id, account, conversation, message, created_at, status, version, owner, updated_at, ended_at, detail = row
    kept = orjson.loads(detail)
    context = kept["context"]
    context["roles"] = frozenset(context["roles"])
    used = kept["usage"]
    return Run(
        project=project,
        id=id,
        account=account,
        conversation_id=conversation,
        message_id=message,
        context=Context(project=project, run_id=id, **context),
        created_at=_time(created_at),
        updated_at=_time(updated_at),
        ended_at=time_of(ended_at),
        status=RunStatus(status),
        version=version,
        owner=owner,
        steps=kept["steps"],
        waiting=tuple(kept["waiting"]),
        usage=Usage(input_tokens=used[0], output_tokens=used[1], cost=used[2]),
        worked_s=kept["worked_s"],
        error=kept["error"],
    )


def message_row(message: Message, position: int, sealer: Seal) -> Row:
    """Every column of a message, in the order of MESSAGE_COLUMNS, with times as they are."""
    return (
        message.project,
        message.id,
        message.account,
        message.conversation_id,
        message.run_id,
        position,
        message.role.value,
        message.created_at,
        orjson.dumps(message.shown).decode(),
        sealer.seal(message.content, content_name(message.project, message.id)),
    )


def message_of(row: Sequence[Any], sealer: Seal) -> Message:
    """The message of a row selected as MESSAGE_COLUMNS that retention did not empty."""
    project, id, account, conversation, run_id, position, role, created_at, shown, sealed = row
    return Message(
        project=project,
        id=id,
        account=account,
        conversation_id=conversation,
        run_id=run_id,
        position=position,
        role=Role(role),
        content=sealer.open(bytes(sealed), content_name(project, id)),
        shown=orjson.loads(shown),
        created_at=_time(created_at),
    )


def conversation_of(row: Sequence[Any]) -> Conversation:
    """The conversation of a row selected as CONVERSATION_COLUMNS."""
    project, account, id, title, size, created_at, updated_at = row
    return Conversation(
        project=project,
        account=account,
        id=id,
        title=title,
        size=size,
        created_at=_time(created_at),
        updated_at=_time(updated_at),
    )
