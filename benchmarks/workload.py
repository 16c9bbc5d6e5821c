"""The one tool call every contender makes: its argument text, its function and the answer expected.

Standard library only, because this file is imported inside every peer's own environment.
"""

from collections.abc import Awaitable, Callable
from typing import Any

NAME = "weather"
ARG = '{"city": "Paris", "days": 3, "units": "metric"}'
EXPECTED: dict[str, Any] = {"city": "Paris", "days": 3, "units": "metric", "temp": 21.5}

Step = Callable[[], Awaitable[str]]
"""One whole call: argument text in, answer text out."""


async def weather(city: str, days: int = 1, units: str = "metric") -> dict[str, Any]:
    """Return a small forecast."""
    return {"city": city, "days": days, "units": units, "temp": 21.5}
