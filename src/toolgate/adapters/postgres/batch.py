"""What one transaction's changes write, by table, and the chain they make: everything of it that needs no database."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from toolgate.adapters.held import Held, check_move, check_stands
from toolgate.adapters.postgres.bulk import (
    BESIDE,
    FREE_KEYS,
    INSERT_EVENTS,
    INSERT_RATES,
    PASS_KEYS,
    PUT_APPROVALS,
    PUT_DELEGATIONS,
    PUT_EVENTS,
    PUT_GRANTS,
    PUT_KEYS,
    PUT_UNDOS,
    UPDATE_PARAMS,
    Bulk,
    columns_of,
)
from toolgate.adapters.sql.delegation_rows import delegation_row
from toolgate.adapters.sql.gathering import Outcome
from toolgate.adapters.sql.rows import Row, grant_row, moment, uuid_hex
from toolgate.adapters.sql.write_set import Beside, Large, WriteSet
from toolgate.errors import ConflictError, GrantChangedError, ModeChangedError
from toolgate.kernel.brake import Brakes
from toolgate.kernel.change import Change, Reservation
from toolgate.kernel.event import EVENTS, ChainError, genesis, link
from toolgate.kernel.holding import How

Key = tuple[str, str]
Head = tuple[int, bytes]


@dataclass(slots=True)
class Standing:
    """What was read under the locks of the transaction, kept current with what the batch itself adds."""

    brakes: Brakes = field(default_factory=Brakes)
    heads: dict[str, Head] = field(default_factory=dict)
    undos: dict[Key, str] = field(default_factory=dict)
    grants: dict[str, int] = field(default_factory=dict)
    delegations: dict[str, int] = field(default_factory=dict)
    versions: dict[Key, int] = field(default_factory=dict)
    held: dict[Key, Held] = field(default_factory=dict)
    used: dict[Key, int] = field(default_factory=dict)
    added: dict[Key, int] = field(default_factory=dict)

    def check(self, change: Change) -> None:
        """Raise why this change cannot be written now. Nothing it says depends on another change but for rates."""
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
        for name, *_ in change.events:
            if name not in EVENTS:
                raise ChainError(f"'{name}' is not an event name; add it to EVENTS with its meaning.")
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


def runs_of(write_sets: list[WriteSet]) -> list[Row]:
    """The runs these changes refer to: they must be there first."""
    found: dict[Key, Row] = {}
    for write_set in write_sets:
        rest = write_set.rest
        if rest is None:
            continue
        if rest.run is not None:
            found[rest.run[1], rest.run[0]] = rest.run
        for approval in write_set.change.approvals:
            if approval.run_id is not None:
                hexed = uuid_hex(approval.run_id)
                row = (hexed, approval.project, approval.run_id, moment(approval.created_at))
                found.setdefault((approval.project, hexed), row)
    return list(found.values())


class Batch:
    """Changes that are written in one transaction, and what becomes of each."""

    def __init__(self, write_sets: list[WriteSet]) -> None:
        self.write_sets = write_sets
        self.outcomes: list[Outcome] = [None] * len(write_sets)
        self.projects = sorted({write_set.change.project for write_set in write_sets} | {
            write_set.change.call.project for write_set in write_sets if write_set.change.call is not None
        })  # fmt: skip
        self.xid: str | None = None
        self.last_event: Row | None = None
        self.is_committing = False
        self.brakes = Brakes()

    @property
    def standing(self) -> list[WriteSet]:
        """Those not refused so far."""
        return [write_set for write_set, outcome in zip(self.write_sets, self.outcomes, strict=True) if outcome is None]

    def refuse_missing(self, wanted: list[WriteSet], written: list[Any]) -> None:
        """Refuse those whose call was not written, since its row was not as they expected."""
        if len(written) == len(wanted):
            return
        there = {(project, call_id) for project, call_id in written}
        asked = {id(write_set) for write_set in wanted}
        for place, write_set in enumerate(self.write_sets):
            call = write_set.change.call
            if id(write_set) in asked and call is not None and (call.project, call.id) not in there:
                self.outcomes[place] = outdated(write_set.change)

    def companions(self) -> list[tuple[Bulk, list[Row]]]:
        """What the changes that stand write besides calls and events: statements with their rows."""
        params: list[Row] = []
        approvals: list[Row] = []
        undos: list[Row] = []
        rates: list[Row] = []
        grants: list[Row] = []
        delegations: list[Row] = []
        beside: dict[Beside, list[Row]] = {}
        for write_set in self.standing:
            change, rest = write_set.change, write_set.rest
            if rest is not None:
                if rest.params is not None:
                    params.append(rest.params)
                approvals += rest.approvals
                if rest.undo is not None:
                    undos.append(rest.undo)
                for large in rest.beside:
                    beside.setdefault(large.what, []).append(large.row)
            rates += [(change.project, one.key, change.at.timestamp(), one.amount) for one in change.reservations]
            rates += [(change.project, use.key, use.at.timestamp(), use.amount) for use in change.uses]
            if change.grant is not None:
                grants.append(grant_row(change.grant))
            if change.delegation is not None:
                delegations.append(delegation_row(change.delegation))
        tables = ((UPDATE_PARAMS, params), (PUT_APPROVALS, approvals), (PUT_UNDOS, undos))
        given = ((INSERT_RATES, rates), (PUT_GRANTS, grants), (PUT_DELEGATIONS, delegations))
        apart = [(BESIDE[what], rows) for what, rows in beside.items() if what in BESIDE]
        return [(bulk, rows) for bulk, rows in (*tables, *given, *apart, *self._moves()) if rows]

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

    def chain(self, heads: dict[str, Head]) -> tuple[str, list[list[Any]]] | None:
        """Link the events of the changes that stand to the ends of their chains; the statement that writes them."""
        rows: list[Row] = []
        ends: dict[str, Head] = {}
        for write_set in self.standing:
            change = write_set.change
            if not change.events:
                continue
            project, at = change.project, moment(change.at)
            seq, last = ends.get(project) or heads.get(project) or (0, genesis(project))
            linked = link(change.events, project, change.at, seq, last)
            rows += [(project, number, name, at, *rest) for number, name, _, *rest in linked]
            ends[project] = (linked[-1][0], linked[-1][7])
        if not rows:
            return None
        self.last_event = rows[-1]
        heads_of = [(project, *head) for project, head in sorted(ends.items())]
        return PUT_EVENTS, [*INSERT_EVENTS.values(rows), *columns_of(heads_of)]
