"""`toolgate history` and `watch`: what happened, and what happens now."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Any

import typer

from toolgate.interfaces.cli.session import Database, Json, Project, gate_on
from toolgate.interfaces.cli.show import as_json, printable, table

if TYPE_CHECKING:
    from toolgate.gate import Gate
    from toolgate.kernel.call import Call
    from toolgate.kernel.event import Event


def history(
    database: Database,
    run: Annotated[str | None, typer.Option("--run", help="Only the calls of this run.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="At most this many, the latest.")] = 20,
    project: Project = None,
    json: Json = False,
) -> None:
    """List the latest calls: what ran, how it ended, and who allowed it."""
    with gate_on(database) as gate:
        calls = _latest(gate, project, run, limit)
    if json:
        keys = ("id", "project", "tool_name", "shown", "approved_by", "approval_id", "error", "created_at", "undo_of")
        rows = [{key: getattr(call, key) for key in keys} | {"status": call.status.value} for call in calls]
        as_json({"calls": rows})
    elif not calls:
        typer.echo("No calls yet.")
    else:
        from toolgate.kernel.artifact import summary_of

        columns = ("when (UTC)", "call", "status", "what", "allowed by")
        rows_ = [
            (
                f"{call.created_at:%m-%d %H:%M:%S}",
                call.id,
                call.status.value,
                f"undo of {call.undo_of}" if call.undo_of else summary_of(call.tool_name, call.shown, width=48),
                call.approved_by or "",
            )
            for call in calls
        ]
        table(columns, rows_)


def _latest(gate: Gate, project: str | None, run: str | None, limit: int) -> list[Call]:
    from toolgate.ports.store import CallQuery

    found: list[Call] = []
    after: Call | None = None
    while True:
        page = gate.sync.calls(CallQuery(project=project, run_id=run, after=after, limit=1000))
        found = [*found, *page][-limit:]
        if len(page) < 1000:
            return found[::-1]
        after = page[-1]


def watch(
    database: Database,
    after: Annotated[int | None, typer.Option("--after", help="Begin after this event; the end by default.")] = None,
    project: Annotated[str, typer.Option("--project", help="The project to follow.")] = "default",
    count: Annotated[int | None, typer.Option("--count", min=1, help="Stop after this many events.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object per line.")] = False,
) -> None:
    """Print events as they happen, whoever makes them, until interrupted."""
    with gate_on(database) as gate:
        begin = _end_of(gate, project) if after is None else after
        try:
            asyncio.run(_follow(gate, project, begin, count, json))
        except KeyboardInterrupt:
            raise typer.Exit(130) from None


async def _follow(gate: Gate, project: str, after: int, count: int | None, json: bool) -> None:
    seen = 0
    async for event in gate.follow(project=project, after=after):
        typer.echo(_line(event, json))
        seen += 1
        if seen == count:
            return


def _end_of(gate: Gate, project: str) -> int:
    after = 0
    while batch := gate.sync.events(project=project, after=after, limit=5000):
        after = batch[-1].seq
    return after


def _line(event: Event, json: bool) -> str:
    if json:
        import orjson

        told = {"seq": event.seq, "type": event.type, "at": event.at, "call_id": event.call_id, "data": event.data}
        return orjson.dumps(told, option=orjson.OPT_UTC_Z).decode()
    about = ("tool_name", "decision", "decided_by", "approved_by", "reason", "error_code", "voted_by", "roles", "by")
    data: dict[str, Any] = event.data
    words = " ".join(f"{name}={printable(data[name])}" for name in about if data.get(name))
    return f"{event.at:%H:%M:%S}  {event.seq:>5}  {event.type:<22} {words}"
