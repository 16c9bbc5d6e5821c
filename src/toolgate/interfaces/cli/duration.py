"""How durations are typed and shown on the command line."""

from __future__ import annotations

import re

import typer

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_SHOWN = (("d", 86400), ("h", 3600), ("min", 60))


def seconds_of(text: str) -> float:
    """Read a duration such as 90s, 15m, 12h, 30d or 4w."""
    found = re.fullmatch(r"(\d{1,5})([smhdw])", text.strip())  # five digits: none reaches back before the year one
    if found is None:
        raise typer.BadParameter(f"{text!r} is not a duration; write a number and s, m, h, d or w, such as 30d.")
    return float(found[1]) * _UNITS[found[2]]


def in_words(seconds: float) -> str:
    """A duration in a few characters: 40 s, 12 min, 3 h, 2 d."""
    whole = max(0, int(seconds))
    return next((f"{whole // size} {unit}" for unit, size in _SHOWN if whole >= size), f"{whole} s")
