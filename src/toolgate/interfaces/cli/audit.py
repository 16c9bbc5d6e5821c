"""`toolgate audit`: is the log whole?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from toolgate.interfaces.cli.examples import EXAMPLES
from toolgate.interfaces.cli.on_server import DATABASE_HELP, OnDatabase
from toolgate.interfaces.cli.show import as_json, existing, is_postgres, printable

if TYPE_CHECKING:
    from toolgate.kernel.comparing import Difference

app = typer.Typer(no_args_is_help=True)


@app.callback()
def audit() -> None:
    """Verify the audit log."""


@app.command(cls=OnDatabase, epilog=EXAMPLES["audit verify"])
def verify(
    database: Annotated[str, typer.Argument(help=DATABASE_HELP)],
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Verify the events, and that the rows agree with them.

    The events of each project form a chain of hashes: none was changed, removed or inserted. Calls, approvals, grants,
    delegations, modes, accounts and tokens are compared with them; each difference is named. With the key at hand,
    marks are checked too.
    Exit code 1 if anything is wrong.
    """
    if is_postgres(database):
        from toolgate.adapters.postgres.upkeep import verify_chains as verify_on_server

        reports = verify_on_server(database)
    else:
        from toolgate.adapters.sqlite.upkeep import verify_chains

        reports = verify_chains(existing(database))
    broken = [report for report in reports if report.problem is not None]
    differences = [] if broken else differences_of(database)  # what a broken chain tells proves nothing
    if json:
        chains = [report._asdict() for report in reports]
        found = [one._asdict() for one in differences]
        as_json({"ok": not broken and not found, "chains": chains, "differences": found})
    else:
        for report in reports:
            verdict = "chain verifies" if report.problem is None else f"BROKEN: {report.problem}"
            gone = f", the content of {report.redacted} was destroyed" if report.redacted else ""
            typer.echo(printable(f"{report.project}: {report.events} events, {verdict}{gone}"))
        if not reports:
            typer.echo("No events yet.")
        for one in differences:
            typer.echo(printable(f"{one.project}: {one.kind} {one.id}: {one.what}"))
    if broken or differences:
        raise typer.Exit(1)


def differences_of(database: str) -> list[Difference]:
    """Every row of a database that says something else than its events, or than its mark."""
    if is_postgres(database):
        from toolgate.adapters.postgres.comparing import compare_rows as compare_on_server

        return compare_on_server(database)
    from toolgate.adapters.sqlite.comparing import compare_rows

    return compare_rows(existing(database))
