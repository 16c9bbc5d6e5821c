"""What has a JSON form, what is refused, and how much of it an event quotes."""

from __future__ import annotations

import dataclasses
import enum
import json
import math
import sys
from collections import OrderedDict, UserDict, deque, namedtuple
from collections.abc import Callable
from datetime import UTC, date, datetime, time
from decimal import Decimal
from fractions import Fraction
from pathlib import PurePosixPath
from typing import Any, NamedTuple
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict

from toolgate.errors import ToolOutputError
from toolgate.kernel.payload import KEY_CHARACTERS, SUMMARY_BYTES, encode, jsonable, plain, quotable, summarize

NOT_FINITE = [math.nan, math.inf, -math.inf]


@dataclasses.dataclass
class Box:
    inside: Any
    _own: Any = None


@dataclasses.dataclass(slots=True)
class SlottedBox:
    inside: Any
    unset: Any = dataclasses.field(init=False)


class Model(BaseModel):
    model_config = ConfigDict(arbitrary_types_allowed=True)

    inside: Any


class Measured(BaseModel):
    values: set[float]
    last: float | None = None


class Point(NamedTuple):
    x: Any
    y: Any = 0


Loose = namedtuple("Loose", ["x"])  # both spellings are in use


class Colour(enum.Enum):
    RED = "red"
    DEPTH = 3


class Small(enum.IntEnum):
    ONE = 1


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)
WRAPPERS: list[Callable[[Any], Any]] = [
    lambda value: [value],
    lambda value: (None, value),
    lambda value: {"a": value},
    Box,
    lambda value: Model(inside=value),
    Point,
    lambda value: OrderedDict(a=value),
]
wrapped = st.lists(st.sampled_from(WRAPPERS), max_size=5)


def wrap(value: Any, wrappers: list[Any]) -> Any:
    for wrapper in wrappers:
        value = wrapper(value)
    return value


@given(json_values)
def test_json_values_are_written_as_they_are(value: Any) -> None:
    assert json.loads(encode(value)) == value
    assert plain(value) == value


@pytest.mark.parametrize(
    ("value", "form"),
    [
        (None, "null"),
        (datetime(2026, 1, 2, tzinfo=UTC), '"2026-01-02T00:00:00+00:00"'),
        (date(2026, 1, 2), '"2026-01-02"'),
        (time(12, 30), '"12:30:00"'),
        (UUID(int=1), '"00000000-0000-0000-0000-000000000001"'),
        (Colour.RED, '"red"'),
        (Small.ONE, "1"),
        ((1, 2), "[1,2]"),
        (Point(1, 2), "[1,2]"),
        (Loose(1), "[1]"),
        (OrderedDict(b=1, a=2), '{"b":1,"a":2}'),
        (Box([1], "own"), '{"inside":[1]}'),
        (Box(Box(None)), '{"inside":{"inside":null}}'),
        (Model(inside=Model(inside=date(2026, 1, 2))), '{"inside":{"inside":"2026-01-02"}}'),
        ({1: "a", "b": 2}, '{"1":"a","b":2}'),
        ({UUID(int=1): 1, Colour.RED: 2}, '{"00000000-0000-0000-0000-000000000001":1,"red":2}'),
        ({None: 1, True: 2, 1.5: 3}, '{"null":1,"true":2,"1.5":3}'),
    ],
)
def test_what_has_a_json_form_is_written_in_it(value: Any, form: str) -> None:
    assert encode(value).decode() == form
    assert plain(value) == json.loads(form)


HIDING_PLACES: dict[str, Callable[[float], Any]] = {
    "bare": lambda number: number,
    "list": lambda number: [1, [number]],
    "tuple": lambda number: (1, (number,)),
    "value": lambda number: {"a": {"b": number}},
    "key": lambda number: {number: 1},
    "dataclass": Box,
    "dataclass in a list": lambda number: [None, Box([Box(number)])],
    "model": lambda number: Model(inside=number),
    "model in a mapping": lambda number: {"a": Model(inside=[number])},
    "model in a model": lambda number: Model(inside=Model(inside={"x": number})),
    "dataclass in a model": lambda number: Box(Model(inside=Box(number))),
    "set in a model": lambda number: Model(inside={number}),
    "typed set in a model": lambda number: Measured(values={number}),
    "queue in a model": lambda number: Model(inside=deque([number])),
    "optional field of a model": lambda number: [Measured(values=set(), last=number), None],
    "named tuple": lambda number: Point(1, number),
    "enum": lambda number: enum.Enum("Made", {"MEMBER": number}).MEMBER,  # type: ignore[attr-defined]  # just made
}


