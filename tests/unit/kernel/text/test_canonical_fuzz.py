"""The fast reader agrees with the slow one, and the canonical form with the reference."""

from __future__ import annotations

import contextlib
import json
import math
from typing import Any

import orjson
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from toolgate.errors import ToolInputError
from toolgate.kernel.text import canonical as module
from toolgate.kernel.text.canonical import DEFAULT_LIMITS, Limits, canonical, read_arguments

SAFE = 2**53 - 1
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=6) | st.sampled_from([":", "a:b", '"', "\\", "\n"])
NUMBERS = st.integers(-SAFE, SAFE) | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)
OBJECTS = st.dictionaries(TEXTS, VALUES, max_size=4)


def slow(text: str | bytes) -> Any:
    """What the slow reader says, which is the specification; None for a refusal."""
    try:
        return module._read_value(module._parse_slow(text), DEFAULT_LIMITS)
    except ToolInputError:
        return None


def agree(text: str | bytes) -> None:
    fast = module._read_fast(text, DEFAULT_LIMITS)
    if fast is not None:
        expected = slow(text)
        assert expected is not None
        assert repr(fast) == repr(expected)
        assert read_arguments(fast[1]).canonical == fast[1] if type(fast[0]) is dict else True


@given(OBJECTS, st.booleans(), st.booleans())
def test_fast_reader_agrees_on_json(value: dict[str, Any], ascii_only: bool, encoded: bool) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only)
    agree(text.encode() if encoded else text)


@st.composite
def mangled(draw: st.DrawFn) -> str:
    """JSON with duplicate keys, odd numbers and escapes, or broken at a random place."""
    key = st.sampled_from(['"a"', '"\\u0061"', '"b:"', '"b\\u003a"', '"\\u003A"', '""'])
    leaf = st.sampled_from(
        [
            "1",
            "1.0",
            "1e5",
            "1e999",
            "1e22",
            "9007199254740993",
            "99999999999999999999999",
            "-0",
            "NaN",
            '":"',
            '"\\u003a"',
            "null",
            '"\\ud800"',
            '"\\ud83d\\ude00"',
            "0.1e-7",
            '"\\""',
            '"\\\\"',
            "1e-400",
        ]
    )

    def node(depth: int) -> str:
        kind = draw(st.integers(0, 3)) if depth else 0
        if kind <= 1:
            return draw(leaf)
        parts = [node(depth - 1) for _ in range(draw(st.integers(0, 3)))]
        if kind == 2:
            return "[" + ",".join(parts) + "]"
        return "{" + ", ".join(f"{draw(key)} : {part}" for part in parts) + "}"

    text = "{" + ",".join(f"{draw(key)}:{node(3)}" for _ in range(draw(st.integers(1, 3)))) + "}"
    if draw(st.integers(0, 3)) == 0:
        at = draw(st.integers(0, len(text)))
        text = text[:at] + draw(st.sampled_from(["", ":", '"', "{", "\\", ",", "\ud800"])) + text[at + 1 :]
    return text


@given(mangled())
def test_fast_reader_is_never_more_lenient(text: str) -> None:
    agree(text)


@given(VALUES)
def test_canonical_is_what_the_reference_writes(value: Any) -> None:
    assert canonical(value) == rfc8785.dumps(value)


@given(st.floats(1e-5, SAFE))
def test_floats_the_fast_encoder_writes_are_the_references(number: float) -> None:
    if not number.is_integer():
        assert orjson.dumps(number) == rfc8785.dumps(number)
        assert orjson.dumps(-number) == rfc8785.dumps(-number)


@given(OBJECTS)
def test_reading_the_canonical_form_changes_nothing(value: dict[str, Any]) -> None:
    try:
        read = read_arguments(value)
    except ToolInputError:
        assert any(2**53 <= abs(number) < 1e21 for number in _floats(value))
        return
    assert read_arguments(read.canonical) == read
    assert canonical(read.value) == read.canonical
    assert orjson.loads(read.canonical) == read.value


def _floats(value: Any) -> list[float]:
    if isinstance(value, float):
        return [value]
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [number for item in items for number in _floats(item)]


@given(st.binary(max_size=40))
def test_any_bytes_are_read_or_refused(raw: bytes) -> None:
    with contextlib.suppress(ToolInputError):
        assert len(read_arguments(raw, limits=Limits(max_bytes=30)).canonical) <= 30


def test_float_bounds_where_formats_change() -> None:
    for bound in (1e-5, 1e-6, 1e-7, 1e15, 1e16, 2.0**53, 1e20, 1e21, 1e22):
        for number in (bound, math.nextafter(bound, 0), math.nextafter(bound, math.inf)):
            assert canonical([number]) == rfc8785.dumps([number])
