"""Python callables in the sandbox, through a gate."""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.sandboxes import needs_bubblewrap, needs_sandbox
from tests.unit.adapters.runners.sandbox import handlers

import toolgate
from toolgate.adapters.runners.sandbox.runner import Request, limited
from toolgate.bootstrap import tools_at
from toolgate.kernel.context import SYSTEM_PROJECT
from toolgate.kernel.policy import Policy, Stance
from toolgate.kernel.terms import SandboxBackend, SandboxTerms
from toolgate.kernel.tool import ToolDefinition
from toolgate.ports.confinement import MEBIBYTE, Confined
from toolgate.testing.patience import until

pytestmark = needs_sandbox
TOOLS = [item for item in vars(handlers).values() if isinstance(item, ToolDefinition)]


@pytest.fixture
async def gate(workspace: Path) -> AsyncIterator[toolgate.Gate]:
    async with toolgate.open("memory://", tools=TOOLS, workspace=workspace) as opened:
        yield opened


@needs_bubblewrap
async def test_a_handler_runs_confined(gate: toolgate.Gate) -> None:
    result = await gate.call("whoami")
    assert result.data["home"] == "/tmp"
    assert result.data["pid"] < 10
    assert result.data["uid"] != 0


async def test_async_handlers_values_progress_and_artifacts_come_back(gate: toolgate.Gate) -> None:
    assert (await gate.call("add", {"first": 2})).data == 3
    result = await gate.call("count", {"to": 2})
    assert (result.data["to"], result.artifacts) == (2, ("made",))
    told = [event.data["message"] for event in await gate.events() if event.type == "tool.progress"]
    assert told == ["at 0", "at 1"]


async def test_a_handler_gets_the_key_of_its_effect(gate: toolgate.Gate) -> None:
    assert (await gate.call("refund", {"payment": "p1"})).data == "refund:p1"


async def test_what_a_handler_raises_is_its_failure(gate: toolgate.Gate) -> None:
    result = await gate.call("fail", {"text": "no such shelf"})
    assert (result.status, result.error) == ("FAILED", "no such shelf")
    ended = await gate.call("exit_at_once")
    assert (ended.status, ended.error_code) == ("FAILED", "invalid_output")


async def test_a_passing_error_of_a_handler_is_tried_once_more(gate: toolgate.Gate) -> None:
    result = await gate.call("lose_the_line")
    assert (result.status, result.error) == ("FAILED", "no answer")
    started = [event for event in await gate.events(call_id=result.call_id) if event.type == "tool.started"]
    assert [event.data["attempt"] for event in started] == [1, 2]


async def test_a_handler_that_takes_too_long_is_stopped(gate: toolgate.Gate) -> None:
    result = await gate.call("sleep", {"seconds": 60})
    assert (result.status, result.error_code) == ("FAILED", "timeout")
    assert "timed out" in str(result.error)


async def test_a_cancelled_call_stops_its_handler(gate: toolgate.Gate) -> None:
    slow = gate.call("sleep", {"seconds": 0.9}, call_id="slow")
    waiting = asyncio.ensure_future(slow)
    await until(lambda: _started(gate))
    await gate.cancel("slow")
    assert (await waiting).status == "CANCELLED"


async def _started(gate: toolgate.Gate) -> bool:
    return any(event.type == "tool.started" for event in await gate.events())


@needs_bubblewrap
async def test_the_workspace_is_readable_without_its_secrets(gate: toolgate.Gate, workspace: Path) -> None:
    assert (await gate.call("read", {"path": str(workspace / "file.txt")})).data == "inside"
    assert (await gate.call("read", {"path": str(workspace / ".env")})).data == ""
    assert (await gate.call("read", {"path": "/etc/shadow"})).status == "FAILED"


@needs_bubblewrap
async def test_an_undo_handler_runs_there_too(gate: toolgate.Gate) -> None:
    done = await gate.call("change")
    assert (await gate.undo(done.call_id)).success


@needs_bubblewrap
async def test_the_test_of_the_sandbox_is_in_the_log(gate: toolgate.Gate) -> None:
    await gate.call("whoami")
    await until(lambda: _tested(gate))


async def _tested(gate: toolgate.Gate) -> bool:
    return [event.data["holds"] for event in await gate.events(project=SYSTEM_PROJECT)] == [True]


class Granting(Policy):
    def stance(self, _tool: ToolDefinition) -> Stance:
        return Stance(sandbox=SandboxTerms(network=True))


async def test_a_policy_grants_a_network(gate: toolgate.Gate, workspace: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert (await gate.call("connect", {"port": port})).status == "FAILED"
        await gate.set_policy(Granting(revision="network"), by="ann")
        assert (await gate.call("connect", {"port": port})).data == "connected"


async def test_a_handler_that_cannot_be_sent_is_refused(workspace: Path) -> None:
    secret = object()
    tool = ToolDefinition("closure", {}, lambda _given: secret, effects="read", requires_sandbox=True)
    async with toolgate.open("memory://", tools=[tool], workspace=workspace) as gate:
        result = await gate.call("closure")
    assert result.status == "FAILED"
    assert "cannot be sent to the sandbox" in str(result.error)


def test_terms_only_make_stricter() -> None:
    confined = Confined(argv=("/bin/true",), timeout_s=10, processes=50)
    terms = SandboxTerms(backend=SandboxBackend.AUTO, timeout_s=5, memory_mb=64, processes=100, output_bytes=10)
    strict = limited(confined, terms, 30)
    assert (strict.timeout_s, strict.memory_bytes, strict.processes, strict.output_bytes) == (5, 64 * MEBIBYTE, 50, 10)
    assert limited(confined, None, 3).timeout_s == 3


async def test_a_script_of_its_own_is_found(tmp_path: Path, workspace: Path) -> None:
    script = workspace / "app.py"
    script.write_text(
        "import toolgate\n"
        "@toolgate.tool(effects='read', requires_sandbox=True)\n"
        "def double(number: int) -> int:\n"
        "    return number * 2\n"
        "if __name__ == '__main__':\n"
        "    with toolgate.open('memory://', tools=[double]) as gate:\n"
        "        print(gate.sync.call('double', {'number': 21}).unwrap())\n"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(script), cwd=workspace, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    out, error = await process.communicate()
    assert (out, error) == (b"42\n", b"")


def test_a_planned_function_sees_no_files() -> None:
    from toolgate.ports.confinement import ConfinedCall

    request = Request.of_plan(ConfinedCall(module="json", name="dumps", arguments={"obj": 1}))
    assert not request.sees_files


async def test_a_tool_of_the_workspace_is_found_in_the_sandbox(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = workspace.name.replace("-", "_")
    (workspace / f"beside_{name}.py").write_text("WORD = 'found'\n")
    (workspace / f"{name}.py").write_text(
        f"import toolgate\nfrom beside_{name} import WORD\n\n\n"
        "@toolgate.tool(placement='sandbox', effects='read')\ndef find() -> str:\n    return WORD\n"
    )
    monkeypatch.chdir(workspace)
    tools = tools_at(name)
    assert str(workspace) not in sys.path
    async with toolgate.open("memory://", tools=tools.values(), workspace=workspace) as gate:
        assert (await gate.call("find")).data == "found"
