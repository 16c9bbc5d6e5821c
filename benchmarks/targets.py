"""What the numbers must reach, and whether they do. Judged on ratios of medians taken in the same run."""

from dataclasses import asdict, dataclass
from typing import Any

Results = dict[str, Any]

CALL_LIMITS = {"stageflow": 1.0, "pydantic_ai": 0.6, "validate_call": 2.0}
START_LIMIT = 2.0
PARKED_LIMIT_MB = 60.0
WAKE_LIMIT = 1.5
"""About one, with room for noise and colder caches; a wake that searched 10,000 calls would be far beyond."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """One target: its limit, the ratio of medians that is judged, and the ratio of uncorrected minima."""

    title: str
    limit: float
    unit: str = "x"
    measured: float | None = None
    of_minima: float | None = None

    @property
    def is_reached(self) -> bool | None:
        """Whether the target is reached; None when it was not measured."""
        return None if self.measured is None else self.measured <= self.limit

    def as_json(self) -> dict[str, Any]:
        """Return the verdict for the results file."""
        return {**asdict(self), "is_reached": self.is_reached}


def judge(results: Results) -> list[Verdict]:
    """Return every target's verdict, those without numbers included."""
    calls = {row["name"]: row for row in results["calls"]}
    ours = calls.get("toolgate")
    verdicts = [
        _compare(f"governed call / {name}", limit, ours, calls.get(name), key="call_us", raw="raw_us")
        for name, limit in CALL_LIMITS.items()
    ]
    start = results["start"]
    verdicts.append(
        _compare(
            "import, open, first call / import pydantic, first validation",
            START_LIMIT,
            start.get("toolgate"),
            start.get("pydantic"),
            key="start_ms",
            raw="start_ms",
        )
    )
    parking = results["parking"]
    many, one = parking.get("many"), parking.get("one")
    count = f"{many['parked']:,} " if many else ""
    verdicts.append(
        Verdict(
            title=f"memory of {count}parked calls",
            limit=PARKED_LIMIT_MB,
            unit=" MB",
            measured=many["growth_mb"]["median"] if many else None,
            of_minima=many["growth_mb"]["min"] if many else None,
        )
    )
    verdicts.append(
        _compare("wake among many / wake of one", WAKE_LIMIT, many, one, key="wake_references", raw="wake_p50_us")
    )
    return verdicts


def _compare(title: str, limit: float, ours: Any, theirs: Any, *, key: str, raw: str) -> Verdict:
    if not ours or not theirs:
        return Verdict(title=title, limit=limit)
    return Verdict(
        title=title,
        limit=limit,
        measured=ours[key]["median"] / theirs[key]["median"],
        of_minima=ours[raw]["min"] / theirs[raw]["min"],
    )
