"""`toolgate recover`: the calls nobody knows the outcome of, and settling them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer

from toolgate.errors import UsageError
from toolgate.interfaces.cli.backend import Backend, UnknownCall, backend_on
from toolgate.interfaces.cli.duration import in_words
from toolgate.interfaces.cli.on_server import is_address
from toolgate.interfaces.cli.session import Database, Project
from toolgate.interfaces.cli.show import as_json, printable, table


def recover(
    database: Database,
    call_id: Annotated[str | None, typer.Argument(help="The call to settle; without it, they are listed.")] = None,
    happened: Annotated[
        bool | None, typer.Option("--happened/--did-not-happen", help="Whether the call took effect.")
    ] = None,
    not_yet: Annotated[
        bool, typer.Option("--not-yet", help="You looked and do not know yet; it stays unknown.")
    ] = False,
    by: Annotated[
        str | None, typer.Option(help="Your name; required to settle, but for a server, which knows you.")
    ] = None,
    reason: Annotated[str | None, typer.Option(help="How you know; required to settle.")] = None,
    project: Project = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """List calls whose outcome is unknown, or settle one.

    Nobody knows the outcome of a call whose process died while it ran, or whose answer was lost. Find out what
    happened, then settle it; your name and reason go into the audit log.
    """
    is_remote = is_address(database)
    with backend_on(database, project=project, by=by) as backend:
        unknown = backend.unknown()
        if call_id is None:
            _list(backend, unknown, json=json, is_remote=is_remote)
            return
        if (happened is None) is not not_yet or not (by or is_remote) or not reason:
            name = "" if is_remote else "--by NAME; "
            raise UsageError(f"Settling needs one of --happened, --did-not-happen, --not-yet; {name}--reason TEXT.")
        result = backend.settle(_chosen(unknown, call_id), happened=happened, reason=reason)
        if json:
            as_json({"call_id": result.call_id, "status": result.status.value})
        else:
            typer.echo(f"{printable(result.call_id)} is {result.status} {'still' if not_yet else 'now'}.")


def _chosen(unknown: list[UnknownCall], call_id: str) -> UnknownCall:
    found = [call for call in unknown if call.id == call_id]
    if not found:
        raise UsageError(f"Call {call_id} is not among the unknown calls; `toolgate recover` lists them.")
    if len(found) > 1:
        projects = ", ".join(call.project for call in found)
        raise UsageError(f"Call {call_id} is unknown in several projects ({projects}); say which with --project.")
    return found[0]


def _said(backend: Backend, call: UnknownCall) -> list[dict[str, object]]:
    """What people said of a call so far: each looked, and did not know."""
    return [
        {"by": event.data.get("said_by"), "at": event.at, "reason": event.data.get("reason")}
        for event in backend.events_of(call)
        if event.type == "tool.still_unknown"
    ]


def _list(backend: Backend, calls: list[UnknownCall], *, json: bool, is_remote: bool) -> None:
    now = datetime.now(UTC)
    ages = [(now - call.since).total_seconds() for call in calls]
    if json:
        keys = ("id", "project", "tool_name", "started_at", "owner", "error", "shown")
        as_json(
            {
                "unknown": [
                    {key: getattr(call, key) for key in keys}
                    | {"unknown_for_s": int(age), "said": _said(backend, call)}
                    for call, age in zip(calls, ages, strict=True)
                ]
            }
        )
    elif not calls:
        typer.echo("No call has an unknown outcome.")
    else:
        rows = [(call.id, call.project, call.tool_name, in_words(age)) for call, age in zip(calls, ages, strict=True)]
        table(("call", "project", "tool", "unknown for"), rows, gives="tool")
        for call in calls:
            for one in _said(backend, call):
                typer.echo(printable(f"{call.id}: {one['by']} did not know yet: {one['reason']}"))
        name = "" if is_remote else "--by NAME "
        typer.echo("\nSettle one: toolgate recover CALL --happened|--did-not-happen|--not-yet")
        typer.echo(f"  {name}--reason TEXT")
