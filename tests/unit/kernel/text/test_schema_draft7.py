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
        {"dependencies": {"x": ["y"], "y": {"required": ["x"]}, "z": False}},
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
        {"x": 1, "y": 1},
        {"z": 1},
        {"x": {"dependencies": [], "items": [1]}},
    ):
        assert compiled.is_valid(value) is old.is_valid(value)


@pytest.mark.parametrize(
    ("field", "word"),
    [
        ({"items": [{"type": "string"}]}, "`items` as a list"),
        ({"items": {}, "additionalItems": False}, "`additionalItems`"),
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
    "dependencies": [{"a": ["b"]}, {"a": {"required": ["b"]}}, {"a": False}, {"b": {"dependencies": {"b": ["a"]}}}],
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
VALUES = [None, 1, 3, "a", [], ["a"], [1], ["a", 1], [1, 1], {}, {"a": 1}, {"b": 2}, {"a": 1, "b": 2}]


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


@pytest.mark.parametrize("dialect", [{}, {"$schema": "https://json-schema.org/draft/2020-12/schema"}])
@pytest.mark.parametrize("needs", [["b"], {"required": ["b"]}])
def test_dependencies_count_in_2020_12_as_well(dialect: dict[str, Any], needs: Any) -> None:
    compiled = compile_schema({**dialect, "dependencies": {"a": needs}})
    assert compiled.is_valid({"a": 1, "b": 2})
    assert [one.message for one in compiled.violations({"a": 1})] == ["lacks the key 'b', which is required"]


@pytest.mark.parametrize(
    ("field", "word"),
    [
        ({"prefixItems": [{"type": "string"}], "additionalItems": False}, "`additionalItems`"),
        ({"$recursiveRef": "#"}, "`$recursiveRef`"),
    ],
)
def test_a_word_of_an_older_draft_that_would_be_passed_over_is_refused(field: dict[str, Any], word: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        compile_schema({"properties": {"a": field}})
    assert word in str(caught.value)
    assert "'#/properties/a'" in str(caught.value)


def test_a_word_that_never_said_anything_there_is_no_reason_to_refuse() -> None:
    compiled = compile_schema({"properties": {"a": {"items": {"type": "string"}, "additionalItems": False}}})
    assert compiled.is_valid({"a": ["x", "y"]})
    assert not compiled.is_valid({"a": ["x", 1]})
