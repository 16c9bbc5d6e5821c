"""The user's credentials for https: after a person's yes, for that call and host, and nowhere afterwards."""

from __future__ import annotations

import base64
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from tests.sandboxes import needs_bubblewrap
from tests.unit.catalog import git_server

import toolgate
from toolgate.catalog.credentials import given_to, place_of
from toolgate.errors import ToolExecutionError
from toolgate.guards.argv import parse
from toolgate.guards.grammar import Command, pin
from toolgate.policy.profiles import render
from toolgate.ports.confinement import Confined

pytestmark = needs_bubblewrap
PASSWORD = "canary/p@ss word"
CODED = base64.b64encode(f"ada:{PASSWORD}".encode()).decode()
TRACES = (PASSWORD, quote(PASSWORD, safe=""), CODED)


@pytest.fixture
def served(tmp_path: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The URL of a repository that wants a login, which the user's own Git has."""
    ca, certificate, key = git_server.certificates(tmp_path)
    shutil.copy(ca, workspace / "ca.crt")
    subprocess.run(["git", "init", "-q", "--bare", str(tmp_path / "served" / "project.git")], check=True)
    with git_server.serving(tmp_path / "served", certificate, key, login=f"ada:{PASSWORD}") as port:
        known = tmp_path / "known"
        known.write_text(f"https://ada:{quote(PASSWORD, safe='')}@127.0.0.1:{port}\n")
        (tmp_path / "gitconfig").write_text(f"[credential]\n\thelper = store --file={known}\n")
        monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "gitconfig"))
        monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
        yield f"https://127.0.0.1:{port}/project.git"


def policy_in(folder: Path, port: str, *, decision: str) -> Path:
    folder.mkdir()
    said = '        decision: ask\n        reason: "it talks to another machine"\n'
    for name, text in render("developer").items():
        text = text.replace("  ports: [443, 80]\n", f"  ports: [{port}]\n  allow_networks: [127.0.0.1/32]\n")
        text = text.replace('  ask: ["*"]\n', "")
        text = text.replace("    - api.github.com\n", "    - api.github.com\n    - 127.0.0.1\n")
        text = text.replace(said, said + "        environment: [GIT_SSL_CAINFO]\n")
        listing = "      ls-remote:\n        decision: "
        (folder / name).write_text(text.replace(f"{listing}ask", f"{listing}{decision}"))
    return folder / "toolgate.yaml"


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


@pytest.fixture(params=["ask"])
def decision(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def gate(
    workspace: Path, served: str, tmp_path: Path, person: Person, decision: str
) -> AsyncIterator[toolgate.Gate]:
    policy = policy_in(tmp_path / "policy", served.split(":")[2].partition("/")[0], decision=decision)
    (tmp_path / "records").mkdir()
    store = f"sqlite:///{tmp_path / 'records' / 'gate.db'}"
    async with toolgate.open(
        store, workspace=workspace, policy=str(policy), built_in_tools=True, approver=person
    ) as opened:
        yield opened


async def run(gate: toolgate.Gate, workspace: Path, command: str) -> dict[str, Any]:
    environment = {"GIT_SSL_CAINFO": str(workspace / "ca.crt")}
    data: dict[str, Any] = (
        await gate.call("execute_command", {"command": command, "environment": environment})
    ).unwrap()
    return data


async def test_a_yes_gives_the_login_and_leaves_no_trace_of_it(
    gate: toolgate.Gate, workspace: Path, served: str, person: Person, tmp_path: Path
) -> None:
    assert (await run(gate, workspace, f"git ls-remote {served}"))["exit_code"] == 0
    cloned = await run(gate, workspace, f"git clone {served} copy")
    assert cloned["exit_code"] == 0, cloned
    place = served.removesuffix("/project.git")
    shown = [one["commands"][0]["acts as"] for one in person.shown]
    assert shown == [f"you at {place}, with what your Git has for it, in this call alone"] * 2
    events = [str(event) for event in await gate.events()]
    await gate.aclose()
    files = [path for root in (tmp_path / "records", workspace) for path in root.rglob("*") if path.is_file()]
    kept = [path.read_bytes().decode(errors="replace") for path in files]
    assert any("ls-remote" in text for text in kept)
    for trace in TRACES:
        assert not any(trace in text for text in (*events, *kept, str(cloned), str(person.shown)))


@pytest.mark.parametrize("decision", ["allow"], indirect=True)
async def test_what_the_policy_allows_by_itself_has_no_login(
    gate: toolgate.Gate, workspace: Path, served: str, person: Person
) -> None:
    assert (await run(gate, workspace, f"git ls-remote {served}"))["exit_code"] != 0
    assert person.shown == []


async def test_a_line_has_no_login_that_its_other_commands_could_read(
    gate: toolgate.Gate, workspace: Path, served: str, person: Person
) -> None:
    data = await run(gate, workspace, f"git ls-remote {served} > out.txt")
    assert data["exit_code"] != 0
    assert "acts as" not in str(person.shown)


def test_where_a_login_could_go() -> None:
    parsed = replace(parse({"git": pin(Command(name="git"))}, ["git"]), subcommands=("fetch",))
    assert place_of(parsed, ("https://ada@a.example:8443/x",)) == "https://a.example:8443"
    for urls in [(), ("https://a.example/x",) * 2, ("http://a.example/x",), ("https://a:b@a.example/x",), ("origin",),
                 ("https://[x",), ("https:///x",), ("https://a.example:0/x",), ("https://ä.example/x",)]:  # fmt: skip
        assert place_of(parsed, urls) is None
    for other in (
        replace(parsed, unknown="why"),
        replace(parsed, subcommands=()),
        replace(parsed, subcommands=("log",)),
    ):
        assert place_of(other, ("https://a.example/x",)) is None


def test_another_host_or_name_gets_no_login(served: str) -> None:
    confined = Confined(argv=("/usr/bin/git",), environment={"GIT_CONFIG_COUNT": "0"})
    place = served.removesuffix("/project.git")
    for url, where in [
        ("https://a.example/x", "https://a.example"),
        (served.replace("https://", "https://bob@"), place),
        (served + "%0a", place + "\n"),
    ]:
        assert given_to(confined, "/usr/bin/git", url, where) is confined
    with pytest.raises(ToolExecutionError, match="could not be asked for credentials"):
        given_to(confined, "/usr/bin/no-such-git", served, place)
    found = given_to(confined, "/usr/bin/git", served, place)
    assert found.secret is not None
    for trace in TRACES:
        assert trace not in repr(found)
