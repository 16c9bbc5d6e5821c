"""Document 004's own JavaScript client, as written, under Node against a real server."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

from tests.integration.server_process import ROOT, P, ServerProcess
from tests.unit.interfaces.server.house import execute

from toolgate.testing.patience import PATIENCE_S

PLACES = [Path(os.environ.get("TOOLGATE_SEEDS", "/nowhere")), ROOT.parent / "shared" / "seeds"]
SEED = next((found for place in PLACES for found in place.glob("004_*.txt")), None)


class Client:
    """The document's client in a process of its own, and what it did."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self._left: list[dict[str, Any]] = []

    async def until(self, **wanted: Any) -> dict[str, Any]:
        """Wait until the client did something like this and take it; what else it did is left for others to take."""
        assert self.process.stdout is not None
        async with asyncio.timeout(PATIENCE_S):
            while True:
                for line in self._left:
                    if wanted.items() <= line.items():
                        self._left.remove(line)
                        return line
                self._left.append(json.loads(await self.process.stdout.readline()))


if SEED is not None and shutil.which("node") is not None:  # the documents are not part of this project

    async def test_the_client_of_document_004_works_as_written(tmp_path: Path) -> None:
        assert SEED is not None
        script = tmp_path / "client.js"
        block = re.findall(r"```javascript\n(.*?)```", SEED.read_text(encoding="utf-8"), re.DOTALL)[0]
        script.write_text(block, encoding="utf-8")
        server = ServerProcess(tmp_path)
        token = await asyncio.to_thread(server.make_token, "ann", "person")
        await server.start()
        harness = Path(__file__).with_name("document_client.mjs")
        process = await asyncio.create_subprocess_exec(
            "node", str(harness), str(script), server.url, token, "demo", stdout=asyncio.subprocess.PIPE
        )
        client = Client(process)
        try:
            await client.until(did="event", name="stream.ready")
            async with server.client("ann") as ann:
                await _approved_and_run(client, ann)
                await _rejected(client, ann)
                await _failed(client, ann)
                await _conversation(client, ann)
        finally:
            process.kill()
            await process.wait()
            await server.stop()

    async def _approved_and_run(client: Client, ann: Any) -> None:
        body = execute("execute_command", {"command": "npm", "args": ["test"], "timeout": 30})
        asking = asyncio.create_task(ann.post(f"{P}/tools/execute", json=body))
        dialog = await client.until(did="dialog")
        assert (dialog["name"], dialog["risk"], dialog["timeout"]) == ("execute_command", "MEDIUM", 300)
        ran = await client.until(did="execute")
        assert ran["params"] == {"command": "npm", "args": ["test"], "timeout": 30}
        reported = await client.until(did="fetch", status=200)
        while not reported["path"].endswith("/result"):
            reported = await client.until(did="fetch", status=200)
        assert reported["answer"]["success"] is True
        await client.until(did="event", name="tool.result_ack")
        told = (await asking).json()
        assert (told["status"], told["result"]["stdout"]) == ("completed", "execute_command ran")

    async def _rejected(client: Client, ann: Any) -> None:
        asking = asyncio.create_task(
            ann.post(f"{P}/tools/execute", json=execute("write_file", {"path": "a", "content": "b"}))
        )
        assert (await client.until(did="dialog"))["name"] == "write_file"
        answer = await client.until(did="fetch")
        assert (answer["status"], answer["answer"]["status"]) == (200, "rejected")
        assert (await asking).json()["status"] == "rejected"

    async def _failed(client: Client, ann: Any) -> None:
        body = execute("execute_command", {"command": "missing"})
        told = (await ann.post(f"{P}/tools/execute", json=body)).json()
        assert (told["status"], told["error"]) == ("failed", "Command not found: missing")
        for wanted in ({"did": "dialog"}, {"did": "execute"}, {"did": "event", "name": "tool.result_ack"}):
            await client.until(**wanted)

    async def _conversation(client: Client, ann: Any) -> None:
        """The whole story: a message, the agent's call, a yes, the client runs it, and the agent answers."""
        sent = (await ann.post(f"{P}/chat/messages", json={"content": "run npm test"})).json()
        assert (await client.until(did="dialog"))["name"] == "execute_command"
        ran = await client.until(did="execute")
        assert ran["params"]["command"] == "npm"
        await client.until(did="event", name="tool.result_ack")
        path = f"{P}/chat/runs/{sent['run_id']}"
        while (run := (await ann.get(path)).json()["run"])["ended_at"] is None:
            await client.until(did="event", name="chat.message")
        assert run["status"] == "completed"
        told = (await ann.get(f"{P}/chat/conversations/{sent['session_id']}/messages")).json()["messages"]
        assert [one["role"] for one in told] == ["person", "agent", "tools", "agent"]
        assert told[2]["tool_results"][0]["result"]["stdout"] == "execute_command ran"
        assert "execute_command ran" in told[3]["content"]
