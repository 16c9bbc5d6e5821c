"""Fetching and searching."""

from __future__ import annotations

import base64
import contextlib
import gzip
import http.server
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.sandboxes import needs_sandbox

import toolgate
from toolgate.adapters.runners.sandbox import Sandbox, SandboxRunner
from toolgate.catalog import built_in_tools
from toolgate.catalog.fetching import fetch, html_to_text
from toolgate.catalog.web import SearchResult
from toolgate.errors import ToolExecutionError
from toolgate.guards.edges import Edges
from toolgate.guards.files import Workspace
from toolgate.guards.net import HostRules, UrlRefused, parse_url
from toolgate.guards.reach import resolve
from toolgate.kernel.tool import Placement

PAGE = (
    "<html><head><title> A page </title><style>p{}</style></head><body><h1>Hello</h1><script>x()</script><p>w&ouml;rld"
)


PAGES: dict[str, tuple[dict[str, str], bytes]] = {
    "/page": ({"Content-Type": "text/html; charset=utf-8"}, PAGE.encode()),
    "/bomb": ({"Content-Encoding": "gzip"}, gzip.compress(bytes(50_000_000))),
    "/deflated": ({"Content-Encoding": "gzip"}, gzip.compress(b"small")),
    "/broken": ({"Content-Encoding": "gzip"}, b"not gzip"),
    "/odd": ({"Content-Encoding": "br"}, b""),
    "/latin": ({"Content-Type": "text/plain; charset=latin-1"}, "ä".encode("latin-1")),
    "/unknown": ({"Content-Type": "text/plain; charset=klingon"}, b"qapla"),
}


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        headers, body = PAGES.get(path, ({}, b""))
        status = 200 if path in PAGES else 404
        if path.startswith("/to/"):
            status, headers = 302, {"Location": self.path[4:]}
        elif path == "/loop":
            status, headers = 301, {"Location": "/loop"}
        elif path == "/host":
            status, body = 200, str(self.headers["Host"]).encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        with contextlib.suppress(OSError):  # a reader that has enough goes away
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        return


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as made:
        thread = threading.Thread(target=made.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{made.server_port}"
        made.shutdown()
        thread.join()


def rules(server: str, **more: Any) -> HostRules:
    port = parse_url(server).port
    return HostRules(**{"ports": (port,), "allow_networks": ("127.0.0.1/32",), **more})


def get(server: str, path: str, **more: Any) -> dict[str, Any]:
    options = {"hosts": rules(server), "max_bytes": 1_000_000, "timeout_s": 10, "form": "text", **more}
    return fetch(url=server + path, **options)


def test_a_page_comes_as_text(server: str) -> None:
    found = get(server, "/page?q=1#part")
    assert (found["title"], found["content"], found["status"]) == ("A page", "Hello\nwörld", 200)
    assert get(server, "/page", form="raw")["content"] == PAGE
    assert base64.b64decode(get(server, "/page", form="base64")["content"]) == PAGE.encode()


def test_charsets_are_heeded(server: str) -> None:
    assert get(server, "/latin")["content"] == "ä"
    assert get(server, "/unknown")["content"] == "qapla"


def test_a_missing_page_is_an_answer(server: str) -> None:
    assert get(server, "/missing")["status"] == 404


def test_decoded_bytes_are_limited(server: str) -> None:
    found = get(server, "/bomb", max_bytes=1000, form="raw")
    assert (found["bytes"], found["truncated"]) == (1000, True)
    assert found["content"].endswith("[... cut off after 1000 bytes ...]")
    assert get(server, "/deflated")["content"] == "small"


@pytest.mark.parametrize("path", ["/broken", "/odd", "/loop"])
def test_answers_that_make_no_sense_are_errors(server: str, path: str) -> None:
    with pytest.raises(ToolExecutionError):
        get(server, path)


def test_redirects_are_followed_where_rules_allow(server: str) -> None:
    assert get(server, "/to//page")["url"] == f"{server}/page"


@pytest.mark.parametrize(
    "target",
    [
        "http://169.254.169.254/latest/meta-data",
        "http://localhost:1/",
        "file:///etc/passwd",
        "http://127.0.0.2:{port}/page",
        "http://[::1]:{port}/page",
        "http://user@127.0.0.1:{port}/page",
        "//2130706433/",
    ],
)
def test_a_redirect_is_judged_like_any_url(server: str, target: str) -> None:
    port = parse_url(server).port
    with pytest.raises(UrlRefused):
        get(server, "/to/" + target.format(port=port))


def test_a_redirect_to_a_host_that_would_be_asked_about_is_refused(server: str) -> None:
    port = parse_url(server).port
    hosts = HostRules(ports=(port,), allow=("127.0.0.1",), ask=("127.0.0.2",), allow_networks=("127.0.0.0/8",))
    with pytest.raises(UrlRefused, match="redirects"):
        get(server, f"/to/http://127.0.0.2:{port}/page", hosts=hosts)


def test_a_name_that_resolves_to_a_private_address_is_refused(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    port = parse_url(server).port
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_args, **_options: found)
    with pytest.raises(UrlRefused, match="not public"):
        fetch(
            url=f"http://rebound.example:{port}/page",
            hosts=HostRules(ports=(port,)),
            max_bytes=10,
            timeout_s=5,
            form="text",
        )


def test_proxies_of_the_environment_are_ignored(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")
    assert get(server, "/host")["content"] == server.removeprefix("http://")


def test_what_cannot_be_reached_is_an_error() -> None:
    hosts = HostRules(ports=(1,), allow_networks=("127.0.0.1/32",))
    with pytest.raises(ToolExecutionError, match="cannot be reached"):
        fetch(url="http://127.0.0.1:1/", hosts=hosts, max_bytes=10, timeout_s=5, form="text")
    with pytest.raises(ToolExecutionError, match="cannot be found"):
        resolve(parse_url("https://name.invalid/"), HostRules())
    with pytest.raises(ToolExecutionError, match="too long"):
        fetch(url="http://127.0.0.1:1/", hosts=hosts, max_bytes=10, timeout_s=0, form="text")


def test_a_plain_server_gives_no_tls(server: str) -> None:
    with pytest.raises(ToolExecutionError, match="TLS"):
        get(server.replace("http:", "https:"), "/page")


def test_html_without_a_body_is_empty_text() -> None:
    assert html_to_text("") == (None, "")


class Found:
    hosts = ("https://search.example/",)

    def search(self, query: str, max_results: int) -> list[SearchResult]:
        if query == "offline":
            raise OSError("no route")
        return [SearchResult(title=query, url="https://example.com/", snippet="...")] * 9


@pytest.fixture
async def gate(workspace: Path, server: str) -> AsyncIterator[toolgate.Gate]:
    with Workspace(workspace) as opened:
        edges = Edges(workspace=opened, hosts=rules(server, ports=(443, parse_url(server).port), deny=("bad.example",)))
        runner = SandboxRunner(Sandbox(lambda: edges))
        tools = built_in_tools(edges, search=Found())
        made = toolgate.open("memory://", tools=tools, approver=lambda _approval: True)
        made._driver.runners[Placement.SANDBOX.value] = runner  # type: ignore[index]  # the edges under test
        async with made:
            yield made
        await runner.close()


@needs_sandbox
async def test_a_fetch_through_the_gate_happens_in_the_sandbox(gate: toolgate.Gate, server: str) -> None:
    assert (await gate.call("fetch_url", {"url": f"{server}/page"})).unwrap()["content"] == "Hello\nwörld"
    for url in ("https://bad.example/", "ftp://example.com/", "http://10.0.0.1/", f"{server}/to/http://10.0.0.1/"):
        result = await gate.call("fetch_url", {"url": url})
        assert result.status == "FAILED"
        assert "refused" in str(result.error)


def test_an_international_name_is_asked_for_in_ascii(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    real = socket.getaddrinfo

    def resolved(host: str, *rest: Any, **more: Any) -> Any:
        asked.append(host)
        return real("127.0.0.1", *rest, **more)

    monkeypatch.setattr(socket, "getaddrinfo", resolved)
    port = parse_url(server).port
    found = get(f"http://straße.example:{port}", "/host", hosts=rules(server, allow=("straße.example",)))
    assert found["content"] == f"xn--strae-oqa.example:{port}"
    assert asked[0] == "xn--strae-oqa.example"
    with pytest.raises(UrlRefused, match="not public"):
        get(f"http://straße.example:{port}", "/host", hosts=rules(server, allow_networks=()))


@needs_sandbox
async def test_an_international_name_passes_the_gate(gate: toolgate.Gate, server: str) -> None:
    result = await gate.call("fetch_url", {"url": f"http://bücher.invalid:{parse_url(server).port}/ä"})
    assert "'xn--bcher-kva.invalid' cannot be found" in str(result.error)


async def test_a_search_asks_its_provider(gate: toolgate.Gate) -> None:
    data = (await gate.call("web_search", {"query": "tea", "max_results": 2})).unwrap()
    assert [item["title"] for item in data["results"]] == ["tea", "tea"]
    offline = await gate.call("web_search", {"query": "offline"})
    assert "Is there a network?" in str(offline.error)


async def test_a_search_needs_its_provider_to_be_allowed(workspace: Path) -> None:
    with Workspace(workspace) as opened:
        edges = Edges(workspace=opened, hosts=HostRules(allow=("example.com",)))
        tools = built_in_tools(edges, search=Found())
        async with toolgate.open("memory://", tools=tools, approver=lambda _approval: True) as gate:
            refused = await gate.call("web_search", {"query": "tea"})
    assert "may not be asked" in str(refused.error)
