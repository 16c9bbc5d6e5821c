"""What masking takes of the CPU: 1 MB of text of each kind, and one call. Prints one JSON line: MB/s, and microseconds.

A call masks its arguments and its result; both are those of the 300-byte form.
"""

import asyncio
import itertools
import json
import time
from typing import Any

import orjson
from benchmarks.text_kinds import kinds
from benchmarks.workload import Workload, workload

from toolgate.kernel.text.masking import Masker

SIZE = 1_000_000
ROUNDS = 5
CALLS = 4_000


def speeds(masker: Masker) -> dict[str, float]:
    """Return the MB of each kind that are masked in a second, in the best of some rounds."""
    texts = kinds(SIZE)
    for text in texts.values():
        masker.text(text[:5_000])  # what is made at the first use is not measured
    best = dict.fromkeys(texts, float("inf"))
    for _ in range(ROUNDS):
        for name, text in texts.items():
            began = time.process_time()
            masker.text(text)
            best[name] = min(best[name], time.process_time() - began)
    return {name: len(text.encode()) / best[name] / 1e6 for name, text in texts.items()}


def call_us(masker: Masker) -> float:
    """Return what masking takes of one call."""
    work = workload("form_300")
    given = [json.loads(text) for text in work.texts]
    pairs = [_pair(value) for one in given for value in (one, asyncio.run(_result(work, one)))]
    best = float("inf")
    for _ in range(ROUNDS):
        turns = itertools.islice(itertools.cycle(pairs), 2 * CALLS)
        began = time.process_time()
        for value, encoded in turns:
            masker.of(value, encoded)
        best = min(best, time.process_time() - began)
    return best / CALLS * 1e6


async def _result(work: Workload, given: dict[str, Any]) -> dict[str, Any]:
    return await work.function(**given)


def _pair(value: Any) -> tuple[Any, bytes]:
    return value, orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


if __name__ == "__main__":
    masker = Masker()
    print(json.dumps({**speeds(masker), "call_us": call_us(masker)}))
