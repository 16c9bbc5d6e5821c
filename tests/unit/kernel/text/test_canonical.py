"""What read_arguments accepts, refuses and writes."""

from __future__ import annotations

import enum
import json
import sys
from collections import OrderedDict
from datetime import UTC, datetime
from decimal import Decimal
from types import MappingProxyType
from typing import Any

import pytest

from toolgate.errors import ToolInputError
from toolgate.kernel.text.canonical import Limits, canonical, parse_strict, read_arguments

MIB = 1_048_576


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ('{"b": 1, "a": 2}', b'{"a":2,"b":1}'),
        (b' {"a":[1,{"c":null}]}\n', b'{"a":[1,{"c":null}]}'),
        ('{"a":1.0}', b'{"a":1}'),
        ('{"a":1e2,"b":-0.0}', b'{"a":100,"b":0}'),
        ('{"a":1e-9,"b":1e21,"c":5e-324}', b'{"a":1e-9,"b":1e+21,"c":5e-324}'),
        ('{"a":0.000001}', b'{"a":0.000001}'),
        ('{"a":9007199254740991}', b'{"a":9007199254740991}'),
        ('{"a":"\\u0041\\u003a\\/"}', b'{"a":"A:/"}'),
        ('{"a":"x:y","b":"\\u00e9"}', '{"a":"x:y","b":"é"}'.encode()),
        ('{"a":"\\ud83d\\ude00"}', '{"a":"😀"}'.encode()),
        ('{"a":[["😀"]],"b":{"c":"😀"}}', '{"a":[["😀"]],"b":{"c":"😀"}}'.encode()),
        ('{"\ufb33":1,"😀":2,"é":3}', '{"é":3,"😀":2,"\ufb33":1}'.encode()),
        ("{}", b"{}"),
    ],
)
def test_text_is_written_in_rfc_8785_form(text: str | bytes, form: bytes) -> None:
    read = read_arguments(text)
    assert read.canonical == form
    assert json.dumps(read.value, sort_keys=True) == json.dumps(json.loads(form), sort_keys=True)
    assert read_arguments(form) == read


@pytest.mark.parametrize(
    "text",
    [
        '{"a":1,"a":2}',
        '{"a":1,"\\u0061":2}',
        '{"x":{"a":[],"a":[]}}',
        '{"a":"\\u003a","a":1}',
        b'{"a":":","a":":::"}',
        '{"a":NaN}',
        '{"a":-Infinity}',
        '{"a":1e999}',
        '{"a":9007199254740992}',
        '{"a":-9007199254740992}',
        '{"a":1e16}',
        '{"a":18446744073709551616}',
        '{"a":' + "9" * 5000 + "}",
        '{"a":1} 2',
        '{"a":1}{"b":1}',
        "\ufeff{}",
        b"\xef\xbb\xbf{}",
        b'{"a":"\xff"}',
        b'{"a":"\xed\xa0\x80"}',
        '{"a":"\\ud800"}',
        '{"a":"\ud800"}',
        '{"\\udfff":1}',
        "",
        "  ",
        "[]",
        "1.5",
        "null",
        '"text"',
        "{'a':1}",
        '{"a":01}',
        '{"a":"\n"}',
        "[" * 100_000,
        '{"a":' * 100_000,
    ],
)
def test_text_that_is_not_one_strict_object_is_refused(text: str | bytes) -> None:
    with pytest.raises(ToolInputError):
        read_arguments(text)


