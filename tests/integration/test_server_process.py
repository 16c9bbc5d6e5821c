"""Real servers over real sockets: what is killed comes back with nothing lost and nothing run twice."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx2
import orjson
import pytest
from tests.integration.server_process import P, ServerProcess
from tests.unit.interfaces.server.house import Listening, execute
from typer.testing import CliRunner

import toolgate
from toolgate.interfaces.cli import token
from toolgate.testing.patience import until


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[ServerProcess]:
    server = ServerProcess(tmp_path)
    await asyncio.to_thread(server.make_token, "ann", "person")
    await server.start()
    yield server
    await server.stop()


@pytest.fixture(scope="module")
def standing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server for all tests that do not end it; each leaves no call behind that waits."""
    server = ServerProcess(tmp_path_factory.mktemp("standing"))
    for person in ("ann", "bob"):
        server.make_token(person, "person")
    server.begin()
    yield server
    server.end()


def listen(client: httpx2.AsyncClient, query: str = "", **headers: str) -> Listening:
    return Listening(client, f"{P}/chat/stream{query}", {"headers": headers})


async def status_of(client: httpx2.AsyncClient, tool_id: str) -> str:
    return str((await client.get(f"{P}/tools/{tool_id}")).json()["internal_status"])


async def started(client: httpx2.AsyncClient, tool: str, **more: Any) -> dict[str, Any]:
    answer = await client.post(f"{P}/tools/execute", json=execute(tool, wait=False, **more))
    assert answer.status_code == 202, answer.text
    return dict(answer.json())


async def test_a_question_survives_a_kill_and_is_answered_afterwards(server: ServerProcess) -> None:
    async with server.client("ann") as ann:
        asked = await started(ann, "ask")
    await server.kill()
    await server.start()
    async with server.client("ann") as ann, listen(ann) as stream:
        request = await stream.next("tool.approval_request")
        assert request["approval_id"] == asked["approval_id"]
        answer = await ann.post(f"{P}/approvals/{request['approval_id']}/approve", content='{"decision": "approved"}')
        assert answer.status_code == 200
        signal_sent = await stream.next("tool.execution_signal")
        await ann.post(f"{P}/tools/{signal_sent['tool_id']}/result", json={"status": "completed", "result": 1})
        assert await status_of(ann, asked["tool_id"]) == "COMPLETED"


@pytest.mark.parametrize("end", ["kill", "stop"])
async def test_a_yes_given_while_no_server_was_alive_counts_once_one_is(server: ServerProcess, end: str) -> None:
    async with server.client("ann") as ann:
        asked = await started(ann, "ask")
    await getattr(server, end)()
    async with toolgate.open(f"sqlite:///{server.database}") as other:
        await other.decide(asked["approval_id"], "approve", by="bob")
        assert (await other.get(asked["tool_id"], project="demo")).status == "APPROVED"
    await server.start()
    async with server.client("ann") as ann, listen(ann) as stream:
        offered = await stream.next("tool.execution_signal")
        assert (offered["tool_id"], offered["attempt"]) == (asked["tool_id"], 1)
        await ann.post(f"{P}/tools/{offered['tool_id']}/result", json={"status": "completed", "result": 1})
        assert await status_of(ann, asked["tool_id"]) == "COMPLETED"


async def test_a_result_is_taken_although_the_server_was_killed_meanwhile(server: ServerProcess) -> None:
    async with server.client("ann") as ann, listen(ann) as stream:
        await stream.ready()
        asked = await started(ann, "far", tool_id="once")
        await stream.next("tool.execution_signal")
        await server.kill()
    await server.start()
    async with server.client("ann") as ann, listen(ann) as stream:
        await stream.ready()
        # The process that gave it out is dead, and its runner is not: nobody else may get the call.
        await until(lambda: _owner_is_new(ann, asked["tool_id"]))
        assert "tool.execution_signal" not in stream.names
        reported = await ann.post(f"{P}/tools/once/result", json={"status": "completed", "result": {"exit_code": 0}})
        assert reported.status_code == 200, reported.text
        again = await ann.post(f"{P}/tools/once/result", json={"status": "completed", "result": {"exit_code": 1}})
        assert again.status_code == 409
        events = (await ann.get(f"{P}/events", params={"tool_id": "once"})).json()["events"]
        assert [event["type"] for event in events].count("tool.dispatched") == 1
        assert await status_of(ann, "once") == "COMPLETED"


async def _owner_is_new(ann: httpx2.AsyncClient, tool_id: str) -> bool:
    return (await ann.get("/readyz")).status_code == 200 and await status_of(ann, tool_id) == "EXECUTING"


async def test_a_call_that_was_sent_to_nobody_is_offered_after_a_kill(server: ServerProcess) -> None:
    async with server.client("ann") as ann:
        asked = await started(ann, "far")
    await server.kill()
    await server.start()
    async with server.client("ann") as ann, listen(ann) as stream:
        offered = await stream.next("tool.execution_signal")
        assert (offered["tool_id"], offered["attempt"]) == (asked["tool_id"], 2)
        assert (await ann.post(f"{P}/tools/{asked['tool_id']}/result", json={"status": "completed"})).status_code == 200


