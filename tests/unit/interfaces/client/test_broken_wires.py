"""Connections that are cut in the middle, and a server that goes and comes back in good order."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.unit.interfaces.client.cable import cable
from tests.unit.interfaces.server.house import House, open_house

from toolgate.client import Client
from toolgate.testing.patience import PATIENCE_S, until


def client(house: House, who: str, port: int) -> Client:
    return Client(f"http://127.0.0.1:{port}", token=house.tokens[who], project="demo", retry_s=PATIENCE_S)


async def test_a_report_arrives_although_its_connection_is_cut(house: House) -> None:
    async with cable() as wire:
        wire.plug(house.url)
        async with client(house, "ann", wire.port) as ann, ann.stream(tools=["far"]) as events:
            assert (await anext(events)).name == "stream.ready"
            for number in range(6):
                call_id = f"c{number}"
                await ann.call("far", {"n": number}, call_id=call_id, wait=False)
                async for event in events:
                    if event.name == "tool.execution_signal":
                        break
                reporting = asyncio.create_task(ann.remote.result(call_id, number, fence=event.data["fence"]))
                for _ in range(number):
                    await asyncio.sleep(0.001)
                wire.cut()
                assert (await reporting).success
                assert (await ann.calls.get(call_id)).result == number


async def test_a_server_that_shuts_down_in_good_order_is_waited_for(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'toolgate.db'}"
    async with cable() as wire:
        async with open_house(url) as first:
            wire.plug(first.url)
            ann = client(first, "ann", wire.port)
            waiting = asyncio.create_task(ann.call("pay", {"amount": 1}, call_id="c"))

            async def is_asked() -> bool:
                return bool((await ann.approvals.list(status="pending")).approvals)

            await until(is_asked)
        async with open_house(url) as second:
            wire.plug(second.url)
            async with client(second, "bob", wire.port) as bob:
                asked = (await bob.approvals.list(call_id="c")).approvals[0]
                await bob.approvals.reject(asked.approval_id, "no")
            assert (await waiting).status == "REJECTED"
            await ann.aclose()
