"""One governed call of a read-only tool, kill-safe on SQLite, against the same call on the memory store.

Intent and result are two transactions on the caller's thread. Both gates live in one process and take turns, so the
machine's mood hits both alike. Prints one JSON line with the median of each.
"""

import argparse
import asyncio
import json
import statistics
import tempfile
import time

from benchmarks.workload import ARG, NAME, weather

import toolgate

SLICE = 50


async def measure(calls: int) -> dict[str, float]:
    """Return the median microseconds of a call on each store."""
    tool = toolgate.tool(effects="read")(weather)
    with tempfile.TemporaryDirectory() as folder:
        gates = {
            "memory": toolgate.open("memory://", tools=[tool]),
            "sqlite": toolgate.open(f"sqlite:///{folder}/bench.db", tools=[tool]),
        }
        times: dict[str, list[float]] = {name: [] for name in gates}
        for number in range(calls // SLICE + 1):
            for name, gate in gates.items():
                for _ in range(SLICE):
                    started = time.perf_counter()
                    result = await gate.call(NAME, ARG)
                    taken = time.perf_counter() - started
                    result.unwrap()
                    if number:  # the first slices warm up
                        times[name].append(taken)
        for gate in gates.values():
            await gate.aclose()
    return {f"{name}_us": statistics.median(kept) * 1e6 for name, kept in times.items()}


def main() -> None:
    """Read the arguments, measure and print the line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=2000)
    print(json.dumps(asyncio.run(measure(parser.parse_args().calls))))


if __name__ == "__main__":
    main()
