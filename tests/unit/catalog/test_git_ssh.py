"""Git over ssh, with a real server: the agent signs after a person's yes, for that call and place, and nothing more."""

from __future__ import annotations

import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.sandboxes import needs_bubblewrap
from tests.unit.catalog import ssh_server

import toolgate
from toolgate.catalog.ssh import Place, is_ssh, place_of
from toolgate.policy.profiles import render

pytestmark = [needs_bubblewrap, pytest.mark.skipif(ssh_server.SSHD is None, reason="sshd is not installed")]


def git(folder: Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, check=True).stdout


def make_key(path: Path) -> str:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)], check=True)
    return " ".join(path.with_suffix(".pub").read_text().split()[:2])


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ssh_server.Server]:
    with ssh_server.serving(tmp_path_factory.mktemp("sshd")) as served:
        yield served


@pytest.fixture
def url(server: ssh_server.Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of an empty repository at a host that this user knows."""
    (tmp_path / "home" / ".ssh").mkdir(parents=True)
    (tmp_path / "home" / ".ssh" / "known_hosts").write_text(server.known)
    (tmp_path / "home" / ".ssh" / "config").write_text("Host *\n  ProxyCommand touch /tmp/never\n")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("SSH_AUTH_SOCK", server.agent)
    (tmp_path / "gitconfig").write_text("[user]\n\tname = Ada\n\temail = ada@example.com\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "gitconfig"))
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", str(tmp_path / "project.git")], check=True)
    return f"ssh://{server.user}@127.0.0.1:{server.port}{tmp_path}/project.git"


@pytest.fixture
def shown() -> list[Any]:
    return []


@pytest.fixture(params=["ask"])
def fetching(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def gate(
    workspace: Path, url: str, tmp_path: Path, shown: list[Any], fetching: str
) -> AsyncIterator[toolgate.Gate]:
    policy = tmp_path / "policy"
    policy.mkdir()
    for name, text in render("developer").items():
        text = text.replace("  ports: [443, 80]\n", "  ports: [443, 80]\n  allow_networks: [127.0.0.1/32]\n")
        listed = "      fetch:\n        decision: "
        (policy / name).write_text(text.replace(f"{listed}ask", f"{listed}{fetching}"))
    git(workspace, "init", "-q", "-b", "main")
    git(workspace, "remote", "add", "origin", url)

    def person(approval: toolgate.Approval) -> bool:
        shown.append(approval.preview)
        return True

    async with toolgate.open(
        "memory://", workspace=workspace, policy=policy / "toolgate.yaml", built_in_tools=True, approver=person
    ) as opened:
        yield opened


async def run(gate: toolgate.Gate, line: str) -> toolgate.Result:
    return await gate.call("execute_command", {"command": line})


async def test_a_line_commits_and_pushes_with_one_question(
    gate: toolgate.Gate, tmp_path: Path, shown: list[Any], server: ssh_server.Server
) -> None:
    done = (await run(gate, "git add -A && git commit -m first && git push -u origin main 2>&1")).unwrap()
    assert done["exit_code"] == 0, done
    place = f"ssh://{server.user}@127.0.0.1:{server.port}"
    (card,) = shown
    assert card["commands"][2]["acts as"] == f"you at {place}, with your ssh agent, in this call alone"
    assert card["commands"][2]["connects to"][0].startswith("ssh://***@127.0.0.1")
    assert git(tmp_path / "project.git", "log", "--format=%s") == "first\n"
    assert (await run(gate, "git fetch")).unwrap()["exit_code"] == 0
    assert (await run(gate, "git ls-remote 2>/dev/null | head -1")).unwrap()["stdout"].endswith("HEAD\n")


async def test_a_host_that_nobody_accepted_is_refused(gate: toolgate.Gate, tmp_path: Path) -> None:
    (tmp_path / "home" / ".ssh" / "known_hosts").write_text("other.example ssh-ed25519 AAAA\n")
    assert "are not known to you" in str((await run(gate, "git fetch")).error)


async def test_another_key_than_the_accepted_one_ends_the_connection(
    gate: toolgate.Gate, tmp_path: Path, server: ssh_server.Server
) -> None:
    known = f"[127.0.0.1]:{server.port} {make_key(tmp_path / 'other')}\n"
    (tmp_path / "home" / ".ssh" / "known_hosts").write_text(known)
    done = (await run(gate, "git fetch")).unwrap()
    assert done["exit_code"] != 0
    assert "Host key verification failed" in done["stderr"]


async def test_without_an_agent_the_way_out_is_named(gate: toolgate.Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSH_AUTH_SOCK")
    assert "ssh-add -l" in str((await run(gate, "git fetch")).error)


async def test_nothing_before_it_in_the_line_may_lead_it_elsewhere(
    gate: toolgate.Gate, url: str, shown: list[Any]
) -> None:
    for line in (f"git remote set-url origin {url}x && git fetch", "git fetch > out.txt"):
        assert "Run it by itself" in str((await run(gate, line)).error)
    assert "acts as" not in str(shown)


def test_what_a_url_of_ssh_leads_to() -> None:
    assert place_of(["git@example.com:a/b.git"]) == Place(user="git", host="example.com", port=22)
    assert str(place_of(["ssh://ada@example.com:2222/a"])) == "ssh://ada@example.com:2222"
    assert str(place_of(["example.com:a.git"])) == "ssh://git@example.com"
    for url in ("ssh://-oProxyCommand=x/a", "-x:a", "git@-x:a", "ssh://a:b@example.com/x", "ssh://[x/a", "git@a b:c",
                "https://example.com/x", "/a/b", "ext::sh", "git+ssh://a@b/c"):  # fmt: skip
        assert place_of([url]) is None
    assert place_of(["git@a.example:x", "git@a.example:y"]) is None
    assert is_ssh("git+ssh://a@b/c")
    assert not is_ssh("https://a/b:c")


@pytest.mark.parametrize("fetching", ["allow"], indirect=True)
async def test_what_the_policy_allows_by_itself_has_no_agent(gate: toolgate.Gate, shown: list[Any]) -> None:
    assert "only after a person's yes" in str((await run(gate, "git fetch")).error)
    assert shown == []
