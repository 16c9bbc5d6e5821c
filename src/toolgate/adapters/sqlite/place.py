"""The places outside of their folders that databases are kept in: making one, and finding them all."""

from __future__ import annotations

import os
from os import PathLike
from pathlib import Path
from typing import NamedTuple

from toolgate.errors import UsageError
from toolgate.guards.files import sync_folder
from toolgate.guards.state import DATABASE, database_of, place_of, state_folder

_FOLDER = "folder"
"""The file that says which folder a place belongs to."""
PRIVATE = 0o700


class Kept(NamedTuple):
    """A database that is kept for a folder, which may be gone."""

    folder: str
    database: Path

    @property
    def is_gone(self) -> bool:
        return not os.path.isdir(self.folder)


def workspace_database(folder: str | PathLike[str] = ".") -> Path:
    """Return the path of the folder's own database, which commands in that folder work on; its place is made.

    UsageError where there can be none: name a database then.
    """
    found = database_of(folder)
    if found is not None and found.exists():
        return found
    return make_place(folder) / DATABASE


def make_place(folder: str | PathLike[str]) -> Path:
    """Make what is kept for this folder, readable by its owner alone."""
    place = place_of(folder)
    if place is None:
        raise UsageError(f"There is no home folder to keep a database in. {_INSTEAD}")
    try:
        place.mkdir(parents=True, exist_ok=True)
        for one in (place.parent.parent, place.parent, place):
            one.chmod(PRIVATE)
        _note(place, os.path.realpath(folder))
    except OSError as error:
        raise UsageError(f"The folder {place} cannot be used ({error.strerror}). {_INSTEAD}") from None
    return place


_INSTEAD = "Name a database with --database FILE or TOOLGATE_DATABASE, or a writable folder with XDG_STATE_HOME."


def _note(place: Path, folder: str) -> None:
    file = place / _FOLDER
    if file.is_file() and file.read_bytes() == os.fsencode(folder):
        return
    draft = place / f"{_FOLDER}.new"
    draft.write_bytes(os.fsencode(folder))  # which nobody else can reach, in a private folder
    draft.replace(file)
    sync_folder(place)


def known() -> list[Kept]:
    """Return every database that is kept for a folder, by the folder's name."""
    state = state_folder()
    if state is None or not (state / "workspaces").is_dir():
        return []
    places = [one for one in (state / "workspaces").iterdir() if (one / DATABASE).is_file()]
    return sorted(Kept(_folder_of(one), one / DATABASE) for one in places)


def _folder_of(place: Path) -> str:
    try:
        return os.fsdecode((place / _FOLDER).read_bytes())
    except OSError:
        return "?"
