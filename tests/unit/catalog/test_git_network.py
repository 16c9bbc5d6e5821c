"""Git over https through the proxy: clone, fetch, pull, push and ls-remote, with the URL that a person is shown."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.sandboxes import needs_bubblewrap
from tests.unit.catalog import git_server

import toolgate
from toolgate.catalog import remotes
from toolgate.guards.argv import parse
from toolgate.guards.grammar import Command, pin
from toolgate.guards.repository import Repository
from toolgate.policy.profiles import render

pytestmark = needs_bubblewrap


class Person:
    """Says yes to every question, and keeps what was shown."""

    def __init__(self) -> None:
        self.shown: list[Any] = []
        self.before: Callable[[], object] = list

    def __call__(self, approval: toolgate.Approval) -> bool:
        self.shown.append(approval.preview)
        if len(self.shown) == 1:
            self.before()
        return True


@pytest.fixture
def person() -> Person:
    return Person()


def host(folder: Path, *arguments: str) -> str:
    line = ["git", "-C", str(folder), "-c", "user.name=Ada", "-c", "user.email=ada@example.com", *arguments]
    return subprocess.run(line, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def served(tmp_path: Path, workspace: Path) -> Iterator[str]:
    """The URL of a repository with one commit; its CA's certificate lies in the workspace."""
    ca, certificate, key = git_server.certificates(tmp_path)
    shutil.copy(ca, workspace / "ca.crt")
    root, work = tmp_path / "served", tmp_path / "work"
    host(tmp_path, "init", "-q", "-b", "trunk", str(work))
    host(work, "commit", "-q", "--allow-empty", "-m", "first")
    root.mkdir()
    host(tmp_path, "clone", "-q", "--bare", str(work), str(root / "project.git"))
    with git_server.serving(root, certificate, key) as port:
        yield f"https://127.0.0.1:{port}/project.git"


@pytest.fixture
async def gate(workspace: Path, served: str, tmp_path: Path, person: Person) -> AsyncIterator[toolgate.Gate]:
    port = served.split(":")[2].partition("/")[0]
    folder = tmp_path / "policy"
    folder.mkdir()
    for name, text in render("developer").items():
        text = text.replace("  ports: [443, 80]\n", f"  ports: [{port}]\n  allow_networks: [127.0.0.1/32]\n")
        text = text.replace('  ask: ["*"]\n', "")
        text = text.replace("    - api.github.com\n", "    - api.github.com\n    - 127.0.0.1\n")
        said = '        reason: "it talks to another machine"\n'
        (folder / name).write_text(text.replace(said, f"{said}        environment: [GIT_SSL_CAINFO]\n"))
    async with toolgate.open(
        "memory://",
        workspace=workspace,
        policy=str(folder / "toolgate.yaml"),
        built_in_tools=True,
        approver=person,
    ) as opened:
        yield opened


async def run(gate: toolgate.Gate, workspace: Path, *args: str, cwd: str = ".") -> dict[str, Any]:
    environment = {"GIT_SSL_CAINFO": str(workspace / "ca.crt")}
    asked = {"command": "git", "args": list(args), "environment": environment, "cwd": cwd}
    data: dict[str, Any] = (await gate.call("execute_command", asked)).unwrap()
    return data


async def test_git_works_over_https_through_the_proxy(
    gate: toolgate.Gate, workspace: Path, served: str, person: Person, tmp_path: Path
) -> None:
    bare = tmp_path / "served" / "project.git"
    first = host(bare, "rev-parse", "trunk")
    listed = await run(gate, workspace, "ls-remote", served)
    assert listed["stdout"].split()[0] == first, listed
    assert [one["host"] for one in listed["network"]] == ["127.0.0.1"]

    cloned = await run(gate, workspace, "clone", "-q", served, "copy")
    assert cloned["exit_code"] == 0, cloned
    copy = workspace / "copy"
    assert host(copy, "-c", "safe.directory=*", "rev-parse", "HEAD") == first

    host(tmp_path / "work", "commit", "-q", "--allow-empty", "-m", "second")
    host(tmp_path / "work", "push", "-q", str(bare), "trunk")
    second = host(bare, "rev-parse", "trunk")
    for line in (["fetch", "-q"], ["pull", "-q", "--ff-only"]):
        done = await run(gate, workspace, *line, cwd="copy")
        assert done["exit_code"] == 0, done
    assert host(copy, "-c", "safe.directory=*", "rev-parse", "HEAD") == second

    pushed = await run(gate, workspace, "push", "-q", "origin", "trunk:mine", cwd="copy")
    assert pushed["exit_code"] == 0, pushed
    assert host(bare, "rev-parse", "mine") == second
    assert [shown["connects to"] for shown in person.shown] == [[served]] * 5


