"""What could mean two things is refused, with the place where it stands."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.policy.asking import problems

from toolgate.errors import PolicyError, PolicyProblem
from toolgate.policy.strict_yaml import MAX_BYTES, Place, read


def said(text: str | bytes) -> object:
    return read(text, "f.yaml").content


def test_plain_yaml_is_read_with_its_places() -> None:
    tree = read("a: 1\nb: [x, {c: 'no', d: 2.5}]\ne: true\nf:\n", "f.yaml")
    assert tree.content == {"a": 1, "b": ["x", {"c": "no", "d": 2.5}], "e": True, "f": None}
    assert tree.place(("b", 1, "c")) == Place(2, 12)
    assert tree.place(("b", 1, "c"), key=True) == Place(2, 9)
    assert tree.place(("b", 7, "nowhere")) == Place(2, 4)


@pytest.mark.parametrize(
    ("text", "content"),
    [("", None), ("# nothing", None), ("a: True", {"a": True}), ("a: |\n  x\n", {"a": "x\n"}), ("a: -5", {"a": -5})],
)
def test_what_yaml_readers_agree_on_is_read(text: str, content: object) -> None:
    assert said(text) == content
    assert said(text.encode()) == content


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("a: no", "1:4", "write false"),
        ("a: 1\nb: On", "2:4", "write true"),
        ("on: 1", "1:1", "write true"),
        ("a: 010", "1:4", "plain decimal number"),
        ("a: 0x1F", "1:4", "plain decimal number"),
        ("a: 1_000", "1:4", "plain decimal number"),
        ("a: 12:30", "1:4", "quotes"),
        ("a: .inf", "1:4", "quotes"),
        ("a: 2026-01-01", "1:4", "quotes"),
        ("<<: 1", "1:1", "quotes"),
        ("a: 1\na: 2", "2:1", "written twice"),
        ("a: {b: 1, b: 2}", "1:11", "written twice"),
        ("a: &x 1", "1:4", "anchors"),
        ("a: *x", "1:4", "aliases"),
        ("a: !!str x", "1:4", "tags"),
        ("a: !thing {}", "1:4", "tags"),
        ("%YAML 1.1\n---\na: 1", "2:1", "directives"),
        ("a: 1\n---\nb: 2", "2:1", "one document"),
        ("? [1]\n: 2", "1:3", "plain text"),
        ("1: 2", "1:1", "must be text"),
        ("a: [1,", "1:7", "not YAML"),
        ("a: x\n\tb: 1", "2:1", "not YAML"),
        ("a: \x07", "1:4", "not allowed in YAML"),
        ("a: 99999999999999999999", "1:4", "read exactly"),
        ("a: 1e300", "1:4", "read exactly"),
        ("a: " + "[" * 60 + "]" * 60, "1:44", "nested"),
        (b"a: 1\nb: \xff", "2:1", "not UTF-8"),
    ],
)
def test_what_could_mean_two_things_is_refused(text: str | bytes, place: str, words: str) -> None:
    [problem] = problems(text)
    assert problem.startswith(place + ":")
    assert words in problem


def test_a_file_beyond_a_mebibyte_is_refused_unread() -> None:
    [problem] = problems("a: " + "x" * MAX_BYTES)
    assert "bytes" in problem


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    problems: tuple[PolicyProblem, ...] = ()
    try:
        read(text, "f.yaml")
    except PolicyError as error:
        problems = error.problems
    assert all(problem.line >= 1 and problem.column >= 1 for problem in problems)