class Colour(enum.StrEnum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


class Ratio(float):
    pass


def test_mapping_is_copied_to_plain_json() -> None:
    inner = [1, (2.0, 2.5)]
    raw = OrderedDict(a=inner, b=Colour.RED, c=Level.HIGH, d=Ratio(0.5), e=OrderedDict(f=None), g=True)
    value = read_arguments(raw).value
    assert value == {"a": [1, [2, 2.5]], "b": "red", "c": 3, "d": 0.5, "e": {"f": None}, "g": True}
    kinds = [type(item) for item in value.values()]
    assert kinds == [list, str, int, float, dict, bool]
    assert type(value["a"][1][0]) is int
    inner.append(9)
    assert value["a"] == [1, [2, 2.5]]


def test_flat_mapping_and_proxy_are_copied() -> None:
    raw: dict[str, Any] = {"b": 1, "a": "é", "c": None}
    read = read_arguments(raw)
    raw["b"] = 2
    assert read.value == {"b": 1, "a": "é", "c": None}
    assert read_arguments(MappingProxyType(read.value)) == read
    assert read_arguments({"é": 1, "a": 1}).canonical == '{"a":1,"é":1}'.encode()
    assert type(next(iter(read_arguments({Colour.RED: 1}).value))) is str


def test_cyclic_and_much_shared_values_are_refused_in_bounded_time() -> None:
    cycle: list[Any] = []
    cycle += [cycle, cycle]
    chain: dict[str, Any] = {}
    chain["a"] = chain
    shared: Any = [1]
    for _ in range(60):
        shared = [shared, shared]
    for raw in ({"a": cycle}, chain, {"a": shared}, {"a": ["x" * MIB] * MIB}):
        with pytest.raises(ToolInputError):
            read_arguments(raw, limits=Limits(max_bytes=10_000))


@pytest.mark.parametrize(
    ("raw", "location"),
    [
        ({"a": float("nan")}, "/a"),
        ({"a": [0, float("-inf")]}, "/a/1"),
        ({"a": {"b/c~d": 2**53}}, "/a/b~1c~0d"),
        ({"a": -(2**53)}, "/a"),
        ({"a": 1e16}, "/a"),
        ({"a": "\ud800"}, "/a"),
        ({"\ud800": 1}, "/\\ud800"),
        ({"a": {1}}, "/a"),
        ({"a": b"x"}, "/a"),
        ({"a": Decimal(1)}, "/a"),
        ({"a": [datetime.now(UTC)]}, "/a/0"),
        ({"a": object()}, "/a"),
        ({1: 2}, "/1"),
        ({"a": {True: 2}}, "/a/True"),
        ({"k" * 500: object()}, "/" + "k" * 98 + "…"),
        ('{"a":[{"b":1e999}]}', "/a/0/b"),
        ('{"a":[1,"\\ud800"]}', "/a/1"),
    ],
)
def test_unusable_value_is_refused_at_its_location(raw: Any, location: str) -> None:
    with pytest.raises(ToolInputError) as caught:
        read_arguments(raw)
    assert caught.value.location == location


@pytest.mark.parametrize("raw", [None, 1, [], bytearray(b"{}")])
def test_other_python_types_are_refused(raw: Any) -> None:
    with pytest.raises(ToolInputError, match="pass JSON text or a mapping"):
        read_arguments(raw)


def test_depth_is_counted_from_the_outermost_object() -> None:
    limits = Limits(max_depth=3)
    for good in ('{"a":[[1]]}', {"a": [[1]]}, '{"a":{"b":{}}}'):
        read_arguments(good, limits=limits)
    for bad in ('{"a":[[[]]]}', {"a": [[()]]}, '{"a":{"b":{"c":{}}}}'):
        with pytest.raises(ToolInputError, match="deeper than 3"):
            read_arguments(bad, limits=limits)
    assert parse_strict("[[[]]]", limits=limits) == [[[]]]
    with pytest.raises(ToolInputError):
        parse_strict("[[[[]]]]", limits=limits)
    deepest = '{"a":' * 250 + "1" + "}" * 250
    assert read_arguments(deepest, limits=Limits(max_depth=250)).canonical == deepest.encode()


def test_size_is_counted_in_bytes_of_text_and_of_canonical_form() -> None:
    limits = Limits(max_bytes=20)
    for good in ('{"a":"123456789012"}', '{"a":"éééééé"}', {"a": "x" * 12}, {"a": ["x" * 10]}):
        assert len(read_arguments(good, limits=limits).canonical) <= 20
    bad: list[Any] = ['{"a":"1234567890123"}', b'{"a":"1234567890123"}', '{"a":"ééééééé"}', {"a": "x" * 13}]
    bad += ['{"a":[1e15,1e15]}', {"a": ["x" * 11]}, '{"a":[1e-6,1e-6]}', '{"a":"' + "\ud800" * 5 + '"}']
    for raw in bad:
        with pytest.raises(ToolInputError, match="20 bytes"):
            read_arguments(raw, limits=limits)


@pytest.mark.parametrize("bad", [{"max_bytes": 0}, {"max_depth": 0}, {"max_depth": 251}])
def test_limits_out_of_range_are_refused(bad: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="Limits need"):
        Limits(**bad)


@pytest.mark.parametrize(
    "raw",
    [
        '{"a":"s3cret"',
        '{"a":"s3cret\\ud800"}',
        '{"a":s3cret}',
        '{"a":"s3cret","a":"s3cret"}',
        {"a": "s3cret\ud800"},
        {"a": b"s3cret"},
        b'{"a":"s3cret\xff"}',
        '"s3cret"',
    ],
)
def test_errors_never_quote_values(raw: Any) -> None:
    with pytest.raises(ToolInputError) as caught:
        read_arguments(raw)
    assert "s3cret" not in str(caught.value)
    assert "s3cret" not in str(caught.value.location)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    ("value", "form"),
    [
        (1e16, b"10000000000000000"),
        (-1.5, b"-1.5"),
        (1.0, b"1"),
        (1e300, b"1e+300"),
        ((1, None), b"[1,null]"),
        ("é", '"é"'.encode()),
        ({"z": {"😀": 1, "\ufb33": 2}}, '{"z":{"😀":1,"\ufb33":2}}'.encode()),
    ],
)
def test_canonical_writes_any_json_value(value: object, form: bytes) -> None:
    assert canonical(value) == form


