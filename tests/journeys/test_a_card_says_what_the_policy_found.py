"""Whoever is asked sees which command, program and paths the policy judged, wherever the call will run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.journeys.scene import Open, park

from toolgate import ToolDefinition, to_html, to_markdown, to_plain, to_terminal
from toolgate.kernel.approval import Approval, shown_digest_of
from toolgate.kernel.artifact import FOUND, Block, artifact_of
from toolgate.kernel.record import evolve
from toolgate.policy.loader import load_policy

POLICY = """\
version: 1
tools:
  run: {commands: {unknown: ask}, paths: {allowed: ["${WORKSPACE}/**"]}}
commands:
  cat: {positionals: [{name: path, value: path, at_most: any}]}
"""
SCHEMA = {
    "type": "object",
    "properties": {"command": {"type": "string", "format": "shell-line"}},
    "required": ["command"],
}
RUN = ToolDefinition("run", SCHEMA, lambda given: given.payload)
PASSWORD = "correct-horse-7"


@pytest.fixture
def options(tmp_path: Path) -> dict[str, Any]:
    (tmp_path / "toolgate.yaml").write_text(POLICY)
    return {"tools": [RUN], "policy": load_policy(tmp_path, workspace=tmp_path)}


def found(approval: Approval) -> Block:
    return next(block for block in artifact_of(approval).blocks() if block.title == FOUND)


async def test_every_command_of_a_line_is_shown_with_its_program_and_paths(
    open_gate: Open, options: dict[str, Any], tmp_path: Path
) -> None:
    async with open_gate(**options) as gate:
        approval = await park(gate, "run", {"command": "cat notes.txt | nl --fast"})
    assert approval.preview is None, "the tool prepares nothing"
    lines = found(approval).text.split("\n")
    assert [line.partition(":")[0] for line in lines[:3]] == ["commands", "commands with", "commands paths"]
    first, second, path = (json.loads(line.partition(": ")[2]) for line in lines[:3])
    assert (first["argv"][0].endswith("/cat"), first["word"]) == (True, "allow")
    assert second["argv"][-1] == "--fast"
    assert "'nl'" in second["unknown"]
    assert path["path"] == str(tmp_path / "notes.txt")
    for draw in (to_plain, to_terminal, to_markdown, to_html):
        assert FOUND in draw(artifact_of(approval))


async def test_nothing_in_it_can_hide_or_turn_around(open_gate: Open, options: dict[str, Any]) -> None:
    async with open_gate(**options) as gate:
        approval = await park(gate, "run", {"command": "nl 'a\u202eb' \"$'\x1b[2J'\""})
    block = found(approval)
    assert "\\u202e" in block.text
    assert "\\u001b" in block.text
    assert not set(block.text) & set("\u202e\x1b")
    assert any("bidirectional" in warning for warning in block.warnings)


@pytest.mark.parametrize("words", [f"nl --password {PASSWORD}", f"nl --password={PASSWORD}"])
async def test_a_secret_that_only_its_neighbour_gives_away_is_masked(
    open_gate: Open, options: dict[str, Any], words: str
) -> None:
    async with open_gate(**options) as gate:
        approval = await park(gate, "run", {"command": words})
        call = await gate.calls.get(approval.call_id)
    assert PASSWORD not in str(approval.arguments)
    assert approval.facts["commands"]["argv"][-1].endswith("***")
    assert PASSWORD not in found(approval).text
    assert PASSWORD not in str(call.facts)


async def test_an_edit_shows_what_was_found_in_the_new_arguments(open_gate: Open, options: dict[str, Any]) -> None:
    async with open_gate(**options) as gate:
        first = await park(gate, "run", {"command": "nl one"})
        await gate.approvals.edit(first.id, {"command": "nl two"}, by="ann")
        call = await gate.calls.get(first.call_id)
        assert call.approval_id is not None
        second = await gate.approvals.get(call.approval_id)
    assert second.id != first.id
    assert second.facts["commands"]["argv"][-1] == "two"


async def test_a_reader_who_changes_it_changes_nothing_for_the_next(open_gate: Open, options: dict[str, Any]) -> None:
    async with open_gate(**options) as gate:
        approval = await park(gate, "run", {"command": "nl"})
        approval.facts["commands"].clear()
        assert (await gate.approvals.get(approval.id)).facts["commands"]


async def test_what_was_found_is_bound_to_the_question(open_gate: Open, options: dict[str, Any]) -> None:
    async with open_gate(**options) as gate:
        approval = await park(gate, "run", {"command": "nl"})
    other = evolve(approval, facts={"commands": {"argv": ["/usr/bin/true"], "word": "allow"}})
    assert shown_digest_of(other) != shown_digest_of(approval)
    assert shown_digest_of(evolve(approval, facts=None)) != shown_digest_of(approval)
