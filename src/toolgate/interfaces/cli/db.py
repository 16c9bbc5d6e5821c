"""`toolgate db`: status, upgrade, backup, vacuum, retention and change of keys of one database file."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

import typer

from toolgate.interfaces.cli.age import seconds_of
from toolgate.interfaces.cli.show import as_json, existing, table

app = typer.Typer(no_args_is_help=True)
Database = Annotated[Path, typer.Argument(help="Path of the database file.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


@app.callback()
def db() -> None:
    """Look after a database."""


@app.command()
def status(database: Database, json: Json = False) -> None:
    """Show schema revision, size and how many calls are in which status."""
    from toolgate.adapters.stores.upkeep import status_of

    found = status_of(existing(database))
    if json:
        as_json(found)
        return
    typer.echo(f"schema {found['revision']} (this version needs {found['needed']}), {found['bytes']:,} bytes")
    typer.echo(f"events {found['events']:,}, approvals waiting {found['pending_approvals']:,}, mode {found['mode']}")
    table(("status", "calls"), sorted(found["calls"].items()))


@app.command()
def upgrade(database: Database, json: Json = False) -> None:
    """Bring the schema to the revision this version needs; safe to run twice."""
    from toolgate.adapters.stores.upkeep import upgrade_file

    before, after = upgrade_file(database)
    if json:
        as_json({"from": before, "to": after})
    else:
        typer.echo(f"The schema is at {after}" + ("." if before == after else f" (was {before or 'empty'})."))


@app.command()
def backup(
    database: Database,
    destination: Annotated[Path, typer.Argument(help="File to write; must not exist.")],
    json: Json = False,
) -> None:
    """Copy the database while it is in use. The key file is not copied: keep it elsewhere."""
    from toolgate.adapters.stores.upkeep import backup_to

    size = backup_to(existing(database), destination)
    if json:
        as_json({"destination": str(destination), "bytes": size})
    else:
        typer.echo(f"{destination}: {size:,} bytes, checked. The key file is not in it: keep {database.name}.key safe.")


@app.command()
def vacuum(database: Database, json: Json = False) -> None:
    """Give unused space back to the disk."""
    from toolgate.adapters.stores.upkeep import vacuum_file

    before, after = vacuum_file(existing(database))
    if json:
        as_json({"bytes_before": before, "bytes_after": after})
    else:
        typer.echo(f"{before:,} -> {after:,} bytes")


@app.command()
def prune(
    database: Database,
    older_than: Annotated[str, typer.Option(help="Age of finished calls, such as 30d, 12h.")],
    json: Json = False,
) -> None:
    """Forget arguments and results of old finished calls. Who, what and when stay, and the chain still verifies."""
    from toolgate.adapters.stores.upkeep import forget_before

    cut = datetime.now(UTC) - timedelta(seconds=seconds_of(older_than))
    count = forget_before(existing(database), cut)
    if json:
        as_json({"forgotten": count, "before": cut})
    else:
        typer.echo(f"Forgot arguments and results of {count:,} calls finished before {cut:%Y-%m-%d %H:%M} UTC.")


@app.command()
def key(file: Annotated[Path, typer.Argument(help="File to write; must not exist.")]) -> None:
    """Make a file with a fresh sealing key, for the servers of a PostgreSQL database. Keep a copy somewhere safe."""
    from toolgate.adapters.stores.sealing import make_file

    make_file(file)
    typer.echo(f"{file}: a new key, readable by you alone. Without it nothing that was sealed can be opened.")


@app.command()
def rekey(database: Database, json: Json = False) -> None:
    """Seal everything anew with the first key given, so that older keys can be thrown away. Safe to run twice."""
    from toolgate.adapters.stores.rekey import rekey as seal_anew

    done = seal_anew(existing(database))
    if json:
        as_json(done._asdict())
        return
    typer.echo(f"Sealed {done.resealed:,} values anew with key {done.key}.")
    if done.retired:
        typer.echo(f"No longer needed: {', '.join(done.retired)}. Backups made before still need them.")
    if done.in_use:
        typer.echo(
            f"Still in use: {', '.join(done.in_use)}. Restart the processes that were opened before the newest key "
            "was added, then run this again."
        )
