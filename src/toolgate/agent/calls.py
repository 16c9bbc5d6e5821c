"""The calls of one step at the gate: made once each, together where they are independent, found again after a crash."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from toolgate.agent.history import Made, Outcome, parsed
from toolgate.agent.words import conflict, outcome_of
from toolgate.errors import ConflictError, EffectHeldError, NotFoundError
from toolgate.gate import Gate
from toolgate.kernel.call import Call
from toolgate.kernel.output import Result
from toolgate.kernel.tool import Effects
from toolgate.ports.threads import Run

State = Callable[[Made, str, Any, str | None], Awaitable[None]]
"""Is told where a call stands, its masked result, and the call it joined."""
Ours = Callable[[], Awaitable[bool]]
"""Says whether the run is still as we saved it."""

_NAMING = re.compile(r"path|file|folder|directory|name|id\b|url|uri|table|key|target|account|email", re.IGNORECASE)
_TAKEN = "Somebody else used the id of this call; it was not made."


@dataclass(slots=True)
class Results:
    """Where the calls of a step stand. Those that are in neither have not been made yet: another one comes first.

    `pending` says which call one waits for: itself, or the earlier one that it joined.
    """

    ended: dict[str, Outcome] = field(default_factory=dict)
    pending: dict[str, str] = field(default_factory=dict)
    is_lost: bool = False
    """Whether the run was ended or taken by somebody else before all calls were made."""

    @property
    def waiting(self) -> tuple[str, ...]:
        """The calls that must end before the run goes on."""
        return tuple(dict.fromkeys(self.pending.values()))


class Caller:
    """Makes the calls of one run, as who the run is for."""

    def __init__(self, gate: Gate, run: Run) -> None:
        self._gate = gate
        self._run = run

    async def make(self, calls: Sequence[Made], tell: State, is_ours: Ours) -> Results:
        """Make those calls that were not made yet, as far as they go without a person, and return where all stand.

        Calls that name the same thing, where one of them may change it, are made in the order the model wrote
        them, each when the one before has ended; all others at once. Calls that came to wait for another one are
        not made where the run is no longer ours by then: it may have been cancelled at another server.
        """
        results = Results()
        chains = self._chains(calls)
        await asyncio.gather(*(self._chain(chain, results, tell, is_ours) for chain in chains))
        return results

    async def _chain(self, chain: Sequence[Made], results: Results, tell: State, is_ours: Ours) -> None:
        for made in chain:
            if made is not chain[0] and not await is_ours():
                results.is_lost = True
                return
            result = await self._one(made)
            if isinstance(result, Outcome):
                results.ended[made.call_id] = result
            elif result.is_pending:
                results.pending[made.call_id] = result.call_id
                joined = result.call_id if result.call_id != made.call_id else None
                await tell(made, result.status.value.lower(), None, joined)
                return
            else:
                results.ended[made.call_id] = outcome_of(made, result, await self._row(result.call_id))
            outcome = results.ended[made.call_id]
            await tell(made, outcome.status, outcome.shown, outcome.joined)

    async def _one(self, made: Made) -> Result | Outcome:
        """Return where the call stands, making it if it is not there. What a person edited has other arguments.

        One that joined an earlier call stands where that does; made again, it joins the same one again.
        """
        standing = await self._row(made.call_id)
        if standing is None:
            try:
                result = await self._gate.call(
                    made.name,
                    made.arguments or "{}",
                    context=replace(self._run.context, step_id=_step_of(made)),
                    call_id=made.call_id,
                    wait=False,
                )
            except EffectHeldError:
                return await self._gate.get(made.call_id, project=self._run.project)  # it was recorded as refused
            except ConflictError:
                return conflict(made, _TAKEN)
            if not result.joined or result.call_id != made.call_id:
                return result
            standing = await self._row(made.call_id)
        if standing is None or standing.context.principal != self._run.context.principal:
            return conflict(made, _TAKEN)
        return await self._gate.get(made.call_id, project=self._run.project)

    async def _row(self, call_id: str) -> Call | None:
        try:
            return await self._gate.calls.get(call_id, project=self._run.project)
        except NotFoundError:
            return None

    def _chains(self, calls: Sequence[Made]) -> list[list[Made]]:
        chains: list[tuple[set[str], bool, list[Made]]] = []
        for made in calls:
            names, changes = set(_targets(parsed(made.arguments))), self._changes(made)
            together = [chain for chain in chains if (changes or chain[1]) and chain[0] & names]
            merged = [one for chain in together for one in chain[2]]
            merged.sort(key=calls.index)
            for chain in together:
                names, changes = names | chain[0], changes or chain[1]
                chains.remove(chain)
            chains.append((names, changes, [*merged, made]))
        return [chain for _, _, chain in chains]

    def _changes(self, made: Made) -> bool:
        tool = self._gate.registry.find(made.name)
        return tool is None or tool.effects is not Effects.READ

    async def all_ended(self) -> bool:
        """Whether every call the run waits for has ended."""
        for call_id in self._run.waiting:
            try:
                if not (await self._gate.get(call_id, project=self._run.project)).is_final:
                    return False
            except NotFoundError:
                continue
        return True


def _step_of(made: Made) -> str:
    """The turn of the model a call was made in: two alike calls of one turn are two on purpose."""
    return made.call_id.rpartition(".")[0]


def _targets(value: Any, key: str = "") -> list[str]:
    """Every text in the arguments of a call that may name a thing: what two calls have in common may be the same."""
    if isinstance(value, str):
        return [value] if value and (_NAMING.search(key) or "/" in value or "." in value) else []
    if isinstance(value, dict):
        return [text for name, item in value.items() for text in _targets(item, str(name))]
    if isinstance(value, list):
        return [text for item in value for text in _targets(item, key)]
    return []
