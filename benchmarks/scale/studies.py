"""What was measured, as points on curves: how a value grows with a number, and where the curve bends."""

from dataclasses import asdict, dataclass, field
from itertools import pairwise
from typing import Any, Literal

How = Literal["measured", "estimated"]
FLAT = 1.25
"""A rate that gains less than this while its number grows no longer pays: there it bends."""
STEEP = 1.5
"""A time that grew by this much since the first point is no longer flat: there it bends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One row of a study's table."""

    series: str
    x: int
    values: dict[str, float]
    how: How = "measured"


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """How a value is called and written."""

    heading: str
    digits: int = 0
    is_rate: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """One question: its points, what is drawn, and what to know when reading it."""

    name: str
    title: str
    x_label: str
    about: str
    columns: dict[str, Column]
    drawn: tuple[str, ...]
    points: list[Point] = field(default_factory=list)

    def series(self) -> list[str]:
        """The names of the curves, in the order in which they came."""
        return list(dict.fromkeys(point.series for point in self.points))

    def curve(self, series: str, key: str) -> list[tuple[int, float]]:
        """The measured points of one curve, by their number."""
        of_it = (point for point in self.points if point.series == series and point.how == "measured")
        return sorted((point.x, point.values[key]) for point in of_it if key in point.values)

    def findings(self) -> list[str]:
        """One sentence for each curve that is drawn: how much it grew, and where it bends."""
        return [
            found
            for key in self.drawn
            for series in self.series()
            if (found := _finding(series, self.columns[key], self.curve(series, key))) is not None
        ]

    def as_json(self) -> dict[str, Any]:
        """The study for the results file."""
        return asdict(self)


def bend(curve: list[tuple[int, float]], *, is_rate: bool) -> int | None:
    """Return the number at which a curve bends; None where it does not.

    A rate bends where the next point gains less than FLAT; a time where it is STEEP times the first point.
    """
    if is_rate:
        return next((x for (x, y), (_, later) in pairwise(curve) if later < y * FLAT), None)
    return next((x for x, y in curve[1:] if y > curve[0][1] * STEEP), None)


def _finding(series: str, column: Column, curve: list[tuple[int, float]]) -> str | None:
    if len(curve) < 2:
        return None
    (first, low), (last, high) = curve[0], curve[-1]
    grown = f"{series}, {column.heading}: {high / low:.2f}x from {first:,} to {last:,}"
    at = bend(curve, is_rate=column.is_rate)
    if column.is_rate:
        return f"{grown}; " + ("no bend." if at is None else f"gains little after {at:,}.")
    return f"{grown}; " + ("flat." if at is None else f"bends at {at:,}.")
