# ruff: noqa: UP006, UP007, UP045 - every spelling of a type is tested, the old ones too
"""Plain signatures: the schema is Pydantic's own, key order included, and Pydantic is not loaded for it."""

from __future__ import annotations

import functools
import inspect
import json
import subprocess
import sys
import types
import typing
from collections.abc import Callable
from datetime import date
from typing import Annotated, Any, Literal, Optional, Union

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field as ModelField

from toolgate.kernel.signature import derive, pydantic_schema
from toolgate.kernel.text.schema.plain import Field, plain_schema

PLAIN: list[Any] = [
    str, int, float, bool, type(None), Any, list, dict,
    list[int], list[Any], list[list[str]], list[dict[str, int]], list[Optional[int]], list[Literal["a", "b"]],
    dict[str, Any], dict[str, int], dict[str, dict[str, list[float]]], dict[str, Optional[bool]], dict[str, list[Any]],
    typing.List[int], typing.Dict[str, int],
    Optional[str], Optional[Any], Optional[list[int]], Optional[Literal["a"]], Optional[Literal["a", None]],
    Union[int, str], Union[None, int, str], int | float, None | bool, str | list[str] | None, int | Any,
    list[int] | list[str], dict[str, int] | list[int] | None, Literal["a"] | Literal[1],
    Literal["a"], Literal["b", "a"], Literal[1], Literal[2, 1], Literal[True], Literal[True, False], Literal[None],
    Literal["a", 1], Literal[1, True], Literal[None, "a"], Literal[0, None, False, ""],
]  # fmt: skip
DEFAULTS: list[Any] = [
    inspect.Parameter.empty, None, "", "x", 0, -1, 2**70, 1.0, 2.5, -0.0, True, False, [], [1, "a", None, 1.5], {},
]  # fmt: skip
WORDS = [None, "", "One word.", "A tab\there  and   spaces ", 'Quotes "and" `ticks`, ünïcode \N{SNOWMAN}']

scalars: st.SearchStrategy[Any] = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
literals = st.lists(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "a", "B", "a b"]), min_size=1, max_size=4
).map(lambda values: Literal[tuple(values)])
plain_types: st.SearchStrategy[Any] = st.recursive(
    st.sampled_from([str, int, float, bool, type(None), Any, list, dict]) | literals,
    lambda inner: (
        inner.map(lambda one: types.GenericAlias(list, one))
        | inner.map(lambda one: types.GenericAlias(dict, (str, one)))
        | inner.map(lambda one: Optional[one])
        | st.lists(inner, min_size=2, max_size=3).map(lambda many: functools.reduce(lambda a, b: Union[a, b], many))
    ),
    max_leaves=6,
)
defaults: st.SearchStrategy[Any] = st.just(inspect.Parameter.empty) | scalars | st.lists(scalars)
rows = st.tuples(plain_types, defaults, st.sampled_from(WORDS))


def function() -> None: ...


def same(fields: list[Field], *, is_open: bool = False) -> bool:
    """Compare both routes, and return whether the plain one was taken."""
    plain = plain_schema(fields, is_open=is_open)
    if plain is not None:
        assert json.dumps(plain) == json.dumps(pydantic_schema(function, fields, is_open=is_open))
    return plain is not None


@pytest.mark.parametrize("annotation", PLAIN, ids=str)
def test_plain_annotations_give_the_schema_of_pydantic(annotation: Any) -> None:
    assert same([Field(f"x{index}", annotation, default) for index, default in enumerate(DEFAULTS)])
    assert same([Field(f"x{index}", annotation, description=words) for index, words in enumerate(WORDS)])
    assert same([Field("x", annotation, None, "Both.")], is_open=True)


@given(st.lists(rows, max_size=3), st.booleans())
def test_any_signature_gives_one_schema_whichever_way_it_is_derived(
    parameters: list[tuple[Any, Any, str | None]], is_open: bool
) -> None:
    same([Field(f"x{index}", *row) for index, row in enumerate(parameters)], is_open=is_open)


@pytest.mark.parametrize("is_open", [True, False])
def test_a_signature_without_fields_gives_the_schema_of_pydantic(is_open: bool) -> None:
    assert same([], is_open=is_open)


class Text(str):
    __slots__ = ()


@pytest.mark.parametrize(
    "annotation",
    [
        date, bytes, object, Text, tuple[int, int], set[int], dict[int, str], dict[Any, int], typing.List, typing.Dict,
        Annotated[int, ModelField(gt=1)], list[date], Optional[date], Literal[b"x"], Literal["ü"],
        Union[list, list[Any]], dict[str, tuple[int]], Callable[[], None],
    ],
    ids=str,
)  # fmt: skip
def test_every_other_annotation_is_left_to_pydantic(annotation: Any) -> None:
    assert plain_schema([Field("fine", int), Field("x", annotation)], is_open=False) is None


@pytest.mark.parametrize(
    "default",
    [..., float("nan"), float("inf"), (1,), {"a": 1}, [[1]], b"x", Text("x"), "\ud800", ModelField(gt=1)],
    ids=lambda default: f"{type(default).__name__} {default!a}",
)
def test_every_other_default_is_left_to_pydantic(default: Any) -> None:
    assert plain_schema([Field("x", int, default)], is_open=False) is None


def test_a_schema_shares_nothing_with_the_signature_or_another_schema() -> None:
    default = [1]
    fields = [Field("x", list, default), Field("y", dict), Field("z", Any)]
    first, second = (plain_schema(fields, is_open=False) for _ in range(2))
    assert first is not None
    first["properties"]["x"]["default"].append(2)
    first["properties"]["x"]["items"]["type"] = first["properties"]["z"]["type"] = "string"
    assert default == [1]
    assert second == plain_schema(fields, is_open=False)


def test_a_plain_tool_describes_its_parameters() -> None:
    def forecast(city: str, days: int | None = 1, *, units: Literal["metric", "us"] = "metric", **_more: Any) -> None:
        """Return a forecast.

        Args:
            city: Where.
            days: How many,
                at most ten.
        """

    assert derive(forecast).schema == {
        "additionalProperties": True,
        "properties": {
            "city": {"description": "Where.", "type": "string"},
            "days": {
                "anyOf": [{"type": "integer"}, {"type": "null"}],
                "default": 1,
                "description": "How many, at most ten.",
            },
            "units": {"default": "metric", "enum": ["metric", "us"], "type": "string"},
        },
        "required": ["city"],
        "type": "object",
    }


def test_a_plain_tool_does_not_load_pydantic() -> None:
    program = """
import sys, asyncio, toolgate
@toolgate.tool(effects="read")
async def weather(city: str, days: int = 1, tags: list[str] | None = None) -> dict:
    return {"city": city}
with toolgate.open("memory://", tools=[weather]) as gate:
    print(asyncio.run(gate.call("weather", '{"city": "Paris"}')).unwrap())
assert "pydantic" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout == "{'city': 'Paris'}\n", done.stderr
