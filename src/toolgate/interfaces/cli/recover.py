"""`toolgate recover`: the calls nobody knows the outcome of, and settling them."""

from __future__ import annotations

from typing import Annotated

import typer

from toolgate.errors import UsageError
from toolgate.interfaces.cli.session import Database, check_project
from toolgate.interfaces.cli.show import as_json, store_url, table
from toolgate.kernel.call import Call, Status


def recover(
    database: Database,
    call_id: Annotated[str | None, typer.Argument(help="The call to settle; without it, they are listed.")] = None,
    happened: Annotated[
        bool | None, typer.Option("--happened/--did-not-happen", help="Whether the call took effect.")
    ] = None,
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
            _list(unknown, json)
            return
        if happened is None or not by or not reason:
            raise UsageError("Settling needs --happened or --did-not-happen, --by NAME and --reason TEXT.")
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
            typer.echo(f"{result.call_id} is {result.status} now.")
    finally:
        gate.close()


def _unknown(gate: object, project: str | None) -> list[Call]:
    from toolgate.gate import Gate
    from toolgate.ports.store import CallQuery

    assert isinstance(gate, Gate)
    return gate.sync.calls.list(CallQuery(project=project, statuses=frozenset({Status.UNKNOWN}), limit=10_000))


def _list(calls: list[Call], json: bool) -> None:
    if json:
        keys = ("id", "project", "tool_name", "started_at", "owner", "error", "shown")
        as_json({"unknown": [{key: getattr(call, key) for key in keys} for call in calls]})
    elif not calls:
        typer.echo("No call has an unknown outcome.")
    else:
        rows = [(call.id, call.project, call.tool_name, f"{call.started_at:%Y-%m-%d %H:%M:%S}") for call in calls]
        table(("call", "project", "tool", "started (UTC)"), rows)
        typer.echo("\nSettle one: toolgate recover CALL --happened|--did-not-happen --by NAME --reason TEXT")
