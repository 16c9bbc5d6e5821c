"""Conditions on arguments hold as written, and cannot be dodged by types or omissions."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.policy.asking import problems, word


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
