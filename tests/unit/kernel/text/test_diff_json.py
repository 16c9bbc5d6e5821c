"""JSON Patches: they apply, they are small, and they tell values apart as JSON does."""

from __future__ import annotations

import enum
import json
import random
from collections import OrderedDict
from typing import Any

import jsonpatch
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolgate.errors import UsageError
from toolgate.kernel.text.diff import DiffType, diff_json
from toolgate.kernel.text.diff import align as diff_align

KEYS = ["", "a", "b", "a/b", "m~n", "~1", "-", "0", "1", "é", " "]
LEAVES = [None, True, False, 0, 1, -1, 1.0, 0.0, -0.0, 1.5, 10**30, "", "a", "1", "é", "\ud800", "a\nb"]
documents = st.recursive(
    st.sampled_from(LEAVES),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=5),
    max_leaves=25,
)


class Colour(enum.IntEnum):
    RED = 1


def written(value: Any) -> str:
    """Return the document as text with sorted keys: where this differs, the documents do."""
    return json.dumps(value, sort_keys=True)


def patch_of(old: Any, new: Any) -> list[dict[str, Any]]:
    operations: list[dict[str, Any]] = json.loads(diff_json(old, new).diff_output)
    return operations


def check_round_trip(old: Any, new: Any) -> None:
    before = written(old)
    operations = patch_of(old, new)
    assert written(jsonpatch.apply_patch(old, operations)) == written(new)
    assert bool(operations) == (before != written(new)) == diff_json(old, new).has_changes
    assert written(old) == before


@given(documents, documents)
def test_a_patch_makes_the_new_document_of_the_old(old: Any, new: Any) -> None:
    check_round_trip(old, new)


def edited(rng: random.Random, value: Any) -> Any:
    """Return a related document: a few inner values inserted, removed, replaced or moved."""
    copy = json.loads(json.dumps(value))
    boxes = [copy]
    for box in boxes:
        boxes += [item for item in (box.values() if isinstance(box, dict) else box) if isinstance(item, dict | list)]
    for _ in range(rng.randrange(1, 5)):
        box = rng.choice(boxes)
        if isinstance(box, dict):
            box[rng.choice(KEYS)] = rng.choice(LEAVES)
            if rng.random() < 0.5:
                box.pop(rng.choice(list(box)))
        else:
            at = rng.randrange(len(box) + 1)
            box[at : at + rng.randrange(3)] = [rng.choice(LEAVES) for _ in range(rng.randrange(3))]
    return copy


def grown(rng: random.Random, depth: int) -> Any:
    size = rng.randrange(6)
    if rng.random() < 0.5:
        return [grown(rng, depth - 1) if depth else rng.choice(LEAVES) for _ in range(size)]
    return {rng.choice(KEYS): grown(rng, depth - 1) if depth else rng.choice(LEAVES) for _ in range(size)}


def test_a_thousand_edited_documents_round_trip() -> None:
    rng = random.Random(41)
    for _ in range(1000):
        old = grown(rng, 3)
        check_round_trip(old, edited(rng, old))


def test_changes_are_told_in_the_order_of_the_new_document() -> None:
    old = {"size": "small", "notify": True, "gone": 1, "wait": 30}
    new = {"size": "large", "notify": False, "wait": 60, "lang": "en"}
    assert diff_json(old, new).diff_output == (
        "[\n"
        '  {"op": "remove", "path": "/gone"},\n'
        '  {"op": "replace", "path": "/size", "value": "large"},\n'
        '  {"op": "replace", "path": "/notify", "value": false},\n'
        '  {"op": "replace", "path": "/wait", "value": 60},\n'
        '  {"op": "add", "path": "/lang", "value": "en"}\n'
        "]"
    )


def test_counts_and_similarity_are_of_values() -> None:
    result = diff_json({"a": 1, "b": [1, 2], "c": 3}, {"a": 2, "b": [1, 2], "d": {"x": 1}})
    assert result.diff_type is DiffType.JSON_PATCH
    assert (result.additions, result.deletions, result.unchanged) == (2, 2, 3)
    assert result.similarity == 0.545  # b, 1 and 2 of five old and six new values
    assert result.change_summary == "+2 -2"


@pytest.mark.parametrize("value", [None, 1, "a", [], {}, [1, {"a": [None]}]])
def test_equal_documents_have_an_empty_patch(value: Any) -> None:
    result = diff_json(value, json.loads(json.dumps(value)))
    assert (result.diff_output, result.similarity, result.has_changes) == ("[]", 1.0, False)