async def test_a_certificate_that_nobody_signed_is_refused(gate: toolgate.Gate, served: str) -> None:
    data = (await gate.call("execute_command", {"command": "git", "args": ["ls-remote", served]})).unwrap()
    assert data["exit_code"] != 0
    assert "certificate" in data["stderr"]


async def test_a_yes_holds_for_the_urls_that_were_shown(
    gate: toolgate.Gate, workspace: Path, served: str, person: Person
) -> None:
    host(workspace, "init", "-q", "-b", "trunk")
    host(workspace, "remote", "add", "origin", "https://ada:canary-secret@127.0.0.1:1/first.git")
    person.before = lambda: host(workspace, "remote", "set-url", "--push", "origin", served)
    host(workspace, "commit", "-q", "--allow-empty", "-m", "mine")
    assert (await run(gate, workspace, "push", "-q", "origin", "trunk:mine"))["exit_code"] == 0
    assert [one["connects to"] for one in person.shown] == [["https://***@127.0.0.1:1/first.git"], [served]]


SETTINGS = {
    "remote.origin.url": ["https://a.example/1", "https://a.example/2"],
    "remote.fork.url": ["https://b.example/1"],
    "remote.fork.pushurl": ["https://c.example/1", "https://c.example/2"],
    "remotes.both": ["origin fork"],
}
TRUNK = {"branch.trunk.remote": ["fork"]}


@pytest.mark.parametrize(
    ("line", "more", "expected"),
    [
        ("fetch", {}, ["https://a.example/1"]),
        ("fetch --depth 5 fork", {}, ["https://b.example/1"]),
        ("fetch", TRUNK, ["https://b.example/1"]),
        ("fetch --all", {}, ["https://a.example/1", "https://b.example/1"]),
        ("fetch both", {}, ["https://a.example/1", "https://b.example/1"]),
        ("push", {}, ["https://a.example/1", "https://a.example/2"]),
        ("push fork trunk", {}, ["https://c.example/1", "https://c.example/2"]),
        ("push", {"remote.pushdefault": ["fork"]}, ["https://c.example/1", "https://c.example/2"]),
        ("push", {"branch.trunk.pushremote": ["origin"], **TRUNK}, ["https://a.example/1", "https://a.example/2"]),
        ("pull elsewhere", {}, ["elsewhere"]),
        ("ls-remote https://d.example/x", {}, ["https://d.example/x"]),
        ("-C sub clone -b main https://d.example/x there", {}, ["https://d.example/x"]),
        ("log fetch", {}, []),
    ],
)
def test_where_a_command_connects(tmp_path: Path, line: str, more: dict[str, list[str]], expected: list[str]) -> None:
    (tmp_path / "HEAD").write_text("ref: refs/heads/trunk\n")
    repository = Repository(str(tmp_path), str(tmp_path), str(tmp_path))
    words = tuple(line.split())
    name = next(word for word in words if word in ("log", *remotes.CONNECTING))
    parsed = replace(parse({"git": pin(Command(name="git"))}, ["git"]), argv=("git", *words), subcommands=(name,))
    assert remotes.urls_of(parsed, SETTINGS | more, repository) == tuple(expected)
    assert remotes.urls_of(replace(parsed, subcommands=()), SETTINGS | more, repository) == tuple(
        expected if name != "log" else ["https://a.example/1"]
    )


def test_a_remote_that_is_not_settled_shows_them_all() -> None:
    settings = {"remote.a.url": ["https://a.example"], "remote.b.pushurl": ["https://b.example"]}
    parsed = replace(parse({"git": pin(Command(name="git"))}, ["git"]), argv=("git", "push"), subcommands=("push",))
    assert remotes.urls_of(parsed, settings, None) == ("https://a.example", "https://b.example")


def test_a_url_is_shown_without_what_may_be_secret() -> None:
    assert remotes.shown("https://ada:secret@a.example:8443/x?y#z") == "https://***@a.example:8443/x?y#z"
    assert remotes.shown("https://[secret") == "a URL that cannot be read"
