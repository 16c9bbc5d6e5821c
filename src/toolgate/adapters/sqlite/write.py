"""Writing changes to SQLite: one transaction for many changes, each wholly in it or not at all.

Runs on whatever thread holds the writer's lock. The changes of a group are written together, a
statement for each table. Where one of them turns out to be refused, the transaction is taken back
and the group is written again change by change, so a refused one never takes the others along.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass, field

from toolgate.adapters.held import already_told
from toolgate.adapters.sealing import Sealer
from toolgate.adapters.sql.brakes import Watch, text_of
from toolgate.adapters.sql.delegation_rows import delegation_row
from toolgate.adapters.sql.gathering import Outcome
from toolgate.adapters.sql.rows import Row, grant_row, moment, uuid_hex
from toolgate.adapters.sql.write_set import Large, WriteSet
from toolgate.adapters.sqlite.brakes import stored_brakes
from toolgate.adapters.sqlite.file import CACHE_KB, LOG_BYTES, PUT_KEYS, keys_of
from toolgate.adapters.sqlite.held import check_held, move_keys
from toolgate.adapters.sqlite.statements import (
    INSERT_CALL,
    INSERT_EVENT,
    INSERT_RATE,
    INSERT_RUN,
    PUT_APPROVAL,
    PUT_DELEGATION,
    PUT_GRANT,
    PUT_UNDO,
    UPDATE_CALL,
    UPDATE_PARAMS,
    are_apart,
    put_large,
)
from toolgate.errors import ConflictError, GrantChangedError, ModeChangedError, StoreError
from toolgate.kernel.brake import Brakes
from toolgate.kernel.change import Change, Durability, Reservation
from toolgate.kernel.context import SYSTEM_PROJECT
from toolgate.kernel.delegation import Delegation
from toolgate.kernel.event import genesis, link
from toolgate.kernel.grant import Grant

_INSERT_HEAD = "INSERT INTO chain_heads (seq, hash, project_id) VALUES (?,?,?)"
_UPDATE_HEAD = "UPDATE chain_heads SET seq=?, hash=? WHERE project_id=?"
_PUT_MODE = "INSERT OR REPLACE INTO settings (name, value) VALUES ('mode', ?)"


class _RefusedError(Exception):
    """A call of this batch is not as its change expects."""


_FAULTY = (UnicodeError, OverflowError, sqlite3.ProgrammingError, sqlite3.InterfaceError, sqlite3.IntegrityError)
"""What a change with values SQLite cannot hold raises; the database itself is well."""


@dataclass(slots=True)
class Group:
    """One transaction's worth of changes, and what became of each."""

    write_sets: list[WriteSet]
    outcomes: list[Outcome] = field(default_factory=list)

    @property
    def durability(self) -> Durability:
        return max(write_set.change.durability for write_set in self.write_sets)


class _Batch:
    """The rows of changes that are written together, by table."""

    __slots__ = (
        "approvals",
        "beside",
        "brakes",
        "delegations",
        "events",
        "grants",
        "heads",
        "inserts",
        "moved",
        "params",
        "rates",
        "runs",
        "undos",
        "updates",
    )

    def __init__(self) -> None:
        self.inserts: list[Row] = []
        self.updates: list[Row] = []
        self.params: list[Row] = []
        self.approvals: list[Row] = []
        self.undos: list[Row] = []
        self.runs: list[Row] = []
        self.events: list[Row] = []
        self.rates: list[Row] = []
        self.beside: list[Large] = []
        self.grants: list[Row] = []
        self.delegations: list[Row] = []
        self.moved: list[Change] = []
        self.heads: dict[str, tuple[int, bytes]] = {}
        self.brakes: Brakes | None = None

    def add(self, write_set: WriteSet) -> None:
        change = write_set.change
        if write_set.insert is not None:
            self.inserts.append(write_set.insert)
        elif write_set.update is not None:
            self.updates.append(write_set.update)
        if write_set.rest is not None:
            params, approvals, undo, run, beside = write_set.rest
            self.approvals += approvals
            self.beside += beside
            if params is not None:
                self.params.append(params)
            if undo is not None:
                self.undos.append(undo)
            if run is not None:
                self.runs.append(run)
        if change.moves:
            self.moved.append(change)
        if not change.is_plain:
            self._add_companions(change)

    def _add_companions(self, change: Change) -> None:
        for reservation in change.reservations:
            self.rates.append((change.project, reservation.key, change.at.timestamp(), reservation.amount))
        self.rates += [(change.project, use.key, use.at.timestamp(), use.amount) for use in change.uses]
        if change.grant is not None:
            self.grants.append(grant_row(change.grant))
        if change.delegation is not None:
            self.delegations.append(delegation_row(change.delegation))


