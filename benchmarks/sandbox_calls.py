"""What the sandbox and the built-in tools add: a confined start, reads, a write, an overlay. One JSON line.

Each is measured in turns with what it is compared with, in one process: bubblewrap alone with the same flags, a
governed no-op call plus opening and reading the file, a plain read of a megabyte and one masking of it, and a plain
write to a temporary file, fsync and rename; a command in an overlay of 2,000 files with the same command without one.
Times are wall times.
"""

import argparse
import asyncio
import contextlib
import json
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import toolgate
from toolgate.adapters.runners.sandbox.backend import Files, sandbox_user
from toolgate.adapters.runners.sandbox.bubblewrap import Bubblewrap, seccomp_file
from toolgate.guards.descriptor import pipe
from toolgate.kernel.policy import Policy, Verdict, Word
from toolgate.kernel.text.masking import Masker
from toolgate.ports.confinement import Confined

TRUE = Confined(argv=("/bin/true",))
MEGABYTE = 1_000_000


class AllowAll:
    """A rule that allows everything, so that nobody is asked about a write."""

    name = "benchmark"
    is_static = True

    def __call__(self, *_: object) -> Verdict:
        return Verdict(Word.ALLOW, "measured", self.name)


def timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1000


def measure_starts(rounds: int) -> dict[str, float]:
    """Return the milliseconds of a confined /bin/true, and of bubblewrap alone with the same flags."""
    files = Files()
    user = sandbox_user(None, None)
    backend = Bubblewrap(user, files)
    problem = backend.problem()
    if problem is not None:
        raise SystemExit(problem)
    is_root = os.geteuid() == 0

    def bare() -> None:
        status, told = pipe()
        with seccomp_file() as rules, status, told:
            passed = (told.number, rules.number)
            subprocess.run(
                backend.command(TRUE, passed),
                env={},
                pass_fds=passed,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                user=user.uid if is_root else None,
                group=user.gid if is_root else None,
                extra_groups=[] if is_root else None,
                check=True,
            )

    bare_ms, ours_ms = [], []
    for _ in range(rounds):
        bare_ms.append(timed(bare))
        ours_ms.append(timed(lambda: backend.run(TRUE)))
    files.close()
    return {"bare_ms": statistics.median(bare_ms), "confined_ms": statistics.median(ours_ms)}


async def measure_reads(rounds: int, workspace: Path) -> dict[str, float]:
    """Return the microseconds of a governed read, of a governed no-op, and of opening and reading."""

    @toolgate.tool(effects="read")
    async def nothing(path: str) -> None:
        return None

    target = workspace / "small.txt"
    target.write_text("def main() -> None:\n    print('hello')\n")
    count = 200
    found: dict[str, list[float]] = {"read": [], "no_op": [], "plain": []}
    async with toolgate.open("memory://", tools=[nothing], workspace=workspace, built_in_tools=True) as gate:
        assert (await gate.call("read_file", {"path": "small.txt"})).success
        for _ in range(rounds):
            for name, tool in (("read", "read_file"), ("no_op", "nothing")):
                began = time.perf_counter()
                for _ in range(count):
                    await gate.call(tool, {"path": "small.txt"})
                found[name].append((time.perf_counter() - began) / count * 1e6)
            began = time.perf_counter()
            for _ in range(count):
                with open(target, "rb") as file:  # noqa: ASYNC230  # what is compared with
                    file.read().decode()
            found["plain"].append((time.perf_counter() - began) / count * 1e6)
    return {f"{name}_us": statistics.median(values) for name, values in found.items()}


LINE = "the quick brown fox jumps over the lazy dog, and nobody minds.\n"


