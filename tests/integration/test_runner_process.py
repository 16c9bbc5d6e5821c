"""Real servers and runners over real sockets: whoever is killed, nothing runs twice and nothing is made up."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.integration.runner_process import HatchedServer, RunnerProcess
from tests.integration.server_process import P, ServerProcess
from tests.unit.interfaces.server.house import execute

from toolgate.testing.patience import until


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[ServerProcess]:
    (tmp_path / "server").mkdir()
    server = HatchedServer(tmp_path / "server")
    await asyncio.to_thread(server.make_token, "ann", "person")
    await asyncio.to_thread(server.make_token, "box", "runner")
    await server.start()
    yield server
    await server.stop()


@pytest.fixture
async def runner(server: ServerProcess, tmp_path: Path) -> AsyncIterator[RunnerProcess]:
    runner = RunnerProcess(server, tmp_path / "runner")
    await runner.start()
    yield runner
    assert await runner.stop() == 0
    assert runner.events[-1]["event"] == "stopped"


async def asked(ann: httpx2.AsyncClient, tool: str, tool_id: str, **params: Any) -> None:
    arguments = {"name": tool_id} | params if tool in ("mark", "peek") else params
    body = execute(tool, arguments, tool_id=tool_id, wait=False)
    answer = await ann.post(f"{P}/tools/execute", json=body)
    assert answer.status_code in (200, 202), answer.text


async def record(ann: httpx2.AsyncClient, tool_id: str) -> dict[str, Any]:
    return dict((await ann.get(f"{P}/tools/{tool_id}")).json())


async def ended(ann: httpx2.AsyncClient, tool_id: str) -> dict[str, Any]:
    """The call once it is over."""

    async def is_over() -> bool:
        return (await record(ann, tool_id))["internal_status"] not in ("EXECUTING", "APPROVED", "PENDING")

    await until(is_over)
    return await record(ann, tool_id)


async def test_a_killed_runner_says_what_it_does_not_know_and_reads_again_what_it_may(
    server: ServerProcess, runner: RunnerProcess
) -> None:
    async with server.client("ann") as ann:
        await asked(ann, "mark", "m1", hold_s=30)
        await asked(ann, "peek", "p1", hold_s=1)
        await runner.began("m1")
        await runner.began("p1")
        await runner.kill()
        await runner.start()
        marked, peeked = await ended(ann, "m1"), await ended(ann, "p1")
    assert (marked["internal_status"], runner.runs("m1")) == ("UNKNOWN", 1)
    assert "does not know whether the effect happened" in marked["error"]
    assert (peeked["internal_status"], runner.runs("p1")) == ("COMPLETED", 2)


async def test_a_result_outlives_the_death_of_the_server_and_of_both(
    server: ServerProcess, runner: RunnerProcess
) -> None:
    async with server.client("ann") as ann:
        await asked(ann, "mark", "m1", hold_s=0.5)
    await runner.began("m1")
    await server.kill()
    await runner.saw("disconnected")
    await server.start()
    async with server.client("ann") as ann:
        assert (await ended(ann, "m1"))["internal_status"] == "COMPLETED"
        await asked(ann, "mark", "m2", hold_s=1)
    await runner.began("m2")
    await server.kill()
    await runner.saw("kept", "m2")
    await runner.kill()
    await server.start()
    await runner.start()
    async with server.client("ann") as ann:
        assert (await ended(ann, "m2"))["internal_status"] == "COMPLETED"
    assert (runner.runs("m1"), runner.runs("m2")) == (1, 1)
    assert runner.count("stopped") == 0  # it never had to stop for any of this


async def test_a_call_whose_runner_froze_is_offered_to_another_and_the_late_result_is_refused(
    server: ServerProcess, runner: RunnerProcess, tmp_path: Path
) -> None:
    other = RunnerProcess(server, tmp_path / "other")
    await other.start()
    async with server.client("ann") as ann:
        await asked(ann, "peek", "p1", hold_s=2)
        await until(lambda: runner.runs("p1") + other.runs("p1"))
        frozen, free = (runner, other) if runner.runs("p1") else (other, runner)
        frozen.send(signal.SIGSTOP)
        peeked = await ended(ann, "p1")
        assert (peeked["internal_status"], free.runs("p1")) == ("COMPLETED", 1)
        assert peeked["attempt"] > 1
        frozen.send(signal.SIGCONT)
        await frozen.saw("refused", "p1")
        await asked(ann, "mark", "m1")
        await asked(ann, "mark", "m2")
        assert {(await ended(ann, name))["internal_status"] for name in ("m1", "m2")} == {"COMPLETED"}
    assert (runner.runs("m1") + other.runs("m1"), runner.runs("m2") + other.runs("m2")) == (1, 1)
    await other.stop()


async def test_a_file_is_written_and_put_back_through_the_server(server: ServerProcess, runner: RunnerProcess) -> None:
    (runner.workspace / "a.txt").write_text("before")
    async with server.client("ann") as ann:
        await asked(ann, "write_file", "w1", path="a.txt", content="after")
        [approval] = (await ann.get(f"{P}/approvals", params={"status": "pending"})).json()["approvals"]
        await ann.post(f"{P}/approvals/{approval['approval_id']}/approve", json={"reason": "fine"})
        assert (await ended(ann, "w1"))["internal_status"] == "COMPLETED"
        assert (runner.workspace / "a.txt").read_text() == "after"
        undone = (await ann.post(f"{P}/tools/w1/undo", json={})).json()
        assert undone["status"] == "completed", undone
        assert (runner.workspace / "a.txt").read_text() == "before"
        await asked(ann, "read_file", "r1", path="../../server/toolgate.yaml")
        refused = await ended(ann, "r1")
    assert refused["internal_status"] == "FAILED"
    assert "policy of the runner's machine" in refused["error"]
