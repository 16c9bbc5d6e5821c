"""Giving a gate a clock that jumps. The time comes in as a function everywhere, so nothing is patched but that."""

from __future__ import annotations

from toolgate import Gate
from toolgate.testing.clock import FakeClock


def set_clock(gate: Gate, clock: FakeClock) -> None:
    """Let everything this gate does from now on happen at the clock's time."""
    gate._driver.now = clock.now
    clockwork = getattr(gate._driver.on_due, "__self__", None)
    assert clockwork is not None
    clockwork._now = clock.now


def ring(gate: Gate, clock: FakeClock) -> None:
    """Tell the gate to look what is due at the clock's time, as its timer would."""
    assert gate._driver.on_due is not None
    gate._driver.on_due(clock.now())
