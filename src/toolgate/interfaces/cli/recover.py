"""`toolgate recover`: the calls nobody knows the outcome of, and settling them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from toolgate.errors import UsageError
from toolgate.interfaces.cli.session import Database, check_project
from toolgate.interfaces.cli.show import as_json, printable, store_url, table
from toolgate.kernel.call import Call, Status

if TYPE_CHECKING:
    from toolgate.gate import Gate


def recover(
    database: Database,
    call_id: Annotated[str | None, typer.Argument(help="The call to settle; without it, they are listed.")] = None,
    happened: Annotated[
        bool | None, typer.Option("--happened/--did-not-happen", help="Whether the call took effect.")
    ] = None,
    not_yet: Annotated[
        bool, typer.Option("--not-yet", help="You looked and do not know yet; it stays unknown.")
    ] = False,
    by: Annotated[str | None, typer.Option(help="Your name; required to settle.")] = None,
    reason: Annotated[str | None, typer.Option(help="How you know; required to settle.")] = None,
    project: Annotated[str | None, typer.Option(help="The project; by default all of them.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """List calls whose outcome is unknown, or settle one.

    Nobody knows the outcome of a call whose process died while it ran. Find out what happened, then settle it; your
    name and reason go into the audit log.
    """
    import toolgate

    url = store_url(database)
    if project is not None:
        check_project(url, project)
    gate = toolgate.open(url)
    try:
        gate.sync.recover()
        unknown = _unknown(gate, project)
        if call_id is None:
            _list(gate, unknown, json)
            return
        if (happened is None) is not not_yet or not by or not reason:
            raise UsageError("Settling needs one of --happened, --did-not-happen, --not-yet; --by NAME; --reason TEXT.")
        found = [call for call in unknown if call.id == call_id]
        if not found:
            raise UsageError(f"Call {call_id} is not among the unknown calls; `toolgate recover` lists them.")
        if len(found) > 1:
            projects = ", ".join(call.project for call in found)
            raise UsageError(f"Call {call_id} is unknown in several projects ({projects}); say which with --project.")
        result = gate.sync.settle(call_id, happened=happened, by=by, reason=reason, project=found[0].project)
        if json:
            as_json({"call_id": result.call_id, "status": result.status.value})
        else:
            typer.echo(f"{result.call_id} is {result.status} {'still' if not_yet else 'now'}.")
    finally:
        gate.close()


def _unknown(gate: Gate, project: str | None) -> list[Call]:
    from toolgate.ports.store import CallQuery

    return gate.sync.calls.list(CallQuery(project=project, statuses=frozenset({Status.UNKNOWN}), limit=10_000))


def _said(gate: Gate, call: Call) -> list[dict[str, object]]:
    """What people said of a call so far: each looked, and did not know."""
    told = gate.sync.events(project=call.project, call_id=call.id, limit=1000)
    return [
        {"by": event.data["said_by"], "at": event.at, "reason": event.data["reason"]}
        for event in told
        if event.type == "tool.still_unknown"
    ]


def _list(gate: Gate, calls: list[Call], json: bool) -> None:
    now = datetime.now(UTC)
    ages = [now - (call.completed_at or call.created_at) for call in calls]
    if json:
        keys = ("id", "project", "tool_name", "started_at", "owner", "error", "shown")
        as_json(
            {
                "unknown": [
                    {key: getattr(call, key) for key in keys}
                    | {"unknown_for_s": int(age.total_seconds()), "said": _said(gate, call)}
                    for call, age in zip(calls, ages, strict=True)
                ]
            }
        )
    elif not calls:
        typer.echo("No call has an unknown outcome.")
    else:
        rows = [
            (call.id, call.project, call.tool_name, f"{call.started_at:%Y-%m-%d %H:%M:%S}", str(age).partition(".")[0])
            for call, age in zip(calls, ages, strict=True)
        ]
        table(("call", "project", "tool", "started (UTC)", "unknown for"), rows)
        for call in calls:
            for one in _said(gate, call):
                typer.echo(printable(f"{call.id}: {one['by']} did not know yet: {one['reason']}"))
        typer.echo("\nSettle one: toolgate recover CALL --happened|--did-not-happen|--not-yet --by NAME --reason TEXT")
