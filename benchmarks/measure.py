"""Time one contender inside a fresh process and print one JSON line.

`-m benchmarks.measure benchmarks/peers/agno.py agno --work=flat` loads that file by path, so a peer's script may carry
its library's name without shadowing it. The file offers `DISTRIBUTION` and `CASES`: case names, each with a
factory that takes the workload and returns an async context manager that yields its step. The timing code is the
same for all.
"""

import argparse
import asyncio
import gc
import importlib.util
import json
import statistics
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import ModuleType
from typing import Any

from benchmarks.reference import reference
from benchmarks.workload import Step, Workload, workload

PARALLEL = 256
SLICES = 16
CHECKED = 16
"""So many answers are compared before anything is timed."""

Case = Callable[[Workload], AbstractAsyncContextManager[Step]]


def load_script(path: Path) -> ModuleType:
    """Return the module at `path` under a name no library has."""
    spec = importlib.util.spec_from_file_location(f"contender_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise SystemExit(f"{path.name} is not a Python file.")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


async def time_in_turn(step: Step, *, calls: int) -> tuple[float, float, float]:
    """Return CPU seconds per call, references per call and the quickest reference, collector passes included.

    The calls run one after the other in slices, with a reference before and after each slice. CPU time is the whole
    process's, so the work of its other threads counts and the work of other processes does not.
    """
    gc.collect()
    count = max(calls // SLICES, 1)
    before = reference(time.process_time)
    seconds, relative, quickest = [], [], before
    for _ in range(SLICES):
        started = time.process_time()
        for _ in range(count):
            await step()
        taken = (time.process_time() - started) / count
        after = reference(time.process_time)
        seconds.append(taken)
        relative.append(2 * taken / (before + after))
        quickest = min(quickest, after)
        before = after
    return statistics.fmean(seconds), statistics.fmean(relative), quickest


async def time_in_parallel(step: Step, *, groups: int) -> float:
    """Return calls per second for `groups` gathered groups of `PARALLEL` calls."""
    gc.collect()
    started = time.perf_counter()
    for _ in range(groups):
        await asyncio.gather(*(step() for _ in range(PARALLEL)))
    return groups * PARALLEL / (time.perf_counter() - started)


async def measure(case: Case, work: Workload, *, calls: int) -> dict[str, float]:
    """Check the answers, warm up, then time; raise when the contender did not do the workload."""
    async with case(work) as step:
        for text in work.texts[:CHECKED]:
            answer = await step()
            if json.loads(answer) != await work.function(**json.loads(text)):
                raise SystemExit(f"The answer is not the workload's: {answer!r}")
        await time_in_turn(step, calls=max(calls // 4, 20))
        seconds, references, quickest = await time_in_turn(step, calls=calls)
        per_second = await time_in_parallel(step, groups=max(calls // PARALLEL, 1))
    return {
        "raw_us": seconds * 1e6,
        "references": references,
        "reference_us": quickest * 1e6,
        "parallel_per_s": per_second,
    }


def installed_version(distribution: str) -> str:
    """Return the installed version, or "checkout" for a package that is only on the path."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return "checkout"


def main() -> None:
    """Read the arguments, measure one case and print its line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("script", type=Path)
    parser.add_argument("case")
    parser.add_argument("--work", default="flat", help="flat, form_300 or form_2k")
    parser.add_argument("--calls", type=int, default=4000)
    options = parser.parse_args()
    script = load_script(options.script)
    timing = measure(script.CASES[options.case], workload(options.work), calls=options.calls)
    measured: dict[str, Any] = dict(asyncio.run(timing))
    measured["version"] = installed_version(script.DISTRIBUTION)
    measured["pydantic"] = installed_version("pydantic")
    print(json.dumps(measured))


if __name__ == "__main__":
    main()
