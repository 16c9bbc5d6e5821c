"""Writing changes to PostgreSQL: one transaction for many, each wholly in it or not at all.

A transaction first takes an advisory lock for each of its projects, in order; whoever writes in a project holds its
lock, so what is read after that stays true until the commit, and the project's events get numbers without gaps.
Different projects do not wait for each other. A connection that dies during COMMIT leaves the outcome open: it is
looked up by the transaction's id, never guessed.
"""

from __future__ import annotations

import asyncio
import logging
import zlib
from collections.abc import Awaitable, Callable
from time import monotonic

import asyncpg

from toolgate.adapters.postgres.batch import Batch, Standing, needs_version, runs_of
from toolgate.adapters.postgres.bulk import BESIDE, HAS_LARGE_UNDO, INSERT_CALLS, INSERT_RUNS, UPDATE_CALLS, columns_of
from toolgate.adapters.postgres.link import AWAY, Connection, begin, connect, failure
from toolgate.adapters.postgres.url import Address
from toolgate.adapters.sealing import Sealer
from toolgate.adapters.sql.brakes import Later, Watch, text_of
from toolgate.adapters.sql.gathering import Outcome
from toolgate.adapters.sql.rows import uuid_hex
from toolgate.adapters.sql.write_set import Beside, Large, WriteSet
from toolgate.errors import StoreError, ToolgateError
from toolgate.kernel.brake import Brakes
from toolgate.kernel.change import Change
from toolgate.kernel.holding import How

PATIENCE_S = 15.0
"""How long a change waits for a database that is away before it is refused."""
RESOLVE_S = 30.0
RETRY_S = 0.05
PROJECT_LOCK, MODE_LOCK = 0x7467, 0x7468
PLANS = {"enable_seqscan": "off", "enable_hashjoin": "off", "enable_mergejoin": "off"}
"""Rows are always found by key. A plan made while a table was small must not stay when it has grown."""

UNKEEPABLE = (ValueError, TypeError, ArithmeticError, asyncpg.DataError, asyncpg.IntegrityConstraintViolationError)
"""What a change with values no row can hold raises; the database itself is well."""
_AGAIN = (asyncpg.DeadlockDetectedError, asyncpg.SerializationError)
_READ = """
SELECT p.project, h.seq, h.hash, m.value AS mode, m.xmin::text AS written,
  (SELECT value FROM settings WHERE name='keys') AS keys, pg_current_xact_id()::text AS xid
FROM unnest($1::text[]) AS p(project) LEFT JOIN chain_heads AS h ON h.project_id=p.project
  LEFT JOIN settings AS m ON m.name='mode'
"""
_READ_VERSIONS = """
SELECT t.project_id, t.call_id, t.version FROM unnest($1::text[], $2::uuid[]) AS v(project, id)
JOIN tool_executions AS t ON t.project_id=v.project AND t.id=v.id
"""
_READ_UNDOS = """
SELECT t.project_id, t.call_id, t.state FROM unnest($1::text[], $2::uuid[]) AS v(project, id)
JOIN undo_records AS t ON t.project_id=v.project AND t.action_id=v.id
"""
_READ_KEYS = """
SELECT t.project_id, t.effect_key, t.call_id, t.held_until FROM unnest($1::text[], $2::text[]) AS v(project, key)
JOIN effect_keys AS t ON t.project_id=v.project AND t.effect_key=v.key
"""
_READ_GRANTS = "SELECT replace(id::text, '-', ''), version FROM grants WHERE id = ANY ($1::uuid[])"
_READ_DELEGATIONS = "SELECT replace(id::text, '-', ''), version FROM delegations WHERE id = ANY ($1::uuid[])"
_READ_RATES = """
WITH k AS (SELECT * FROM unnest($1::text[], $2::text[], $3::float8[]) AS v(project, key, since)),
gone AS (DELETE FROM rate_uses AS t USING k WHERE t.project_id=k.project AND t.key=k.key AND t.at<=k.since)
SELECT k.project, k.key, (SELECT coalesce(sum(t.amount), 0)::bigint FROM rate_uses AS t
  WHERE t.project_id=k.project AND t.key=k.key AND t.at>k.since) FROM k
"""
_USED = "SELECT coalesce(sum(amount), 0)::bigint FROM rate_uses WHERE project_id=$1 AND key=$2 AND at>$3"
PUT_SETTING = "INSERT INTO settings (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value=excluded.value"

