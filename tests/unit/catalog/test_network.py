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
  rm: {{decision: deny}}
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
        self.reasons: list[str] = []

    def __call__(self, approval: toolgate.Approval) -> bool:
        self.shown.append(approval.preview)
        self.reasons.append("; ".join(approval.reasons))
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


FETCH = "python3 -c 'import urllib.request as u, sys; print(u.urlopen(sys.argv[1]).read().decode())' {url}"


async def test_a_yes_gives_a_network_to_what_no_grammar_knows(gate: toolgate.Gate, port: int, person: Person) -> None:
    line = FETCH.format(url=f"http://127.0.0.1:{port}/")
    data = await run(gate, line, network=True)
    assert data["stdout"] == "the page\n\n", data
    assert [(one["host"], one["port"]) for one in data["network"]] == [("127.0.0.1", port)]
    (shown,) = person.shown[0]["commands"]
    assert shown["network"] == "through the proxy, to hosts that the policy allows"
    assert "A network is asked for" in shown["asked because"]
    assert "no grammar knows this command" in person.reasons[0]
    assert "a network is asked for" in person.reasons[0]


async def test_without_it_there_is_nothing_to_reach(gate: toolgate.Gate, port: int, person: Person) -> None:
    data = await run(gate, FETCH.format(url=f"http://127.0.0.1:{port}/"))
    assert data["exit_code"] != 0
    assert "refused" in data["stderr"]
    assert "network" not in data
    assert person.shown[0]["commands"][0]["network"] == "none"


async def test_only_hosts_of_the_policy_are_reached_after_a_yes(gate: toolgate.Gate) -> None:
    data = await run(gate, FETCH.format(url="http://169.254.169.254/latest"), network=True)
    assert "403" in data["stderr"]
    assert "refused" in data["network"][0]


async def test_asking_for_a_network_asks_about_what_runs_unasked(gate: toolgate.Gate, person: Person) -> None:
    await run(gate, "cat notes.txt", network=False)
    assert person.shown == []
    assert (await run(gate, "cat notes.txt", network=True))["stdout"] == "one\ntwo\nthree\n"
    assert "a network is asked for" in person.reasons[0]


async def test_what_has_a_network_anyway_is_not_asked_about(gate: toolgate.Gate, port: int, person: Person) -> None:
    await run(gate, f"curl -sS http://127.0.0.1:{port}/", network=True)
    assert person.shown == []


async def test_asking_for_a_network_opens_no_denial(gate: toolgate.Gate, person: Person) -> None:
    found = await gate.call("execute_command", {"command": "rm notes.txt", "network": True})
    assert not found.success
    assert person.shown == []


async def test_without_a_rule_about_its_commands_a_network_is_refused(workspace: Path) -> None:
    policy = workspace.parent / f"{workspace.name}-bare.yaml"
    policy.write_text("version: 1\ntools: {execute_command: {decision: allow}}\ncommands: {'true': {}}\n")
    async with toolgate.open("memory://", workspace=workspace, policy=policy, built_in_tools=True) as opened:
        assert (await run(opened, "true"))["exit_code"] == 0
        found = await opened.call("execute_command", {"command": "true", "network": True})
    policy.unlink()
    assert "nobody would be asked" in str(found.error)


async def test_who_answers_may_give_or_take_the_network(workspace: Path, port: int) -> None:
    policy = workspace.parent / f"{workspace.name}.yaml"
    policy.write_text(POLICY.format(port=port))
    line = FETCH.format(url=f"http://127.0.0.1:{port}/")
    async with toolgate.open("memory://", workspace=workspace, policy=policy, built_in_tools=True) as opened:
        for asked in (False, True):
            parked = await opened.call("execute_command", {"command": line, "network": asked}, wait=False)
            edited = {"command": line, "network": not asked}
            await opened.approvals.edit(str(parked.approval_id), edited, by="anna")
            result = await opened.wait(parked.call_id)
            assert ("network" in result.unwrap()) is not asked
    policy.unlink()
