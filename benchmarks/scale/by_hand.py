"""Approval workflows as somebody would write them by hand: one process, one loop that commits in groups, no engine.

A workflow is a row that goes from asked to approved, running and done, and a line in a journal for each step. Nothing
is validated, masked, sealed, chained or checked by a policy, nobody else can take part, and the handler is a plain
function. `journal=False` leaves the journal away: four states of a row and nothing to show for it.
"""

import asyncio
import time
from datetime import UTC, datetime
from typing import Any

import asyncpg
import orjson
import uuid_utils
from benchmarks.scale.load import Load
from benchmarks.scale.tools import PAYLOAD

_TABLES = """
CREATE TABLE IF NOT EXISTS by_hand (id uuid PRIMARY KEY, state text NOT NULL, told bytea NOT NULL);
CREATE TABLE IF NOT EXISTS by_hand_journal (
  number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, id uuid NOT NULL, state text NOT NULL, at timestamptz NOT NULL
);
"""
_PUT = "INSERT INTO by_hand SELECT * FROM unnest($1::uuid[], $2::text[], $3::bytea[])"
_MOVE = """
UPDATE by_hand AS b SET state=v.state, told=v.told
FROM unnest($1::uuid[], $2::text[], $3::bytea[]) AS v(id, state, told) WHERE b.id=v.id
"""
_NOTE = "INSERT INTO by_hand_journal (id, state, at) SELECT * FROM unnest($1::uuid[], $2::text[], $3::timestamptz[])"

Step = tuple[str, str, bytes, "asyncio.Future[None]"]


class Loop:
    """Writes all steps that wait in one transaction; while it does, the next ones gather."""

    def __init__(self, connection: Any, *, journal: bool) -> None:
        self._connection = connection
        self._journal = journal
        self._waiting: list[Step] = []
        self._writing: asyncio.Task[None] | None = None

    async def write(self, id: str, state: str, told: bytes) -> None:
        """Return when the step is on the disk."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((id, state, told, done))
        if self._writing is None:
            self._writing = asyncio.create_task(self._write_all())
        await done

    async def _write_all(self) -> None:
        while self._waiting:
            group, self._waiting = self._waiting, []
            async with self._connection.transaction():
                for sql, chosen in (
                    (_PUT, [step for step in group if step[1] == "asked"]),
                    (_MOVE, [step for step in group if step[1] != "asked"]),
                ):
                    if chosen:
                        ids, states, told, _ = zip(*chosen, strict=True)
                        await self._connection.execute(sql, ids, states, told)
                if self._journal:
                    ids, states, *_ = zip(*group, strict=True)
                    await self._connection.execute(_NOTE, ids, states, [datetime.now(UTC)] * len(group))
            for *_, done in group:
                done.set_result(None)
        self._writing = None


async def _handler(payload: dict[str, Any]) -> dict[str, Any]:
    return {"order": payload["order"]}


async def by_hand(url: str, *, tasks: int, seconds: float, journal: bool = True) -> Load:
    """Return what `tasks` tasks finish in these seconds."""
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(_TABLES)
        loop = Loop(connection, journal=journal)
        taken: list[float] = []

        async def work(until: float) -> None:
            while (began := time.perf_counter()) < until:
                id, told = str(uuid_utils.uuid7()), orjson.dumps(PAYLOAD)
                for state in ("asked", "approved", "running"):
                    await loop.write(id, state, told)
                await loop.write(id, "done", orjson.dumps(await _handler(orjson.loads(told))))
                taken.append(time.perf_counter() - began)

        await asyncio.gather(*(work(time.perf_counter() + seconds / 10) for _ in range(tasks)))
        taken.clear()
        started = time.perf_counter()
        await asyncio.gather(*(work(started + seconds) for _ in range(tasks)))
        return Load.of(time.perf_counter() - started, taken)
    finally:
        await connection.close()