log = logging.getLogger("toolgate.postgres")


async def note_key(connection: Connection, sealer: Sealer) -> None:
    """Note that the first of these keys is in use, inside a transaction, unless that is known."""
    known = (await connection.fetchval("SELECT value FROM settings WHERE name='keys'") or "").split()
    if sealer.current not in known:
        await connection.execute(PUT_SETTING, "keys", " ".join([*known, sealer.current]))


def locks_on(projects: list[str]) -> list[str]:
    """What takes the locks of these projects until the transaction ends, in one order for everybody.

    Sorted by number, since two names may share one: nobody waits for somebody who waits for them.
    """
    numbers = sorted({zlib.crc32(project.encode()) - 2**31 for project in projects})
    return [f"pg_advisory_xact_lock({PROJECT_LOCK}, {number})" for number in numbers]


class Writer:
    """Writes batches on a connection of its own, one at a time, on the link's loop."""

    def __init__(
        self,
        address: Address,
        sealer: Sealer,
        watch: Watch,
        *,
        renew: Callable[[Connection], Awaitable[None]],
        later: Callable[[str | None], Awaitable[Later]],
    ) -> None:
        self._address = address
        self._sealer = sealer
        self._watch = watch
        self._renew = renew
        self._later = later
        self._connection: Connection | None = None
        self.brakes = Brakes()

    async def write(self, write_sets: list[WriteSet]) -> list[Outcome]:
        """Write these changes in one transaction and return what became of each; StoreError: nothing was written."""
        deadline = monotonic() + PATIENCE_S
        while True:
            batch = Batch(write_sets)
            try:
                connection = await self._connected()
                await self._transact(connection, batch)
            except UNKEEPABLE:
                await self._take_back()
                raise
            except _AGAIN:
                await self._take_back()
            except (asyncpg.PostgresError, *AWAY) as error:
                # A server that panics in a commit says so before it dies; the commit may be on its disk all the same.
                if await self._recover(batch, error):
                    return self._done(batch)
                if monotonic() > deadline or not isinstance(error, AWAY):
                    raise failure(error) from error
                await asyncio.sleep(RETRY_S)
            except BaseException:
                self.drop()
                raise
            else:
                return self._done(batch)

    def _done(self, batch: Batch) -> list[Outcome]:
        self.brakes = batch.brakes
        self._watch.note(batch.brakes)
        return batch.outcomes

    async def _recover(self, batch: Batch, error: BaseException) -> bool:
        """After an error: whether the batch was written nevertheless."""
        if batch.is_committing or isinstance(error, AWAY):
            self.drop()
        else:
            await self._take_back()
        return batch.is_committing and await self._was_written(batch)

    async def _connected(self) -> Connection:
        if self._connection is None or self._connection.is_closed():
            self._connection = await connect(self._address, **PLANS)
        return self._connection

    def drop(self) -> None:
        """Let go of the connection, whatever state it is in."""
        if self._connection is not None:
            self._connection.terminate()
            self._connection = None

    async def _take_back(self) -> None:
        if self._connection is not None and not self._connection.is_closed():
            try:
                await self._connection.execute("ROLLBACK")
            except (asyncpg.PostgresError, *AWAY):
                self.drop()

    async def _transact(self, connection: Connection, batch: Batch) -> None:
        await connection.execute(self._begin(batch))
        await self._renew(connection)
        standing = await self._look(connection, batch)
        await self._judge(connection, batch, standing)
        await self._put(connection, batch, standing)
        batch.brakes, batch.is_committing = standing.brakes, True
        await connection.execute("COMMIT")

    def _begin(self, batch: Batch) -> str:
        sets_mode = any(write_set.change.set_mode is not None for write_set in batch.write_sets)
        locks = [f"pg_advisory_xact_lock{'' if sets_mode else '_shared'}({MODE_LOCK}, 0)"]
        locks += locks_on(batch.projects)
        then = "".join(f", {lock}" for lock in [*locks, "set_config('synchronous_commit', 'on', true)"])
        return begin(self._address, batch.projects, writing=True, then=then, **PLANS)

    async def _look(self, connection: Connection, batch: Batch) -> Standing:
        """Read what the changes are checked against: heads and brakes always, the rest where some change needs it."""
        standing = Standing()
        noted: list[str] = []
        mode: tuple[str | None, str | None] = (None, None)
        for project, seq, digest, *mode_row, keys, xid in await connection.fetch(_READ, batch.projects):
            batch.xid, mode = xid, (mode_row[0], mode_row[1])
            if seq is not None:
                standing.heads[project] = (seq, digest)
            noted = (keys or "").split()
        standing.brakes = self._watch.known(*mode) or await self._believe(*mode)
        if self._sealer.current not in noted:
            # Others sealed everything anew and forgot this key: what is sealed with it now needs it again.
            await connection.execute(PUT_SETTING, "keys", " ".join([*noted, self._sealer.current]))
        changes = [write_set.change for write_set in batch.write_sets if needs_version(write_set.change)]
        if not changes:
            return standing
        calls = [(change.call.project, change.call.id) for change in changes if change.call is not None]
        calls += [(change.project, stands[0]) for change in changes if (stands := change.stands) is not None]
        if calls:
            rows = [(project, uuid_hex(call_id)) for project, call_id in calls]
            found = await connection.fetch(_READ_VERSIONS, *columns_of(rows))
            standing.versions = {(project, call_id): version for project, call_id, version in found}
        undos = [change.undo for change in changes if change.undo is not None and change.undo_expect is not None]
        if undos:
            ids = [undo.project for undo in undos], [uuid_hex(undo.call_id) for undo in undos]
            found = await connection.fetch(_READ_UNDOS, *ids)
            standing.undos = {(project, call_id): state for project, call_id, state in found}
        grants = [uuid_hex(change.grant.id) for change in changes if change.grant is not None]
        if grants:
            standing.grants = dict(await connection.fetch(_READ_GRANTS, grants))
        lent = [uuid_hex(change.delegation.id) for change in changes if change.delegation is not None]
        if lent:
            standing.delegations = dict(await connection.fetch(_READ_DELEGATIONS, lent))
        moved = [(one.project, move.key) for one in changes for move in one.moves if move.how is How.HARD]
        if moved:
            found = await connection.fetch(_READ_KEYS, *columns_of(moved))
            standing.held = {(project, key): (holder, until) for project, key, holder, until in found}
        await self._look_at_rates(connection, batch, standing)
        return standing

    async def _believe(self, text: str | None, written: str | None) -> Brakes:
        """Look into the chain of `_system`, which no project's own transaction sees; nobody sets a mode meanwhile."""
        newest = self._watch.newest
        return self._watch.believe(text, await self._later(text), newest=newest, at=written)

    async def _look_at_rates(self, connection: Connection, batch: Batch, standing: Standing) -> None:
        since: dict[tuple[str, str], float] = {}
        for write_set in batch.write_sets:
            change = write_set.change
            for one in change.reservations:
                key, start = (change.project, one.key), change.at.timestamp() - one.window_s
                since[key] = min(start, since.get(key, start))
        if since:
            rows = [(*key, start) for key, start in sorted(since.items())]
            found = await connection.fetch(_READ_RATES, *columns_of(rows))
            standing.used = {(project, key): used for project, key, used in found}

    async def _judge(self, connection: Connection, batch: Batch, standing: Standing) -> None:
        """Refuse, in order, what cannot be written beside what is there and what came before it."""
        for place, write_set in enumerate(batch.write_sets):
            change = write_set.change
            try:
                standing.check(change)
                excess = standing.reserve(change, standing.used) if change.reservations else None
                if excess is not None:
                    # Counted from the earliest start in the batch; this one's own window may have room.
                    excess = standing.reserve(change, await _used_by(connection, change))
                if excess is not None:
                    raise excess.refusal()
            except ToolgateError as error:  # refused before its first row: the error is its outcome
                batch.outcomes[place] = error

    async def _put(self, connection: Connection, batch: Batch, standing: Standing) -> None:
        write_sets = batch.standing
        if runs := runs_of(write_sets):
            await connection.execute(INSERT_RUNS.sql, *INSERT_RUNS.values(runs))
        inserts = [write_set for write_set in write_sets if write_set.insert is not None]
        if inserts:
            rows = [write_set.insert for write_set in inserts if write_set.insert is not None]
            batch.refuse_missing(inserts, await connection.fetch(INSERT_CALLS.sql, *INSERT_CALLS.values(rows)))
        updates = [write_set for write_set in write_sets if write_set.update is not None]
        if updates:
            rows = [write_set.update for write_set in updates if write_set.update is not None]
            batch.refuse_missing(updates, await connection.fetch(UPDATE_CALLS.sql, *UPDATE_CALLS.values(rows)))
        for bulk, rows in batch.companions():
            await connection.execute(bulk.sql, *bulk.values(rows))
        for large in batch.kept():
            await _keep(connection, large)
        if (told := batch.chain(standing.heads)) is not None:
            await connection.execute(told[0], *told[1])
        for write_set in batch.standing:
            if write_set.change.set_mode is not None:
                assert batch.last_event is not None  # the change that sets a mode tells of it
                standing.brakes = write_set.change.set_mode.numbered(batch.last_event[1])
                await connection.execute(PUT_SETTING, "mode", text_of(standing.brakes, self._sealer.marks))

    async def _was_written(self, batch: Batch) -> bool:
        """Whether a transaction whose COMMIT was not answered was done; StoreError where that cannot be learned."""
        deadline = monotonic() + RESOLVE_S
        while monotonic() < deadline:
            try:
                connection = await self._connected()
                written = await _outcome(self._address, connection, batch)
            except (asyncpg.PostgresError, *AWAY) as error:
                log.warning("looking up an unanswered commit: %s", type(error).__name__)
                self.drop()
                written = None
            if written is not None:
                outcome = "done" if written else "not done"
                log.warning("an unanswered commit of %d changes was %s", len(batch.write_sets), outcome)
                return written
            await asyncio.sleep(RETRY_S)
        raise StoreError(
            "The connection to PostgreSQL was lost during a commit and it is not known whether the change was "
            "written. Read the call again before anything is repeated."
        )

    async def close(self) -> None:
        if self._connection is not None:
            connection, self._connection = self._connection, None
            try:
                await connection.close(timeout=5)
            except (asyncpg.PostgresError, *AWAY):
                connection.terminate()


