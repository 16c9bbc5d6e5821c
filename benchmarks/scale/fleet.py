"""Servers and workers as processes on one PostgreSQL, and what they do together."""

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from benchmarks.contenders import REPOSITORY, MeasurementFailedError
from benchmarks.scale.load import Load
from benchmarks.scale.tools import POLICY
from tests.postgres import KEY

TASKS = 64
"""Workflows each server has under way."""
CONCURRENCY = 256
"""Calls at a time of each worker: enough for every task of three servers."""
PATIENCE_S = 60.0

Process = asyncio.subprocess.Process


async def _start(*arguments: str) -> Process:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    environ |= {"TOOLGATE_KEY": KEY, "PYTHONPATH": f"{REPOSITORY}:{REPOSITORY / 'src'}"}
    return await asyncio.create_subprocess_exec(
        sys.executable, *arguments, cwd=REPOSITORY, env=environ,
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, limit=2**20,
    )  # fmt: skip


async def _line(process: Process) -> bytes:
    assert process.stdout is not None
    try:
        async with asyncio.timeout(PATIENCE_S):
            line = await process.stdout.readline()
    except TimeoutError:
        raise MeasurementFailedError(f"a process of the fleet said nothing for {PATIENCE_S:g} s") from None
    if not line:
        raise MeasurementFailedError(f"a process of the fleet ended with {await process.wait()}; it said why above")
    return line


async def _end(process: Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.terminate()
    try:
        async with asyncio.timeout(10):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()


async def _drain(process: Process) -> None:
    """Read what a worker prints, or it would stop at a full pipe."""
    assert process.stdout is not None
    while await process.stdout.read(2**16):
        pass


@asynccontextmanager
async def workers(url: str, count: int) -> AsyncIterator[None]:
    """`toolgate worker`, this many, ready to take orders."""
    started: list[Process] = []
    reading: list[asyncio.Task[None]] = []
    try:
        for _ in range(count):
            command = ["-m", "toolgate", "worker", "--database", url, "--json", "--drain", "2"]
            tools = [
                "--policy",
                str(POLICY),
                "--tools",
                "benchmarks.scale.tools:TOOLS",
                "--concurrency",
                str(CONCURRENCY),
            ]
            started.append(await _start(*command, *tools))
        for process in started:
            await _line(process)  # it says that it is ready
            reading.append(asyncio.create_task(_drain(process)))
        yield
    finally:
        await asyncio.gather(*(_end(process) for process in started))
        await asyncio.gather(*reading)


async def together(
    url: str,
    projects: list[str],
    *,
    tool: str,
    tasks: int,
    seconds: float,
    mark: Callable[[], Awaitable[None]] | None = None,
) -> Load:
    """Load one server for each project named; projects may be the same. Latencies are those of the slowest.

    `mark` is awaited when all are ready, and again when all are done and none has ended.
    """
    servers: list[Process] = []
    try:
        for project in projects:
            command = ("-m", "benchmarks.scale.server", url, project, tool, str(tasks), str(seconds))
            servers.append(await _start(*command))
        for process in servers:
            await _line(process)
        if mark is not None:
            await mark()
        for process in servers:
            assert process.stdin is not None
            process.stdin.write(b"go\n")
        loads = [Load(**json.loads(await _line(process))) for process in servers]
        if mark is not None:
            await mark()
    finally:
        await asyncio.gather(*(_end(process) for process in servers))
    return Load(
        per_s=sum(load.per_s for load in loads),
        p50_ms=max(load.p50_ms for load in loads),
        p95_ms=max(load.p95_ms for load in loads),
    )
