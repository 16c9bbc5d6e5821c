"""Another program of this machine serves a port of 127.0.0.1: it is sent the console's cookie, and gains nothing."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx2
from playwright.async_api import Page, expect
from tests.console.scene import Scene
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from toolgate.interfaces.server.identity import COOKIE
from toolgate.testing.patience import PATIENCE_S

ATTEMPTS = """async ([server, project, approval]) => {
  const base = `${server}/my/projects/${project}`;
  const read = async (path, options) => {
    try {
      const answer = await fetch(server + path, { credentials: "include", ...options });
      return `read ${answer.status}: ${(await answer.text()).slice(0, 40)}`;
    } catch { return "refused"; }
  };
  const stream = (path) => new Promise((done) => {
    const source = new EventSource(server + path, { withCredentials: true });
    source.onopen = () => done("open");
    source.onerror = () => done("refused");
  });
  const socket = () => new Promise((done) => {
    const line = new WebSocket(server.replace("http", "ws") + `/ws?project_id=${project}`);
    line.onmessage = (event) => done(event.data);
    line.onclose = () => done("refused");
  });
  const blindly = { method: "POST", mode: "no-cors", credentials: "include" };
  const json = { "Content-Type": "application/json" };
  const body = JSON.stringify({ reason: "mine" });
  return {
    inbox: await read(`/my/projects/${project}/approvals`),
    shell: await read("/"),
    yes: await read(`/my/projects/${project}/approvals/${approval}/approve`, { method: "POST", headers: json, body }),
    simple: await read(`/my/projects/${project}/approvals/${approval}/approve`, { method: "POST", body }),
    blind: await fetch(`${base}/approvals/${approval}/approve`, { ...blindly, body }).then(() => "sent", () => "sent"),
    form: await read("/login", { method: "POST", body: new URLSearchParams({ token: "x" }) }),
    stream: await stream(`/my/projects/${project}/chat/stream`),
    socket: await socket(),
    storage: (await indexedDB.databases()).length,
  };
}"""

PAGE = b'<!doctype html><title>Other</title><link rel="icon" href="data:,">'
"""It brings its icon: a browser that asks for one does so whenever it likes, also while the port is being closed."""


class OtherPort:
    """Serves an empty page to anybody, and keeps the cookies it is sent."""

    def __init__(self) -> None:
        self.cookies: list[str] = []
        cookies = self.cookies

        class Page(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                cookies.append(self.headers.get("Cookie", ""))
                self.send_response(200)
                self.send_header("Content-Type", "text/html")
                self.end_headers()
                self.wfile.write(PAGE)

            def log_message(self, *_given: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"


@contextmanager
def other_port() -> Iterator[OtherPort]:
    other = OtherPort()
    with other.server as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield other
        server.shutdown()
        thread.join()


async def signed_in(scene: Scene, other: OtherPort) -> Page:
    """A browser that is signed in to the console, and then opens what the other port serves."""
    page = await scene.page(None, view="/login")
    await page.get_by_label("Your token").fill(scene.server.tokens["ann"])
    await page.get_by_role("button", name="Sign in").click()
    await expect(page.get_by_text("Live")).to_be_visible()
    await page.context.unroute_all()
    await page.goto(other.url)
    return page


async def test_a_page_of_another_port_reads_and_decides_nothing(scene: Scene) -> None:
    asked = await scene.ask("drop_table", {"name": "orders"})
    scene.tolerated = ("",)  # the browser itself complains of what it refuses
    with other_port() as other:
        page = await signed_in(scene, other)
        got: dict[str, Any] = await page.evaluate(ATTEMPTS, [scene.server.url, scene.project, asked])
        assert got.pop("blind") == "sent"
        assert got.pop("storage") == 0  # the key is not here
        assert set(got.values()) == {"refused"}, got
        assert (await scene.approval(asked))["status"] == "pending"


async def test_who_serves_another_port_has_the_cookie_and_can_do_nothing_with_it(scene: Scene) -> None:
    asked = await scene.ask("drop_table", {"name": "orders"})
    with other_port() as other:
        await signed_in(scene, other)
        assert any(COOKIE in cookie for cookie in other.cookies)  # this is why the cookie alone is worth nothing
        vouched = {"Cookie": other.cookies[0], "Origin": scene.server.url, "Sec-Fetch-Site": "same-origin"}
    async with httpx2.AsyncClient(base_url=scene.server.url, headers=vouched, timeout=PATIENCE_S) as thief:
        for path in ("approvals", f"approvals/{asked}/artifact?full=true", "events", "inbox", "tools", "mode"):
            assert (await thief.get(scene.path(path))).json()["code"] == "key_needed"
        for path in ("tickets", f"approvals/{asked}/approve", f"approvals/{asked}/reject", "tools/execute"):
            assert (await thief.post(scene.path(path), json={"reason": "mine"})).json()["code"] == "key_needed"
        shell = await thief.get("/")
        assert "drop_table" not in shell.text
        assert (await thief.get("/pages/x/approvals")).headers["location"] == "/login"
        async with thief.stream("GET", scene.path("chat/stream")) as masked:
            async for line in masked.aiter_lines():
                if line.startswith("data: ") and "approval_id" in line:
                    assert json.loads(line.removeprefix("data: "))["approval_id"] == asked
                    break
    url = scene.server.url.replace("http", "ws") + f"/ws?project_id={scene.project}"
    try:
        async with connect(url, additional_headers=vouched, proxy=None):
            raise AssertionError("a cookie alone opened a socket")
    except InvalidStatus:
        pass
    assert (await scene.approval(asked))["status"] == "pending"