async def _keep(connection: Connection, large: Large) -> None:
    """See to it that undo data is there. Its record was just written, so nobody takes it for expired meanwhile."""
    if large.make is not None and await connection.fetchval(HAS_LARGE_UNDO, *large.row) is None:
        put = BESIDE[Beside.PUT_UNDO]
        await connection.execute(put.sql, *put.values([large.make()]))


async def _used_by(connection: Connection, change: Change) -> dict[tuple[str, str], int]:
    """What is used of the change's rates within exactly its own windows."""
    used = {}
    for one in change.reservations:
        start = change.at.timestamp() - one.window_s
        used[change.project, one.key] = await connection.fetchval(_USED, change.project, one.key, start)
    return used


async def _outcome(address: Address, connection: Connection, batch: Batch) -> bool | None:
    """True: committed, False: not, None: still open. After a failover the number may be somebody else's."""
    await connection.execute(begin(address, batch.projects))  # a pooler keeps a question together in nothing less
    try:
        status = await connection.fetchval("SELECT pg_xact_status($1::text::xid8)", batch.xid)
        if status == "in progress":
            return None
        if status == "aborted":
            return False
        if batch.last_event is None:
            return bool(status == "committed")
        project, seq, *_, digest = batch.last_event
        kept = await connection.fetchval("SELECT hash FROM events WHERE project_id=$1 AND seq=$2", project, seq)
        return bool(kept == digest)
    except asyncpg.InvalidParameterValueError:  # in the future: this server never saw it
        return False
    finally:
        await connection.execute("ROLLBACK")
