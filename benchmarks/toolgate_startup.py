"""Time from before `import toolgate` to the first governed result, inside a fresh process.

Only `time` is imported before the clock starts, so everything Toolgate pulls in, asyncio included, counts.
"""

import time

started = time.perf_counter()

import asyncio  # noqa: E402
from typing import Any  # noqa: E402

import toolgate  # noqa: E402


@toolgate.tool(effects="read")
async def weather(city: str, days: int = 1, units: str = "metric") -> dict[str, Any]:
    """Return a small forecast."""
    return {"city": city, "days": days, "units": units, "temp": 21.5}


gate = toolgate.open("memory://", tools=[weather])


async def first_call() -> Any:
    """Return the unwrapped answer of one governed call."""
    result = await gate.call("weather", '{"city": "Paris", "days": 3, "units": "metric"}')
    return result.unwrap()


answer = asyncio.run(first_call())
seconds = time.perf_counter() - started

if answer["city"] != "Paris":
    raise SystemExit(f"The first call answered {answer!r}.")
print(f'{{"start_ms": {seconds * 1e3}}}')
gate.close()
