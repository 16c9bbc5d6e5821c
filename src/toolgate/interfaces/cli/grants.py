"""`toolgate grants`: what people have said yes to for longer, how it was used, and taking it back."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from toolgate.errors import UsageError
from toolgate.interfaces.cli.session import By, Database, Json, Project, gate_on, person
from toolgate.interfaces.cli.show import as_json, table

app = typer.Typer(no_args_is_help=True)


@app.callback()
def grants() -> None:
    """List and revoke remembered approvals."""


@app.command("list")
def list_grants(
    database: Database,
    everything: Annotated[bool, typer.Option("--all", help="Also those that are used up, expired or revoked.")] = False,
    project: Project = None,
    json: Json = False,
) -> None:
    """List the grants that can still be used, with their uses."""
    from datetime import UTC, datetime

    from toolgate.ports.store import GrantQuery

    now = datetime.now(UTC)
    with gate_on(database) as gate:
        found = gate.sync.grants(GrantQuery(project=project, live_at=None if everything else now))
    if json:
        as_json({"grants": [_as_json(grant, now) for grant in found]})
        return
    if not found:
        typer.echo("No grant can be used." if not everything else "There is no grant.")
        return
    rows = [
        (
            grant.id,
            grant.tool_name,
            _pattern(grant.shown),
            grant.requester,
            grant.granted_by,
            f"{len(grant.used)}/{grant.max_uses}",
            f"{grant.expires_at:%Y-%m-%d %H:%M}",
            "live" if grant.is_live(now) else f"revoked by {grant.revoked_by}" if grant.revoked_at else "over",
        )
        for grant in found
    ]
    table(("grant", "tool", "arguments", "for", "by", "uses", "until (UTC)", "state"), rows)


@app.command()
def revoke(
    database: Database,
    grant_id: Annotated[str, typer.Argument(help="The grant; the beginning of its id is enough.")],
    by: By = None,
    reason: Annotated[str | None, typer.Option("--reason", help="Why.")] = None,
    json: Json = False,
) -> None:
    """Take a grant back: nothing starts because of it any more."""
    from toolgate.ports.store import GrantQuery

    with gate_on(database) as gate:
        begun = [one for one in gate.sync.grants(GrantQuery()) if grant_id and one.id.startswith(grant_id)]
        if len(begun) > 1:
            raise UsageError(f"{len(begun)} grants begin with {grant_id!r}; write more of the id.")
        whole = begun[0].id if begun else grant_id
        revoked = gate.sync.revoke(whole, by=person(by), reason=reason)
    if json:
        as_json({"grant_id": revoked.id, "revoked_by": revoked.revoked_by, "uses": len(revoked.used)})
    else:
        typer.echo(f"Grant {revoked.id} is revoked; it was used {len(revoked.used)} times.")


def _as_json(grant: Any, now: Any) -> dict[str, Any]:
    told = ("id", "project", "tool_name", "requester", "user", "granted_by", "created_at", "expires_at", "max_uses")
    return {
        **{name: getattr(grant, name) for name in told},
        "arguments": grant.shown,
        "used": [{"call_id": use.call_id, "at": use.at} for use in grant.used],
        "is_live": grant.is_live(now),
        "revoked_by": grant.revoked_by,
    }


def _pattern(shown: Any) -> str:
    import orjson

    text = ", ".join(f"{name} {orjson.dumps(wanted).decode()}" for name, wanted in shown.items())
    return text if len(text) <= 60 else f"{text[:59]}…"
