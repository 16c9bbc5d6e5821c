"""A fixed piece of standard-library work that tells how fast the core is at this moment.

A shared core easily runs at half its speed for seconds. Timed right beside a measurement, this work turns
seconds into a number that hardly moves with that: how many references long the measured thing took.
"""

import gc
import json
import time
from collections.abc import Callable
from typing import Any

REPEATS = 300
TEXT = '{"city": "Paris", "days": 3, "units": "metric"}'


def _forecast(city: str, days: int, units: str) -> dict[str, Any]:
    return {"city": city, "days": days, "units": units}


def reference(clock: Callable[[], float] = time.perf_counter) -> float:
    """Return the seconds one repeat takes now; the collector rests, so a large heap is not charged here."""
    gc.disable()
    started = clock()
    for _ in range(REPEATS):
        json.dumps(_forecast(**json.loads(TEXT)))
    seconds = (clock() - started) / REPEATS
    gc.enable()
    return seconds