@pytest.mark.parametrize(
    ("old", "new"),
    [(True, 1), (0, False), (1, 1.0), (0.0, -0.0), ([1], [True]), ({"a": 0}, {"a": False}), (None, {}), ([], {})],
)
def test_values_that_are_written_differently_differ(old: Any, new: Any) -> None:
    operations = patch_of(old, new)
    assert len(operations) == 1
    assert written(jsonpatch.apply_patch(old, operations)) == written(new)


def test_the_order_of_keys_is_no_difference() -> None:
    assert not diff_json({"a": 1, "b": [{"c": 1, "d": 2}]}, {"b": [{"d": 2, "c": 1}], "a": 1}).has_changes


@pytest.mark.parametrize("at", [0, 5_000, 10_000])
def test_an_insertion_into_a_long_list_is_one_operation(at: int) -> None:
    old = [{"id": number, "tags": ["x", number % 3]} for number in range(10_000)]
    new = [*old[:at], {"id": -1}, *old[at:]]
    assert patch_of(old, new) == [{"op": "add", "path": f"/{at}", "value": {"id": -1}}]
    assert patch_of(new, old) == [{"op": "remove", "path": f"/{at}"}]


def test_an_edit_inside_a_list_is_told_inside() -> None:
    old = {"rows": [{"id": 1}, {"id": 2, "v": [1, 2, 3]}, {"id": 3}]}
    new = {"rows": [{"id": 0}, {"id": 1}, {"id": 2, "v": [2, 3]}, {"id": 3}]}
    operations = patch_of(old, new)
    assert [operation["path"] for operation in operations] == ["/rows/0", "/rows/2/v/0"]


def test_keys_are_escaped() -> None:
    assert patch_of({"a/b": 1, "m~n": 1}, {"a/b": 2, "m~n": 2}) == [
        {"op": "replace", "path": "/a~1b", "value": 2},
        {"op": "replace", "path": "/m~0n", "value": 2},
    ]


def test_text_is_readable_and_halves_of_pairs_are_escaped() -> None:
    assert '"größer"' in diff_json("a", "größer").diff_output
    assert '"\\ud800"' in diff_json("a", "\ud800").diff_output


def test_tuples_and_subclasses_are_read_as_their_json_kind() -> None:
    class Name(str):
        __slots__ = ()

    assert not diff_json({"a": (1, Name("x")), "b": Colour.RED}, {"a": [1, "x"], "b": 1}).has_changes
    assert not diff_json(OrderedDict({Name("k"): OrderedDict(a=1)}), {"k": {"a": 1}}).has_changes
    assert patch_of([1], (Colour.RED, 2)) == [{"op": "add", "path": "/1", "value": 2}]


def test_a_list_too_large_to_align_is_replaced_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diff_align, "_MAX_CELLS", 10)
    old, new = {"a": list(range(20))}, {"a": list(range(20))[::-1]}
    assert patch_of(old, new) == [{"op": "replace", "path": "/a", "value": new["a"]}]


def nested(depth: int, value: Any) -> Any:
    for _ in range(depth):
        value = [value]
    return value


def test_deep_documents_are_compared_up_to_a_limit() -> None:
    assert len(patch_of(nested(250, 1), nested(250, 2))) == 1
    result = diff_json(nested(5_000, 1), nested(5_000, 2))
    assert result.truncated
    assert result.diff_output == (
        "[diff truncated: a document is nested deeper than 250 levels; the whole document counts as replaced]\n"
    )
    assert (result.similarity, result.change_summary) == (0.0, "+1 -1")


def test_a_document_that_holds_itself_ends_at_the_limit() -> None:
    loop: list[Any] = []
    loop.append(loop)
    assert diff_json(loop, []).truncated


def test_too_many_values_give_a_marker() -> None:
    shared: Any = [0] * 10
    for _ in range(30):
        shared = [shared] * 10
    result = diff_json(shared, [], max_values=1_000)
    assert result.diff_output.startswith("[diff truncated: a document holds more than 1,000 values")


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), [10**5_000], b"x", {1: 2}, {"a": [{1}]}, [object()], {"a": {2: 3}}]
)
def test_what_is_not_json_is_refused(value: Any) -> None:
    with pytest.raises(UsageError, match="diff_json compares JSON"):
        diff_json({}, value)
    with pytest.raises(UsageError, match="diff_json compares JSON"):
        diff_json(value, value)
