"""What one transaction's changes write, by table, and the chain they make: everything of it that needs no database."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from uuid import UUID

from toolgate.adapters.held import Held, already_told, check_move, check_stands
from toolgate.adapters.postgres import packing
from toolgate.adapters.postgres.bulk import (
    BESIDE,
    FREE_KEYS,
    INSERT_RATES,
    PASS_KEYS,
    PUT_DELEGATIONS,
    PUT_GRANTS,
    PUT_KEYS,
    Bulk,
)
from toolgate.adapters.postgres.packing import APPROVALS, CALL_PARAMS, INSERTS, RUNS, UNDOS, UNTOLD, UPDATES
from toolgate.adapters.sql.delegation_rows import delegation_row
from toolgate.adapters.sql.gathering import Outcome
from toolgate.adapters.sql.rows import Row, grant_row, moment, uuid_hex
from toolgate.adapters.sql.write_set import Beside, Large, WriteSet
from toolgate.errors import ConflictError, GrantChangedError, ModeChangedError
from toolgate.kernel.brake import Brakes
from toolgate.kernel.change import Change, Reservation
from toolgate.kernel.event import EVENTS, ChainError, open_frames
from toolgate.kernel.holding import How

Key = tuple[str, str]


@dataclass(slots=True)
class Standing:
    """What was read under the locks of the transaction, kept current with what the batch itself adds."""

    brakes: Brakes = field(default_factory=Brakes)
    undos: dict[Key, str] = field(default_factory=dict)
    grants: dict[str, int] = field(default_factory=dict)
    delegations: dict[str, int] = field(default_factory=dict)
    versions: dict[Key, int] = field(default_factory=dict)
    held: dict[Key, Held] = field(default_factory=dict)
    used: dict[Key, int] = field(default_factory=dict)
    added: dict[Key, int] = field(default_factory=dict)

    def check(self, change: Change) -> None:
        """Raise why this change cannot be written now. Nothing it says depends on another change but for rates."""
        check_told(change)
        if change.mode_seen is not None and change.mode_seen != self.brakes.serial:
            raise ModeChangedError("The mode was changed meanwhile.")
        undo, state = change.undo, change.undo_expect
        if undo is not None and state is not None and self.undos.get((undo.project, undo.call_id)) != state.value:
            raise ConflictError(f"Call {undo.call_id} is not {state} for undo any more.")
        if change.grant is not None and self.grants.get(uuid_hex(change.grant.id)) != change.grant_expect:
            raise GrantChangedError(f"Grant {change.grant.id} was used or changed meanwhile.")
        lent = change.delegation
        if lent is not None and self.delegations.get(uuid_hex(lent.id), 0) != lent.version - 1:
            raise ConflictError(f"Delegation {lent.id} was changed by somebody else.")
        call = change.call
        if needs_version(change) and call is not None and self.versions.get((call.project, call.id)) != change.expect:
            raise outdated(change)
        if (stands := change.stands) is not None:
            check_stands(stands, self.versions.get((change.project, stands[0])))
        for move in change.moves:
            check_move(move, self.held.get((change.project, move.key)), change.at)

    def reserve(self, change: Change, used: dict[Key, int]) -> Reservation | None:
        """Count what the change takes of its rates; the first that does not fit beside `used`, and then none counts."""
        taken: dict[Key, int] = {}
        for reservation in change.reservations:
            key = (change.project, reservation.key)
            taken[key] = taken.get(key, 0) + reservation.amount
            if used.get(key, 0) + self.added.get(key, 0) + taken[key] > reservation.limit:
                return reservation
        for key, amount in taken.items():
            self.added[key] = self.added.get(key, 0) + amount
        return None


def check_told(change: Change) -> None:
    """Raise where a change tells of what is not in the list of events."""
    for name, *_ in change.events:
        if name not in EVENTS:
            raise ChainError(f"'{name}' is not an event name; add it to EVENTS with its meaning.")


def needs_version(change: Change) -> bool:
    """Whether the call's row must be looked at before anything else of the change is written or refused."""
    decided_by_rows = change.undo_expect is not None or change.grant is not None or change.delegation is not None
    return bool(change.reservations or change.moves) or decided_by_rows or change.stands is not None


def outdated(change: Change) -> ConflictError:
    assert change.call is not None
    return ConflictError(f"Call {change.call.id} was changed by somebody else.")


def keys_of(write_set: WriteSet) -> list[object]:
    """What a change decides about; two that share one of these are not written together."""
    change = write_set.change
    keys: list[object] = []
    if change.call is not None:
        keys.append((change.call.project, change.call.id))
    if change.undo is not None:
        keys.append(("undo", change.undo.project, change.undo.call_id))
    if change.grant is not None:
        keys.append(("grant", change.grant.id))
    if change.delegation is not None:
        keys.append(("delegation", change.delegation.id))
    keys += [("key", change.project, move.key) for move in change.moves]
    if (stands := change.stands) is not None:
        keys.append((change.project, stands[0]))
    return keys


def is_judged_by_rows(write_set: WriteSet) -> bool:
    """Whether more than its call's version, its events and the mode decides about a change, or it writes much."""
    change, rest = write_set.change, write_set.rest
    if needs_version(change) or change.set_mode is not None or (rest is not None and rest.beside):
        return True
    return next(iter(change.uses), None) is not None


