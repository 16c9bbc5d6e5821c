"""Park calls that wait for a person, report what they weigh, then how fast one of them wakes.

`--parked 10000` and `--parked 1` run the same code: each decided call is replaced, so the number parked stays
what it was. Latency runs from before `decide` until that call's waiter has returned. Prints one JSON line.
"""

import argparse
import asyncio
import gc
import json
import os
import statistics
import time
from pathlib import Path
from typing import Any

from benchmarks.reference import reference

import toolgate

ARG = '{"order": "A-1", "amount": 12}'
TURNS = 500
ATTEMPTS = 40


@toolgate.tool(effects="read", requires_approval=True)
async def refund(order: str, amount: int) -> dict[str, Any]:
    """Return a refund's receipt."""
    return {"order": order, "amount": amount}


def resident_mb() -> float:
    """Return this process's resident memory after a full collection."""
    gc.collect()
    statm = Path("/proc/self/statm")
    if not statm.exists():
        raise SystemExit("Resident memory is read from /proc/self/statm, which this system does not have.")
    return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


class Parking:
    """A gate with a chosen number of calls waiting for approval, and the waiters that came back."""

    def __init__(self) -> None:
        self.gate = toolgate.open("memory://", tools=[refund])
        self.waiting: set[asyncio.Task[Any]] = set()
        self.returned: asyncio.Queue[asyncio.Task[Any]] = asyncio.Queue()
        self.open_ids: list[str] = []

    def park(self) -> None:
        """Start one call that will wait for a person."""
        task = asyncio.create_task(self.gate.call("refund", ARG, wait=True))
        task.add_done_callback(self.returned.put_nowait)
        self.waiting.add(task)

    async def settle(self) -> None:
        """Let every started call reach its parking place, as far as a bounded number of turns allows."""
        for _ in range(TURNS):
            await asyncio.sleep(0)

    async def weigh(self, parked: int) -> float:
        """Return resident memory with `parked` calls waiting; raise when they never all get there.

        Memory is read before the pending list is built, so that the list itself is not weighed.
        """
        found = 0
        for _ in range(ATTEMPTS):
            await self.settle()
            resident = resident_mb()
            found = len(await self.gate.pending(limit=parked + 1))
            if found == parked:
                return resident
        raise SystemExit(f"{found} calls are waiting for approval instead of {parked}.")

    async def wake(self) -> float:
        """Decide one call and return the seconds until its waiter has returned."""
        if not self.open_ids:
            self.open_ids = [approval.id for approval in await self.gate.pending()]
        approval_id = self.open_ids.pop()
        started = time.perf_counter()
        await self.gate.decide(approval_id, "approve", by="alice")
        task = await self.returned.get()
        seconds = time.perf_counter() - started
        task.result().unwrap()
        self.waiting.discard(task)
        return seconds


async def measure(parked: int, decisions: int) -> dict[str, float]:
    """Return the memory growth of `parked` calls and the latency of `decisions` decisions among them."""
    parking = Parking()
    parking.park()
    await parking.weigh(1)
    await parking.wake()
    before = resident_mb()
    started = time.perf_counter()
    for _ in range(parked):
        parking.park()
    after = await parking.weigh(parked)
    parked_s = time.perf_counter() - started
    latencies, relative = [], []
    for _ in range(decisions):
        speed = reference()
        latencies.append(await parking.wake())
        relative.append(latencies[-1] / speed)
        parking.park()
        await parking.settle()
    for task in parking.waiting:
        task.cancel()
    await asyncio.gather(*parking.waiting, return_exceptions=True)
    await parking.gate.aclose()
    return {
        "parked": parked,
        "growth_mb": after - before,
        "park_all_s": parked_s,
        "wake_p50_us": statistics.median(latencies) * 1e6,
        "wake_references": statistics.median(relative),
        "wake_p95_us": statistics.quantiles(latencies, n=20)[-1] * 1e6,
    }


def main() -> None:
    """Read the arguments, measure and print the line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parked", type=int, default=10_000)
    parser.add_argument("--decisions", type=int, default=200)
    options = parser.parse_args()
    print(json.dumps(asyncio.run(measure(options.parked, options.decisions))))


if __name__ == "__main__":
    main()
