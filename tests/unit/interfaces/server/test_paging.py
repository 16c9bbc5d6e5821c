"""Rows are read in pieces that keep nobody waiting, and none is read twice or left out."""

from __future__ import annotations

import pytest
from tests.unit.interfaces.server.house import House, P

from toolgate.interfaces.server.paging import FEW, first_size, next_size
from toolgate.kernel.context import Context

HERE = Context(principal="bot", project="demo")
LONG = "word " * 20_000


def test_small_rows_are_read_in_larger_and_larger_pieces_and_large_ones_one_by_one() -> None:
    sizes = [first_size(30)]
    for were_large in (False, False, False, False, True, True, False, False):
        sizes.append(next_size(sizes[-1], 30, were_large=were_large))
    assert sizes == [FEW, 2 * FEW, 4 * FEW, 30, 30, 1, 1, 2, 4]
    assert first_size(3) == 3


@pytest.mark.parametrize("order", ["newest", "oldest"])
async def test_large_calls_among_small_ones_are_listed_once_and_in_order(house: House, order: str) -> None:
    texts = [LONG if number % 5 == 3 else "short" for number in range(23)]
    ids = [
        (await house.gate.call("drop", {"name": f"{number} {text}"}, context=HERE, wait=False)).call_id
        for number, text in enumerate(texts)
    ]
    ann = house.client("ann")
    for page in (f"{P}/tools?limit=100&order={order}", f"{P}/tools?limit=100&order={order}&text=drop"):
        found = [call["tool_id"] for call in (await ann.get(page)).json()["tools"]]
        assert found == (ids if order == "oldest" else ids[::-1])
    waiting = (await ann.get(f"{P}/inbox/waiting?limit=100")).json()
    assert [card["tool_id"] for card in waiting["cards"]] == ids
    assert waiting["waiting"] == 23