def runs_of(write_set: WriteSet) -> list[Row]:
    """The runs a change refers to: they must be there first."""
    rest = write_set.rest
    found = [rest.run] if rest is not None and rest.run is not None else []
    for approval in write_set.change.approvals:
        if approval.run_id is not None:
            row = (uuid_hex(approval.run_id), approval.project, approval.run_id, moment(approval.created_at))
            found.append(row)
    return found


class Batch:
    """Changes that are written in one transaction, and what becomes of each."""

    def __init__(self, write_sets: list[WriteSet], id: UUID) -> None:
        self.id = id
        self.write_sets = write_sets
        self.outcomes: list[Outcome] = [None] * len(write_sets)
        self.projects = sorted({write_set.change.project for write_set in write_sets} | {
            write_set.change.call.project for write_set in write_sets if write_set.change.call is not None
        })  # fmt: skip
        self.last_seq = 0
        self.is_sent = False
        self.brakes = Brakes()

    @property
    def standing(self) -> list[WriteSet]:
        """Those not refused so far."""
        return [write_set for write_set, outcome in zip(self.write_sets, self.outcomes, strict=True) if outcome is None]

    @property
    def is_judged_by_rows(self) -> bool:
        """Whether what becomes of some change is decided by rows that must be looked at under the projects' locks."""
        return any(map(is_judged_by_rows, self.write_sets))

    def refuse(self, refused: Collection[int], told: Collection[int]) -> None:
        """Refuse the changes with these numbers: their call was not as expected, or its events tell otherwise."""
        for place in refused:
            change = self.write_sets[place].change
            assert change.call is not None
            self.outcomes[place] = already_told(change.call.id) if place in told else outdated(change)

    def rows(self) -> list[list[str]]:
        """What `toolgate_commit` writes of the changes that stand: its parameters, from `p_untold` on."""
        rows: tuple[list[Row], ...] = tuple([] for _ in range(8))
        untold, runs, inserts, updates, params, approvals, undos, events = rows
        for place, (write_set, outcome) in enumerate(zip(self.write_sets, self.outcomes, strict=True)):
            if outcome is not None:
                continue
            change, insert, update, rest, _ = write_set
            if change.untold and change.call is not None:
                untold.append((place, change.project, change.call.id, ",".join(sorted(change.untold))))
            if insert is not None:
                inserts.append((place, *insert))
            elif update is not None:
                updates.append((place, *update))
            if rest is not None:
                runs += [(place, *row) for row in runs_of(write_set)]
                approvals += [(place, *row) for row in rest.approvals]
                if rest.params is not None:
                    params.append((place, *rest.params))
                if rest.undo is not None:
                    undos.append((place, *rest.undo))
            if change.events:
                project, at = change.project, moment(change.at)
                made = open_frames(change.events, project, change.at)
                events += [(place, project, name, at, *more) for name, *more in made]
        packings = (UNTOLD, RUNS, INSERTS, UPDATES, CALL_PARAMS, APPROVALS, UNDOS, packing.EVENTS)
        return [one.pack(found) for one, found in zip(packings, rows, strict=True)]

    def companions(self) -> list[tuple[Bulk, list[Row]]]:
        """What the changes that stand write besides: statements with their rows."""
        rates: list[Row] = []
        grants: list[Row] = []
        delegations: list[Row] = []
        beside: dict[Beside, list[Row]] = {}
        for write_set in self.standing:
            change, rest = write_set.change, write_set.rest
            for large in () if rest is None else rest.beside:
                beside.setdefault(large.what, []).append(large.row)
            rates += [(change.project, one.key, change.at.timestamp(), one.amount) for one in change.reservations]
            rates += [(change.project, use.key, use.at.timestamp(), use.amount) for use in change.uses]
            if change.grant is not None:
                grants.append(grant_row(change.grant))
            if change.delegation is not None:
                delegations.append(delegation_row(change.delegation))
        given = ((INSERT_RATES, rates), (PUT_GRANTS, grants), (PUT_DELEGATIONS, delegations))
        apart = [(BESIDE[what], rows) for what, rows in beside.items() if what in BESIDE]
        return [(bulk, rows) for bulk, rows in (*given, *apart, *self._moves()) if rows]

    def _moves(self) -> tuple[tuple[Bulk, list[Row]], ...]:
        """The moves of keys: those that were checked or are always made, and those made where their holder has one."""
        put: list[Row] = []
        passed: list[Row] = []
        freed: list[Row] = []
        for change in [write_set.change for write_set in self.standing]:
            for move in change.moves:
                if move.only_looks:
                    continue
                if move.holder is None:
                    freed.append((change.project, move.key, move.expect))
                elif move.how is How.SOFT:
                    passed.append((move.holder, moment(move.until), change.project, move.key, move.expect))
                else:
                    put.append((change.project, move.key, move.holder, moment(move.until)))
        return (PUT_KEYS, put), (PASS_KEYS, passed), (FREE_KEYS, freed)

    def kept(self) -> list[Large]:
        """The large values that are there already, of the changes that stand."""
        rests = [write_set.rest for write_set in self.standing if write_set.rest is not None]
        return [large for rest in rests for large in rest.beside if large.what is Beside.KEEP_UNDO]
