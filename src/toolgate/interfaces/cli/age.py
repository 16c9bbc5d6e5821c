"""How ages are typed on the command line."""

from __future__ import annotations

import re

from toolgate.errors import UsageError

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


def seconds_of(text: str) -> float:
    """Read an age such as 90s, 15m, 12h, 30d or 4w."""
    found = re.fullmatch(r"(\d{1,5})([smhdw])", text.strip())  # five digits: no age reaches before the year one
    if found is None:
        raise UsageError(f"{text!r} is not an age; write a number and s, m, h, d or w, such as 30d.")
    return float(found[1]) * _UNITS[found[2]]
