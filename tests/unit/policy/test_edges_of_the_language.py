"""Corners that no ordinary file reaches: keys of other packages, what is shown, what stands in."""

from __future__ import annotations

import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from tests.unit.kernel.samples import a_call, a_tool
from tests.unit.policy.asking import policy, problems, word

from toolgate.kernel.context import Mode
from toolgate.kernel.ruling import look, show_facts
from toolgate.policy import rules
from toolgate.policy.examples import stand_in
from toolgate.policy.rules import decision


def test_a_package_of_its_own_brings_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("their_rule")
    module.__doc__ = "Their own word."
    module.SPEC = decision.SPEC  # type: ignore[attr-defined]  # what a rule's file offers
    module.build = decision.build  # type: ignore[attr-defined]  # likewise
    monkeypatch.setitem(sys.modules, "their_rule", module)
    point = EntryPoint("theirs", "their_rule", rules.GROUP)
    monkeypatch.setattr(rules, "entry_points", lambda group: [point] if group == rules.GROUP else [])
    rules.keys.cache_clear()
    try:
        assert word("tools: {act: {theirs: deny}}") == "deny"
    finally:
        rules.keys.cache_clear()
        monkeypatch.undo()
    assert "theirs" not in dict(rules.keys())


def test_a_stand_in_is_never_run() -> None:
    handler = stand_in("act").handler
    assert handler is not None
    with pytest.raises(AssertionError):
        handler(None)


def test_an_example_holds_where_its_program_is_not_installed() -> None:
    policy("commands: {no-such-program: {flags: {-v: }, examples: {match: [no-such-program -v]}}}")


def test_the_same_problem_is_told_once() -> None:
    found = problems("tools: {act: {arguments: [{field: x, then: deny, in: [[1]]}]}}")
    assert len(found) == len(set(found)) > 0


def shown(text: str, arguments: dict[str, Any], workspace: Path) -> dict[str, Any]:
    tool = a_tool("act")
    stance = policy(text, workspace).stance(tool)
    call = a_call()
    facts = look(call, tool, stance, arguments, mode=Mode.NORMAL, now=call.created_at)
    return show_facts(stance, facts, lambda text: text.replace("s3cret", "***"))


def test_what_was_found_is_shown_with_its_texts_masked(tmp_path: Path) -> None:
    text = """
        tools: {act: {commands: {}, hosts: {}, path_arguments: [where]}}
        commands: {ls: {executable: /bin/ls, positionals: [{name: file, value: path}]}}
    """
    found = shown(text, {"command": ["ls", "s3cret"], "url": "https://s3cret.org/", "where": "s3cret"}, tmp_path)
    assert "s3cret" not in str(found)
    assert found["commands"]["argv"] == ["/bin/ls", "***"]
    assert found["hosts"] == [{"argument": "url", "host": "***.org", "port": 443}]
    assert found["paths"][0]["path"] == str(tmp_path / "***")
    refused = shown(text, {"command": ["s3cret"], "url": "s3cret", "where": "s3cret\0"}, tmp_path)
    assert "s3cret" not in str(refused)
    assert {"refused"} <= refused["commands"].keys() & refused["hosts"][0].keys() & refused["paths"][0].keys()


def test_both_environments_of_a_command_count(tmp_path: Path) -> None:
    text = "tools: {act: {commands: {}}}\ncommands: {ls: {executable: /bin/ls, environment: [A]}}"
    assert word(text, {"command": ["ls"], "env": {"A": "1"}, "environment": {"A": "2"}}, workspace=tmp_path) == "allow"
    assert word(text, {"command": ["ls"], "env": {"A": "1"}, "environment": {"B": "2"}}, workspace=tmp_path) == "deny"
