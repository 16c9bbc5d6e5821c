"""Whose sessions and runs there are: an agent's account names none but its own, or those of who it acts for.

A run belongs to who made its first call. A session belongs to who named it first, a person before any agent, for as
long as this server remembers; what people name is not forgotten for what agents do.
"""

from __future__ import annotations

from collections import OrderedDict

from toolgate.authority import check_name
from toolgate.gate import Gate
from toolgate.kernel.context import Context
from toolgate.ports.store import CallQuery

MOST_REMEMBERED = 10_000
"""How many sessions of people are remembered, and how many of agents; those named least recently are forgotten."""
_Names = OrderedDict[tuple[str, str], Context]


class Naming:
    """Remembers who named what first on this server."""

    def __init__(self) -> None:
        self._by_people: _Names = OrderedDict()
        self._by_agents: _Names = OrderedDict()

    async def check(self, gate: Gate, context: Context) -> None:
        """Raise NotAllowedError where an agent names what is somebody else's; remember the session otherwise."""
        if context.claimed and context.run_id is not None:
            first = await gate.calls.list(CallQuery(project=context.project, run_id=context.run_id, limit=1))
            if first:
                check_name("run", first[0].context, context)
        if context.claimed and context.session_id is not None:
            key = (context.project, context.session_id)
            made = self._by_people.get(key) or self._by_agents.get(key)
            if made is not None:
                check_name("session", made, context)
        self.note(context)

    def note(self, context: Context) -> None:
        """Remember who named a session first."""
        if context.session_id is None:
            return
        names, key = self._by_agents if context.claimed else self._by_people, (context.project, context.session_id)
        names.setdefault(key, context)
        names.move_to_end(key)
        if len(names) > MOST_REMEMBERED:
            names.popitem(last=False)
