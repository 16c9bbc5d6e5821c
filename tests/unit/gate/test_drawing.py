"""Questions are drawn where nobody waits for them: short ones at once, long ones off the event loop."""

from __future__ import annotations

import asyncio
import threading

import pytest
from tests.journeys.scene import park

import toolgate
from toolgate.gate.drawing import LONG, TOGETHER, draw, draw_all
from toolgate.kernel.approval import Approval

ASIDE = "toolgate-large"


@toolgate.tool(requires_approval=True)
async def note(text: str) -> str:
    """Note a text."""
    return text


def place(approval: Approval, more: object = None) -> tuple[str, str, object]:
    return approval.id, threading.current_thread().name, more


@pytest.mark.parametrize("given", [{"text": "x" * LONG}, {"text": "", "claim": "x" * LONG}])
async def test_a_long_question_is_drawn_aside(given: dict[str, str]) -> None:
    async with toolgate.open("memory://", tools=[note]) as gate:
        approval = await park(gate, "note", {"text": given["text"]}, claim=given.get("claim"))
        assert await draw(place, approval, more=1) == (approval.id, ASIDE, 1)


async def test_a_short_question_is_drawn_at_once_unless_what_it_is_compared_with_is_long() -> None:
    async with toolgate.open("memory://", tools=[note]) as gate:
        approval = await park(gate, "note", {"text": "x"})
        assert (await draw(place, approval, {"text": "x"}))[1] == threading.current_thread().name
        assert (await draw(place, approval, {"text": "x" * LONG}))[1] == ASIDE


async def test_many_questions_are_drawn_in_order_and_others_have_their_turn() -> None:
    turns = 0

    async def take_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async with toolgate.open("memory://", tools=[note]) as gate:
        texts = ["short"] * (2 * TOGETHER) + ["x" * LONG]
        asked = [await park(gate, "note", {"text": text}) for text in texts]
        others = asyncio.ensure_future(take_turns())
        drawn = await draw_all(place, asked)
        others.cancel()
        here = threading.current_thread().name
        assert [one[0] for one in drawn] == [approval.id for approval in asked]
        assert [one[1] for one in drawn] == [here] * (2 * TOGETHER) + [ASIDE]
        assert turns >= 2
        assert await draw_all(place, []) == []
