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

PLACES = [Path(os.environ.get("TOOLGATE_SEEDS", "/nowhere")), ROOT.parent / "shared" / "seeds"]
SEED = next((found for place in PLACES for found in place.glob("004_*.txt")), None)


class Client:
    """The document's client in a process of its own, and what it did."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.seen: list[dict[str, Any]] = []

    async def until(self, **wanted: Any) -> dict[str, Any]:
        """Read on until the client did something like this."""
        assert self.process.stdout is not None
        async with asyncio.timeout(30):
            while True:
                line = json.loads(await self.process.stdout.readline())
                self.seen.append(line)
                if wanted.items() <= line.items():
                    return dict(line)


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
        answer = await client.until(did="fetch")
        assert (answer["status"], answer["answer"]["status"]) == (200, "rejected")
        assert (await asking).json()["status"] == "rejected"

    async def _failed(client: Client, ann: Any) -> None:
        body = execute("execute_command", {"command": "missing"})
        told = (await ann.post(f"{P}/tools/execute", json=body)).json()
        assert (told["status"], told["error"]) == ("failed", "Command not found: missing")
