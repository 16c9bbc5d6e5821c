"""The one thing a store writes."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import pytest
from tests.unit.kernel.samples import NOW

from toolgate.kernel.change import Change, Durability, Reservation


def test_a_change_is_as_safe_as_can_be_unless_it_says_otherwise() -> None:
    assert Change(project="p", at=NOW).durability is Durability.FSYNCED is max(Durability)


def test_durability_is_ordered_from_accepted_to_power_loss() -> None:
    assert Durability.BEHIND < Durability.COMMITTED < Durability.FSYNCED


def test_a_change_expects_and_writes_nothing_by_itself() -> None:
    change = Change(project="p", at=NOW)
    assert (change.call, change.expect, change.undo, change.undo_expect) == (None, None, None, None)
    assert (change.events, change.approvals, change.reservations) == ((), (), ())
    assert (change.mode_seen, change.set_mode) == (None, None)


def test_a_reservation_is_a_frozen_value() -> None:
    reservation = Reservation(key="tool:edit", limit=3, window_s=3600.0)
    assert reservation == Reservation(key="tool:edit", limit=3, window_s=3600.0)
    with pytest.raises(FrozenInstanceError):
        reservation.limit = 4  # type: ignore[misc]  # what is tested
