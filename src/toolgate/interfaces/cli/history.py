"""`toolgate history` and `watch`: what happened, and what happens now."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from toolgate.interfaces.cli.backend import backend_on
from toolgate.interfaces.cli.session import Database, InProject, Json, Project
from toolgate.interfaces.cli.show import as_json, printable, table
from toolgate.kernel.context import DEFAULT_PROJECT

if TYPE_CHECKING:
    from toolgate.wire.schemas import EventRecord, ExecutionRecord


def history(
    database: Database,
    run: Annotated[str | None, typer.Option("--run", help="Only the calls of this run.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="How many calls to list.")] = 20,
    project: Project = None,
    json: Json = False,
) -> None:
    """List the latest calls, their status and who allowed them."""
    with backend_on(database, project=project) as backend:
        calls = backend.latest(run=run, limit=limit)
    if json:
        as_json({"calls": [_as_json(call) for call in calls]})
    elif not calls:
        typer.echo("No calls yet.")
    else:
        columns = ("when (UTC)", "call", "status", "what", "allowed by")
        rows = [
            (
                f"{call.created_at:%m-%d %H:%M:%S}",
                call.tool_id,
                _status(call, datetime.now(UTC)),
                _what(call),
                call.approved_by or "",
            )
            for call in calls
        ]
        table(columns, rows, gives="what")


def _status(call: ExecutionRecord, now: datetime) -> str:
    """The status; of an outcome that nobody knows, for how long."""
    if call.internal_status != "UNKNOWN":
        return call.internal_status
    from toolgate.interfaces.cli.duration import in_words

    return f"UNKNOWN for {in_words((now - (call.completed_at or call.created_at)).total_seconds())}"


def _what(call: ExecutionRecord) -> str:
    if call.undo_of:
        return f"undo of {call.undo_of}"
    from toolgate.kernel.artifact import summary_of

    repeats = f", repeats {call.repeat_of}" if call.repeat_of else ""
    return summary_of(call.tool_name, call.tool_params, width=48) + repeats


def _as_json(call: ExecutionRecord) -> dict[str, Any]:
    same = (
        "tool_name", "approved_by", "approval_id", "error", "created_at", "completed_at", "undo_of", "effect_key",
        "repeat_of", "settled_by",
    )  # fmt: skip
    told = {"id": call.tool_id, "project": call.project_id, "status": call.internal_status, "shown": call.tool_params}
    return told | {name: getattr(call, name) for name in same}


def watch(
    database: Database,
    after: Annotated[
        int | None, typer.Option("--after", help="Start after this event; by default only new ones.")
    ] = None,
    project: InProject = DEFAULT_PROJECT,
    count: Annotated[int | None, typer.Option("--count", min=1, help="Stop after this many events.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object per line.")] = False,
) -> None:
    """Print events as they happen, until Ctrl-C."""
    with backend_on(database, project=project) as backend, closing(backend.follow(after)) as events:
        try:
            for seen, event in enumerate(events, 1):
                typer.echo(_line(event, json))
                if seen == count:
                    return
        except KeyboardInterrupt:
            raise typer.Exit(130) from None


def _line(event: EventRecord, json: bool) -> str:
    if json:
        import orjson

        told = {"seq": event.seq, "type": event.type, "at": event.at, "call_id": event.tool_id, "data": event.data}
        return orjson.dumps(told, option=orjson.OPT_UTC_Z).decode()
    about = (
        "tool_name",
        "decision",
        "decided_by",
        "approved_by",
        "reason",
        "error_code",
        "voted_by",
        "account",
        "token_id",
        "kind",
        "roles",
        "giver",
        "delegate",
        "by",
    )
    data: dict[str, Any] = event.data
    words = " ".join(f"{name}={printable(data[name])}" for name in about if data.get(name))
    return f"{event.at:%H:%M:%S}  {event.seq:>5}  {event.type:<22} {words}"
