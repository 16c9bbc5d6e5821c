"""With `redis`: undo data is kept there, and wake-ups go through it."""

from __future__ import annotations

import asyncio
import os

import toolgate
from toolgate.tools import UndoStore


@toolgate.tool(effects="read")
def ping() -> str:
    return "pong"


async def keep() -> None:
    store = UndoStore.open(os.environ["REDIS"])
    await store.store("a1", {"path": "plan.txt"})
    kept = await store.get("a1")
    assert kept is not None
    assert kept.undo_data == {"path": "plan.txt"}, kept


asyncio.run(keep())
with toolgate.open("sqlite:///toolgate.db", tools=[ping], redis=os.environ["REDIS"]) as gate:
    assert gate.sync.call("ping", "{}").data == "pong"
