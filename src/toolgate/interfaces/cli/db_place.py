"""`toolgate db move` and `toolgate db list`: the databases that are kept outside of their folders."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from toolgate.interfaces.cli.show import as_json, file_of, table

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


def move(
    source: Annotated[
        str, typer.Argument(show_default=False, help="Path of the database; by default toolgate.db in this folder.")
    ] = "toolgate.db",
    to: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where to move it; by default this folder's own place.")
    ] = None,
    json: Json = False,
) -> None:
    """Move a database out of its folder, with its key.

    Refused while a process has it open. If it is interrupted, run it again.
    """
    from toolgate.adapters.sqlite.move import move as move_file
    from toolgate.adapters.sqlite.place import make_place
    from toolgate.guards.state import DATABASE

    path = file_of(source)
    target = make_place(Path()) / DATABASE if to is None else to
    move_file(path, target)
    if json:
        as_json({"from": str(path), "to": str(target)})
    else:
        typer.echo(f"{path}: moved to {target}, with its key.")


def list_kept(json: Json = False) -> None:
    """List the databases of folders, and which folders are gone.

    After a folder was renamed, `toolgate db move FILE` in it takes its database over.
    """
    from toolgate.adapters.sqlite.place import known

    found = known()
    if json:
        as_json({"databases": [{"folder": k.folder, "is_gone": k.is_gone, "database": str(k.database)} for k in found]})
        return
    table(("folder", "", "database"), [(one.folder, "gone" if one.is_gone else "", one.database) for one in found])
