"""`toolgate db`: status, upgrade, backup, vacuum, retention and change of keys of one database file."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

import typer

from toolgate.errors import UsageError
from toolgate.interfaces.cli.duration import seconds_of
from toolgate.interfaces.cli.examples import EXAMPLES
from toolgate.interfaces.cli.help import Command
from toolgate.interfaces.cli.on_server import DATABASE, DATABASE_HELP, OnDatabase, OnNewDatabase
from toolgate.interfaces.cli.session import login_name
from toolgate.interfaces.cli.show import as_json, existing, file_of, is_postgres, printable, table

app = typer.Typer(no_args_is_help=True)
Database = Annotated[str, typer.Argument(help=DATABASE_HELP)]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
_NONE_UNMARKED = {"approvals": 0, "grants": 0}


@app.callback()
def db() -> None:
    """Manage a database: status, upgrades, backups, retention, keys."""


def _refuse_server(database: str, instead: str) -> None:
    if is_postgres(database):
        raise UsageError(f"This is for files; for PostgreSQL use {instead}.")


@app.command(cls=OnDatabase, epilog=EXAMPLES["db status"])
def status(database: Database, json: Json = False) -> None:
    """Show the schema version, the size and the calls by status."""
    found = _found(database)
    if json:
        as_json(found)
        return
    if found.get("role_warning"):
        typer.echo(found["role_warning"])
    typer.echo(f"schema {found['revision']} (this version needs {found['needed']}), {found['bytes']:,} bytes")
    if found["events"] is None:
        is_newer = str(found["revision"]) > found["needed"]
        typer.echo("Made by a newer Toolgate." if is_newer else "Run `toolgate db upgrade` to see the rest.")
        return
    typer.echo(f"events {found['events']:,}, approvals waiting {found['pending_approvals']:,}, mode {found['mode']}")
    if found["brakes"]:
        typer.echo(f"brakes of projects, agents or runs: {found['brakes']:,}; see `toolgate mode`")
    table(("status", "calls"), sorted(found["calls"].items()))


def _found(database: str) -> dict[str, Any]:
    if is_postgres(database):
        from toolgate.adapters.postgres.upkeep import status_of as status_on_server

        return status_on_server(database)
    from toolgate.adapters.sqlite.upkeep import status_of

    return status_of(existing(database))


@app.command(cls=OnNewDatabase, epilog=EXAMPLES["db upgrade"])
def upgrade(database: Database, json: Json = False) -> None:
    """Upgrade the schema to what this version of Toolgate needs.

    Accounts and tokens of a version that did not mark them are taken over, once, and listed. Running it again changes
    nothing. A file that does not exist is created.
    """
    if is_postgres(database):
        from toolgate.adapters.postgres.upkeep import upgrade as upgrade_server

        before, after = upgrade_server(database)
        _upgrade_queue(database)
        from toolgate.adapters.postgres.adopt import adopt as adopt_on_server

        adopted = adopt_on_server(database, by=login_name())
    else:
        from toolgate.adapters.sqlite.upkeep import upgrade_file

        before, after = upgrade_file(file_of(database))
        from toolgate.adapters.sqlite.adopt import adopt

        adopted = adopt(file_of(database), by=login_name())
    is_taken_over = before is not None and (before != after or bool(adopted.accounts or adopted.tokens))
    unmarked = _unmarked(database) if is_taken_over else _NONE_UNMARKED
    if json:
        as_json({"from": before, "to": after, "adopted": adopted._asdict(), "unmarked": unmarked})
        return
    typer.echo(f"The schema is at {after}" + ("." if before == after else f" (was {before or 'empty'})."))
    if adopted.accounts or adopted.tokens:
        typer.echo(f"Took over {adopted.tokens:,} tokens and these accounts, which had no marks. Is each one yours?")
        for name in adopted.accounts:
            typer.echo(f"  {printable(name)}")
    if adopted.refused:
        typer.echo(
            f"{adopted.refused:,} accounts and tokens carry no mark and were not taken over: they were not written by "
            "Toolgate. `toolgate audit verify` names them."
        )
    _tell_unmarked(unmarked)
    if is_taken_over and _found(database)["mode"] == "LOCKDOWN":
        typer.echo("Everybody is in LOCKDOWN: `toolgate mode` says why, and sets another mode.")


def _unmarked(database: str) -> dict[str, int]:
    """How many open questions, unused approvals and grants count no more, because no key of ours marked them."""
    from toolgate.interfaces.cli.audit import differences_of
    from toolgate.kernel.comparing import NO_MARK

    found = [one.kind for one in differences_of(database) if one.what == NO_MARK]
    return {"approvals": found.count("approval"), "grants": found.count("grant")}


def _tell_unmarked(unmarked: dict[str, int]) -> None:
    if count := unmarked["approvals"]:
        typer.echo(
            f"{count:,} approvals that wait or were not used yet carry no mark: those that wait can only be rejected, "
            "and nothing runs by the others. The calls have to be made again."
        )
    if count := unmarked["grants"]:
        typer.echo(f"{count:,} grants carry no mark and cover nothing: give them again where you want them.")
    if any(unmarked.values()):
        typer.echo("`toolgate audit verify` names them.")


def _upgrade_queue(database: str) -> None:
    """Make or upgrade the tables orders for workers go through, where workers can be had."""
    import asyncio
    from importlib.util import find_spec

    from toolgate.adapters.postgres.url import read

    address = read(database)
    if find_spec("pgqueuer") is None or address.pooled:
        return
    from toolgate.adapters.postgres.dispatcher import AWAY
    from toolgate.adapters.postgres.dispatcher import upgrade as upgrade_tables
    from toolgate.adapters.postgres.link import failure

    try:
        asyncio.run(upgrade_tables(address.dsn))
    except AWAY as error:
        raise failure(error) from error


@app.command(cls=OnDatabase, epilog=EXAMPLES["db backup"])
def backup(
    database: Database,
    destination: Annotated[Path, typer.Argument(help="File to write; it must not exist.")],
    json: Json = False,
) -> None:
    """Copy the database to a file while it is in use.

    The key file is not copied: keep it elsewhere.
    """
    from toolgate.adapters.sqlite.upkeep import backup_to

    _refuse_server(database, "pg_dump or a base backup")
    path = existing(database)
    size = backup_to(path, destination, by=login_name())
    if json:
        as_json({"destination": str(destination), "bytes": size})
    else:
        typer.echo(f"{destination}: {size:,} bytes, checked. The key file is not in it: keep {path}.key safe.")


@app.command(cls=OnDatabase, epilog=EXAMPLES["db vacuum"])
def vacuum(database: Database, json: Json = False) -> None:
    """Return unused space to the disk. Writers wait meanwhile."""
    from toolgate.adapters.sqlite.upkeep import vacuum_file

    _refuse_server(database, "its own VACUUM, which autovacuum runs by itself")
    before, after = vacuum_file(existing(database))
    if json:
        as_json({"bytes_before": before, "bytes_after": after})
    else:
        typer.echo(f"{before:,} -> {after:,} bytes")


@app.command(cls=OnDatabase, epilog=EXAMPLES["db prune"])
def prune(
    database: Database,
    older_than: Annotated[str, typer.Option(help="How long ago the calls finished, such as 12h, 30d or 4w.")],
    events: Annotated[
        bool, typer.Option("--events", help="Also remove events that old; the rest of the log still verifies.")
    ] = False,
    json: Json = False,
) -> None:
    """Delete the arguments and results of old finished calls.

    Who called what and when is kept, and the audit log still verifies.
    """
    cut = datetime.now(UTC) - timedelta(seconds=seconds_of(older_than))
    if is_postgres(database):
        from toolgate.adapters.postgres import upkeep as server

        count, removed = server.prune(database, cut, by=login_name(), events=events)
    else:
        from toolgate.adapters.sqlite import upkeep as file

        count, removed = file.prune(existing(database), cut, by=login_name(), events=events)
    if json:
        as_json({"forgotten": count, "removed_events": removed, "before": cut})
        return
    typer.echo(f"Deleted the arguments and results of {count:,} calls finished before {cut:%Y-%m-%d %H:%M} UTC.")
    if events:
        typer.echo(f"Removed {removed:,} events.")


@app.command("import", cls=Command, epilog=EXAMPLES["db import"])
def import_file(
    source: Annotated[str, typer.Argument(help="Path or URL of the SQLite file.")],
    database: Annotated[
        str,
        typer.Argument(envvar=DATABASE, show_envvar=False, help=f"URL of the PostgreSQL database; or set {DATABASE}."),
    ],
    json: Json = False,
) -> None:
    """Import a SQLite file into PostgreSQL: all of it or nothing.

    The audit log is verified on both sides.
    """
    if not is_postgres(database):
        raise UsageError("The database to import into is named by its URL: postgresql://user@host/database.")
    from toolgate.adapters.postgres.import_file import bring

    path = existing(source)
    done = bring(path, database, by=login_name(), say=lambda name, rows: typer.echo(f"{name}: {rows:,}", err=True))
    if json:
        as_json({"rows": done.rows, "chains": done.chains})
        return
    table(("table", "rows"), sorted(done.rows.items()))
    for project, events in sorted(done.chains.items()):
        typer.echo(f"{printable(project)}: {events:,} events, chain verifies")


@app.command(cls=Command, epilog=EXAMPLES["db key"])
def key(file: Annotated[Path, typer.Argument(help="File to write; it must not exist.")]) -> None:
    """Create a file with a new encryption key, for PostgreSQL.

    The servers of a PostgreSQL database share it. Keep a copy somewhere safe: without it nothing can be decrypted.
    """
    from toolgate.adapters.sealing import make_file

    make_file(file)
    typer.echo(f"{file}: a new key, readable by you alone. Without it nothing can be decrypted.")


@app.command(cls=OnDatabase, epilog=EXAMPLES["db rekey"])
def rekey(database: Database, json: Json = False) -> None:
    """Encrypt everything again with the first of your keys.

    Afterwards the older keys can be deleted. Running it again is harmless.
    """
    if is_postgres(database):
        from toolgate.adapters.postgres.rekey import rekey as seal_server_anew

        done = seal_server_anew(database, by=login_name())
    else:
        from toolgate.adapters.sqlite.rekey import rekey as seal_anew

        done = seal_anew(existing(database), by=login_name())
    if json:
        as_json(done._asdict())
        return
    typer.echo(f"Encrypted {done.resealed:,} values again with key {done.key}.")
    if done.retired:
        typer.echo(f"No longer needed: {', '.join(done.retired)}. Backups made before still need them.")
    if done.in_use:
        typer.echo(
            f"Still in use: {', '.join(done.in_use)}. Restart the processes that were opened before the newest key "
            "was added, then run this again."
        )
