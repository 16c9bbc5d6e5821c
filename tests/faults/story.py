"""What comes after an ending: the agent tries again, a person looks at the bank, and nothing is paid twice."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest
from tests.faults.bank import Bank
from tests.faults.stage import FIRST, Stage, where_it_stands

from toolgate import Gate
from toolgate.errors import EffectHeldError
from toolgate.kernel.approval import Approval
from toolgate.kernel.call import Status
from toolgate.kernel.holding import WITHOUT_EFFECT
from toolgate.testing.patience import until

RETRIES = ("retry-1", "retry-2", "retry-3")


class Story:
    """The agent's and the person's part, on a gate that knows of the first call what there is to know."""

    def __init__(self, stage: Stage, bank: Bank, gate: Gate) -> None:
        self._stage, self._bank, self._gate = stage, bank, gate

    async def from_doubt(self, person: str) -> None:
        """The first call is UNKNOWN: whoever retries is asked about, and whatever a person says is done once."""
        first = await where_it_stands(self._gate)
        assert first is not None
        assert (first.status, first.error_code) == (Status.UNKNOWN, "unknown"), first
        if person == "settles first":
            await self._settle()
            await (self._is_joined() if self._bank.effects() else self._runs_once())
            return
        question = await self._one_question()
        if person == "settles later":
            await self._settle()
        if self._bank.effects():
            await self._gate.decide(question.id, "deny", by="bob", reason="the bank has it")
            if person == "answers":
                await self._settle()
            await self._is_joined()
            return
        await self._approve(question)
        if person == "settles later":
            question = await self._asked_anew(question)
            await self._approve(question)
        assert (await self._gate.get(question.call_id)).success
        await self._stays_at_one(question.call_id, settled=person == "settles later")

    async def from_what_stands(self, person: str) -> None:
        """Go on from wherever the first call was left, which nobody knows beforehand."""
        first = await where_it_stands(self._gate)
        if first is not None and first.status is Status.UNKNOWN:
            await self.from_doubt(person)
        elif first is not None and first.success:
            await self.from_success()
        else:
            await self.from_nothing()

    async def from_nothing(self) -> None:
        """The first call provably did nothing: it is no doubt, and the next one runs."""
        first = await where_it_stands(self._gate)
        assert first is None or first.status in WITHOUT_EFFECT, first
        assert self._bank.effects() == 0
        await self._runs_once()

    async def from_success(self) -> None:
        """The first call has its result, whether or not anybody heard of it."""
        first = await self._gate.get(FIRST)
        assert (first.status, self._bank.effects()) == (Status.COMPLETED, 1), first
        if not self._stage.keyed:  # without a key, only the same request is known again
            for _ in RETRIES:
                assert (await self._stage.call(self._gate, FIRST)).data == {"paid": "p1"}
        await self._is_joined()

    async def _one_question(self) -> Approval:
        """Three retries are one question, which tells of the first call; nothing runs, and the key is held."""
        before = self._bank.effects()
        asked = [await self._stage.call_to_its_end(self._gate, id) for id in RETRIES]
        assert Counter((one.status, one.call_id, one.joined) for one in asked) == {
            (Status.AWAITING_APPROVAL, RETRIES[0], False): 1,
            (Status.AWAITING_APPROVAL, RETRIES[0], True): 2,
        }
        (question,) = await self._gate.pending()
        assert f"It repeats call {FIRST}, which ended UNKNOWN" in " ".join(question.reasons)
        assert self._bank.effects() == before
        await self._is_held()
        return question

    async def _approve(self, question: Approval) -> None:
        """Say yes, and return when the call has run or is asked about once more."""
        await self._gate.decide(question.id, "approve", by="bob", reason="the bank has nothing")
        running = asyncio.create_task(self._stage.finish(self._gate, question.call_id))
        await until(lambda: running.done() or self._waits_beside(question))
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    async def _waits_beside(self, answered: Approval) -> bool:
        return any(question.id != answered.id for question in await self._gate.pending())

    async def _asked_anew(self, answered: Approval) -> Approval:
        """Who said yes was told another story than the one that is true by now: somebody is told that one."""
        (question,) = await self._gate.pending()
        assert f"It repeats call {FIRST}, which ended FAILED" in " ".join(question.reasons)
        assert (question.call_id, self._bank.effects()) == (answered.call_id, 0)
        return question

    async def _is_held(self) -> None:
        if self._stage.keyed:
            with pytest.raises(EffectHeldError):
                await self._stage.call(self._gate, "apart", distinct=True)
        else:
            apart = await self._stage.call(self._gate, "apart", distinct=True)
            assert apart.status is Status.AWAITING_APPROVAL
            await self._gate.cancel("apart")

    async def _settle(self) -> None:
        """A person looks at the bank; first nobody knows yet, which changes nothing."""
        happened = bool(self._bank.effects())
        ends = {None: Status.UNKNOWN, happened: Status.COMPLETED if happened else Status.FAILED}
        for said, status in ends.items():
            assert (await self._gate.settle(FIRST, happened=said, by="cat", reason="looked")).status is status

    async def _is_joined(self) -> None:
        """Whoever comes with the key of what happened gets that, and nothing runs."""
        assert self._bank.effects() == 1
        if self._stage.keyed:  # a repeat without a key is an ordinary call again
            for id in ("later-1", "later-2", "later-3"):
                again = await self._stage.call_to_its_end(self._gate, id)
                assert (again.call_id, again.joined, again.status) == (FIRST, True, Status.COMPLETED)
        assert self._bank.effects() == 1

    async def _runs_once(self) -> None:
        """Nobody is asked any more: of three retries one runs, and the others join it."""
        ids = RETRIES
        for id in ids if self._stage.keyed else ids[:1]:
            result = await self._stage.call_to_its_end(self._gate, id)
            assert (result.status, result.call_id, result.joined) == (Status.COMPLETED, ids[0], id != ids[0]), result
        assert self._bank.effects() == 1

    async def _stays_at_one(self, ran: str, *, settled: bool) -> None:
        """The repeat that a person allowed has the key; without one, the doubt stays until it is settled."""
        if self._stage.keyed:
            again = await self._stage.call_to_its_end(self._gate, "later")
            assert (again.call_id, again.joined, again.status) == (ran, True, Status.COMPLETED)
        elif not settled:
            assert (await self._stage.call_to_its_end(self._gate, "later")).status is Status.AWAITING_APPROVAL
        assert self._bank.effects() == 1
