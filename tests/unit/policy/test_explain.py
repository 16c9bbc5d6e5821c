"""An explanation says what decided, what every rule said and where it stands, and who would be asked."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.kernel.samples import a_tool
from tests.unit.policy.asking import policy, problems

from toolgate.errors import UsageError
from toolgate.policy.explain import explain, question_of

TEXT = """
    default: deny
    tools:
      pay:
        decision: allow
        arguments: [{field: amount, above: 100, then: ask}]
        approval: {approvers: [lead], quorum: 2, separation: true}
        rates: [{limit: 5, window: 1m}]
      open: {approval: {level: quick}}
      sure: {confidence: {}}
"""


def told(data: Any, tools: Any = ()) -> dict[str, Any]:
    known = {tool.name: tool for tool in tools}
    return explain(policy(TEXT), question_of(data, known)).as_json()


def test_what_is_allowed() -> None:
    found = told({"tool": "pay", "arguments": {"amount": 5}})
    assert (found["verdict"], found["level"], found["approval"]) == ("allow", "auto", None)
    assert found["rules"] == [
        {"rule": "decision", "says": "allow", "reason": "the policy allows it", "where": "p.yaml:5 tools.pay"}
    ]
    assert found["silent"] == ["modes", "arguments"]
    assert found["rates"] == [{"section": "tools.pay", "limit": 5, "window_s": 60.0, "per": "project"}]


def test_what_asks_says_whom() -> None:
    found = told({"tool": "pay", "arguments": {"amount": 500}, "roles": ["clerk"], "user": "ann"})
    assert found["verdict"] == "ask"
    assert found["decided_by"] == "the strictest word is ask"
    assert found["approval"]["who"] == "2 people with role lead, in the session, not the person it acts for"
    assert told({"tool": "open"})["approval"]["who"] == "1 person other than the requester, in the session"
    assert told({"tool": "sure", "mode": "NORMAL"})["verdict"] == "deny"


def test_what_is_denied_says_by_what() -> None:
    found = told({"tool": "other"})
    assert (found["verdict"], found["level"]) == ("deny", None)
    assert found["decided_by"] == "default: no rule of the policy allows it"
    assert told({"tool": "pay", "mode": "LOCKDOWN"})["decided_by"] == "modes: Tool not allowed in LOCKDOWN mode"
    assert told({"tool": "pay", "mode": "LOCKDOWN"})["rules"][0]["where"] == "the tool's definition"


def test_a_tool_that_is_known_is_asked_about_as_it_is() -> None:
    tool = a_tool("pay", requires_approval=True, risk_level="high", approval_timeout_seconds=7)
    found = told({"tool": "pay", "arguments": {"amount": 1}}, [tool])
    assert (found["verdict"], found["level"], found["approval"]["timeout_s"]) == ("ask", "full", 7)
    assert found["approval"]["who"].startswith("2 people")


def test_silence_is_told() -> None:
    found = explain(policy(""), question_of({"tool": "x", "risk": "high", "effects": "read", "category": "c"}, {}))
    assert found.decided_by() == "no rule speaks; the default is by_risk"


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (5, "A call is an object"),
        ({"tool": 5}, "A call is an object"),
        ({"tool": "a", "nope": 1}, "no key `nope`"),
        ({"tool": "a", "arguments": []}, "must be an object"),
        ({"tool": "a", "mode": "PANIC"}, "must be one of"),
        ({"tool": "a", "roles": 5}, "`roles` must be a list"),
        ({"tool": "a", "roles": "admin"}, "`roles` must be a list"),
        ({"tool": "a", "roles": [["admin"]]}, "`roles` must be a list"),
        ({"tool": "a", "principal": 5}, "`principal` must be a string"),
    ],
)
def test_a_question_that_is_none(data: Any, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        question_of(data, {})


def test_a_condition_says_who_is_asked_and_examples_can_expect_it() -> None:
    text = """
        tools:
          pay:
            arguments: [{field: amount, above: 9, then: ask, approval: {level: full, quorum: 2, including: [lead]}}]
            examples: [{arguments: {amount: 10}, expect: ask, level: full, quorum: 2}]
    """
    asked = {"tool": "pay", "arguments": {"amount": 10}, "expect": "ask"}
    found = explain(policy(text), question_of(asked, {}))
    approval = found.as_json()["approval"]
    assert approval["who"] == (
        "2 people other than the requester, at least 1 of them with role lead, in the review queue"
    )
    assert approval["including"] == [["lead"]]
    assert found.unexpected() is None
    one = explain(policy(text), question_of({**asked, "quorum": 1}, {})).unexpected()
    assert one is not None
    assert one.startswith("ask at level full, 2 people")
    assert "but the policy says ask at level full" in problems(text.replace("quorum: 2}]", "quorum: 3}]"))[0]
    assert "go with `expect: ask`" in problems(text.replace("expect: ask, level", "expect: deny, level"))[0]
