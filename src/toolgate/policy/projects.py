"""The policies of single projects: a folder with a file for each project that has one of its own.

A project's file adds to the policy of all, as if it included it: every rule of both counts, so what that asks or denies
stays asked or denied. What would take from it is refused here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from toolgate.errors import PolicyError, PolicyProblem
from toolgate.kernel.context import PRIVATE
from toolgate.kernel.ids import MAX_ID
from toolgate.policy.document import Document

SUFFIX = ".yaml"


def find_projects(folder: Path) -> dict[str, Path]:
    """Return the policy files of projects in a folder, by the project's name; PolicyError for a file that is none.

    Hidden files and folders are left alone; what several projects include can be in a folder.
    """
    try:
        names = sorted(path for path in folder.iterdir() if not path.name.startswith(".") and not path.is_dir())
    except OSError as error:
        why = error.strerror or str(error)
        raise PolicyError(f"The policies of projects in {folder} cannot be read: {why}. Name a folder.") from None
    for path in names:
        if path.suffix != SUFFIX or not _can_be_project(path.stem):
            raise PolicyError(
                f"{path} is not the policy of a project: such a file is named after its project, `<project>{SUFFIX}`. "
                "Rename it, or keep it in a folder beneath."
            )
    return {path.stem: path for path in names}


def _can_be_project(name: str) -> bool:
    return name.isprintable() and len(name) <= MAX_ID and not name.startswith(("_", PRIVATE))


def check_only_adds(documents: Iterable[Document]) -> list[PolicyProblem]:
    """Return a problem for everything in a project's files that could take from what the policy of all says."""
    message = "this is for the policy of all projects, and a project's only adds to that; write it there"
    return [
        PolicyProblem(document.name, line, 1, path, message)
        for document in documents
        for path, line in _takes(document)
    ]


def _takes(document: Document) -> Iterator[tuple[str, int]]:
    """Exceptions from what is protected, commands that become known, and a tool taken out of its category."""
    lines = document.text.splitlines()
    for key in ("protected", "commands"):
        if getattr(document, key):
            yield key, next((number for number, line in enumerate(lines, 1) if line.startswith(key)), 1)
    for name, entry in document.tools.items():
        if entry.category is not None:
            yield f"tools.{name}.category", entry.site.line
