"""Writing changes to PostgreSQL: one transaction for many, each wholly in it or not at all.

Most changes stand or fall with the version of their call, its events and the mode: those are written by one call of
the server's function `toolgate_commit`, which takes the advisory lock of a project last, to number its events without
gaps, so that nobody holds it over the network. What is decided by other rows (rates, grants, keys of effects, undo
records) is looked at first, in a transaction that takes the locks of its projects at its beginning, in order: what is
read after that stays true until the commit. Different projects do not wait for each other. A connection that dies
leaves the outcome open: it is looked up by the id of the commit, never guessed.
"""

from __future__ import annotations

import asyncio
import logging
import zlib
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import NamedTuple

import asyncpg

from toolgate.adapters.postgres.batch import Batch, Standing, needs_version
from toolgate.adapters.postgres.bulk import BESIDE, HAS_LARGE_UNDO, columns_of
from toolgate.adapters.postgres.link import AWAY, SEPARATOR, Connection, begin, connect, failure
from toolgate.adapters.postgres.owners import Lease
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
SETTINGS_CHANGED = "TG001"
"""What the function answers where the mode is not the one it was told, or the key in use here was forgotten."""
_COMMIT = "SELECT * FROM toolgate_commit($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)"
_READ_SETTINGS = """
SELECT m.value, m.xmin::text, k.value FROM (SELECT 1) AS one
LEFT JOIN settings AS m ON m.name='mode' LEFT JOIN settings AS k ON k.name='keys'
"""
_CALL_OFF = "INSERT INTO commits (id, is_void) VALUES ($1, true) ON CONFLICT (id) DO NOTHING"
"""Waits for whoever is just making that commit; afterwards it is done, or can never be done."""
_WAS_CALLED_OFF = "SELECT is_void FROM commits WHERE id=$1"
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
    return [f"pg_advisory_xact_lock({PROJECT_LOCK}, {number})" for number in lock_numbers(projects)]


def lock_numbers(projects: list[str]) -> list[int]:
    """The numbers of the projects' locks, in the order in which everybody takes them."""
    return sorted({zlib.crc32(project.encode()) - 2**31 for project in projects})


class Settings(NamedTuple):
    """What the function is told to be stored: the mode, which transaction wrote it, and the key in use here."""

    mode: str | None
    written: str | None
    key: str


