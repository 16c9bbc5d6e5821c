"""What this process holds of the server's at the moment, and the rule that nothing else runs.

A call that a runner began to ask about and did not begin must not run hours later, after a restart, when the
server has long written it off: its lease must be ours now.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from toolgate.interfaces.runner.signals import Signal
from toolgate.kernel.call import Call
from toolgate.kernel.policy import Facts, Verdict, Word
from toolgate.kernel.tool import ToolDefinition


@dataclass(slots=True)
class Hold:
    """A signal at work here, and until when the server certainly waits for it."""

    signal: Signal
    until: float
    is_lost: bool = False


class Holding:
    """Every signal at work here, by the server's id."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._held: dict[str, Hold] = {}

    def __len__(self) -> int:
        return len(self._held)

    def __contains__(self, tool_id: object) -> bool:
        return tool_id in self._held

    def take(self, signal: Signal) -> Hold:
        """Hold a signal from now on; one offered again replaces what was held of it."""
        hold = self._held[signal.tool_id] = Hold(signal, self._now() + signal.lease_s)
        return hold

    def renew(self, hold: Hold, *, since: float) -> None:
        """The server heard from us: the lease lasts again from when we spoke."""
        hold.until = max(hold.until, since + hold.signal.lease_s)

    def release(self, tool_id: str) -> None:
        self._held.pop(tool_id, None)

    def why_not(self, tool_id: str) -> str | None:
        """Why a call must not begin now, or None."""
        hold = self._held.get(tool_id)
        if hold is None:
            return "this runner holds no signal for it now; the server must send it anew"
        if hold.is_lost or self._now() >= hold.until:
            return "its lease ended before it began, so the server no longer waits for it"
        return None


@dataclass(frozen=True, slots=True)
class SignalledRule:
    """Deny what may have an effect and is not signalled at the moment."""

    holding: Holding
    name: str = "signalled"

    def __call__(self, call: Call, tool: ToolDefinition, _facts: Facts, /) -> Verdict | None:
        if not tool.has_effects:
            return None
        why = self.holding.why_not(call.context.run_id or call.id)
        return None if why is None else Verdict(Word.DENY, why, self.name, "not_signalled")
