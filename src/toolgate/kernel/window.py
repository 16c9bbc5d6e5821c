"""Policy files that a sandboxed run could have written: what was trusted when it began, and what waits for a person.

A window is open from before such a run starts until it ended. While it is open, and where it ended with a file that
says something else, the policy in the files counts only as far as it was trusted, until a person accepts it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from toolgate.kernel.event import Event

STREAM = "policy"
"""What events of windows name where others name their call: they are found by it."""
OPENED, CLOSED, HELD = "policy.window_opened", "policy.window_closed", "policy.held"
RELEASED, ACCEPTED = "policy.released", "policy.accepted"


class Window(NamedTuple):
    """One run and the policy files it could have written, at a `place` (a machine, where several share a store).

    `files` has the fingerprints of what each may say without anybody's word. `revision` was in force; `texts_at` is the
    number of the event that has its texts.
    """

    id: str
    seq: int
    place: str
    project: str
    call_id: str
    revision: str
    texts_at: int
    files: Mapping[str, frozenset[str]]

    def told(self) -> dict[str, Any]:
        """Return the facts of the event that opens it, or that holds what it found."""
        return {
            "window": self.id,
            "place": self.place,
            "of_project": self.project,
            "of_call": self.call_id,
            "revision": self.revision,
            "texts_at": self.texts_at or None,
            "files": {path: sorted(texts) for path, texts in self.files.items()},
        }


class Ledger:
    """The windows that are open and those whose files wait for a person, as the events tell."""

    def __init__(self) -> None:
        self.seq = 0
        self.windows: dict[str, Window] = {}
        self.holds: dict[str, Window] = {}

    @property
    def since(self) -> int:
        """The number of the first event that whoever begins to read now needs: what is written says it of itself."""
        return min((one.seq for one in self.guards()), default=self.seq + 1)

    def guards(self) -> tuple[Window, ...]:
        """Return everything that limits what the files may say."""
        return (*self.windows.values(), *self.holds.values())

    def take(self, events: Iterable[Event]) -> None:
        """Follow events in their order; those that were taken already change nothing."""
        for event in events:
            if event.seq > self.seq:
                self.seq = event.seq
                self._take(event)

    def _take(self, event: Event) -> None:
        data = event.data
        if event.type == OPENED:
            opened = _window(event.seq, data)
            self.windows[opened.id] = opened
        elif event.type == ACCEPTED:
            self._accept(data["place"], data["files"])
        else:
            self.windows.pop(data["window"], None)
            before = self.holds.pop(data["window"], None)
            if event.type == HELD:
                held = _window(event.seq, data)
                self.holds[held.id] = held if before is None else held._replace(seq=before.seq)

    def _accept(self, place: str, texts: Mapping[str, str]) -> None:
        """Trust these texts while windows are open that could have written them; nothing waits for a word any more."""
        for key, one in self.windows.items():
            if one.place == place:
                self.windows[key] = one._replace(
                    files={
                        path: trusted if path not in texts else trusted | {texts[path]}
                        for path, trusted in one.files.items()
                    }
                )
        for key, one in tuple(self.holds.items()):
            left = {path: trusted for path, trusted in one.files.items() if path not in texts}
            if one.place == place and left:
                self.holds[key] = one._replace(files=left)
            elif one.place == place:
                del self.holds[key]


def _window(seq: int, data: Mapping[str, Any]) -> Window:
    files = {path: frozenset(trusted) for path, trusted in data["files"].items()}
    told = (data["place"], data["of_project"], data["of_call"], data["revision"], data["texts_at"] or seq)
    return Window(data["window"], seq, *told, files)
