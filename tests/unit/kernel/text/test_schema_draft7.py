"""Schemas of draft-07: taken where every word means the same in 2020-12, refused by the word that does not."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolgate.errors import DefinitionError
from toolgate.kernel.text.schema import compile_schema
from toolgate.kernel.text.schema.draft7 import DRAFT_7

OLD = f"{DRAFT_7}#"
POINT = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"], "additionalProperties": False}


@pytest.mark.parametrize("dialect", [OLD, DRAFT_7, OLD.replace("http:", "https:"), DRAFT_7.replace("http:", "https:")])
def test_draft_7_is_taken_however_it_is_written(dialect: str) -> None:
    schema = {"$schema": dialect, **POINT}
    compiled = compile_schema(schema)
    assert compiled.source == schema
    assert compiled.is_valid({"x": 1})
    assert [one.location for one in compiled.violations({"x": "1"})] == ["/x"]


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#/definitions/Point", "definitions": {"Point": POINT}},
        {
            "properties": {"x": {"$ref": "#/definitions/n", "description": "how many", "default": 1}},
            "definitions": {"n": {"type": "integer"}},
            "required": ["x"],
        },
        {"properties": {"x": {"items": {"type": "integer"}, "contains": {"const": 1}}}},
        {"if": {"required": ["y"]}, "then": {"required": ["x"]}, "else": True},
        {"properties": {"x": {"const": {"dependencies": [], "items": [1]}}}},
        {"properties": {"items": {"type": "integer"}, "dependencies": {}}},
    ],
)
def test_words_that_mean_the_same_are_taken(schema: dict[str, Any]) -> None:
    compiled = compile_schema({"$schema": OLD, **schema})
    old = jsonschema_rs.Draft7Validator({"$schema": OLD, **schema})
    for value in (
        {},
        {"x": 1},
        {"x": "1"},
        {"x": [1]},
        {"x": ["a"]},
        {"y": 1},
        {"x": {"dependencies": [], "items": [1]}},
    ):
        assert compiled.is_valid(value) is old.is_valid(value)


@pytest.mark.parametrize(
    ("field", "word"),
    [
        ({"items": [{"type": "string"}]}, "`items` as a list"),
        ({"items": {}, "additionalItems": False}, "`additionalItems`"),
        ({"dependencies": {"a": ["b"]}}, "`dependencies`"),
        ({"prefixItems": [{}]}, "`prefixItems`"),
        ({"dependentRequired": {"a": ["b"]}}, "`dependentRequired`"),
        ({"unevaluatedProperties": False}, "`unevaluatedProperties`"),
        ({"contains": {}, "minContains": 2}, "`minContains`"),
        ({"$anchor": "here"}, "`$anchor`"),
        ({"$ref": "#/definitions/n", "minimum": 3}, "`minimum` beside `$ref`"),
        ({"$ref": "#/definitions/n", "properties": {"a": {}}}, "`properties` beside `$ref`"),
        ({"exclusiveMinimum": True}, "draft-07 does not allow it"),
    ],
)
def test_a_word_that_differs_is_named_with_its_place(field: dict[str, Any], word: str) -> None:
    schema = {"$schema": OLD, "properties": {"a": field}, "definitions": {"n": {"type": "integer"}}}
    with pytest.raises(DefinitionError) as caught:
        compile_schema(schema)
    assert word in str(caught.value)
    assert "'#/properties/a" in str(caught.value)


WORDS: dict[str, list[Any]] = {
    "type": ["integer", "string", "array", "object", ["integer", "null"]],
    "items": [{"type": "integer"}, [{"type": "string"}], True, False],
    "additionalItems": [False, {"type": "integer"}],
    "contains": [{"type": "integer"}],
    "minContains": [0, 2],
    "dependencies": [{"a": ["b"]}],
    "dependentRequired": [{"a": ["b"]}],
    "prefixItems": [[{"type": "string"}]],
    "required": [["a"], []],
    "additionalProperties": [False],
    "unevaluatedItems": [False],
    "$ref": ["#/definitions/n"],
    "minimum": [2],
    "enum": [[1, "a", ["a"]]],
    "not": [{"type": "string"}],
}
VALUES = [None, 1, 3, "a", [], ["a"], [1], ["a", 1], [1, 1], {}, {"a": 1}, {"a": 1, "b": 2}]


@given(st.fixed_dictionaries({}, optional={word: st.sampled_from(values) for word, values in WORDS.items()}))
def test_whatever_is_taken_answers_as_draft_7_does(field: dict[str, Any]) -> None:
    schema = {"$schema": OLD, "properties": {"x": field}, "definitions": {"n": {"type": "integer"}}}
    try:
        compiled = compile_schema(schema)
    except DefinitionError:
        return
    old = jsonschema_rs.Draft7Validator(schema)
    for value in VALUES:
        assert compiled.is_valid({"x": value}) is old.is_valid({"x": value})