async def test_a_runner_that_dies_leaves_an_effect_unknown_and_a_read_to_another(standing: ServerProcess) -> None:
    async with standing.client("ann") as ann:
        async with listen(ann) as dying:
            await dying.ready()
            effect, read = await started(ann, "brief"), await started(ann, "look")
            for _ in range(2):
                await dying.next("tool.execution_signal")
        async with listen(ann) as heir:
            offered = await heir.next("tool.execution_signal")
            assert (offered["tool_id"], offered["attempt"]) == (read["tool_id"], 2)
            await ann.post(f"{P}/tools/{read['tool_id']}/result", json={"status": "completed", "result": "seen"})

            async def is_unknown() -> bool:
                return await status_of(ann, effect["tool_id"]) == "UNKNOWN"

            await until(is_unknown)
            late = await ann.post(f"{P}/tools/{effect['tool_id']}/result", json={"status": "completed"})
            assert late.status_code == 409
            shown = (await ann.get(f"{P}/tools/{effect['tool_id']}")).json()
            assert (shown["status"], shown["error_type"]) == ("failed", "unknown")
            settled = await ann.post(
                f"{P}/tools/{effect['tool_id']}/settle", json={"happened": True, "reason": "looked at the machine"}
            )
            assert settled.json()["status"] == "completed"


async def test_a_call_nobody_can_run_fails_and_says_so(standing: ServerProcess) -> None:
    async with standing.client("ann") as ann:
        answer = await ann.post(f"{P}/tools/execute", json=execute("brief"))
        assert (answer.json()["status"], answer.json()["error_type"]) == ("failed", "no_runner")


async def test_a_crowd_comes_back_after_a_kill_and_nobody_misses_or_repeats_an_event(server: ServerProcess) -> None:
    crowd, heard = 40, {}
    async with server.client("ann") as ann:
        for number in range(10):
            await started(ann, "far", tool_id=f"before-{number}")
        streams = [listen(server.client("ann")) for _ in range(crowd)]
        for number, stream in enumerate(streams):
            await stream.__aenter__()
            await stream.ready()
            heard[number] = 0
        for number in range(5):
            await started(ann, "far", tool_id=f"during-{number}")
        for number, stream in enumerate(streams):
            await stream.until(lambda stream=stream: _last_id(stream) > 0)
            heard[number] = _last_id(stream)
    await server.kill()
    for stream in streams:
        await stream.__aexit__()
    await server.start()
    async with server.client("ann") as ann:
        for number in range(5):
            await started(ann, "ask", tool_id=f"after-{number}")
        total = (await ann.get(f"{P}/events", params={"limit": 1000})).json()["events"][-1]["seq"]
        back = [listen(ann, **{"Last-Event-ID": str(last)}) for last in heard.values()]
        await asyncio.gather(*(stream.__aenter__() for stream in back))
        for last, stream in zip(heard.values(), back, strict=True):
            await stream.until(lambda stream=stream: _last_id(stream) >= total)
            ids = [id for _, id, _ in stream.heard if id is not None and id <= total]
            assert ids == list(range(last + 1, total + 1))
        for stream in back:
            await stream.__aexit__()


def _last_id(stream: Listening) -> int:
    return max([id for name, id, _ in stream.heard if id is not None and name != "stream.ready"], default=0)


async def test_a_signal_ends_the_server_in_good_order(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path)
    await asyncio.to_thread(server.make_token, "ann", "person")
    await server.start()
    async with server.client("ann") as ann, listen(ann) as stream:
        await stream.ready()
        waiting = asyncio.create_task(ann.post(f"{P}/tools/execute", json=execute("ask")))
        await stream.next("tool.approval_request")
        code = await server.stop()
        assert code in (0, -signal.SIGTERM)
        assert stream.has_ended
        assert (await waiting).status_code == 202
    await server.start()
    async with server.client("ann") as ann:
        assert len((await ann.get(f"{P}/approvals", params={"status": "pending"})).json()["approvals"]) == 1
    await server.stop()


async def test_a_token_revoked_by_the_command_ends_at_once(standing: ServerProcess) -> None:
    async with standing.client("bob") as bob:
        assert (await bob.get("/session")).status_code == 200
        listed = await asyncio.to_thread(
            CliRunner().invoke, token.app, ["list", str(standing.database), "--account", "bob", "--json"]
        )
        token_id = orjson.loads(listed.output)["tokens"][0]["id"]
        await asyncio.to_thread(CliRunner().invoke, token.app, ["revoke", str(standing.database), token_id])
        assert (await bob.get("/session")).status_code == 401


async def test_no_secret_of_a_call_is_readable_in_the_files(standing: ServerProcess) -> None:
    canary = "correct-horse-battery-staple-77"
    async with standing.client("ann") as ann, listen(ann) as stream:
        await stream.ready()
        body = execute("far", {"password": canary}, wait=False)
        tool_id = (await ann.post(f"{P}/tools/execute", json=body)).json()["tool_id"]
        signal_sent = await stream.next("tool.execution_signal")
        assert signal_sent["tool_params"] == {"password": canary}
        await ann.post(f"{P}/tools/{tool_id}/result", json={"status": "completed", "result": {"token": canary}})
        assert standing.tokens["ann"].encode() not in b"".join(_files(standing.folder))
        assert canary.encode() not in b"".join(_files(standing.folder))


def _files(folder: Path) -> list[bytes]:
    return [path.read_bytes() for path in folder.rglob("*") if path.is_file()]
