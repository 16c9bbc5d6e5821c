"""`make walks`: what each of the four calls on the architecture page costs in files, judgements, commits and reads."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from pathlib import Path

from tests.postgres import KEY, Cluster, program
from tests.walks.plays import Walks, at_a_worker, decided_elsewhere, in_memory, over_http
from tests.walks.trace import Walk

from toolgate.adapters.sqlite.file import prepare

HEAD = ("", "files", "changes of file", "judgements", "commits", "store reads")


def table(title: str, walks: Walks) -> list[str]:
    """One line for each who walks and, where there are several, one for all."""
    told = {**walks, **({"together": sum(walks.values(), Walk())} if len(walks) > 1 else {})}
    lines = ["", f"{title:<28}" + "".join(f"{name:>17}" for name in HEAD[1:])]
    for who, walk in told.items():
        numbers = (len(walk.files), walk.changes, walk.judgements, walk.commits, walk.reads)
        lines.append(f"  {who:<26}" + "".join(f"{number:>17}" for number in numbers))
    return lines


def worker_walks(folder: Path) -> Walks | None:
    """The walk on PostgreSQL; None where that is not installed."""
    if program("initdb") is None:
        return None
    os.environ["TOOLGATE_KEY"] = KEY
    cluster = Cluster()
    try:
        return asyncio.run(at_a_worker(cluster.new_database(), folder))
    finally:
        cluster.close()


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="toolgate-walks-") as name:
        folder = Path(name)
        database = folder / "toolgate.db"
        prepare(database)
        lines = table("In memory", asyncio.run(in_memory()))
        lines += table("On SQLite, decided elsewhere", asyncio.run(decided_elsewhere(database)))
        lines += table("Over HTTP, at a runner", asyncio.run(over_http(folder / "http")))
        walks = worker_walks(folder / "worker")
        lines += (
            ["", "PostgreSQL is not installed here."] if walks is None else table("On PostgreSQL, at a worker", walks)
        )
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
