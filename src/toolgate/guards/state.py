"""Where what belongs to a folder is kept outside of it: in the user's state folder, out of reach of what runs in it.

Only looks; `adapters/sqlite/place.py` makes the folders.
"""

from __future__ import annotations

import hashlib
import os
import re
from os import PathLike
from pathlib import Path

DATABASE = "toolgate.db"
POLICY = "toolgate.yaml"


def state_folder() -> Path | None:
    """Return Toolgate's part of the user's state folder; None for a user without a home."""
    base = os.environ.get("XDG_STATE_HOME") or ""
    if os.path.isabs(base):
        return Path(base) / "toolgate"
    home = os.path.expanduser("~")
    return Path(home) / ".local" / "state" / "toolgate" if os.path.isabs(home) else None


def place_of(folder: str | PathLike[str]) -> Path | None:
    """Return what is kept for this very folder: two clones have two, and a folder that is renamed has another."""
    state = state_folder()
    if state is None:
        return None
    real = os.path.realpath(folder)
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", os.path.basename(real)).strip("-.")[:40]
    digest = hashlib.sha256(os.fsencode(real)).hexdigest()[:16]
    return state / "workspaces" / f"{name or 'folder'}-{digest}"


def database_of(folder: str | PathLike[str]) -> Path | None:
    """Return where the folder's database is, or would be made; None where no place can be had.

    What is kept outside comes first, so that nothing put into the folder takes its place; then one in the folder, where
    earlier versions made it.
    """
    place, inside = place_of(folder), Path(folder) / DATABASE
    if not _holds(place, DATABASE) and os.path.isfile(inside):
        return inside
    return None if place is None else place / DATABASE


def policy_folder(folder: str | PathLike[str]) -> Path:
    """Return the directory that the folder's policy is looked for in: the place outside where one is kept there."""
    place = place_of(folder)
    return place if place is not None and _holds(place, POLICY) else Path(folder)


def _holds(place: Path | None, name: str) -> bool:
    """Whether this file is kept there; a place that cannot be reached holds nothing."""
    return place is not None and os.path.isfile(place / name)
