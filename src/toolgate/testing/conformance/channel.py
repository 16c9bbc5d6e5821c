"""What every channel must do: take a question without changing it, and answer, pass or give up cleanly."""

from __future__ import annotations

import asyncio
import copy

import pytest

from toolgate.ports.channel import Answer, Channel, Decision
from toolgate.testing.conformance.rows import an_approval


class ChannelConformance:
    """Subclass it with fixtures giving channels whose people answer yes, answer no, say nothing, never answer."""

    async def test_a_yes_is_an_approval_by_somebody_who_may_decide(self, saying_yes: Channel) -> None:
        answer = await saying_yes.ask(an_approval())
        assert isinstance(answer, Answer)
        assert answer.decision is Decision.APPROVE
        assert answer.by.can_decide

    async def test_a_no_is_a_denial(self, saying_no: Channel) -> None:
        answer = await saying_no.ask(an_approval())
        assert answer is not None
        assert answer.decision is Decision.DENY

    async def test_a_channel_without_an_answer_leaves_it_to_others(self, saying_nothing: Channel) -> None:
        assert await saying_nothing.ask(an_approval()) is None

    async def test_asking_leaves_the_approval_as_it_was(self, saying_yes: Channel) -> None:
        approval = an_approval(arguments={"path": "/a", "list": [1]}, preview={"p": 1})
        before = copy.deepcopy(approval)
        await saying_yes.ask(approval)
        assert approval == before

    async def test_one_question_does_not_hold_up_another(self, saying_yes: Channel) -> None:
        answers = await asyncio.gather(*(saying_yes.ask(an_approval(f"a{number}")) for number in range(10)))
        assert all(answer is not None and answer.decision is Decision.APPROVE for answer in answers)

    async def test_a_question_nobody_answers_can_be_given_up(self, never_answering: Channel) -> None:
        asking = asyncio.ensure_future(never_answering.ask(an_approval()))
        await asyncio.wait({asking}, timeout=0.01)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
