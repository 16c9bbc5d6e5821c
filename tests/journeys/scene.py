"""What the journeys share: gates on each kind of store, rules that say one word, and parking a call."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

import toolgate
from toolgate import Gate
from toolgate.adapters.sqlite.store import SqliteStore
from toolgate.kernel.approval import Approval
from toolgate.kernel.call import Call
from toolgate.kernel.event import Event
from toolgate.kernel.output import Result
from toolgate.kernel.policy import Facts, Policy, Verdict, Word
from toolgate.kernel.tool import ToolDefinition


class Open(Protocol):
    def __call__(self, **options: Any) -> Gate: ...


@dataclass(frozen=True)
class Say:
    """A rule that says one word of every call."""

    word: Word
    reason: str = "a rule of this test"
    name: str = "say"

    def __call__(self, _call: Call, _tool: ToolDefinition, _facts: Facts, /) -> Verdict | None:
        return Verdict(self.word, self.reason, self.name)


def saying(word: str, reason: str = "a rule of this test", **options: Any) -> Policy:
    return Policy(rules=(Say(Word(word), reason),), revision=f"says-{word}", **options)


async def park(gate: Gate, tool: str, arguments: dict[str, object] | None = None, **options: Any) -> Approval:
    """Make a call that must be asked about, without waiting, and return its approval."""
    result = await gate.call(tool, arguments, wait=False, **options)
    assert result.approval_id is not None, result
    return await gate.approvals.get(result.approval_id)


def names(events: Iterable[Event]) -> list[str]:
    return [event.type for event in events]


async def standing(gate: Gate, call_id: str) -> Result:
    """Where a call stands after its gate was closed; a file is opened again to see."""
    store = gate._driver.store
    if not isinstance(store, SqliteStore):
        return await gate.get(call_id)
    async with toolgate.open(f"sqlite:///{store._path}") as again:
        return await again.get(call_id)
