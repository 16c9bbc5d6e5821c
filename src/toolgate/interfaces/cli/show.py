"""How commands speak: one JSON object with `--json`, otherwise lines and tables a person can read."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import typer

from toolgate.errors import StoreError, UsageError

if TYPE_CHECKING:
    from toolgate.kernel.approval import Approval

LEAST = 16
"""How far a column that gives way is cut."""


def as_json(value: Any) -> None:
    """Print one JSON document."""
    typer.echo(orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_UTC_Z).decode())


def question_json(approval: Approval) -> dict[str, Any]:
    """What an approver must see, as JSON types; the documents' artifact calls the approval's id otherwise."""
    from toolgate.kernel.artifact import artifact_of

    told = artifact_of(approval).to_dict()
    return {"approval_id": told.pop("request_id"), **told}


def table(columns: Sequence[str], rows: Sequence[Sequence[object]], *, gives: str | None = None) -> None:
    """Print rows under their headings, as wide as they need; on a terminal, the column that `gives` way is cut."""
    cells = [[str(column) for column in columns], *[[printable(cell) for cell in row] for row in rows]]
    widths = [max(len(row[index]) for row in cells) for index in range(len(columns))]
    if gives is not None and sys.stdout.isatty():
        place = columns.index(gives)
        others = sum(widths) - widths[place] + 2 * (len(columns) - 1)
        widths[place] = min(widths[place], max(LEAST, shutil.get_terminal_size().columns - others))
        cells = [[*row[:place], cut(row[place], widths[place]), *row[place + 1 :]] for row in cells]
    for row in cells:
        typer.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def cut(text: str, width: int) -> str:
    """A line of at most so many columns, counting what letters really take; a longer one ends with an ellipsis."""
    from rich.cells import cell_len, set_cell_size

    return text if cell_len(text) <= width else set_cell_size(text, max(0, width - 1)).rstrip("…") + "…"


def printable(value: object) -> str:
    """A value as text that cannot steer a terminal: control characters are written out."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in str(value))


def is_postgres(database: str) -> bool:
    """Whether this names a PostgreSQL database, not a file."""
    return database.startswith(("postgresql://", "postgres://"))


def store_url(database: str) -> str:
    """Return the URL of a database that must be there already, for commands that do not make one."""
    return database if is_postgres(database) else f"sqlite:///{existing(database).resolve()}"


def file_of(database: str | Path) -> Path:
    """Return the path of a database file that is named by its path or URL."""
    from toolgate.bootstrap import store_url as url_of

    url = url_of(database)
    if not url.startswith("sqlite:///"):
        raise UsageError(f"{url.partition('://')[0]}:// is not a database file.")
    return Path(url.removeprefix("sqlite:///"))


def existing(database: str | Path) -> Path:
    """Return the path of a database file that must be there already; commands that look never make one."""
    path = file_of(database)
    try:
        if path.exists():
            return path
    except OSError as error:
        raise StoreError(f"The database {path} cannot be reached ({error.strerror}).") from error
    raise StoreError(f"There is no database at {path}.{_instead(path)}")


def _instead(path: Path) -> str:
    """What is there, and what to do."""
    beside = sorted(one.name for one in path.parent.glob("*.db") if one.is_file())[:5] if path.parent.is_dir() else []
    found = f" In that folder there is {', '.join(beside)}." if beside else ""
    return (
        f"{found} Name one with --database or TOOLGATE_DATABASE; `toolgate init` makes one, and `toolgate db list` "
        "names those of other folders."
    )
