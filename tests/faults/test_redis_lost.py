"""Two processes' worth of gates on one file, woken through Redis; then without it."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.redis_server import RedisServer

import toolgate
from toolgate.kernel.call import Status
from toolgate.testing.patience import PATIENCE_S, until


@toolgate.tool(requires_approval=True)
async def pay(amount: int) -> int:
    """Pay."""
    return amount


async def test_calls_end_and_nobody_waits_in_vain_whatever_becomes_of_redis(
    database: Path, own_redis: RedisServer
) -> None:
    url = f"sqlite:///{database}"
    async with (
        toolgate.open(url, tools=[pay], redis=own_redis.url) as here,
        toolgate.open(url, tools=[pay], redis=own_redis.url) as there,
    ):
        for number, disturb in enumerate((None, own_redis.kill, own_redis.start)):
            if disturb is not None:
                await asyncio.to_thread(disturb)
            waiting = asyncio.ensure_future(here.call("pay", {"amount": number}))
            await until(lambda: _decided(there))
            assert (await asyncio.wait_for(waiting, PATIENCE_S)).status is Status.COMPLETED


async def _decided(gate: toolgate.Gate) -> bool:
    pending = await gate.pending()
    for approval in pending:
        await gate.decide(approval.id, "approve", by="ann")
    return bool(pending)
