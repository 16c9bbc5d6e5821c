"""The floor: pydantic's `validate_call` around the same function, without governance of any kind.

`validate_call` parses the argument text and writes the answer text like the others; `validate_call_kwargs`
starts from ready keyword arguments and is shown for information only.
"""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from benchmarks.workload import ARG, EXPECTED, Step, weather
from pydantic import validate_call

DISTRIBUTION = "pydantic"
validated = validate_call(weather)
ANSWER = json.dumps(EXPECTED)


@asynccontextmanager
async def from_text() -> AsyncIterator[Step]:
    """Yield a step that does JSON in, validation, the function, JSON out."""

    async def step() -> str:
        return json.dumps(await validated(**json.loads(ARG)))

    yield step


@asynccontextmanager
async def from_keywords() -> AsyncIterator[Step]:
    """Yield a step that validates ready keyword arguments and serialises nothing."""

    async def step() -> str:
        await validated(city="Paris", days=3, units="metric")
        return ANSWER

    yield step


CASES = {"validate_call": from_text, "validate_call_kwargs": from_keywords}
