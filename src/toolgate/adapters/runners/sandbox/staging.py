"""Which paths the sandbox's user cannot use as they are, and the command that puts them within its reach (`stage`)."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from toolgate.adapters.runners.sandbox import layout
from toolgate.adapters.runners.sandbox.backend import User

_HERE = os.path.dirname(__file__)


def must_stage(path: str, own: Sequence[str], user: User) -> bool:
    """Whether a user cannot reach a path, or it is one of the program's own that belongs to root."""
    if layout.blocker(path, *user) is not None:
        return True
    return path in own and os.stat(path).st_uid == 0


def stage_command(request: Mapping[str, object]) -> list[str]:
    """Return the command that does what a request says, as root."""
    return [sys.executable, "-I", "-S", os.path.join(_HERE, "stage.py"), json.dumps(request)]


@dataclass
class Places:
    """What is mounted at its own path again. `covers` are covered first; `blocked` is a path that a user cannot reach.

    Nothing beneath a covered directory was within the user's reach: covering it takes nothing away.
    """

    user: User
    covers: list[str] = field(default_factory=list)
    places: list[tuple[str, str, bool]] = field(default_factory=list)
    blocked: str | None = None

    @classmethod
    def of(cls, wanted: Mapping[str, bool], user: User) -> Places:
        """Return what must be mounted for a user to use these paths, each with whether it may write there."""
        found = cls(user)
        for path in sorted(wanted, key=len):
            for place in dict.fromkeys((path, os.path.realpath(path))):
                if os.path.exists(path) and not any(layout.within(place, done) for _, done, _ in found.places):
                    found._add(path, place, is_writable=wanted[path])
        return found

    def _add(self, path: str, place: str, *, is_writable: bool) -> None:
        in_the_way = layout.blocker_by_name(place, *self.user)
        is_roots = place == os.path.realpath(path) and os.stat(path).st_uid == 0
        if in_the_way is None and not is_roots:
            return
        if in_the_way is not None:
            self.blocked = self.blocked or path
        if in_the_way not in (None, place, *self.covers):
            self.covers.append(str(in_the_way))
        self.places.append((path, place, is_writable))

    def command(self, then: Sequence[str]) -> list[str]:
        """Return the command that mounts these, where there are any, and goes on as another."""
        if not self.places:
            return [*then]
        request = {"user": self.user, "covers": self.covers, "places": self.places, "command": then}
        return stage_command(request | {"is_needed": self.blocked is not None})

    @property
    def problem(self) -> str | None:
        """Say what is in the way, for where it could not be mounted; None where nothing is."""
        if self.blocked is None:
            return None
        in_the_way = layout.blocker(self.blocked, *self.user)
        return f"user {self.user.uid}, as whom the sandbox runs, cannot enter {in_the_way} on the way to {self.blocked}"
