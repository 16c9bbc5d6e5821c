"""A server of its own process, a browser, and people in it: what every test of the console begins with.

Each test has a project of its own. Whatever a page logs as an error, whatever breaks its content security policy and
whatever asks another host is collected, and fails the test.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import uuid
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx2
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Browser, BrowserContext, ConsoleMessage, Page, Request, Route
from tests.signed_in import sign_in

from toolgate import bootstrap
from toolgate.interfaces.server.identity import COOKIE
from toolgate.interfaces.server.tokens import new_token
from toolgate.kernel.context import PrincipalKind
from toolgate.ports.directory import Account
from toolgate.testing.patience import PATIENCE_S

ROOT = Path(__file__).resolve().parents[2]
SCREENSHOTS = ROOT / "build" / "screenshots"
PHONE = {"width": 390, "height": 844}
DESKTOP = {"width": 1360, "height": 860}
POLICY = """version: 1
default: by_risk
tools:
  drop_table:
    approval: {escalate: {after: 5m, to: [lead, finance]}}
  publish:
    approval: {level: full}
  run_line:
    commands: {unknown: ask}
    paths: {allowed: ["${WORKSPACE}/**"]}
commands:
  cat: {positionals: [{name: path, value: path, at_most: any}]}
"""
PEOPLE = {"ann": "person", "bob": "person", "root": "admin", "bot": "agent", "runner": "runner"}


class ConsoleServer:
    """`toolgate serve` with the tools of a module; it can be killed and started again on the same port."""

    def __init__(self, folder: Path, tools: str = "tests.console.workplace:TOOLS") -> None:
        self.folder = folder
        self.database = folder / "toolgate.db"
        self.tokens: dict[str, str] = {}
        self.url = ""
        self._tools = tools
        self._port = 0
        self._process: asyncio.subprocess.Process | None = None

    async def prepare(self) -> None:
        """Make accounts for everybody, in every project."""
        (self.folder / "toolgate.yaml").write_text(POLICY, encoding="utf-8")
        directory = bootstrap.directory(f"sqlite:///{self.database}")
        for name, kind in PEOPLE.items():
            await directory.put_account(Account(name=name, kind=PrincipalKind(kind), roles={"*": frozenset()}))
            self.tokens[name], token = new_token(name, now=datetime.now(UTC))
            await directory.put_token(token)
        await directory.close()

    async def start(self, **settings: str) -> None:
        environment = {**os.environ, **{f"TOOLGATE_{name.upper()}": value for name, value in settings.items()}}
        environment["PYTHONPATH"] = str(ROOT)
        self._process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "toolgate", "serve",
            "--database", f"sqlite:///{self.database}", "--policy", str(self.folder / "toolgate.yaml"),
            "--port", str(self._port), "--tools", self._tools, "--workspace", str(self.folder),
            cwd=ROOT, env=environment, stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        assert self._process.stdout is not None
        async with asyncio.timeout(PATIENCE_S):
            line = (await self._process.stdout.readline()).decode()
        assert line.startswith("Serving on "), line
        self.url = line.removeprefix("Serving on ").strip()
        self._port = int(self.url.rpartition(":")[2])

    async def kill(self) -> None:
        """Kill it like a power cut does."""
        assert self._process is not None
        self._process.kill()
        await self._process.wait()

    async def stop(self) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.send_signal(signal.SIGTERM)
            async with asyncio.timeout(PATIENCE_S):
                await self._process.wait()


KEEP_KEY = """{
  const opening = indexedDB.open("toolgate", 1);
  opening.onupgradeneeded = () => opening.result.createObjectStore("keys");
  opening.onsuccess = () => {
    opening.result.transaction("keys", "readwrite").objectStore("keys").put("%s", "");
    opening.result.close();
  };
}"""
"""Gives every page of a browser a session's key before its own scripts ask for it."""


