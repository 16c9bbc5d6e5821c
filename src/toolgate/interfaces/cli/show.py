"""How commands speak: one JSON object with `--json`, otherwise lines and tables a person can read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson
import typer

from toolgate.errors import StoreError


def as_json(value: Any) -> None:
    """Print one JSON document."""
    typer.echo(orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_UTC_Z).decode())


def table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print rows under their headings, as wide as they need."""
    cells = [[str(column) for column in columns], *[[str(cell) for cell in row] for row in rows]]
    widths = [max(len(row[index]) for row in cells) for index in range(len(columns))]
    for row in cells:
        typer.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def existing(database: Path) -> Path:
    """Return the path of a database that must be there already; commands that look never make one."""
    if not database.exists():
        raise StoreError(f"There is no database at {database}; give the path of an existing file.")
    return database