@pytest.mark.parametrize("value", [2**53, float("nan"), {1: 1}, {1}])
def test_canonical_refuses_what_is_not_json(value: object) -> None:
    with pytest.raises(ToolInputError):
        canonical(value)


def test_parse_strict_reads_any_value() -> None:
    assert [parse_strict(text) for text in ("1", "1.0", "1.5", "1e-9", '"x"', "null", "[1.0]")] == [
        1, 1, 1.5, 1e-9, "x", None, [1],
    ]  # fmt: skip
    assert type(parse_strict("1.0")) is int


def test_too_little_stack_left_for_the_encoder_is_an_input_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def overflow(value: object) -> bytes:
        raise RecursionError

    monkeypatch.setattr("toolgate.kernel.text.canonical.rfc8785.dumps", overflow)
    with pytest.raises(ToolInputError, match="stack"):
        read_arguments('{"a":1e-9}')


@pytest.mark.parametrize("raw", ['{"a": 1}', b'{"a": [1.5]}', {"a": 1}, {"a": (1,)}, '{"a": 1e-9}'])
def test_the_canonical_bytes_take_no_more_room_than_they_need(raw: str | bytes | dict[str, object]) -> None:
    form = read_arguments(raw).canonical
    assert sys.getsizeof(form) == sys.getsizeof(b"") + len(form)


class Word(str):
    """A text of a kind of its own."""


@pytest.mark.parametrize(
    "value",
    [
        {"a": [1.0, 0.0, -0.0, 1.5, 1e-5, 9e15, 1e300, {"b": 1e-6}]},
        {"a": {"b": (1, 2)}, "c": [Word("x")]},
        {"a": ["x" * 5000, {"k" * 5000: 1}]},
        {"ü": ["ö", {"😀": 1, "\uffff": 2}]},
        {"a": [list(range(3000))]},
    ],
)
def test_a_mapping_means_what_its_json_text_means(value: dict[str, Any]) -> None:
    assert read_arguments(value) == read_arguments(json.dumps(value))


def test_what_is_met_many_times_costs_no_more_than_it_may() -> None:
    shared: Any = ["x" * 4000]
    for _ in range(40):
        shared = [shared, shared]
    with pytest.raises(ToolInputError, match=r"bytes|nested"):
        read_arguments({"a": shared}, limits=Limits(max_bytes=20_000))