@pytest.mark.parametrize("number", NOT_FINITE)
@pytest.mark.parametrize("place", HIDING_PLACES.values(), ids=HIDING_PLACES)
def test_a_number_that_is_not_finite_is_refused_wherever_it_hides(place: Any, number: float) -> None:
    with pytest.raises(ToolOutputError, match="holds NaN or infinity, which JSON cannot carry"):
        encode(place(number))


@given(json_values, wrapped, st.sampled_from(NOT_FINITE), wrapped)
def test_it_is_found_among_other_values_at_any_depth(
    other: Any, inner: list[Any], number: float, outer: list[Any]
) -> None:
    value = wrap([other, wrap(number, inner), None], outer)
    with pytest.raises(ToolOutputError):
        encode(value)
    assert json.loads(encode(wrap([other, wrap(0.5, inner), None], outer))) is not None


def test_null_and_the_word_null_are_not_taken_for_a_hidden_number() -> None:
    value = {"null": [None, "null", Colour.RED, UUID(int=1), Box(None), Model(inside=None), 1.5]}
    assert json.loads(encode(value))["null"][:3] == [None, "null", "red"]


def test_a_dataclasses_own_attributes_are_neither_written_nor_judged() -> None:
    box = Box(None, _own=math.nan)
    box.__dict__["cached"] = math.nan
    assert encode(box) == b'{"inside":null}'


def cyclic_list() -> Any:
    value: list[Any] = []
    value.append(value)
    return value


def cyclic_dict() -> Any:
    value: dict[str, Any] = {}
    value["a"] = [value]
    return value


def cyclic_box() -> Any:
    box = Box(None)
    box.inside = {"a": box}
    return box


def cyclic_model() -> Any:
    model = Model(inside=None)
    model.inside = [model]
    return model


def deep() -> Any:
    value: Any = 1
    for _ in range(5000):
        value = [value]
    return value


@pytest.mark.parametrize("make", [cyclic_list, cyclic_dict, cyclic_box, cyclic_model, deep])
def test_cyclic_and_bottomless_data_is_refused(make: Any) -> None:
    with pytest.raises(ToolOutputError, match="cannot be written as JSON"):
        encode(make())


class Bottomless:
    def model_dump(self, *, mode: str) -> Any:
        return self.model_dump(mode=mode)


def test_a_dump_without_end_is_called_too_deep() -> None:
    with pytest.raises(ToolOutputError, match="it is nested too deeply"):
        encode(Bottomless())


@pytest.mark.parametrize(
    "value",
    [
        {1, 2},
        frozenset(),
        b"bytes",
        bytearray(b"x"),
        memoryview(b"x"),
        object(),
        Decimal("1.5"),
        Fraction(1, 2),
        1j,
        PurePosixPath("/x"),
        range(3),
        iter([1]),
        (item for item in [1]),
        UserDict(a=1),
        2**64,
        "\ud800",
        {"\ud800": 1},
        {(1, 2): 3},
        {b"k": 1},
        time(12, tzinfo=UTC),
        Box,
        Model,
        len,
        ValueError("no"),
        SlottedBox(1),
    ],
)
def test_what_has_no_json_form_is_refused_rather_than_guessed_at(value: Any) -> None:
    for place in (value, [value], {"a": value}, Box(value)):
        with pytest.raises(ToolOutputError, match=r"cannot be written as JSON .* return JSON types"):
            encode(place)


@pytest.mark.parametrize("value", [{1: "a", "1": "b"}, [{"x": {None: 1, "null": 2}}], {Colour.RED: 1, "red": 2}])
def test_keys_that_become_the_same_text_are_refused(value: Any) -> None:
    with pytest.raises(ToolOutputError, match="two keys of one mapping are the same text"):
        encode(value)


