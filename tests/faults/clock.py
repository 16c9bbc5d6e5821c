"""Giving a gate a clock that jumps. The time comes in as a function everywhere, so nothing is patched but that."""

from __future__ import annotations

from toolgate import Gate
from toolgate.pipeline.time.clockwork import Clockwork
from toolgate.testing.clock import FakeClock


def set_clock(gate: Gate, clock: FakeClock) -> None:
    """Let everything this gate does from now on happen at the clock's time."""
    gate._driver.now = clock.now
    _clockwork(gate)._now = clock.now


def ring(gate: Gate) -> None:
    """Let the gate look what is due, as its timer does after a nap of at most half a minute."""
    clockwork = _clockwork(gate)
    clockwork._background.loop.call_soon_threadsafe(clockwork._ring)


def _clockwork(gate: Gate) -> Clockwork:
    clockwork = getattr(gate._driver.on_due, "__self__", None)
    assert isinstance(clockwork, Clockwork)
    return clockwork
