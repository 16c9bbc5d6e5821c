"""The durable section: what SQLite costs, each number beside the raw work it is compared with.

Unlike the calls, these run on all cores: the store has a thread for writing and one for watching the file. Whatever
is compared takes turns inside one process, except aiosqlite, which has an environment of its own.
"""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.contenders import MeasurementFailedError, measure, own_python
from benchmarks.environments import ENVIRONMENTS, EnvironmentFailedError, ensure

Say = Callable[[str], None]
Lines = dict[str, list[dict[str, Any]]]


def measure_durable(rounds: int, *, say: Say) -> dict[str, list[dict[str, Any]]]:
    """Return the lines of every script by name, a round after the other; what fails is named and left out."""
    lines: Lines = {}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        large, recording = folder / "large.db", folder / "singles.pickle"
        peer = _peer(say)
        say("durable: building a file with 110,000 calls")
        _run(lines, "made", say, own_python(), "-m", "benchmarks.sqlite_reopen", str(large), "--make")
        for number in range(1, rounds + 1):
            for name, *arguments in (
                ("changes", "-m", "benchmarks.sqlite_changes", f"--singles={recording}"),
                ("call", "-m", "benchmarks.sqlite_call"),
                ("approvals", "-m", "benchmarks.sqlite_approvals"),
                ("reopen", "-m", "benchmarks.sqlite_reopen", str(large)),
            ):
                _run(lines, name, say, own_python(), *arguments)
            if peer is not None and recording.exists():
                _run(lines, "aiosqlite", say, peer, "benchmarks/peers/aiosqlite_changes.py", str(recording))
            say(f"durable {number}/{rounds}")
    lines.pop("made", None)
    return lines


def _peer(say: Say) -> Path | None:
    try:
        return ensure(ENVIRONMENTS["aiosqlite"], say=say)
    except EnvironmentFailedError as error:
        say(f"aiosqlite: left out, its environment could not be built: {error}")
        return None


def _run(lines: Lines, name: str, say: Say, python: Path, *arguments: str) -> None:
    try:
        line = measure(python, *arguments, is_own=name != "aiosqlite")
    except MeasurementFailedError as error:
        say(f"durable {name}: failed: {error}")
        return
    lines.setdefault(name, []).append(line)