def test_a_refusal_names_what_was_encoded_and_hides_the_encoders_error() -> None:
    with pytest.raises(ToolOutputError, match=r"^The undo metadata cannot be written as JSON \(set has no") as caught:
        encode({1}, what="undo metadata")
    assert caught.value.__cause__ is None
    with pytest.raises(ToolOutputError, match=r"^The artifacts holds NaN"):
        encode(math.nan, what="artifacts")


def test_plain_values_share_nothing_with_the_original() -> None:
    original = {"a": [1]}
    copied = plain(original)
    copied["a"].append(2)
    assert original == {"a": [1]}
    assert plain(None) is None


@pytest.mark.parametrize("value", [{"a": 1}, [1], "x", None])
def test_a_small_value_is_quoted_whole(value: Any) -> None:
    assert summarize(value, SUMMARY_BYTES) is value


def test_a_large_mapping_is_outlined_by_its_first_keys() -> None:
    masked = {f"k{index:03}": "x" * 100 for index in range(99, -1, -1)}
    summary = summarize(masked, 20_000)
    assert summary == {"truncated": True, "bytes": 20_000, "keys": [f"k{index:03}" for index in range(32)]}


@pytest.mark.parametrize(("value", "kind"), [([1], "list"), ("x", "str"), (1, "int"), (None, "NoneType")])
def test_any_other_large_value_is_outlined_by_its_type(value: Any, kind: str) -> None:
    assert summarize(value, SUMMARY_BYTES + 1) == {"truncated": True, "bytes": SUMMARY_BYTES + 1, "type": kind}


@given(st.dictionaries(st.sampled_from(["é" * 100, "x" * 64, "y" * 65]) | st.integers(), st.none(), max_size=50))
def test_an_outline_stays_small_however_long_the_keys(masked: dict[Any, None]) -> None:
    summary = summarize(masked, 10**6)
    assert len(summary["keys"]) <= 32
    assert all(len(key) <= KEY_CHARACTERS for key in summary["keys"])


@given(st.text(max_size=5000))
def test_the_bytes_take_no_more_room_than_they_need(text: str) -> None:
    encoded = encode(text)
    assert sys.getsizeof(encoded) == sys.getsizeof(b"") + len(encoded)


def test_arguments_that_are_json_are_handed_on_as_they_are() -> None:
    payload = {"a": [1, "x", None, 1.5], "b": {"c": True}}
    assert jsonable(payload) is payload


def test_arguments_with_a_json_form_are_handed_on_in_it() -> None:
    class Text(str):
        pass

    at = datetime(2026, 1, 2, tzinfo=UTC)
    assert jsonable({"at": at, "id": UUID(int=1), "text": Text("x")}) == (
        b'{"at":"2026-01-02T00:00:00+00:00","id":"00000000-0000-0000-0000-000000000001","text":"x"}'
    )


def test_arguments_without_a_json_form_are_left_to_be_refused() -> None:
    payload: dict[str, Any] = {"a": object()}
    assert jsonable(payload) is payload
    payload["a"] = payload
    assert jsonable(payload) is payload


def test_texts_too_long_for_the_room_are_left_out_and_short_ones_never_are() -> None:
    value = {
        "name": "password",
        "value": "short",
        "list": ["x" * 5000, 1, None, {"deep": "y" * 9000}],
        "k" * 6000: True,
    }
    kept = json.loads(quotable(encode(value), 40))
    assert kept == {"name": "password", "value": "short", "list": ["", 1, None, {"deep": ""}], "k" * 6000: True}


@pytest.mark.parametrize("room", [None, 10_000])
def test_nothing_is_left_out_where_it_may_stand_in_the_words(room: int | None) -> None:
    encoded = encode({"text": "x" * 15_000})
    assert quotable(encoded, room) is encoded
    longer = encode(["x" * 19_000, "y" * 21_000])
    assert json.loads(quotable(longer, room)) == ["x" * 19_000, "" if room else "y" * 21_000]
