"""The stored brakes: one marked row that names the event which set them, and what is believed of it.

Whoever can write to the database but has no key cannot make a row that counts. Nor can they bring an older one back:
the chain of `_system` tells of a later change, and a process never goes back behind what it has seen.
"""

from __future__ import annotations

from datetime import datetime
from threading import Lock
from typing import Any, NamedTuple

import orjson

from toolgate.kernel.brake import Brake, Brakes, Scope
from toolgate.kernel.context import Mode
from toolgate.kernel.marks import Marks

LATER = """
SELECT seq, base_seq, (SELECT count(*) FROM events WHERE project_id='_system' AND seq>{0}),
  (SELECT count(*) FROM events WHERE project_id='_system' AND seq>{0} AND type='mode.changed')
FROM chain_heads WHERE project_id='_system'
"""
"""What the chain of `_system` holds after an event: one row of a `Later`, or none where it has no events."""
_AGAIN = (
    "Everybody is in LOCKDOWN until the mode is set again; the brakes of projects, agents and runs must then be pulled "
    "again, too."
)


class Later(NamedTuple):
    """The end and the beginning of the chain of `_system`; how many events follow one, and how many change a mode."""

    head: int = 0
    base: int = 0
    events: int = 0
    changes: int = 0


def text_of(brakes: Brakes, marks: Marks) -> str:
    """Return the brakes as they are stored, with the mark of all they say."""
    said = _said([_written(brake) for brake in (brakes.whole, *brakes.scoped.values())], brakes.serial)
    return orjson.dumps({"said": said.decode(), "mark": marks.make(_covered(said))}).decode()


def serial_of(text: str | None) -> int:
    """Return the number of the event a stored text names; whether that is true remains to be seen."""
    return 0 if text is None else _parsed(text)[0]


def marked_anew(text: str | None, marks: Marks) -> str | None:
    """Return a stored text with its mark under the newest key; None where it needs none, or carries none that holds."""
    if text is None:
        return None
    serial, said, mark = _parsed(text)
    if not marks.match(mark, _covered(said)):
        return None
    anew = text_of(_brakes(said, serial), marks)
    return None if anew == text else anew


def read(text: str) -> Brakes | None:
    """Return what a stored text says, whatever its mark; None where somebody wrote into it what we never do."""
    try:
        serial, said, _ = _parsed(text)
        return _brakes(said, serial)
    except (ValueError, TypeError, KeyError):
        return None


def is_marked(text: str, marks: Marks) -> bool:
    """Whether a stored text carries the mark of what it says."""
    _, said, mark = _parsed(text)
    return marks.match(mark, _covered(said))


def shown(text: str | None) -> dict[str, Any]:
    """What a stored text says, for people who look at a database without its key: the mode, and how many brakes."""
    brakes = Brakes() if text is None else read(text)
    if brakes is None:
        return {"mode": Mode.LOCKDOWN.value, "brakes": 0}
    return {"mode": brakes.mode.value, "brakes": len(brakes.scoped)}


class Watch:
    """Judges what is stored, and remembers the newest that was believed."""

    def __init__(self, marks: Marks) -> None:
        self._marks = marks
        self._lock = Lock()
        self._newest = 0
        self._last: tuple[str | None, object, Brakes] | None = None

    @property
    def newest(self) -> int:
        """The number of the newest brakes seen here; taken before a read, so that nothing newer is held against it."""
        return self._newest

    def note(self, brakes: Brakes) -> None:
        """Remember that these are stored for good."""
        with self._lock:
            self._newest = max(self._newest, brakes.serial)

    def is_news(self, found: Brakes, standing: Brakes, *, newest: int) -> bool:
        """Whether what a read found takes the place of what stands here; `newest` was taken before the read.

        What was wrong with the row then may have been made good meanwhile: the next read will tell.
        """
        return found.serial >= standing.serial if found.fault is None else newest == self._newest

    def known(self, text: str | None, at: object) -> Brakes | None:
        """Return what was believed of this text when it stood here last: nothing may have happened since.

        `at` is another one whenever anybody wrote to the row, or to the chain.
        """
        last = self._last
        is_same = last is not None and last[:2] == (text, at) and last[2].serial >= self._newest
        return last[2] if last is not None and is_same else None

    def believe(self, text: str | None, later: Later, *, newest: int, at: object) -> Brakes:
        """Return the stored brakes, or LOCKDOWN where a gate did not write them, or not last."""
        serial, said, mark = (0, b"", "") if text is None else _parsed(text)
        if text is not None and not self._marks.match(mark, _covered(said)):
            return Brakes.distrusted(f"The stored mode does not carry the mark of this gate. {_AGAIN}")
        if later.changes or serial < newest:
            what = "was taken away" if text is None else "is an older one that was put back"
            return Brakes.distrusted(f"The stored mode {what}. {_AGAIN}")
        if later.events != later.head - max(serial, later.base):
            return Brakes.distrusted(f"Events of `_system` that may have changed the mode are missing. {_AGAIN}")
        brakes = Brakes() if text is None else _brakes(said, serial)
        self.note(brakes)
        self._last = (text, at, brakes)
        return brakes


def _covered(said: bytes) -> tuple[str, str]:
    """What the mark of the modes is over; no other row's begins like this."""
    return ("modes", said.decode())


def _said(written: list[dict[str, Any]], serial: int) -> bytes:
    return orjson.dumps({"brakes": written, "event": serial})


def _written(brake: Brake) -> dict[str, Any]:
    fields = {**brake.scope._asdict(), "mode": brake.mode, "by": brake.by, "at": brake.at, "reason": brake.reason}
    return {**fields, "holds": list(brake.holds)}


def _parsed(text: str) -> tuple[int, bytes, object]:
    """The event a text names, what it says and its mark; nothing where it is not written as ours are."""
    try:
        outer = orjson.loads(text)
        said: str = outer["said"]
        serial = orjson.loads(said)["event"]
        if type(serial) is not int or not 0 <= serial < 2**62:
            return 0, b"", None
        return serial, said.encode(), outer["mark"]
    except (ValueError, TypeError, KeyError, AttributeError):
        return 0, b"", None


def _brakes(said: bytes, serial: int) -> Brakes:
    """Read what carries a mark of ours, and so was written here."""
    whole, *scoped = [_read(one) for one in orjson.loads(said)["brakes"]]
    return Brakes(whole=whole, scoped={brake.scope: brake for brake in scoped}, serial=serial)


def _read(one: dict[str, Any]) -> Brake:
    at = one["at"]
    return Brake(
        scope=Scope(one["project"], one["agent"], one["run"]),
        mode=Mode(one["mode"]),
        by=one["by"],
        at=None if at is None else datetime.fromisoformat(at),
        reason=one["reason"],
        holds=tuple(one["holds"]),
    )
