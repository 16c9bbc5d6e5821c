"""What is kept of a handler's reports of its progress: little of each, and not too many of one call.

Reports are events, which are kept, chained and sent to everybody who listens; a handler in a loop must not fill them.
"""

from __future__ import annotations

from collections import OrderedDict
from datetime import datetime
from threading import Lock

from toolgate.errors import ToolOutputError
from toolgate.kernel.call import Call

MESSAGE_CHARACTERS = 2000
"""How much of a report's message is kept."""
DATA_BYTES = 8192
"""How large a report's data may be to be kept whole; larger data is outlined."""
BURST = 100
PER_SECOND = 2.0
MOST_CALLS = 10_000


class Reports:
    """Whether one more report of a call is kept: `BURST` at once, and `PER_SECOND` in the long run."""

    def __init__(self) -> None:
        self._lock = Lock()  # handlers of one gate run on several threads
        self._levels: OrderedDict[tuple[str, str], tuple[float, datetime]] = OrderedDict()

    def take(self, call: Call, now: datetime) -> bool:
        """Whether to keep a report made now."""
        key = (call.project, call.id)
        with self._lock:
            level, at = self._levels.get(key, (float(BURST), now))
            level = min(float(BURST), level + (now - at).total_seconds() * PER_SECOND)
            if level < 1.0:
                return False
            self._levels[key] = (level - 1.0, now)
            self._levels.move_to_end(key)
            if len(self._levels) > MOST_CALLS:
                self._levels.popitem(last=False)
            return True


def checked_fraction(fraction: object) -> float | None:
    """Return how far a handler says it is; ToolOutputError for what is no number."""
    if fraction is None or (isinstance(fraction, int | float) and abs(fraction) <= 1e9):
        return fraction
    raise ToolOutputError("The progress of a call is a number, from 0 for nothing to 1 for all of it.")


def shortened(message: str) -> str:
    """Return a masked message in the length that is kept. Masked first: half a secret is no longer known for one."""
    return message if len(message) <= MESSAGE_CHARACTERS else message[: MESSAGE_CHARACTERS - 1] + "\u2026"
