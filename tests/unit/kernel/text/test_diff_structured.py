"""Differences of records: fields sorted by name, values as Python writes them."""

from __future__ import annotations

from typing import Any

import pytest

from toolgate.errors import UsageError
from toolgate.kernel.text.diff import DiffLine, DiffType, diff_structured


def test_changed_fields_are_shown_sorted_and_ignored_ones_are_not() -> None:
    old = {"id": 7, "state": "open", "owner": "ann", "gone": 1}
    new = {"id": 8, "state": "shut", "owner": "bob", "born": None}
    result = diff_structured(old, new, ignore_keys={"id"})
    assert result.diff_output.splitlines() == [
        "--- old",
        "+++ new",
        "+ born: None",
        "- gone: 1",
        "- owner: 'ann'",
        "+ owner: 'bob'",
        "- state: 'open'",
        "+ state: 'shut'",
    ]
    assert result.diff_type is DiffType.LINE_BY_LINE
    assert result.changes[0] == DiffLine("add", "born: None")
    assert (result.additions, result.deletions, result.unchanged, result.similarity) == (3, 3, 0, 0.0)


def test_equal_records_have_no_difference() -> None:
    result = diff_structured({"a": [1, {"b": 2}]}, {"a": [1, {"b": 2}]})
    assert (result.diff_output, result.similarity, result.unchanged) == ("", 1.0, 1)


def test_similarity_is_the_share_of_kept_fields() -> None:
    assert diff_structured({"a": 1, "b": 2, "c": 3}, {"a": 1, "b": 2, "c": 4}).similarity == 0.667


@pytest.mark.parametrize(
    ("old", "new", "differ"),
    [
        (1, True, True),
        (1, 1.0, True),
        ([1], [True], True),
        ([1], [1, 2], True),
        ({"x": 1}, {"y": 1}, True),
        ({"x": 1, "y": [2]}, {"y": [2], "x": 1}, False),
        ((1, 2), (1, 2), False),
        (float("nan"), float("nan"), False),
        ([float("nan")], [float("nan")], False),
        ("a", "b", True),
    ],
)
def test_values_are_equal_only_in_kind_too(old: Any, new: Any, differ: bool) -> None:
    assert diff_structured({"v": old}, {"v": new}).has_changes is differ


def test_values_that_hold_themselves_are_compared() -> None:
    one: list[Any] = [1]
    one.append(one)
    two: list[Any] = [1]
    two.append(two)
    assert not diff_structured({"v": one}, {"v": two}).has_changes


def test_no_name_and_no_value_can_add_a_line() -> None:
    class Loud:
        def __repr__(self) -> str:
            return "one\ntwo\r"

    result = diff_structured({"a\n+ b: 1": Loud()}, {2: "x\ny"})
    assert result.diff_output.splitlines() == [
        "--- old",
        "+++ new",
        "+ 2: 'x\\ny'",
        "- 'a\\n+ b: 1': one\\ntwo\\r",
    ]


def test_long_and_deep_values_are_cut_with_a_mark() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    result = diff_structured({"a": "x" * 50, "b": 1}, {"a": "y", "b": deep}, max_shown=10)
    assert result.truncated
    assert "- a: 'xxxxxxxxx... [cut, 52 characters]" in result.diff_output
    assert "+ b: <nested too deeply to show>" in result.diff_output
    while deep:  # taken apart by hand: freeing it at once would need as deep a stack
        deep = deep.pop()


@pytest.mark.parametrize("odd", [[1], None, "text"])
def test_what_is_no_record_is_refused(odd: Any) -> None:
    with pytest.raises(UsageError, match="two mappings"):
        diff_structured(odd, {})
    with pytest.raises(UsageError, match="two mappings"):
        diff_structured({}, odd)