class Scene:
    """One test: a project on the server, and the pages of the people who look at it."""

    def __init__(self, server: ConsoleServer, browser: Browser) -> None:
        self.server = server
        self.project = f"p-{uuid.uuid4().hex[:8]}"
        self.problems: list[str] = []
        self.tolerated: tuple[str, ...] = ()
        self._browser = browser
        self._contexts: list[BrowserContext] = []
        self._clients: dict[str, httpx2.AsyncClient] = {}

    def client(self, who: str) -> httpx2.AsyncClient:
        """A client of the API that shows this account's token."""
        if who not in self._clients:
            headers = {"Authorization": f"Bearer {self.server.tokens[who]}"}
            self._clients[who] = httpx2.AsyncClient(base_url=self.server.url, headers=headers, timeout=PATIENCE_S)
        return self._clients[who]

    def path(self, tail: str) -> str:
        return f"/my/projects/{self.project}/{tail}"

    async def send(self, who: str, method: str, tail: str, body: dict[str, Any] | None = None) -> Any:
        """Send a request about the project and return its answer; it must succeed."""
        response = await self.client(who).request(method, self.path(tail), json=body)
        assert response.is_success, response.text
        return response.json()

    async def ask(self, tool: str, params: dict[str, Any], *, who: str = "bot", **more: Any) -> str:
        """Have an agent call a tool that needs a person; return the id of the question."""
        body = {"tool_name": tool, "tool_params": params, "wait": False, **more}
        answer = await self.send(who, "POST", "tools/execute", body)
        approval_id: str = answer["approval_id"]
        return approval_id

    async def approval(self, approval_id: str) -> Any:
        return (await self.send("root", "GET", f"approvals/{approval_id}"))["approval"]

    async def call(self, approval_id: str, *, until: Collection[str] = ()) -> Any:
        """The call a question is about, once it has one of these statuses."""
        tool_id = (await self.approval(approval_id))["tool_id"]
        async with asyncio.timeout(PATIENCE_S):
            while True:
                found = await self.send("root", "GET", f"tools/{tool_id}")
                if not until or found["status"] in until:
                    return found
                await asyncio.sleep(0.05)

    async def page(
        self, who: str | None = "ann", *, view: str = "#/inbox", phone: bool = False, dark: bool = False, **options: Any
    ) -> Page:
        """A page of somebody who is signed in. A view that begins with a slash is opened as it is."""
        context = await self._browser.new_context(
            viewport=PHONE if phone else DESKTOP,  # type: ignore[arg-type]  # a plain mapping is what it takes
            color_scheme="dark" if dark else "light",
            reduced_motion="reduce",
            **options,
        )
        context.set_default_timeout(PATIENCE_S * 1000)
        self._contexts.append(context)
        await context.route("**/*", self._only_ours)
        if who is not None:
            response = await self.client(who).post("/session", json={})
            cookie = response.cookies[COOKIE]
            await context.add_cookies([{"name": COOKIE, "value": cookie, "url": self.server.url}])
            await context.add_init_script(KEEP_KEY % response.json()["key"])
        page = await context.new_page()
        page.on("console", self._hear)
        page.on("pageerror", lambda error: self.problems.append(f"page error: {error}"))
        where = view if view.startswith("/") else f"/?project={self.project}{view}"
        await page.goto(self.server.url + where)
        return page

    async def without_script(self, page: Page, who: str) -> str:
        """Give a page's browser another session, and return where that one's pages without a script are."""
        async with httpx2.AsyncClient(base_url=self.server.url, timeout=PATIENCE_S) as client:
            keys = await sign_in(client, self.server.tokens[who])
            cookie = client.cookies[COOKIE]
        await page.context.add_cookies([{"name": COOKIE, "value": cookie, "url": self.server.url}])
        return self.server.url + keys.pages

    async def _only_ours(self, route: Route, request: Request) -> None:
        if request.url.startswith(self.server.url):
            await route.continue_()
        else:
            self.problems.append(f"asked another host: {request.url}")
            await route.abort()

    def _hear(self, message: ConsoleMessage) -> None:
        if message.type == "error" and not any(words in message.text for words in self.tolerated):
            self.problems.append(f"console error: {message.text}")

    async def close(self) -> None:
        for context in self._contexts:
            await context.close()
        for client in self._clients.values():
            await client.aclose()
        assert not self.problems, "\n".join(self.problems)


LOOKS = ("color-contrast", "scrollable-region-focusable", "target-size", "page-has-heading-one", "link-in-text-block")
"""Rules that depend on colours and widths; the others hold for a page however it looks."""


async def check_axe(page: Page, *, rules: Sequence[str] | None = None) -> None:
    """Fail where the page is not accessible; its context must have been made with `bypass_csp=True`."""
    if not await page.evaluate("'axe' in window"):
        await page.evaluate(Axe().axe_script)
    options = {"resultTypes": ["violations"], **({"runOnly": list(rules)} if rules else {})}
    results = await page.evaluate("async (options) => (await axe.run(document, options)).violations", options)
    found = [
        f"{one['id']} ({one['impact']}): {node['html'][:200]} — {node['failureSummary'][:300]}"
        for one in results
        for node in one["nodes"]
    ]
    assert not found, "\n".join(found)


async def check_every_look(page: Page, name: str) -> None:
    """Check a state of the page in light and dark, wide and narrow, and keep a picture of each."""
    for viewport, width in ((DESKTOP, "desktop"), (PHONE, "phone")):
        await page.set_viewport_size(viewport)  # type: ignore[arg-type]  # a plain mapping is what it takes
        for scheme in ("light", "dark"):
            await page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
            await check_axe(page, rules=None if (width, scheme) == ("desktop", "light") else LOOKS)
            await picture(page, f"{name}-{width}-{scheme}")
        sideways = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert await page.evaluate(sideways) == 0, f"{name} sticks out sideways on a {width}"
    await page.set_viewport_size({"width": 1360, "height": 860})


async def picture(page: Page, name: str) -> None:
    """Keep a screenshot of the page for people to look at."""
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    await page.screenshot(path=SCREENSHOTS / f"{name}.png")