async def measure_large_reads(rounds: int, workspace: Path) -> dict[str, float]:
    """Return the milliseconds of a governed read of a megabyte, of a plain one, and of masking it once."""
    target, mask = workspace / "large.txt", Masker()
    target.write_text(LINE * (MEGABYTE // len(LINE)))
    found: dict[str, list[float]] = {"large_read": [], "plain_read": [], "large_mask": []}
    async with toolgate.open(f"sqlite:///{workspace}/reads.db", workspace=workspace, built_in_tools=True) as gate:
        for _ in range(rounds + 1):
            began = time.perf_counter()
            result = await gate.call("read_file", {"path": "large.txt"})
            found["large_read"].append((time.perf_counter() - began) * 1000)
            text = result.unwrap()["content"]
            found["plain_read"].append(timed(lambda: target.read_bytes().decode()))
            found["large_mask"].append(timed(lambda text=text: mask({"content": text, "size": len(text)})))  # type: ignore[misc]  # bound at once
    return {f"{name}_ms": statistics.median(values[1:]) for name, values in found.items()}


def plain_write(target: Path, content: bytes) -> None:
    temporary = target.with_suffix(".tmp")
    with open(temporary, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.rename(temporary, target)
    directory = os.open(target.parent, os.O_RDONLY)
    os.fsync(directory)
    os.close(directory)


async def measure_writes(rounds: int, workspace: Path) -> dict[str, float]:
    """Return the milliseconds of replacing a megabyte, governed with undo data, and plainly."""
    text = f"{'0123456789' * 9}012345678\n" * (MEGABYTE // 100)
    ours, plain = [], []
    policy = Policy(rules=(AllowAll(),), revision="benchmark")
    url = f"sqlite:///{workspace}/calls.db"
    async with toolgate.open(url, workspace=workspace, built_in_tools=True, policy=policy) as gate:
        for number in range(rounds + 1):
            content = f"{number:08}\n{text}"
            arguments = {"path": "large.txt", "content": content}
            began = time.perf_counter()
            result = await gate.call("write_file", arguments)
            ours.append((time.perf_counter() - began) * 1000)
            result.unwrap()
            plain.append(timed(lambda content=content: plain_write(workspace / "plain.txt", content.encode())))  # type: ignore[misc]  # bound at once
    return {"write_ms": statistics.median(ours[1:]), "plain_write_ms": statistics.median(plain[1:])}


FILES = 2000
WRITING = """
version: 1
tools: {execute_command: {commands: {overlay: OVERLAY}}}
commands: {touch: {writes: true, positionals: [{name: path, value: path}]}}
"""


async def measure_overlay(rounds: int, workspace: Path) -> dict[str, float]:
    """Return the milliseconds of a command that writes among 2,000 files, as it is and in an overlay, in turns."""
    folder = workspace / "overlaid"
    for number in range(FILES):
        path = folder / f"{number % 50}" / f"{number}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(LINE)
    found: dict[str, list[float]] = {"true": [], "false": []}
    async with contextlib.AsyncExitStack() as opened:
        gates = {}
        for word in found:
            policy = workspace / f"{word}.yaml"
            policy.write_text(WRITING.replace("OVERLAY", word))
            gate = toolgate.open("memory://", workspace=folder, built_in_tools=True, policy=policy)
            gates[word] = await opened.enter_async_context(gate)
        for number in range(rounds + 1):
            for word, gate in gates.items():
                began = time.perf_counter()
                result = await gate.call("execute_command", {"command": "touch", "args": [f"{word}-{number}"]})
                found[word].append((time.perf_counter() - began) * 1000)
                result.unwrap()
    overlay, plain = (statistics.median(found[word][1:]) for word in ("true", "false"))
    return {"overlay_ms": overlay, "writing_ms": plain, "writing_and_30_ms": plain + 30.0}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=30)
    rounds = parser.parse_args().rounds
    workspace = Path(tempfile.mkdtemp(prefix="toolgate-bench-"))
    try:
        found = measure_starts(rounds)
        found |= asyncio.run(measure_reads(rounds, workspace))
        found |= asyncio.run(measure_large_reads(rounds, workspace))
        found |= asyncio.run(measure_writes(rounds, workspace))
        found |= asyncio.run(measure_overlay(rounds, workspace))
    finally:
        shutil.rmtree(workspace)
    found["no_op_and_plain_us"] = found["no_op_us"] + found["plain_us"]
    found["plain_read_and_mask_ms"] = found["plain_read_ms"] + found["large_mask_ms"]
    print(json.dumps(found))


if __name__ == "__main__":
    main()
