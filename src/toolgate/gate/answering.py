"""`gate.answer`: the calls of a model's response, made, and answered in the form its provider takes.

For loops that talk to a provider by themselves. Every call is answered, also one that was denied, waits for a person or
could not be read: a call that vanished would break the conversation.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from toolgate.errors import ConflictError
from toolgate.gate.bridge import Bridge, Outcome
from toolgate.kernel.context import Context
from toolgate.kernel.output import Result
from toolgate.kernel.record import evolve
from toolgate.kernel.text.formats import ResolvedToolCall, UnresolvedToolCall, parse_calls
from toolgate.kernel.text.formats.results import render_message, render_result

if TYPE_CHECKING:
    from toolgate.gate.front import Gate


@dataclass(frozen=True, slots=True, kw_only=True)
class Replies:
    """What a conversation goes on with: iterate over the messages to append.

    `results` are those of the calls that could be made, in the order sent; `pending` those that wait for a person.
    """

    messages: tuple[dict[str, Any], ...]
    results: tuple[Result, ...]

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.messages)

    def __len__(self) -> int:
        return len(self.messages)

    @property
    def pending(self) -> tuple[Result, ...]:
        return tuple(result for result in self.results if result.is_pending)


async def answer(
    gate: Gate,
    response: Any,
    run_id: str,
    step: str | None,
    functions: Mapping[str, Callable[[dict[str, Any]], Any]] | None,
    context: Context | None,
    *,
    wait: bool,
) -> Replies:
    """Make every call of a response and return how the conversation goes on."""
    bridge = Bridge(gate, "gate.answer", context=context, wait=wait)
    calls, unread = parse_calls(response, gate.registry.find)
    making = _Making(
        bridge, bridge.context_of(run=run_id, step=step or run_id), (run_id, step), dict(functions or {}), wait
    )
    results = await asyncio.gather(*(making.one(call) for call in calls))
    told: list[tuple[ResolvedToolCall | UnresolvedToolCall, Result | None]] = [*zip(calls, results, strict=True)]
    told += [(call, None) for call in unread]
    told.sort(key=lambda one: one[0].position)
    rendered = [render_result(call, result) for call, result in told]
    messages = render_message(rendered, told[0][0].format) if told else []
    return Replies(messages=tuple(messages), results=tuple(results))


@dataclass(frozen=True, slots=True)
class _Making:
    """How the calls of one response are made."""

    bridge: Bridge
    context: Context
    place: tuple[str, str | None]
    functions: dict[str, Callable[[dict[str, Any]], Any]]
    wait: bool

    async def one(self, call: ResolvedToolCall) -> Result:
        bridge, name, id = self.bridge, call.tool.name, self._id(call)
        if name in self.functions:
            outcome = await bridge.carry(name, call.arguments, self.functions[name], call_id=id, context=self.context)
            return _noted(outcome)
        gate = bridge.gate
        try:
            result = await gate.call(name, call.arguments, call_id=id, context=self.context, wait=self.wait)
        except ConflictError:
            asked = await bridge.ask(name, call.arguments, call_id=id or "", context=self.context)
            return asked.result
        return _noted(await bridge.outcome_of(result, self.context))

    def _id(self, call: ResolvedToolCall) -> str | None:
        """The id of a call at the gate: its own, scoped by run and step; None where neither it nor a step says it."""
        run_id, step = self.place
        if step is None:
            return self.bridge.id_of(run_id, call.call_id) if call.call_id else None
        return self.bridge.id_of(run_id, step, call.call_id or str(call.position))


def _noted(outcome: Outcome) -> Result:
    """The result of a call, with a word of arguments that a person changed."""
    if outcome.note is None:
        return outcome.result
    return evolve(outcome.result, data={"note": outcome.note, "output": outcome.result.data})
