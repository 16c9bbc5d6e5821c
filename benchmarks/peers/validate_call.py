"""The floor: pydantic's `validate_call` around the same function, without governance of any kind.

`validate_call` parses the argument text and writes the answer text like the others; `validate_call_kwargs`
starts from ready keyword arguments and is shown for information only.
"""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from benchmarks.workload import Step, Workload
from pydantic import validate_call

DISTRIBUTION = "pydantic"


@asynccontextmanager
async def from_text(work: Workload) -> AsyncIterator[Step]:
    """Yield a step that does JSON in, validation, the function, JSON out."""
    validated, sent = validate_call(work.function), work.sent()

    async def step() -> str:
        return json.dumps(await validated(**json.loads(next(sent))))

    yield step


@asynccontextmanager
async def from_keywords(work: Workload) -> AsyncIterator[Step]:
    """Yield a step that validates ready keyword arguments and serialises nothing."""
    validated, keywords = validate_call(work.function), json.loads(work.texts[0])
    answer = json.dumps(await work.function(**keywords))

    async def step() -> str:
        await validated(**keywords)
        return answer

    yield step


CASES = {"validate_call": from_text, "validate_call_kwargs": from_keywords}
