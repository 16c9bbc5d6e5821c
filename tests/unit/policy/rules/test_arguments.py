"""Conditions on arguments hold as written, and cannot be dodged by types or omissions."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.policy.asking import ask, problems, word

from toolgate.kernel.terms import ApprovalLevel
from toolgate.kernel.tool import ToolDefinition


def said(condition: str, arguments: dict[str, Any]) -> str:
    return word(f"default: ask\ntools: {{act: {{arguments: [{{field: x, {condition}}}]}}}}", arguments)


@pytest.mark.parametrize(
    ("test", "yes", "no"),
    [
        ("equals: 5", 5, 6),
        ("equals: 5", 5.0, True),
        ("equals: true", True, 1),
        ("equals: a", "a", "A"),
        ("differs: a", "b", "a"),
        ("above: 5", 5.1, 5),
        ("at_least: 5", 5, 4),
        ("below: 5", 4, 5),
        ("at_most: 5", 5, 6),
        ("in: [a, 1]", 1, True),
        ("not_in: [a, 1]", "b", "a"),
        ("matches: 'a+'", "aaa", "aab"),
        ("matches: 'a+'", "a", "a\n"),
        ("not_matches: 'a+'", "ab", "a"),
        ("longer_than: 3", "äö", "abc"),
        ("longer_than: 1", [1, 2], {"a": 1}),
        ("shorter_than: 3", "ab", "äö"),
        ("above: 1, below: 3", 2, 3),
    ],
)
def test_each_test(test: str, yes: Any, no: Any) -> None:
    assert said(f"{test}, then: deny", {"x": yes}) == "deny"
    assert said(f"{test}, then: deny", {"x": no}) == "ask"
    assert said(f"{test}, then: allow", {"x": yes}) == "allow"
    assert said(f"{test}, then: allow", {"x": no}) == "ask"


@pytest.mark.parametrize("value", ["1000", None, [1000], True])
def test_what_cannot_be_compared_is_denied_and_never_allowed(value: Any) -> None:
    assert said("above: 10, then: ask", {"x": value}) == "deny"
    assert said("above: 10, then: allow", {"x": value}) == "ask"


@pytest.mark.parametrize("test", ["matches: a", "longer_than: 1"])
def test_a_number_has_no_text(test: str) -> None:
    assert said(f"{test}, then: ask", {"x": 5}) == "deny"


def test_leaving_an_argument_out_helps_nobody() -> None:
    assert said("not_in: [dev], then: deny", {}) == "deny"
    assert said("differs: dev, then: deny", {}) == "deny"
    assert said("above: 5, then: deny", {}) == "ask"
    assert said("not_in: [dev], then: allow", {}) == "ask"


@pytest.mark.parametrize(
    ("field", "arguments", "expected"),
    [
        ("a.b", {"a": {"b": 10}}, "deny"),
        ("a.b", {"a": 3}, "ask"),
        ("a.b", {"a": {"c": 10}}, "ask"),
        ("a.*.b", {"a": [{"b": 1}, {"b": 10}]}, "deny"),
        ("a.*.b", {"a": [{"b": 1}]}, "ask"),
        ("a.1", {"a": [1, 10]}, "deny"),
        ("a.2", {"a": [1, 10]}, "ask"),
        ("a.x", {"a": [10]}, "ask"),
    ],
)
def test_fields_go_deeper(field: str, arguments: dict[str, Any], expected: str) -> None:
    text = f"default: ask\ntools: {{act: {{arguments: [{{field: '{field}', above: 5, then: deny}}]}}}}"
    assert word(text, arguments) == expected


def test_allow_needs_every_value_to_pass() -> None:
    text = "default: ask\ntools: {act: {arguments: [{field: 'a.*', below: 5, then: allow}]}}"
    assert word(text, {"a": [1, 2]}) == "allow"
    assert word(text, {"a": [1, 9]}) == "ask"
    assert word(text, {"a": []}) == "ask"


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        ("then: deny", "needs a test"),
        ("matches: '(', then: deny", "cannot be compiled"),
        ("above: 3, then: deny, examples: {match: [{x: 2}]}", "does not match"),
        ("above: 3, then: deny, examples: {no_match: [{x: 4}]}", "matches"),
        ("above: 3, then: deny, examples: {no_match: [{x: a}]}", "cannot be compared"),
    ],
)
def test_a_condition_that_is_wrong_is_refused(condition: str, words: str) -> None:
    [problem] = problems(f"tools: {{act: {{arguments: [{{field: x, {condition}}}]}}}}")
    assert words in problem


def test_a_reason_of_ones_own_is_told() -> None:
    text = (
        "tools: {act: {arguments: [{field: x, above: 3, then: deny, reason: too dear, examples: {match: [{x: 4}]}}]}}"
    )
    from tests.unit.policy.asking import ask

    denied = ask(text, {"x": 4}).denial
    assert denied is not None
    assert denied.reason == "too dear"


def test_what_is_left_out_counts_as_its_default() -> None:
    tool = ToolDefinition(
        "act",
        {"type": "object", "properties": {"x": {"type": "number", "default": 50}, "y": True}},
        lambda _given: None,
    )
    for test, expected in (("above: 10", "deny"), ("above: 60", "allow")):
        text = f"tools: {{act: {{decision: allow, arguments: [{{field: x, {test}, then: deny}}]}}}}"
        assert word(text, {}, tool=tool) == expected
    assert word("tools: {act: {arguments: [{field: y, above: 1, then: deny}]}}", {}, tool=tool) == "allow"


@pytest.mark.parametrize(
    "items", [[{"price": 1}, {}], [{"price": 1}, 5], [], 7, {"price": 900}, [{"price": {"of": 900}}, {"price": 1}]]
)
def test_a_missing_item_cannot_hide_behind_the_others(items: Any) -> None:
    some = "default: ask\ntools: {act: {arguments: [{field: items.*.price, "
    assert word(some + "at_most: 5, then: allow}]}}", {"items": items}) == "ask"
    found = ask(some + "above: 5, then: ask, approval: {quorum: 2}}]}}", {"items": items})
    assert found.assessment is None or found.assessment.terms.quorum == 2


def test_a_number_beyond_a_list_is_missing() -> None:
    text = "tools: {act: {arguments: [{field: items.3, above: 5, then: ask, approval: {quorum: 2}}]}}"
    assert word(text, {"items": [1]}) == "ask"
    assert word(text, {"items": [1, 1, 1, 1]}) == "allow"


def test_terms_go_with_an_ask_and_say_where_they_do_not() -> None:
    text = """
        tools:
          act:
            arguments:
              - {field: x, above: 5, then: deny, approval: {quorum: 2}}
              - {field: x, above: 5, then: ask, approval: {quorum: 0}}
              - {field: x, above: 5, then: ask, approval: {quorom: 2}}
    """
    found = problems(text)
    assert len(found) == 3
    assert found[0].startswith("5:")
    assert "goes with `then: ask`" in found[0]
    assert found[1].startswith("6:")
    assert found[2].startswith("7:")
    assert "`quorum`" in found[2]


def test_terms_of_conditions_entries_and_layers_add_up() -> None:
    text = """
        tools:
          act:
            approval: {approvers: [finance], timeout: 1h, escalate: {after: 1m, to: [boss]}}
            arguments:
              - {field: x, above: 5, then: ask, approval: {quorum: 3, including: [lead]}}
              - {field: x, above: 9, then: ask, approval: {level: full, quorum: 2, approvers: [risk], including: [cfo]}}
          "a*": {approval: {separation: true, timeout: 5m}}
    """
    few, many = (ask(text, {"x": x}).assessment for x in (6, 10))
    assert few is not None
    assert (few.level, few.terms.quorum, few.terms.timeout_s) == (ApprovalLevel.QUICK, 3, 300.0)
    assert few.terms.who() == "3 people with role finance, at least 1 of them with role lead"
    assert many is not None
    assert (many.level, many.terms.quorum, many.terms.separation) == (ApprovalLevel.FULL, 3, True)
    assert many.terms.including == (frozenset({"lead"}), frozenset({"cfo"}))
    assert many.terms.accepts({"boss", "risk"}, escalated=True)
    assert not many.terms.accepts({"boss"}, escalated=True)