class Writer:
    """Writes batches on a connection of its own, one at a time, on the link's loop."""

    def __init__(
        self,
        address: Address,
        sealer: Sealer,
        watch: Watch,
        *,
        lease: Lease,
        later: Callable[[str | None], Awaitable[Later]],
    ) -> None:
        self._address = address
        self._sealer = sealer
        self._watch = watch
        self._lease = lease
        self._later = later
        self._connection: Connection | None = None
        self._settings: Settings | None = None
        self.brakes = Brakes()

    async def write(self, write_sets: list[WriteSet]) -> list[Outcome]:
        """Write these changes in one transaction and return what became of each; StoreError: nothing was written."""
        deadline = monotonic() + PATIENCE_S
        while True:
            batch = Batch(write_sets, self._lease.new_id())
            try:
                connection = await self._connected()
                await self._transact(connection, batch)
            except UNKEEPABLE:
                await self._take_back()
                raise
            except _AGAIN:
                await self._take_back()
            except (asyncpg.PostgresError, *AWAY) as error:
                if getattr(error, "sqlstate", None) == SETTINGS_CHANGED:
                    self._settings = None
                    await self._take_back()
                    continue
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
        if batch.is_sent or isinstance(error, AWAY):
            self.drop()
        else:
            await self._take_back()
        return batch.is_sent and await self._was_written(batch)

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
        connection = self._connection
        if connection is not None and not connection.is_closed() and connection.is_in_transaction():
            try:
                await connection.execute("ROLLBACK")
            except (asyncpg.PostgresError, *AWAY):
                self.drop()

    async def _transact(self, connection: Connection, batch: Batch) -> None:
        settings = self._settings
        brakes = None if settings is None else self._watch.known(settings.mode, settings.written)
        is_short = not (self._address.pooled or self._lease.is_overdue or batch.is_judged_by_rows)
        if is_short and settings is not None and brakes is not None:
            self._judge_alone(batch, Standing(brakes=brakes))
            batch.brakes = brakes
            await self._commit(connection, batch, settings, is_last=True)
            return
        await connection.execute(self._begin(batch))
        await self._lease.renew(connection)
        settings, standing = await self._look(connection, batch)
        await self._judge(connection, batch, standing)
        await self._commit(connection, batch, settings, is_last=False)
        await self._put(connection, batch, standing)
        batch.brakes, batch.is_sent = standing.brakes, True
        await connection.execute("COMMIT")
        self._settings = None if _sets_mode(batch) else settings

    async def _commit(self, connection: Connection, batch: Batch, settings: Settings, *, is_last: bool) -> None:
        """Have the server write, number and chain; where that is all, it commits, too."""
        rows = batch.rows()
        if is_last and not any(rows):
            return  # all were refused
        batch.is_sent = is_last
        projects = SEPARATOR.join(batch.projects)
        told = (batch.id, projects, *settings, lock_numbers(batch.projects))
        refused, told_before, last_seq = await connection.fetchrow(_COMMIT, *told, *rows)
        batch.refuse(refused, told_before)
        batch.last_seq = last_seq

    def _begin(self, batch: Batch) -> str:
        is_locked = batch.is_judged_by_rows
        locks = [f"pg_advisory_xact_lock{'' if _sets_mode(batch) else '_shared'}({MODE_LOCK}, 0)"]
        locks += locks_on(batch.projects) if is_locked else []
        then = "".join(f", {lock}" for lock in [*locks, "set_config('synchronous_commit', 'on', true)"])
        return begin(self._address, batch.projects, writing=True, then=then, **PLANS)

    async def _look(self, connection: Connection, batch: Batch) -> tuple[Settings, Standing]:
        """Read what the changes are checked against: the settings always, the rest where some change needs it."""
        mode, written, keys = await connection.fetchrow(_READ_SETTINGS)
        standing = Standing(brakes=self._watch.known(mode, written) or await self._believe(mode, written))
        noted = (keys or "").split()
        if self._sealer.current not in noted:
            # Others sealed everything anew and forgot this key: what is sealed with it now needs it again.
            await connection.execute(PUT_SETTING, "keys", " ".join([*noted, self._sealer.current]))
        changes = [write_set.change for write_set in batch.write_sets if needs_version(write_set.change)]
        if changes:
            await self._look_at_rows(connection, changes, standing)
            await self._look_at_rates(connection, batch, standing)
        return Settings(mode, written, self._sealer.current), standing

    async def _look_at_rows(self, connection: Connection, changes: list[Change], standing: Standing) -> None:
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

    def _judge_alone(self, batch: Batch, standing: Standing) -> None:
        """Refuse what the mode or the list of events refuses; the rest is judged by the server."""
        for place, write_set in enumerate(batch.write_sets):
            try:
                standing.check(write_set.change)
            except ToolgateError as error:
                batch.outcomes[place] = error

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
        for bulk, rows in batch.companions():
            await connection.execute(bulk.sql, *bulk.values(rows))
        for large in batch.kept():
            await _keep(connection, large)
        for write_set in batch.standing:
            if write_set.change.set_mode is not None:
                standing.brakes = write_set.change.set_mode.numbered(batch.last_seq)
                await connection.execute(PUT_SETTING, "mode", text_of(standing.brakes, self._sealer.marks))

    async def _was_written(self, batch: Batch) -> bool:
        """Whether a commit that was not answered was done; StoreError where that cannot be learned.

        Where it was not, it is called off for good: a server that is only slow cannot do it later.
        """
        deadline = monotonic() + RESOLVE_S
        while monotonic() < deadline:
            try:
                connection = await self._connected()
                written = await self._outcome(connection, batch)
            except (asyncpg.PostgresError, *AWAY) as error:
                log.warning("looking up an unanswered commit: %s", type(error).__name__)
                self.drop()
                await asyncio.sleep(RETRY_S)
                continue
            outcome = "done" if written else "not done"
            log.warning("an unanswered commit of %d changes was %s", len(batch.write_sets), outcome)
            return written
        raise StoreError(
            "The connection to PostgreSQL was lost during a commit and it is not known whether the change was "
            "written. Read the call again before anything is repeated."
        )

    async def _outcome(self, connection: Connection, batch: Batch) -> bool:
        await connection.execute(begin(self._address, batch.projects, writing=True))  # a pooler keeps no less together
        await connection.execute(_CALL_OFF, batch.id)
        is_void: bool = await connection.fetchval(_WAS_CALLED_OFF, batch.id)
        await connection.execute("COMMIT")
        return not is_void

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


def _sets_mode(batch: Batch) -> bool:
    return any(write_set.change.set_mode is not None for write_set in batch.write_sets)
