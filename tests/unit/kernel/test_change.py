"""The one thing a store writes."""

from __future__ import annotations

import dataclasses
from dataclasses import FrozenInstanceError
from typing import Any

import pytest
from tests.unit.kernel.samples import NOW, a_call, an_approval

from toolgate.kernel.brake import Brakes
from toolgate.kernel.change import Change, Durability, Reservation
from toolgate.kernel.holding import Move
from toolgate.kernel.record import evolve
from toolgate.kernel.undo import UndoRecord, UndoState


def test_a_change_is_as_safe_as_can_be_unless_it_says_otherwise() -> None:
    assert Change(project="p", at=NOW).durability is Durability.FSYNCED is max(Durability)


def test_durability_is_ordered_from_accepted_to_power_loss() -> None:
    assert Durability.BEHIND < Durability.COMMITTED < Durability.FSYNCED


def test_a_change_expects_and_writes_nothing_by_itself() -> None:
    change = Change(project="p", at=NOW)
    assert (change.call, change.expect, change.undo, change.undo_expect) == (None, None, None, None)
    assert (change.events, change.approvals, change.reservations) == ((), (), ())
    assert (change.mode_seen, change.set_mode) == (None, None)


UNDO = UndoRecord(project="p", call_id="c1", tool_name="edit", data=b"{}", created_at=NOW, expires_at=NOW)
PLAIN: dict[str, Any] = {
    "events": (("tool.started", "c1", {}),),
    "call": a_call(),
    "expect": 1,
    "mode_seen": 7,
    "durability": Durability.COMMITTED,
    "starts": True,
    "untold": frozenset({"tool.started"}),
}
MORE: dict[str, Any] = {
    "approvals": (an_approval(),),
    "undo": UNDO,
    "undo_expect": UndoState.AVAILABLE,
    "undo_stored": True,
    "reservations": (Reservation(key="tool:edit", limit=3, window_s=3600.0),),
    "set_mode": Brakes(),
    "lasting": True,
    "grant": object(),
    "grant_expect": 1,
    "delegation": object(),
    "rewrites": True,
    "joins": (Move("pay:p1", None, "c1"),),
}


def test_a_change_has_these_fields_and_no_others() -> None:
    assert {"project", "at", *PLAIN, *MORE} == {field.name for field in dataclasses.fields(Change)}


@pytest.mark.parametrize("field", [*PLAIN, *MORE])
def test_a_plain_change_moves_a_call_and_does_nothing_else(field: str) -> None:
    change = evolve(Change(project="p", at=NOW), **{field: (PLAIN | MORE)[field]})
    assert change.is_plain is (
        field in PLAIN or field in ("lasting", "undo_expect", "undo_stored", "grant_expect", "joins")
    )


def test_a_reservation_is_a_frozen_value() -> None:
    reservation = Reservation(key="tool:edit", limit=3, window_s=3600.0)
    assert reservation == Reservation(key="tool:edit", limit=3, window_s=3600.0)
    with pytest.raises(FrozenInstanceError):
        reservation.limit = 4  # type: ignore[misc]  # what is tested
