"""Time from before `import pydantic` to the first validated model, inside a fresh process.

With `--asyncio` the validation happens inside `asyncio.run`, which shows how much of a governed first call
is the event loop's own import; that variant is information, not a target.
"""

import sys
import time

started = time.perf_counter()

import pydantic  # noqa: E402


class Weather(pydantic.BaseModel):
    """The workload's arguments as a model."""

    city: str
    days: int = 1
    units: str = "metric"


def first_validation() -> Weather:
    """Return the workload's argument text as a model."""
    return Weather.model_validate_json('{"city": "Paris", "days": 3, "units": "metric"}')


if "--asyncio" in sys.argv:
    import asyncio

    async def in_a_loop() -> Weather:
        """Validate once with a running loop."""
        return first_validation()

    answer = asyncio.run(in_a_loop())
else:
    answer = first_validation()
seconds = time.perf_counter() - started

if answer.city != "Paris":
    raise SystemExit(f"The first validation answered {answer!r}.")
print(f'{{"start_ms": {seconds * 1e3}}}')
