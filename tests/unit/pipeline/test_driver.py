"""Who hears of a commit: those who wait, those who count, those who listen."""

from __future__ import annotations

import pytest

import toolgate
from toolgate.adapters.buses.memory import MemoryBus
from toolgate.adapters.runners.inline import InlineRunner
from toolgate.adapters.stores.memory import MemoryStore


@toolgate.tool(effects="read")
async def look() -> str:
    return "seen"


@pytest.mark.parametrize("counts", [True, False])
async def test_a_tally_hears_of_every_change_but_claims(counts: bool) -> None:
    heard: list[str] = []
    gate = toolgate.Gate(
        store=MemoryStore(),
        bus=MemoryBus(),
        runners={"inline": InlineRunner()},
        tools=[look],
        tally=(lambda change: heard.append(change.call.status)) if counts else None,  # type: ignore[union-attr]  # each has a call
    )
    await gate.call("look")
    gate._driver.listeners.append(lambda _change: None)
    await gate.call("look")
    assert heard == ["COMPLETED", "COMPLETED"] * counts
    await gate.aclose()
