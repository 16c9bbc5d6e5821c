"""What a project goes by where that is its own: tools, policy, who is told and who is asked.

Doors whose users never see a gate make one for each executor or registry, so that unrelated ones on one gate
share no tools, ids, rates or events.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from toolgate.kernel.context import Mode
from toolgate.kernel.policy import Policy, Stance
from toolgate.kernel.registry import ToolRegistry
from toolgate.kernel.tool import ToolDefinition
from toolgate.pipeline.plan import Plan
from toolgate.pipeline.sinks.relay import Relay
from toolgate.ports.channel import Channel

Adjust = Callable[[Policy], Policy]


def unchanged(policy: Policy) -> Policy:
    return policy


@dataclass(frozen=True, kw_only=True)
class AdjustedPolicy(Policy):
    """Another policy whose word on every tool is adjusted; it keeps that policy's revision."""

    base: Policy
    change: Callable[[Stance], Stance]

    def stance(self, tool: ToolDefinition) -> Stance:
        return self.change(self.base.stance(tool))


@dataclass(slots=True, eq=False, weakref_slot=True, kw_only=True)
class Realm:
    """One project's own. `adjust` makes its policy of the gate's, each time that changes."""

    registry: ToolRegistry
    adjust: Adjust = unchanged
    relay: Relay | None = None
    channels: tuple[Channel, ...] = ()
    keeps_undo: bool = True
    plans: dict[str | tuple[str, tuple[Mode, ...]], Plan] = field(default_factory=dict)
    _adjusted: tuple[Policy, Policy] | None = None

    def policy(self, base: Policy) -> Policy:
        """Return this project's policy under the gate's."""
        known = self._adjusted
        if known is None or known[0] is not base:
            known = self._adjusted = (base, self.adjust(base))
        return known[1]
