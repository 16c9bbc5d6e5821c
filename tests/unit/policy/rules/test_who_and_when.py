"""Rules about who calls, when, and what is simply said: modes, behaviors, roles, decision, pinned."""

from __future__ import annotations

import pytest
from tests.unit.kernel.samples import a_tool
from tests.unit.policy.asking import ask, problems, word


@pytest.mark.parametrize(
    ("entry", "mode", "expected"),
    [
        ("{allowed: [NORMAL], ask: [ALERT], forbidden: [LOCKDOWN]}", "NORMAL", "allow"),
        ("{allowed: [NORMAL], ask: [ALERT], forbidden: [LOCKDOWN]}", "ALERT", "ask"),
        ("{allowed: [NORMAL], ask: [ALERT], forbidden: [LOCKDOWN]}", "LOCKDOWN", "deny"),
        ("{allowed: [NORMAL], ask: [ALERT], forbidden: [LOCKDOWN]}", "DEGRADED", "deny"),
        ("{ask: [LOCKDOWN]}", "LOCKDOWN", "ask"),
        ("{ask: [ALERT]}", "NORMAL", "allow"),
        ("{ask: [ALERT]}", "LOCKDOWN", "deny"),
        ("{forbidden: [NORMAL]}", "NORMAL", "deny"),
        ("{forbidden: [NORMAL]}", "ALERT", "allow"),
        ("{allowed: []}", "NORMAL", "deny"),
    ],
)
def test_modes(entry: str, mode: str, expected: str) -> None:
    assert word(f"tools: {{act: {{modes: {entry}}}}}", mode=mode) == expected


def test_the_policys_modes_take_the_place_of_the_tools() -> None:
    tool = a_tool("act", allowed_modes=("NORMAL",))
    text = "tools: {act: {allowed_in_modes: [ALERT], requires_approval_in_modes: [RECOVERY]}}"
    assert word(text, tool=tool, mode="ALERT") == "allow"
    assert word(text, tool=tool, mode="RECOVERY") == "ask"
    denied = ask(text, tool=tool, mode="NORMAL")
    assert denied.denial is not None
    assert denied.denial.reason == "Tool not allowed in NORMAL mode"


def test_a_mode_listed_as_allowed_is_a_permission_even_for_a_risky_tool() -> None:
    tool = a_tool("act", risk_level="high")
    assert word("tools: {act: {allowed_in_modes: [NORMAL]}}", tool=tool) == "allow"
    assert word("tools: {act: {forbidden_in_modes: [LOCKDOWN]}}", tool=tool) == "ask"


@pytest.mark.parametrize("key", ["behaviors", "roles"])
@pytest.mark.parametrize(
    ("entry", "has", "expected"),
    [
        ("{allowed: [a]}", "a", "allow"),
        ("{allowed: [a]}", "b", "deny"),
        ("{allowed: [a]}", None, "deny"),
        ("{ask: [a]}", "a", "ask"),
        ("{ask: [a]}", "b", "allow"),
        ("{forbidden: [a]}", "a", "deny"),
        ("{forbidden: [a]}", None, "allow"),
    ],
)
def test_behaviors_and_roles(key: str, entry: str, has: str | None, expected: str) -> None:
    text = f"tools: {{act: {{{key}: {entry}}}}}"
    if key == "behaviors":
        assert word(text, behavior=has) == expected
    else:
        assert word(text, roles=frozenset() if has is None else frozenset({has, "x"})) == expected


@pytest.mark.parametrize("key", ["behaviors", "roles"])
def test_a_name_is_not_both_forbidden_and_allowed(key: str) -> None:
    [problem] = problems(f"tools: {{act: {{{key}: {{allowed: [a], forbidden: [a]}}}}}}")
    assert "both forbidden and not" in problem


@pytest.mark.parametrize("said", ["allow", "ask", "deny"])
def test_a_decision_is_said_of_every_call(said: str) -> None:
    assert word(f"tools: {{act: {{decision: {said}}}}}", tool=a_tool("act", risk_level="medium")) == said


def test_a_decision_never_weakens_another_rule() -> None:
    text = "tools: {act: {decision: allow, roles: {allowed: [a]}}}"
    assert word(text) == "deny"
    assert word(text, roles=frozenset({"a"}), mode="LOCKDOWN") == "deny"


def test_patterns_and_categories_speak_of_many_tools() -> None:
    text = """
        tools:
          "mcp/*": {decision: ask}
          fetch: {category: network}
        categories:
          network: {decision: deny}
    """
    assert word(text, tool="mcp/anything") == "ask"
    assert word(text, tool="fetch") == "deny"
    assert word(text, tool=a_tool("search", category="network")) == "deny"
    assert word(text, tool=a_tool("search", category="disk")) == "allow"
    assert word(text, tool=a_tool("fetch", category="disk")) == "deny"  # the file says what it is


@pytest.mark.parametrize(
    ("pin", "expected"),
    [
        ("version: '1.2'", "allow"),
        ("version: '1.3'", "deny"),
        ("hash: HASH", "allow"),
        ("hash: '000000000000'", "deny"),
    ],
)
def test_a_pinned_definition_is_the_only_one_allowed(pin: str, expected: str) -> None:
    tool = a_tool("act", version="1.2")
    pinned = pin.replace("HASH", repr(tool.hash[:20]))
    assert word(f"tools: {{act: {{decision: allow, pinned: {{{pinned}}}}}}}", tool=tool) == expected


def test_a_pin_pins_something() -> None:
    assert "pin a `version`" in problems("tools: {act: {pinned: {}}}")[0]
    assert "match pattern" in problems("tools: {act: {pinned: {hash: xyz}}}")[0]
