"""Commands that run commands, under the developer's profile and in the sandbox."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.sandboxes import needs_bubblewrap, needs_sandbox

import toolgate
from toolgate.policy.profiles import render

pytestmark = needs_sandbox


@pytest.fixture
def asked() -> list[Any]:
    return []


@pytest.fixture
async def gate(workspace: Path, tmp_path: Path, asked: list[Any]) -> AsyncIterator[toolgate.Gate]:
    for name, text in render("developer").items():
        (tmp_path / name).write_text(text)

    def refuse(approval: toolgate.Approval) -> bool:
        asked.append(approval.preview)
        return False

    async with toolgate.open(
        "memory://", workspace=workspace, policy=tmp_path / "toolgate.yaml", built_in_tools=True, approver=refuse
    ) as opened:
        yield opened


async def line(gate: toolgate.Gate, text: str) -> toolgate.Result:
    return await gate.call("execute_command", {"command": text})


@pytest.mark.parametrize(
    ("text", "stdout"),
    [
        ("env cat notes.txt", "one\ntwo\nthree\n"),
        ("time cat notes.txt | wc -l", "3\n"),
        ("timeout 20 cat notes.txt", "one\ntwo\nthree\n"),
        ("nice -n 5 timeout 20s head -n 1 notes.txt", "one\n"),
        ("echo notes.txt | xargs cat", "one\ntwo\nthree\n"),
        ("find src -name main.py | xargs grep -l import", "src/main.py\n"),
        ("find src -name main.py -print0 | xargs -0 -n 1 wc -l", "3 src/main.py\n"),
        ("echo notes.txt | xargs -I{} head -n 1 {}", "one\n"),
        ("printf 'notes.txt\\nsrc/main.py\\n' | xargs -d '\\n' ls", "notes.txt\nsrc/main.py\n"),
    ],
)
async def test_what_is_known_inside_runs_unasked(gate: toolgate.Gate, asked: list[Any], text: str, stdout: str) -> None:
    data = (await line(gate, text)).unwrap()
    assert (data["stdout"], data["exit_code"]) == (stdout, 0)
    assert asked == []


async def test_a_program_of_the_same_name_in_the_workspace_is_not_run(gate: toolgate.Gate, workspace: Path) -> None:
    for name in ("cat", "ls"):
        (workspace / name).write_text("#!/bin/sh\necho planted\n")
        (workspace / name).chmod(0o755)
    for text in (
        "timeout 20 cat notes.txt",
        "env cat notes.txt",
        "echo notes.txt | xargs cat",
        "nice env cat notes.txt",
    ):
        assert (await line(gate, text)).unwrap()["stdout"] == "one\ntwo\nthree\n"


@pytest.mark.parametrize(
    "text",
    [
        "env cp notes.txt x",
        "timeout 20 rm notes.txt",
        "nice timeout 20 cp notes.txt x",
        "echo notes.txt | xargs rm",
        "echo notes.txt | xargs -I{} cp {} x",
        "echo x | xargs -I cat cat notes.txt",
        "echo -o x notes.txt | xargs sort",
        "echo . -delete | xargs find",
        "echo id | xargs sh -c",
        "env FOO=1 cat notes.txt",
        "timeout 20 git log",
        "timeout 20 python3 -c x",
        "time ! cat notes.txt",
    ],
)
async def test_what_is_not_known_inside_is_a_question(
    gate: toolgate.Gate, asked: list[Any], workspace: Path, text: str
) -> None:
    before = sorted(os.listdir(workspace))
    assert not (await line(gate, text)).success
    assert len(asked) == 1
    assert sorted(os.listdir(workspace)) == before


@pytest.mark.parametrize(
    "text",
    [
        "env LD_PRELOAD=./x.so cat notes.txt",
        "time env PATH=. cat notes.txt",
        "env GIT_SSH_COMMAND=id git fetch",
        "timeout 20 git config --unset user.name",
        "env git config --unset user.name",
        "timeout 20 cat .env",
        "env cat ../x",
        "echo x | xargs cat .env",
        "echo x | xargs -I / cat notes.txt",
        "timeout 20 no-such-program .env",
        "time no-such-program",
    ],
)
async def test_what_is_denied_inside_is_no_question(gate: toolgate.Gate, asked: list[Any], text: str) -> None:
    result = await line(gate, text)
    assert (result.status, asked) == ("DENIED", [])


@needs_bubblewrap
async def test_names_that_come_through_a_pipe_open_nothing(gate: toolgate.Gate, workspace: Path) -> None:
    outside = f"{workspace}-outside"
    for name in (".env", "./.env", f"{workspace}/.env", outside, "src/../.env"):
        data = (await line(gate, f"echo {name} | xargs cat")).unwrap()
        assert "canary" not in data["stdout"] + data["stderr"]
    data = (await line(gate, f"echo .env {outside} | xargs grep -r canary .")).unwrap()
    assert "canary-" not in data["stdout"]
