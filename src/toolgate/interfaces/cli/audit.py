"""`toolgate audit`: is the log whole?"""

from __future__ import annotations

from typing import Annotated

import typer

from toolgate.interfaces.cli.examples import EXAMPLES
from toolgate.interfaces.cli.on_server import DATABASE_HELP, OnDatabase
from toolgate.interfaces.cli.show import as_json, existing, is_postgres, printable

app = typer.Typer(no_args_is_help=True)


@app.callback()
def audit() -> None:
    """Verify the audit log."""


@app.command(cls=OnDatabase, epilog=EXAMPLES["audit verify"])
def verify(
    database: Annotated[str, typer.Argument(help=DATABASE_HELP)],
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Verify that no event was changed, removed or inserted.

    The events of each project form a chain of hashes. Exit code 1 if one is broken.
    """
    if is_postgres(database):
        from toolgate.adapters.postgres.upkeep import verify_chains as verify_on_server

        reports = verify_on_server(database)
    else:
        from toolgate.adapters.sqlite.upkeep import verify_chains

        reports = verify_chains(existing(database))
    broken = [report for report in reports if report.problem is not None]
    if json:
        chains = [report._asdict() for report in reports]
        as_json({"ok": not broken, "chains": chains})
    else:
        for report in reports:
            verdict = "chain verifies" if report.problem is None else f"BROKEN: {report.problem}"
            gone = f", the content of {report.redacted} was destroyed" if report.redacted else ""
            typer.echo(printable(f"{report.project}: {report.events} events, {verdict}{gone}"))
        if not reports:
            typer.echo("No events yet.")
    if broken:
        raise typer.Exit(1)
