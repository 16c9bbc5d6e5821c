"""`toolgate delegations`: lend your vote for a while, see whose is lent to whom, and end that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from toolgate.errors import UsageError
from toolgate.interfaces.cli.backend import backend_on
from toolgate.interfaces.cli.duration import seconds_of
from toolgate.interfaces.cli.examples import EXAMPLES
from toolgate.interfaces.cli.on_server import OnServer
from toolgate.interfaces.cli.session import By, Database, Json, Project
from toolgate.interfaces.cli.show import as_json, table

if TYPE_CHECKING:
    from toolgate.wire.delegations import DelegationRecord

app = typer.Typer(no_args_is_help=True)


@app.callback()
def delegations() -> None:
    """Lend your vote to another person for a while."""


@app.command(cls=OnServer, epilog=EXAMPLES["delegations give"])
def give(
    database: Database,
    to: Annotated[str, typer.Argument(help="Who may give your vote: a person who may decide in the project.")],
    lasts: Annotated[str, typer.Option("--for", metavar="DURATION", help="How long, such as 8h or 7d; 14d at most.")],
    tool: Annotated[
        list[str] | None,
        typer.Option("--tool", metavar="TOOL", help="Only for questions about this tool; may be repeated."),
    ] = None,
    by: By = None,
    reason: Annotated[str | None, typer.Option("--reason", help="Why.")] = None,
    project: Project = None,
    json: Json = False,
) -> None:
    """Lend your vote to another person for a while.

    It stays yours, and ends with your right to it.
    """
    with backend_on(database, by=by, project=project) as backend:
        given = backend.delegate(to, seconds=seconds_of(lasts), tools=tool or (), reason=reason)
    if json:
        as_json(given.model_dump())
    else:
        until = f"{given.expires_at:%Y-%m-%d %H:%M}"
        typer.echo(f"{given.delegate} may give the vote of {given.giver} until {until} UTC ({given.delegation_id}).")


@app.command("list", cls=OnServer, epilog=EXAMPLES["delegations list"])
def list_delegations(
    database: Database,
    everything: Annotated[bool, typer.Option("--all", help="Also list those that are over or ended.")] = False,
    project: Project = None,
    json: Json = False,
) -> None:
    """List whose vote is lent to whom."""
    with backend_on(database, project=project) as backend:
        found = backend.delegations(everything=everything)
    if json:
        as_json({"delegations": [one.model_dump() for one in found]})
        return
    if not found:
        typer.echo("No vote is lent." if not everything else "There is no delegation.")
        return
    rows = [
        (
            one.delegation_id,
            one.giver,
            one.delegate,
            ", ".join(one.tools) or "all",
            f"{one.expires_at:%Y-%m-%d %H:%M}",
            _state(one),
        )
        for one in found
    ]
    table(("delegation", "vote of", "lent to", "tools", "until (UTC)", "state"), rows)


@app.command(cls=OnServer, epilog=EXAMPLES["delegations end"])
def end(
    database: Database,
    delegation_id: Annotated[str, typer.Argument(help="The delegation's id, or the beginning of it.")],
    by: By = None,
    reason: Annotated[str | None, typer.Option("--reason", help="Why.")] = None,
    project: Project = None,
    json: Json = False,
) -> None:
    """End a delegation you gave: from now on nothing is decided by it."""
    with backend_on(database, by=by, project=project) as backend:
        known = [one.delegation_id for one in backend.delegations(everything=True)]
        begun = [id for id in known if delegation_id and id.startswith(delegation_id)]
        if len(begun) > 1:
            raise UsageError(f"{len(begun)} delegations begin with {delegation_id!r}; write more of the id.")
        ended = backend.end_delegation(begun[0] if begun else delegation_id, reason)
    if json:
        as_json(ended.model_dump())
    else:
        typer.echo(f"{ended.delegate} may not give the vote of {ended.giver} any more ({ended.delegation_id}).")


def _state(one: DelegationRecord) -> str:
    if one.ended_at:
        return f"ended by {one.ended_by}"
    if not one.is_valid:
        return f"not valid: {one.invalid_because}"
    return "live" if one.is_live else "over"
