"""`execute_command` with a network: the result says where it connected, and a person grants what no grammar does."""

from __future__ import annotations

import http.server
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.sandboxes import needs_bubblewrap

import toolgate

pytestmark = needs_bubblewrap
POLICY = """
version: 1
tools:
  execute_command:
    commands: {{unknown: ask}}
    paths: {{allowed: ["${{WORKSPACE}}/**"]}}
hosts: {{ports: [80, 443, {port}], allow_networks: ["127.0.0.1/32"]}}
commands:
  cat: {{positionals: [{{name: path, value: path, at_least: 0, at_most: any}}]}}
  curl:
    network: true
    flags: {{-s: {{}}, -S: {{}}, -L: {{}}}}
    positionals: [{{name: url, value: str, at_least: 1}}]
"""


class Pages(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(302 if self.path == "/away" else 200)
        self.send_header("Location", "http://169.254.169.254/latest/meta-data")
        self.end_headers()
        self.wfile.write(b"the page\n")

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture
def port() -> Iterator[int]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Pages) as serving:
        threading.Thread(target=serving.serve_forever, daemon=True).start()
        yield serving.server_address[1]
        serving.shutdown()


class Person:
    """Says yes to every question, and keeps what was shown."""

    def __init__(self) -> None:
        self.shown: list[Any] = []

    def __call__(self, approval: toolgate.Approval) -> bool:
        self.shown.append(approval.preview)
        return True


@pytest.fixture
def person() -> Person:
    return Person()


@pytest.fixture
async def gate(workspace: Path, port: int, person: Person) -> AsyncIterator[toolgate.Gate]:
    policy = workspace.parent / f"{workspace.name}.yaml"
    policy.write_text(POLICY.format(port=port))
    async with toolgate.open(
        "memory://", workspace=workspace, policy=policy, built_in_tools=True, approver=person
    ) as opened:
        yield opened
    policy.unlink()


async def run(gate: toolgate.Gate, command: str, **more: object) -> dict[str, Any]:
    data: dict[str, Any] = (await gate.call("execute_command", {"command": command, **more})).unwrap()
    return data


async def test_the_result_says_where_a_command_connected(gate: toolgate.Gate, port: int, person: Person) -> None:
    data = await run(gate, f"curl -sS http://127.0.0.1:{port}/")
    assert data["stdout"] == "the page\n"
    (reached,) = data["network"]
    assert (reached["host"], reached["port"]) == ("127.0.0.1", port)
    assert reached["bytes"] > 0
    assert person.shown == []


async def test_a_redirect_to_the_metadata_service_is_refused(gate: toolgate.Gate, port: int) -> None:
    data = await run(gate, f"curl -sS -L http://127.0.0.1:{port}/away")
    assert "metadata" in data["stdout"]
    assert [("refused" in one) for one in data["network"]] == [False, True]


async def test_a_line_gives_each_command_its_own_network(gate: toolgate.Gate, port: int) -> None:
    url = f"http://127.0.0.1:{port}/"
    data = await run(gate, f"curl -sS {url} | cat && curl -sS {url} && cat notes.txt")
    assert data["stdout"] == "the page\nthe page\none\ntwo\nthree\n"
    (reached,) = data["network"]
    once = (await run(gate, f"curl -sS {url}"))["network"][0]["bytes"]
    assert reached["bytes"] == 2 * once


async def test_a_command_without_network_has_no_such_entry(gate: toolgate.Gate) -> None:
    assert "network" not in await run(gate, "cat notes.txt")
