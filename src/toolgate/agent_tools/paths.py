"""Check a path before a tool gets it: where it really leads, and whether that may be touched."""

from __future__ import annotations

import os
from pathlib import Path

from toolgate.agent_tools.validation import Validation
from toolgate.guards.edges import Edges, PathJudge, judge_by_default
from toolgate.guards.files import Access, PathRefused, Workspace
from toolgate.kernel.misuse import explained_class


@explained_class
class PathValidator:
    """Checks paths beneath one root. A valid answer's `value` is the real path, links followed."""

    def __init__(self, root: str | os.PathLike[str] = ".", *, judge: PathJudge = judge_by_default) -> None:
        self._edges = Edges(workspace=Workspace(Path(root)), judge_path=judge)

    def validate_read_path(self, path: str) -> Validation:
        """Whether a file may be read."""
        return self._validate("read_file", path, "read", ("file",))

    def validate_write_path(self, path: str) -> Validation:
        """Whether a file may be made or replaced."""
        return self._validate("write_file", path, "write", ("file", "absent"))

    def validate_directory_path(self, path: str) -> Validation:
        """Whether a directory may be listed."""
        return self._validate("list_directory", path, "list", ("directory",))

    def _validate(self, tool: str, path: str, access: Access, kinds: tuple[str, ...]) -> Validation:
        try:
            fact = self._edges.look(tool, path, access)
        except PathRefused as refused:
            return Validation.no(str(refused))
        if fact.kind not in kinds:
            there = "does not exist" if fact.kind == "absent" else f"is a {fact.kind}, not a {kinds[0]}"
            return Validation.no(f"{path!r} {there}.")
        return Validation.yes(fact.path)

    def close(self) -> None:
        """Let go of the root."""
        self._edges.workspace.close()
