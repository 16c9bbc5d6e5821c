"""The server under a prefix: mounted in another application, or behind a proxy, which may strip the prefix or not."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from datetime import UTC, datetime
from typing import Any

import httpx2
import pytest
import uvicorn
from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import Receive, Scope, Send
from tests.signed_in import keys_in
from tests.unit.interfaces.server.house import TOOLS, execute
from websockets.asyncio.client import connect

import toolgate
from toolgate import bootstrap
from toolgate.client import Client
from toolgate.interfaces.server.dispatch import Application
from toolgate.kernel.context import PrincipalKind
from toolgate.server import Account, ClientRunner, ServerSettings, create_app, new_token
from toolgate.testing.patience import until

PREFIX = "/toolgate"


@asynccontextmanager
async def made(**settings: Any) -> AsyncIterator[tuple[Application, str]]:
    """A server that was not started, and the token of a person."""
    directory = bootstrap.directory("memory://")
    await directory.put_account(Account(name="ann", kind=PrincipalKind.PERSON, roles={"demo": frozenset()}))
    text, token = new_token("ann", now=datetime.now(UTC))
    await directory.put_token(token)
    async with toolgate.open("memory://", tools=TOOLS, runners={"client": ClientRunner()}) as gate:
        yield create_app(gate, directory, settings=ServerSettings(**settings)), text


def mounted(app: Application) -> FastAPI:
    @asynccontextmanager
    async def lifespan(_parent: FastAPI) -> AsyncIterator[None]:
        async with app.running():
            yield

    parent = FastAPI(lifespan=lifespan)
    parent.mount(PREFIX, app)
    return parent


def stripped(app: Application) -> Any:
    """What a proxy makes of it that takes the prefix away before it passes a request on."""

    async def proxy(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "lifespan":
            scope["path"] = scope["path"].removeprefix(PREFIX)
        await app(scope, receive, send)

    return proxy


WAYS = {
    "mounted": ({}, mounted),
    "proxy": ({"root_path": PREFIX}, lambda app: app),
    "proxy that strips": ({"root_path": PREFIX}, stripped),
}


@asynccontextmanager
async def served(app: Any) -> AsyncIterator[str]:
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning", lifespan="on"))
    server.capture_signals = _no_signals  # type: ignore[method-assign]  # the test keeps its own
    serving = asyncio.create_task(server.serve())
    await until(lambda: server.started or serving.done())
    host, port = server.servers[0].sockets[0].getsockname()[:2]
    try:
        yield f"http://{host}:{port}"
    finally:
        server.should_exit = True
        await serving


def _no_signals() -> Any:
    return nullcontext()


@pytest.fixture(params=WAYS)
async def site(request: pytest.FixtureRequest) -> AsyncIterator[tuple[str, str]]:
    """The address of a server under a prefix, and a token."""
    settings, wrap = WAYS[request.param]
    async with made(**settings) as (app, text), served(wrap(app)) as url:
        yield url, text


async def test_calls_are_made_under_the_prefix(site: tuple[str, str]) -> None:
    url, text = site
    async with httpx2.AsyncClient(base_url=url, headers={"Authorization": f"Bearer {text}"}) as client:
        assert (await client.get(f"{PREFIX}/healthz")).status_code == 200
        body = execute("add", {"left": 2, "right": 3})
        answer = await client.post(f"{PREFIX}/my/projects/demo/tools/execute", json=body)
        assert (answer.status_code, answer.json()["result"]) == (200, 5)
        async with client.stream("GET", f"{PREFIX}/my/projects/demo/chat/stream?listen=1") as stream:
            assert stream.status_code == 200
        assert (await client.get(f"{PREFIX}/nothing")).status_code == 404


async def test_a_socket_opens_under_the_prefix(site: tuple[str, str]) -> None:
    url, text = site
    address = f"{url.replace('http', 'ws')}{PREFIX}/ws?project_id=demo"
    async with connect(address, additional_headers={"Authorization": f"Bearer {text}"}, proxy=None) as socket:
        assert '"subscribed"' in str(await socket.recv())


async def test_every_address_of_the_console_is_under_the_prefix(site: tuple[str, str]) -> None:
    url, text = site
    async with httpx2.AsyncClient(base_url=url) as browser:
        sent_away = await browser.get(f"{PREFIX}/?project=demo")
        assert (sent_away.status_code, sent_away.headers["location"]) == (303, f"{PREFIX}/login?project=demo")
        login = await browser.get(sent_away.headers["location"])
        await _all_there(browser, login.text)
        signed_in = await browser.post(f"{PREFIX}/login", data={"token": text, "project": "demo"})
        assert (signed_in.status_code, f'content="{PREFIX}/?project=demo"' in signed_in.text) == (200, True)
        assert f"Path={PREFIX};" in signed_in.headers["set-cookie"]
        await _all_there(browser, signed_in.text)
        keys = keys_in(signed_in.text)
        shell = await browser.get(f"{PREFIX}/?project=demo")
        assert shell.status_code == 200
        await _all_there(browser, shell.text)
        plain = await browser.get(f"{keys.pages}/approvals")
        assert plain.status_code == 200
        await _all_there(browser, plain.text)
        ended = await browser.delete(f"{PREFIX}/session", headers={"Sec-Fetch-Site": "same-origin", **keys.headers})
        assert f"Path={PREFIX};" in ended.headers["set-cookie"]


async def _all_there(browser: httpx2.AsyncClient, page: str) -> None:
    """Every address on a page leads somewhere."""
    found = set(re.findall(r'(?:href|src|action)="([^"#?]+)', page))
    assert found
    for address in found:
        assert address.startswith(f"{PREFIX}/"), address
        answer = await browser.get(address)
        assert answer.status_code in (200, 303, 405), address  # 405: a form, which is sent


@pytest.mark.parametrize("path", ["/healthz", "/my/projects/demo/tools/available", "/login"])
async def test_a_server_that_was_never_started_says_so(path: str) -> None:
    async with made() as (app, text):
        parent = FastAPI()
        parent.mount(PREFIX, app)
        headers = {"Authorization": f"Bearer {text}"}
        async with httpx2.AsyncClient(
            transport=httpx2.ASGITransport(app=parent), base_url="http://localhost", headers=headers
        ) as client:
            answer = await client.get(PREFIX + path)
            assert (answer.status_code, answer.json()["code"]) == (503, "not_started")
            assert "running()" in answer.json()["detail"]
        async with app.running():
            assert app.is_running
        assert not app.is_running


async def test_a_route_of_ones_own_can_be_added() -> None:
    async def version(_request: Request) -> Response:
        return PlainTextResponse("7")

    async with made() as (app, _text), app.running():
        app.add_route("/version", version)
        async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url="http://localhost") as client:
            assert (await client.get("/version")).text == "7"
            answer = await client.post("/version")
            assert (answer.status_code, answer.json()["code"]) == (405, "method_not_allowed")


def test_the_server_needs_no_fastapi() -> None:
    program = "import sys, toolgate.server, toolgate.interfaces.server.serve; print('fastapi' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", program], text=True) == "False\n"


@pytest.mark.parametrize("prefix", ["toolgate", "/toolgate/", "//evil", "/a b", "/"])
def test_a_prefix_that_is_none_is_refused(prefix: str) -> None:
    with pytest.raises(ValueError, match="root_path"):
        ServerSettings(root_path=prefix)


async def test_the_client_library_takes_an_address_with_a_prefix(site: tuple[str, str]) -> None:
    url, text = site
    async with Client(url + PREFIX, token=text, project="demo") as ann:
        assert (await ann.call("add", {"left": 2, "right": 3})).data == 5
        async with ann.stream() as events:
            assert (await anext(events)).name == "stream.ready"
