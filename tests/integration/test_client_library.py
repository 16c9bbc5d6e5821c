"""The client against real servers that are killed, restarted and cut off in the middle of everything."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.integration.server_process import ServerProcess
from tests.unit.interfaces.client.cable import Cable, cable

from toolgate.client import Client, StreamEvent
from toolgate.testing.patience import PATIENCE_S, until


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[ServerProcess]:
    server = ServerProcess(tmp_path)
    await asyncio.to_thread(server.make_token, "ann", "person")
    await asyncio.to_thread(server.make_token, "bob", "person")
    await server.start()
    yield server
    await server.stop()


def client(server: ServerProcess, who: str, port: int | None = None) -> Client:
    url = server.url if port is None else f"http://127.0.0.1:{port}"
    return Client(url, token=server.tokens[who], project="demo", retry_s=PATIENCE_S)


async def restart(server: ServerProcess, wire: Cable) -> None:
    await server.kill()
    await server.start()
    wire.plug(server.url)


async def test_those_who_wait_outlive_a_kill(server: ServerProcess) -> None:
    async with cable() as wire:
        wire.plug(server.url)
        async with client(server, "ann", wire.port) as ann:
            waiting = [asyncio.create_task(ann.call("ask", {"n": number})) for number in range(3)]
            asked = await ann.call("ask", {"n": 9}, call_id="later", wait=False)
            later = [asyncio.create_task(ann.wait(asked.call_id)) for _ in range(3)]

            async def all_asked() -> bool:
                return len((await ann.approvals.list(status="pending")).approvals) == 4

            await until(all_asked)
            await restart(server, wire)
            running = asyncio.create_task(run_everything(ann, 4))
            async with client(server, "bob") as bob:
                for one in (await bob.approvals.list(status="pending")).approvals:
                    await bob.approvals.approve(one.approval_id)
            done = await asyncio.gather(*waiting, *later)
            assert await running == 4
            assert {one.data["ran"] for one in done} == {one.call_id for one in done}
            assert len({one.call_id for one in done}) == 4
            assert len((await ann.calls.list()).tools) == 4


async def run_everything(client: Client, count: int) -> int:
    """Run calls that are sent here, as a runner does; return how many were."""
    ran: set[str] = set()
    async with client.stream(tools=["*"]) as events:
        async for event in events:
            if event.name == "tool.execution_signal":
                call_id = event.data["tool_id"]
                assert call_id not in ran
                ran.add(call_id)
                await client.remote.result(call_id, {"ran": call_id}, fence=event.data["fence"])
                if len(ran) == count:
                    break
    return len(ran)


async def test_a_stream_that_is_cut_and_killed_tells_every_event_once(server: ServerProcess) -> None:
    heard: list[StreamEvent] = []
    async with cable() as wire:
        wire.plug(server.url)
        async with client(server, "ann", wire.port) as ann:
            stream = ann.follow(after=0)

            async def listen() -> None:
                async for event in stream:
                    heard.append(event)  # noqa: PERF401  # looked at while it grows

            listening = asyncio.create_task(listen())
            for number in range(12):
                await ann.call("ask", {"n": number}, call_id=f"c{number}", wait=False)
                if number % 4 == 1:
                    wire.cut()
                if number == 6:
                    await restart(server, wire)
            total = [event.seq async for event in ann.history()][-1]
            await until(lambda: heard and heard[-1].id == total)
            await stream.aclose()
            await listening
    assert [event.id for event in heard] == list(range(1, total + 1))
