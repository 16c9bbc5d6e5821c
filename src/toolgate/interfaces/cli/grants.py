"""`toolgate grants`: what people have said yes to for longer, how it was used, and taking it back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from toolgate.errors import UsageError
from toolgate.interfaces.cli.backend import backend_on
from toolgate.interfaces.cli.examples import EXAMPLES
from toolgate.interfaces.cli.on_server import OnServer
from toolgate.interfaces.cli.session import By, Database, Json, Project
from toolgate.interfaces.cli.show import as_json, table

if TYPE_CHECKING:
    from toolgate.wire.schemas import GrantRecord

app = typer.Typer(no_args_is_help=True)


@app.callback()
def grants() -> None:
    """List and revoke remembered approvals."""


@app.command("list", cls=OnServer, epilog=EXAMPLES["grants list"])
def list_grants(
    database: Database,
    everything: Annotated[
        bool, typer.Option("--all", help="Also list those that are used up, expired or revoked.")
    ] = False,
    project: Project = None,
    json: Json = False,
) -> None:
    """List the grants that can still be used, and how often they were."""
    with backend_on(database, project=project) as backend:
        found = backend.grants(everything=everything)
    if json:
        as_json({"grants": [_as_json(grant) for grant in found]})
        return
    if not found:
        typer.echo("There are no grants that can be used." if not everything else "There is no grant.")
        return
    rows = [
        (
            grant.grant_id,
            grant.tool_name,
            _pattern(grant.pattern),
            grant.requester,
            grant.granted_by,
            f"{grant.uses}/{grant.max_uses}",
            f"{grant.expires_at:%Y-%m-%d %H:%M}",
            _state(grant),
        )
        for grant in found
    ]
    table(("grant", "tool", "arguments", "for", "by", "uses", "until (UTC)", "state"), rows)


@app.command(cls=OnServer, epilog=EXAMPLES["grants revoke"])
def revoke(
    database: Database,
    grant_id: Annotated[str, typer.Argument(help="The grant's id, or the beginning of it.")],
    by: By = None,
    reason: Annotated[str | None, typer.Option("--reason", help="Why.")] = None,
    project: Project = None,
    json: Json = False,
) -> None:
    """Revoke a grant: from now on it allows no call."""
    with backend_on(database, by=by, project=project) as backend:
        begun = [one for one in backend.grants(everything=True) if grant_id and one.grant_id.startswith(grant_id)]
        if len(begun) > 1:
            raise UsageError(f"{len(begun)} grants begin with {grant_id!r}; write more of the id.")
        revoked = backend.revoke(begun[0].grant_id if begun else grant_id, reason)
    if json:
        as_json({"grant_id": revoked.grant_id, "revoked_by": revoked.revoked_by, "uses": revoked.uses})
    else:
        typer.echo(f"Grant {revoked.grant_id} is revoked; it was used {revoked.uses} times.")


def _as_json(grant: GrantRecord) -> dict[str, Any]:
    same = ("tool_name", "requester", "user", "granted_by", "created_at", "expires_at", "max_uses", "is_live")
    more = ("is_valid", "invalid_because", "revoked_by")
    return {
        "id": grant.grant_id,
        "project": grant.project_id,
        **{name: getattr(grant, name) for name in (*same, *more)},
        "arguments": grant.pattern,
        "used": [{"call_id": use.tool_id, "at": use.at} for use in grant.used],
    }


def _state(grant: GrantRecord) -> str:
    if grant.revoked_at:
        return f"revoked by {grant.revoked_by}"
    if not grant.is_valid:
        return f"not valid: {grant.invalid_because}"
    return "live" if grant.is_live else "over"


def _pattern(shown: Any) -> str:
    import orjson

    text = ", ".join(f"{name} {orjson.dumps(wanted).decode()}" for name, wanted in shown.items())
    return text if len(text) <= 60 else f"{text[:59]}…"