class Writer:
    """Writes groups of changes on one connection. The caller serialises calls.

    What it has read or written itself (brakes, heads of chains, the last event's position) it trusts
    until SQLite's `data_version` says that another connection has written.
    """

    def __init__(self, connection: sqlite3.Connection, sealer: Sealer, watch: Watch) -> None:
        self._connection = connection
        self._sealer = sealer
        self._watch = watch
        self._synchronous: Durability | None = None
        self._version = -1
        self.brakes = Brakes()
        """Those that held in the latest transaction."""
        self._heads: dict[str, tuple[int, bytes]] = {}
        self._position: int | None = None
        self.own = (0, -1)
        """First and last position of the latest events with nobody else's between them."""

    def write(self, group: Group) -> None:
        """Write the group in one transaction and fill its outcomes; what SQLite raises means nothing was written."""
        self._set_durability(group.durability)
        in_turn = not are_apart(group.write_sets)
        if not in_turn:
            try:
                self._transact(group, in_turn=False)
            except (_RefusedError, *_FAULTY):
                in_turn = True
        if in_turn:
            group.outcomes.clear()
            self._transact(group, in_turn=True)

    def write_alone(self, write_set: WriteSet) -> Outcome:
        """Write one change in a transaction of its own and return what became of it."""
        change = write_set.change
        if write_set.rest is not None or not change.is_plain or change.moves or change.untold:
            group = Group([write_set])
            self.write(group)
            return group.outcomes[0]
        self._set_durability(change.durability)
        connection = self._connection
        connection.execute("BEGIN IMMEDIATE")
        try:
            before = self._catch_up()
            outcome = self._put_alone(write_set)
            if outcome is None:
                connection.execute("COMMIT")
                self._remember(before)
            else:
                self._take_back()
        except _FAULTY as error:
            outcome = _unkeepable(error)
            self._take_back()
        except BaseException:
            self._take_back()
            raise
        return outcome

    def _put_alone(self, write_set: WriteSet) -> Outcome:
        change, insert, update, *_ = write_set
        if change.mode_seen is not None and change.mode_seen != self.brakes.serial:
            return ModeChangedError("The mode was changed meanwhile.")
        batch = _Batch()
        try:
            self._chain(change, batch)
        except Exception as error:  # noqa: BLE001  # refused before its first row: the error is its outcome
            return error
        connection = self._connection
        if insert is not None and INSERT_CALL.write(connection, [insert]) != 1:
            return _outdated(change)
        if update is not None and UPDATE_CALL.write(connection, [update]) != 1:
            return _outdated(change)
        if batch.events:
            INSERT_EVENT.write(connection, batch.events)
            self._put_head(change.project, batch.heads[change.project])
            self._position = (self._position or 0) + len(batch.events)
            self._heads.update(batch.heads)
        return None

    def _take_back(self) -> None:
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")
        self._version = -1

    def _transact(self, group: Group, *, in_turn: bool) -> None:
        connection = self._connection
        connection.execute("BEGIN IMMEDIATE")
        try:
            before = self._catch_up()
            if in_turn:
                group.outcomes += [self._write_one(write_set) for write_set in group.write_sets]
            else:
                group.outcomes += self._write_all(group.write_sets)
            connection.execute("COMMIT")
        except BaseException:
            self._take_back()
            raise
        self._watch.note(self.brakes)
        self._remember(before)

    def _set_durability(self, wanted: Durability) -> None:
        if self._synchronous is None:
            self._connection.execute(f"PRAGMA journal_size_limit={LOG_BYTES}")
            self._connection.execute(f"PRAGMA cache_size=-{CACHE_KB}")
        if wanted is not self._synchronous:
            level = "FULL" if wanted is Durability.FSYNCED else "NORMAL"
            self._connection.execute(f"PRAGMA synchronous={level}")
            self._synchronous = wanted

    def _catch_up(self) -> int:
        """Forget what another connection may have changed; return the position of the last event."""
        (version,) = self._connection.execute("PRAGMA data_version").fetchone()
        if version != self._version or self._position is None:
            self.brakes = stored_brakes(self._connection, self._watch)
            if self._sealer.current not in (keys := keys_of(self._connection)):
                # Others sealed everything anew and forgot this key: what is sealed with it now needs it again.
                self._connection.execute(PUT_KEYS, (" ".join([*keys, self._sealer.current]),))
            (self._position,) = self._connection.execute("SELECT coalesce(max(position), 0) FROM events").fetchone()
            self._heads.clear()
            self._version = version
        position: int = self._position
        return position

    def _remember(self, before: int) -> None:
        assert self._position is not None
        if self._position > before:
            first, last = self.own
            self.own = (first if last == before else before + 1, self._position)

    def _write_one(self, write_set: WriteSet) -> Outcome:
        """Write one change inside the transaction; where it is refused, nothing of it stays."""
        connection = self._connection
        connection.execute("SAVEPOINT change")
        try:
            outcome = self._write_all([write_set])[0]
        except _RefusedError:
            outcome = _outdated(write_set.change)
        except _FAULTY as error:
            outcome = _unkeepable(error)
        if outcome is not None:
            connection.execute("ROLLBACK TO change")
        connection.execute("RELEASE change")
        return outcome

    def _write_all(self, write_sets: list[WriteSet]) -> list[Outcome]:
        """Write these changes; raise where a call is not as expected, and then the caller takes all of it back."""
        batch = _Batch()
        outcomes: list[Outcome] = []
        for write_set in write_sets:
            try:
                self._check(write_set.change)
                self._chain(write_set.change, batch)
            except Exception as error:  # noqa: BLE001  # refused before its first row: the error is its outcome
                outcomes.append(error)
            else:
                outcomes.append(None)
                batch.add(write_set)
                if write_set.change.set_mode is not None:
                    seq, _ = batch.heads.get(SYSTEM_PROJECT) or self._head(SYSTEM_PROJECT)
                    batch.brakes = write_set.change.set_mode.numbered(seq)
        self._put(batch)
        self._position = (self._position or 0) + len(batch.events)
        self._heads.update(batch.heads)
        self.brakes = batch.brakes or self.brakes
        return outcomes

    def _check(self, change: Change) -> None:
        if change.mode_seen is not None and change.mode_seen != self.brakes.serial:
            raise ModeChangedError("The mode was changed meanwhile.")
        if change.untold:
            self._check_untold(change)
        if change.undo_expect is not None and change.undo is not None:
            row = self._connection.execute(
                "SELECT state FROM undo_records WHERE project_id=? AND action_id=?",
                (change.undo.project, uuid_hex(change.undo.call_id)),
            ).fetchone()
            if row is None or row[0] != change.undo_expect.value:
                raise ConflictError(f"Call {change.undo.call_id} is not {change.undo_expect} for undo any more.")
        if change.grant is not None:
            self._check_grant(change.grant, change.grant_expect)
        if change.delegation is not None:
            self._check_delegation(change.delegation)
        if change.reservations or change.moves:
            self._check_version(change)  # whoever comes second hears of that, not of the rate or the key
        if change.moves or change.stands is not None:
            check_held(self._connection, change)
        for reservation in change.reservations:
            self._check_rate(change, reservation)

    def _check_untold(self, change: Change) -> None:
        call = change.call
        assert call is not None
        told = self._connection.execute(
            "SELECT type FROM events WHERE call_id=? AND project_id=?", (call.id, change.project)
        )
        if any(name in change.untold for (name,) in told):
            raise already_told(call.id)

    def _check_grant(self, grant: Grant, expect: int | None) -> None:
        row = self._connection.execute("SELECT version FROM grants WHERE id=?", (uuid_hex(grant.id),)).fetchone()
        if (None if row is None else row[0]) != expect:
            raise GrantChangedError(f"Grant {grant.id} was used or changed meanwhile.")

    def _check_delegation(self, new: Delegation) -> None:
        row = self._connection.execute("SELECT version FROM delegations WHERE id=?", (uuid_hex(new.id),)).fetchone()
        if (0 if row is None else row[0]) != new.version - 1:
            raise ConflictError(f"Delegation {new.id} was changed by somebody else.")

    def _check_version(self, change: Change) -> None:
        call = change.call
        if call is None:
            return
        row = self._connection.execute(
            "SELECT version FROM tool_executions WHERE project_id=? AND id=?", (call.project, uuid_hex(call.id))
        ).fetchone()
        if (None if row is None else row[0]) != change.expect:
            raise ConflictError(f"Call {call.id} was changed by somebody else.")

    def _check_rate(self, change: Change, reservation: Reservation) -> None:
        whose = (change.project, reservation.key, change.at.timestamp() - reservation.window_s)
        self._connection.execute("DELETE FROM rate_uses WHERE project_id=? AND key=? AND at<=?", whose)
        used = self._connection.execute(
            "SELECT coalesce(sum(amount), 0) FROM rate_uses WHERE project_id=? AND key=? AND at>?", whose
        ).fetchone()[0]
        if used + reservation.amount > reservation.limit:
            raise reservation.refusal()

    def _chain(self, change: Change, batch: _Batch) -> None:
        """Link the change's events to the end of their project's chain."""
        if not change.events:
            return
        project, at = change.project, moment(change.at)
        seq, last = batch.heads.get(project) or self._heads.get(project) or self._head(project)
        assert self._position is not None
        position = self._position + len(batch.events)
        linked = link(change.events, project, change.at, seq, last)
        batch.events += [
            (position + step, project, number, name, at, *rest)
            for step, (number, name, _, *rest) in enumerate(linked, 1)
        ]
        batch.heads[project] = (linked[-1][0], linked[-1][7])

    def _head(self, project: str) -> tuple[int, bytes]:
        row = self._connection.execute("SELECT seq, hash FROM chain_heads WHERE project_id=?", (project,)).fetchone()
        return (0, genesis(project)) if row is None else (row[0], row[1])

    def _put(self, batch: _Batch) -> None:
        connection = self._connection
        if batch.inserts and INSERT_CALL.write(connection, batch.inserts) != len(batch.inserts):
            raise _RefusedError
        if batch.updates and UPDATE_CALL.write(connection, batch.updates) != len(batch.updates):
            raise _RefusedError
        for bulk, rows in (
            (UPDATE_PARAMS, batch.params),
            (INSERT_RUN, batch.runs),
            (PUT_APPROVAL, batch.approvals),
            (PUT_UNDO, batch.undos),
            (INSERT_RATE, batch.rates),
            (PUT_GRANT, batch.grants),
            (PUT_DELEGATION, batch.delegations),
            (INSERT_EVENT, batch.events),
        ):
            if rows:
                bulk.write(connection, rows)
        for large in batch.beside:
            put_large(connection, large)
        for change in batch.moved:
            move_keys(connection, change)
        for project, head in batch.heads.items():
            self._put_head(project, head)
        if batch.brakes is not None:
            self._connection.execute(_PUT_MODE, (text_of(batch.brakes, self._sealer.marks),))

    def _put_head(self, project: str, head: tuple[int, bytes]) -> None:
        if self._connection.execute(_UPDATE_HEAD, (*head, project)).rowcount != 1:
            self._connection.execute(_INSERT_HEAD, (*head, project))


def _outdated(change: Change) -> ConflictError:
    assert change.call is not None
    return ConflictError(f"Call {change.call.id} was changed by somebody else.")


def _unkeepable(error: Exception) -> StoreError:
    return StoreError(f"The change holds something the database cannot keep ({type(error).__name__}).")
