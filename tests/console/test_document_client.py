"""Document 004's own client, as written, in a real browser: by ticket, by bearer, and by the cookie for development."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, Page
from tests.console.scene import ROOT, ConsoleServer, Scene

from toolgate.testing.patience import PATIENCE_S

PLACES = [Path(os.environ.get("TOOLGATE_SEEDS", "/nowhere")), ROOT.parent / "shared" / "seeds"]
SEED = next((found for place in PLACES for found in place.glob("004_*.txt")), None)
ALLOWED = {
    # How a page gets a ticket, and what it sends with every request.
    "by ticket": "{'X-Toolgate-Key': await kept()}",
    "by bearer": "{Authorization: 'Bearer ' + token}",
    "by cookie": "null",
}
HARNESS = """async ([token, projectId, base]) => {
  const kept = () => new Promise((done) => {
    const opening = indexedDB.open("toolgate", 1);
    opening.onsuccess = () => {
      const asked = opening.result.transaction("keys").objectStore("keys").get("");
      asked.onsuccess = () => done(asked.result);
    };
  });
  const shown = %s;
  const say = (what) => window.did.push(what);
  window.did = [];
  const plain = window.fetch.bind(window);
  const asked = shown && await plain(`${base}/tickets`, { method: "POST", headers: shown });
  const made = shown && await asked.json();
  class Source extends EventSource {
    constructor(path) {
      super(path.replace("{projectId}", projectId) + (made ? `?ticket=${made.ticket}` : ""));
      this.addEventListener("stream.ready", () => say("ready"));
    }
  }
  const fetch = async (path, options) => {
    const answer = await plain(path, { ...options, headers: { ...options.headers, ...shown } });
    say(`${path.split("/").at(-1)} ${answer.status}`);
    return answer;
  };
  const showApprovalDialog = (name, risk) => { say(`dialog ${name} ${risk}`); return true; };
  const executeToolLocally = async (name, params) => {
    say(`run ${name} ${params.command}`);
    return { stdout: "ran" };
  };
  ((EventSource, fetch) => { %s })(Source, fetch);
}"""

if SEED is not None:  # the documents are not part of this project
    BLOCK = re.findall(r"```javascript\n(.*?)```", SEED.read_text(encoding="utf-8"), re.DOTALL)[0]

    async def start(scene: Scene, page: Page, how: str) -> None:
        given = [scene.server.tokens["ann"], scene.project, f"/my/projects/{scene.project}"]
        await page.evaluate(HARNESS % (ALLOWED[how], BLOCK), given)
        await until(page, "ready")

    async def until(page: Page, *wanted: str) -> list[str]:
        """Wait until the client did all of this."""
        await page.wait_for_function("(wanted) => wanted.every((one) => window.did.includes(one))", arg=list(wanted))
        done: list[str] = await page.evaluate("window.did")
        return done

    async def asked(scene: Scene) -> dict[str, Any]:
        body = {"tool_name": "execute_command", "tool_params": {"command": "npm", "args": ["test"]}}
        async with asyncio.timeout(PATIENCE_S):
            told: dict[str, Any] = await scene.send("ann", "POST", "tools/execute", body)
        return told

    @asynccontextmanager
    async def opened(scene: Scene, *, with_key: bool) -> AsyncIterator[Page]:
        page = await scene.page("ann" if with_key else None, view="/login", bypass_csp=True)
        yield page
        await page.close()

    @pytest.mark.parametrize("how", ["by ticket", "by bearer"])
    async def test_the_document_s_client_runs_in_a_browser(scene: Scene, how: str) -> None:
        async with opened(scene, with_key=how == "by ticket") as page:
            await start(scene, page, how)
            told = await asked(scene)
            assert (told["status"], told["result"]["stdout"]) == ("completed", "ran")
            await until(page, "dialog execute_command MEDIUM", "approve 200", "run execute_command npm", "result 200")

    async def test_with_the_cookie_alone_it_hears_and_can_do_nothing(scene: Scene) -> None:
        scene.tolerated = ("401",)
        async with opened(scene, with_key=True) as page:
            await start(scene, page, "by cookie")
            body = {"tool_name": "execute_command", "tool_params": {"command": "npm"}, "wait": False}
            told = await scene.send("ann", "POST", "tools/execute", body)
            await until(page, "dialog execute_command MEDIUM", "approve 401")
            assert (await scene.approval(told["approval_id"]))["status"] == "pending"
            await scene.send("ann", "POST", f"approvals/{told['approval_id']}/approve", {})
            await scene.call(told["approval_id"], until=["approved", "executing"])
            assert not any(one.startswith("run ") for one in await page.evaluate("window.did"))

    async def test_for_development_the_cookie_is_enough(tmp_path: Path, browser: Browser) -> None:
        server = ConsoleServer(tmp_path)
        await server.prepare()
        await server.start(cookie_suffices="true")
        scene = Scene(server, browser)
        try:
            async with opened(scene, with_key=True) as page:
                await start(scene, page, "by cookie")
                told = await asked(scene)
                assert (told["status"], told["result"]["stdout"]) == ("completed", "ran")
                await until(page, "approve 200", "run execute_command npm", "result 200")
        finally:
            await scene.close()
            await server.stop()
