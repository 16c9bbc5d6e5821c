"""`execute_command` with patterns and with `/tmp`: what runs is what was judged, and `/tmp` is the call's own."""

from __future__ import annotations

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
async def gate(workspace: Path, asked: list[Any], tmp_path: Path) -> AsyncIterator[toolgate.Gate]:
    for name, text in render("developer").items():
        (tmp_path / name).write_text(text)

    def person(approval: toolgate.Approval) -> bool:
        asked.append(approval.preview)
        if len(asked) == 1 and (workspace / "late").exists():
            (workspace / "late").rename(workspace / "late.txt")
        return True

    async with toolgate.open(
        "memory://", workspace=workspace, policy=tmp_path / "toolgate.yaml", built_in_tools=True, approver=person
    ) as opened:
        yield opened


async def run(gate: toolgate.Gate, line: str) -> dict[str, Any]:
    found: dict[str, Any] = (await gate.call("execute_command", {"command": line})).unwrap()
    return found


async def test_a_pattern_runs_unasked_as_the_files_it_stands_for(gate: toolgate.Gate, asked: list[Any]) -> None:
    assert (await run(gate, "wc -l *.txt src/*.py"))["stdout"].split()[1::2] == ["notes.txt", "src/main.py", "total"]
    assert "cannot access '*.nope'" in (await run(gate, "ls *.nope"))["stderr"]
    assert asked == []


async def test_a_person_sees_the_expansion_and_a_yes_rests_on_it(
    gate: toolgate.Gate, asked: list[Any], workspace: Path
) -> None:
    (workspace / "late").write_text("")
    done = await run(gate, "rm *.txt")
    assert done["exit_code"] == 0
    first, second = asked  # a file came while the first was being answered
    assert first["commands"][0]["argv"] == ["rm", "notes.txt"]
    assert second["commands"][0]["argv"] == ["rm", "late.txt", "notes.txt"]
    assert list(second["patterns"].values()) == ["late.txt notes.txt"]
    assert not (workspace / "late.txt").exists()


async def test_a_secret_that_a_pattern_names_is_refused_by_its_name(gate: toolgate.Gate, asked: list[Any]) -> None:
    result = await gate.call("execute_command", {"command": "cat .e*"})
    assert result.error is not None
    assert ".env" in result.error
    assert asked == []


@needs_bubblewrap
async def test_tmp_lasts_for_the_whole_line_and_no_longer(gate: toolgate.Gate, asked: list[Any]) -> None:
    done = await run(gate, "cat notes.txt > /tmp/out.txt 2>&1; tail -1 /tmp/out.txt")
    assert done["stdout"] == "three\n"
    assert "gone" in done["note"]
    assert (await run(gate, "ls /tmp/out.txt"))["exit_code"] != 0
    assert asked == []


@needs_bubblewrap
async def test_what_one_command_leaves_in_tmp_is_no_other_ones_home(
    gate: toolgate.Gate, asked: list[Any], workspace: Path
) -> None:
    (workspace / "plant.py").write_text(
        "import os; open('/tmp/.curlrc','w').write('x'); open(os.environ['HOME'] + '/.x','w').write('x'); print('ok')"
    )
    (workspace / "see.py").write_text("import os; print(os.listdir(os.environ['HOME']))")
    assert (await run(gate, "python3 plant.py > /tmp/a; python3 see.py"))["stdout"] == "[]\n"
    assert asked == []


@needs_bubblewrap
async def test_a_link_in_tmp_leads_no_output_of_git_into_its_repository(
    gate: toolgate.Gate, asked: list[Any], workspace: Path
) -> None:
    await run(gate, "git init")
    asked.clear()
    (workspace / "plant.py").write_text("import os; os.symlink(os.getcwd() + '/.git/commondir', '/tmp/x')")
    await run(gate, "python3 plant.py && git add -v notes.txt > /tmp/x")
    assert not (workspace / ".git" / "commondir").exists()
    assert (await run(gate, "git status > /tmp/x && grep -c notes.txt /tmp/x"))["stdout"] == "1\n"
    assert asked == []


async def test_a_program_from_tmp_is_asked_about(gate: toolgate.Gate, asked: list[Any]) -> None:
    await run(gate, "python3 /tmp/x.py")
    assert len(asked) == 1
