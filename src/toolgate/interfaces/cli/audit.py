"""`toolgate audit`: is the log whole?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from toolgate.interfaces.cli.show import as_json, existing, printable

app = typer.Typer(no_args_is_help=True)


@app.callback()
def audit() -> None:
    """Check the audit log."""


@app.command()
def verify(
    database: Annotated[Path, typer.Argument(help="Path of the database file.")],
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Check that every project's events form an unbroken, unaltered chain. Exit code 1 where one does not."""
    from toolgate.adapters.stores.upkeep import verify_chains

    reports = verify_chains(existing(database))
    broken = [report for report in reports if report.problem is not None]
    if json:
        chains = [{"project": report.project, "events": report.events, "problem": report.problem} for report in reports]
        as_json({"ok": not broken, "chains": chains})
    else:
        for report in reports:
            verdict = "chain verifies" if report.problem is None else f"BROKEN: {report.problem}"
            typer.echo(printable(f"{report.project}: {report.events} events, {verdict}"))
        if not reports:
            typer.echo("No events yet.")
    if broken:
        raise typer.Exit(1)
