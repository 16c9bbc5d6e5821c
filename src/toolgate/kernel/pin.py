"""Programs that somebody else than root can replace: what each was when it was first used, and what it is now.

A pin is an event, so it outlives the process, and every process that uses the store knows it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from toolgate.kernel.event import Event

PINNED, FORGOTTEN = "program.pinned", "program.forgotten"
FIRST_USE = "policy:first-use"
"""Who pins a program that nobody knows: the policy, which trusts its directory."""


def stream_of(place: str) -> str:
    """Return what events of programs name where others name their call; `place` is the machine, where several share
    a store."""
    return f"programs:{place}"


class Program(NamedTuple):
    """What is known of a program's file.

    target: where links lead. sha256: of its content; None where that is a program of the system's own, which only
    root changes. modified: when, as ISO text. shebang: what a script names behind `#!`; interpreter: the file that is
    today. stamp: what the file system said of the file when it was read; empty where that proves nothing.
    """

    path: str
    target: str
    sha256: str | None
    size: int
    modified: str
    shebang: str | None = None
    interpreter: str | None = None
    stamp: str = ""

    @property
    def identity(self) -> str:
        """What must be the same for it to be the same program."""
        known = (self.target, self.sha256 or "", self.interpreter or "")
        return hashlib.sha256("\0".join(known).encode()).hexdigest()

    @property
    def words(self) -> str:
        """What a person compares: digest, size and time, or where it leads."""
        if self.sha256 is None:
            return f"a link to {self.target}"
        runs_by = f", run by {self.interpreter}" if self.interpreter else ""
        return f"sha256 {self.sha256[:16]}, {self.size:,} bytes, changed {self.modified}{runs_by}"


class Pin(NamedTuple):
    """What a program was when somebody, or the policy at its first use, last agreed to it."""

    program: Program
    by: str
    at: datetime

    def as_json(self) -> dict[str, Any]:
        return {**self.program._asdict(), "pinned_by": self.by, "pinned_at": self.at.isoformat()}


class Changed(NamedTuple):
    """A program that is not what it was."""

    before: Pin
    now: Program

    @property
    def reason(self) -> str:
        """What happened, for a person: the file, what it was and what it is."""
        before = self.before
        return (
            f"the program {self.now.path} is not what it was when it was pinned ({before.at:%Y-%m-%d %H:%M} by "
            f"{before.by}): it was {before.program.words}; it is {self.now.words}"
        )

    def as_json(self) -> dict[str, Any]:
        before = self.before
        return {
            "path": self.now.path,
            "before": {**_shown(before.program), "pinned_by": before.by, "pinned_at": before.at.isoformat()},
            "now": _shown(self.now),
        }


def _shown(program: Program) -> dict[str, Any]:
    names = ("target", "sha256", "size", "modified", "interpreter")
    return {name: getattr(program, name) for name in names}


class PinBook:
    """The pins of one place, as the events tell. `refresh` reads what other processes wrote since."""

    def __init__(self) -> None:
        self.seq = 0
        self.pins: Mapping[str, Pin] = {}
        self.refresh: Callable[[], None] | None = None

    def take(self, events: Iterable[Event]) -> None:
        """Follow events in their order; those that were taken already change nothing."""
        for event in events:
            if event.seq > self.seq:
                self.seq = event.seq
                self.pins = self._after(event)

    def _after(self, event: Event) -> Mapping[str, Pin]:
        """Return the pins after an event; a new mapping, since others look into the old one meanwhile."""
        data = event.data
        if event.type == FORGOTTEN:
            return {path: pin for path, pin in self.pins.items() if path not in data["paths"]}
        found = Program(**{name: data[name] for name in Program._fields})
        if data["by"] == FIRST_USE and found.path in self.pins:  # two processes were first; only one was
            return self.pins
        return {**self.pins, found.path: Pin(found, data["by"], event.at)}

    def knows(self, programs: Iterable[Program]) -> bool:
        """Whether each of these is on record as it is now."""
        return all(one.path in self.pins and self.changed(one) is None for one in programs)

    def changed(self, program: Program) -> Changed | None:
        """Return how a program differs from its pin; None where it does not, or has none."""
        pin = self.pins.get(program.path)
        if pin is None or pin.program.identity == program.identity:
            return None
        return Changed(pin, program)

    def all_changed(self, programs: Iterable[Program]) -> tuple[Changed, ...]:
        """Return those that differ, after a second look at the record: somebody may have agreed elsewhere."""
        looked = tuple(programs)
        if self.refresh is not None and any(self.changed(one) for one in looked):
            self.refresh()
        found = (self.changed(one) for one in looked)
        return tuple(one for one in found if one is not None)
