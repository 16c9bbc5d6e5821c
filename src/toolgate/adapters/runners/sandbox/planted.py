"""Put aside what a writing run made where programs, or Toolgate itself, look for what steers them.

A run is on record before it begins, in a folder that is locked while its owner lives. The record of an owner that was
killed is settled by the next one: what was made meanwhile is put aside then.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
from collections.abc import Sequence

from toolgate.adapters.runners.sandbox.layout import within
from toolgate.errors import SandboxError
from toolgate.guards.edges import Edges
from toolgate.guards.patterns import PathPatterns
from toolgate.guards.steering import is_bare, put_aside, steering_names
from toolgate.kernel.output import ToolOutput

_NAMED = 5
_RECORD = "run-"


class Planted:
    """What one run made at names that steer programs: `begin` before it, `look` after each step of it, and `end`."""

    def __init__(self, folder: str, edges: Edges, roots: Sequence[str]) -> None:
        self._roots = [root.path for root in edges.workspace.roots if any(within(root.path, one) for one in roots)]
        self._patterns = edges.locked
        self._record = os.path.join(folder, f"{_RECORD}{secrets.token_hex(8)}.json")
        self._known: frozenset[str] = frozenset()
        self._aside: dict[str, str | None] = {}

    def begin(self) -> None:
        """Note what is there, so that a later process could go on from here."""
        self._known = frozenset(steering_names(self._roots, self._patterns))
        told = {"roots": self._roots, "known": sorted(self._known), "patterns": self._patterns.as_json()}
        with open(f"{self._record}.new", "w", encoding="utf-8") as file:
            json.dump(told, file)
        os.rename(f"{self._record}.new", self._record)

    def look(self, *, makes_repositories: bool) -> None:
        """Put aside what is new by now, but for what Git makes by itself: that runs nothing."""
        found = set(steering_names(self._roots, self._patterns, opens=True)) - self._known
        if makes_repositories:
            self._known |= {path for path in found if _is_repository(path)}
        self._aside |= _put_aside(found - self._known)

    def end(self) -> None:
        """Forget the run: what it made was looked at."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._record)

    def reported(self, output: object) -> object:
        """Return an output as it is, or as a failure that says what was put aside."""
        if not self._aside:
            return output
        data = output.data if isinstance(output, ToolOutput) else output
        return ToolOutput.fail(_report(self._aside), data=data)


def settle(folder: str) -> None:
    """Put aside what runs made whose owner died; `folder` is where they are on record."""
    for name in os.listdir(folder):
        if name.startswith(_RECORD) and name.endswith(".json"):
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                told = json.load(file)
            patterns = PathPatterns.of_json(told["patterns"])
            _put_aside(set(steering_names(told["roots"], patterns, opens=True)).difference(told["known"]))


def has_record(folder: str) -> bool:
    """Whether a run that began there has not ended."""
    return any(name.startswith(_RECORD) for name in os.listdir(folder))


def _put_aside(paths: set[str]) -> dict[str, str | None]:
    found: dict[str, str | None] = {}
    for path in sorted(paths, key=len):
        try:
            found[path] = put_aside(path)
        except OSError as error:
            raise SandboxError(
                f"The command made {path}, which steers programs or Toolgate itself, and it could not be put aside "
                f"({error.strerror}). Look at it, and remove it.",
                may_have_run=True,
            ) from error
    return found


def _is_repository(path: str) -> bool:
    return os.path.basename(path) == ".git" or is_bare(path)


def _report(aside: dict[str, str | None]) -> str:
    named = [f"{path} ({'empty, removed' if to is None else f'now {to}'})" for path, to in aside.items()]
    more = f" and {len(named) - _NAMED:,} more" if len(named) > _NAMED else ""
    return (
        f"The command made what steers programs or Toolgate itself, which no command may: {', '.join(named[:_NAMED])}"
        f"{more}. It was put aside; the rest of what the command did is there. Look at it, and put it in its place "
        "yourself if it should be there."
    )
