"""What a schema may say, and what a compiled schema answers."""

from __future__ import annotations

from typing import Any

import pytest

from toolgate.errors import DefinitionError
from toolgate.kernel.text.schema import DRAFT, Schema, Violation, compile_schema

SECRET = "s3cret-canary"


def field(schema: Any) -> Schema:
    return compile_schema({"type": "object", "properties": {"a": schema}})


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": "object"},
        {"type": ["object", "null"]},
        {"$schema": DRAFT, "$id": "https://example.test/a"},
        {"$schema": DRAFT + "#"},
        {"properties": {"$ref": {"type": "string"}, "$id": {}}},
        {"properties": {"a": {"const": {"$ref": "http://elsewhere"}}}, "default": {"$ref": "x"}},
        {"properties": {"a": {"format": "a-format-nobody-knows"}}},
        {"definitions": {"a": {"type": "string"}}, "properties": {"x": {"$ref": "#/definitions/a"}}},
        {"$defs": {"a b/c": {"$anchor": "here"}}, "allOf": [{"$ref": "#here"}, {"$ref": "#/$defs/a%20b~1c"}]},
    ],
)
def test_ordinary_schema_compiles(schema: dict[str, Any]) -> None:
    compiled = compile_schema(schema)
    assert compiled.is_valid({})
    assert compiled.violations({}) == []
    assert compiled.source == schema
    assert compiled.source is not schema


@pytest.mark.parametrize(
    ("schema", "place"),
    [
        ({"$ref": "http://example.test/x"}, "'#'"),
        ({"properties": {"a": {"$ref": "file:///etc/passwd"}}}, "'#/properties/a'"),
        ({"properties": {"a": {"$dynamicRef": "other#x"}}}, "'#/properties/a'"),
        ({"$id": "https://a.test/b", "$ref": "b"}, "'#'"),
        ({"properties": {"a": {"$id": "https://a.test/c", "$ref": "#"}}}, "'#/properties/a'"),
        ({"properties": {"a": {"$schema": DRAFT}}}, "'#/properties/a'"),
        ({"properties": {"a": {"$ref": "#/$defs/none"}}}, "'#/properties/a'"),
        ({"properties": {"a": {"$ref": "#none"}}}, "'#/properties/a'"),
        ({"x-mine": {"type": "string"}, "properties": {"a": {"$ref": "#/x-mine"}}}, "'#/properties/a'"),
        ({"properties": {"a": {"$ref": "#/$defs/b", "$dynamicRef": "#/$defs/b"}}, "$defs": {"b": {}}}, "/a'"),
        ({"$defs": {"a": {"$anchor": "x"}, "b": {"$dynamicAnchor": "x"}}}, "'#/$defs/b'"),
        ({"$schema": "http://json-schema.org/draft-04/schema#"}, "'#/$schema'"),
        ({"$schema": "https://json-schema.org/draft/2019-09/schema"}, "'#/$schema'"),
        ({"$schema": 5}, "'#/$schema'"),
        ({"type": "string"}, "'#/type'"),
        ({"type": ["array", "null"]}, "'#/type'"),
        ({"properties": {"a": {"type": "strin"}}}, "'#/properties/a/type'"),
        ({"properties": {"a/b": {"required": "x"}}}, "'#/properties/a~1b/required'"),
        ({"properties": {"a": {"pattern": "(?=look)"}}}, "'#/properties/a/pattern'"),
        ({"properties": {"a": {"pattern": "("}}}, "'#/properties/a/pattern'"),
        ({"properties": {"a": {"pattern": "(a{1000}){1000}"}}}, "'#/properties/a/pattern'"),
        ({"properties": {"a": {"pattern": "[ab]*a[ab]{1000}c"}}}, "'#/properties/a/pattern'"),
        ({"properties": {"a": {"minimum": float("nan")}}}, "'/properties/a/minimum'"),
        ({1: {}}, "'/1'"),
        ({"default": {"x"}}, "'/default'"),
        ({"title": "x" * 300_000}, "262144 bytes"),
        (True, "'#'"),
        ([], "'#'"),
    ],
)
def test_unusable_schema_is_refused_by_location(schema: Any, place: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        compile_schema(schema)
    assert place in str(caught.value)
    assert str(caught.value).startswith("The input_schema is ")


def test_only_input_schemas_must_admit_an_object() -> None:
    assert compile_schema({"type": "string"}, what="output_schema").is_valid("x")
    with pytest.raises(DefinitionError, match="The output_schema is refused at '#'"):
        compile_schema({"$ref": "x"}, what="output_schema")


def test_a_failure_inside_the_compiler_is_a_definition_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ValueError("some reason")

    monkeypatch.setattr("toolgate.kernel.text.schema.jsonschema_rs.Draft202012Validator", fail)
    with pytest.raises(DefinitionError, match="cannot compile"):
        compile_schema({})


def test_nothing_is_fetched_when_a_reference_slips_through() -> None:
    with pytest.raises(ValueError, match="never fetched"):
        Schema({}, b"{}", {"$ref": "file:///etc/passwd"})


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"type": "integer"}, 1, "1"),
        ({"pattern": "^a$"}, "a", "a\n"),
        ({"format": "date"}, "2026-02-28", "2026-02-30"),
        ({"format": "date-time"}, "2026-02-28T10:00:00Z", "2026-02-28"),
        ({"format": "uuid"}, "123e4567-e89b-12d3-a456-426614174000", "123"),
        ({"format": "ipv4"}, "10.0.0.1", "10.0.0.256"),
        ({"format": "email"}, "a@b.test", "a"),
        ({"format": "uri"}, "https://a.test/", "no uri"),
        ({"format": "nobody-knows"}, "anything", None),
    ],
)
def test_values_are_asserted_without_coercion(schema: dict[str, Any], good: Any, bad: Any) -> None:
    compiled = field(schema)
    assert compiled.is_valid({"a": good})
    if bad is not None:
        assert not compiled.is_valid({"a": bad})


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        ({"type": "string"}, 5, ("/a", "is not of type string", "type")),
        ({"type": ["string", "null"]}, 5, ("/a", 'is not of type ["string","null"]', "type")),
        ({"enum": [1]}, 2, ("/a", "is not one of the allowed values", "enum")),
        ({"const": 1}, 2, ("/a", "is not the allowed value", "const")),
        ({"minimum": 3}, 2, ("/a", "is less than 3", "minimum")),
        ({"maxLength": 3}, SECRET, ("/a", "is longer than 3 characters", "maxLength")),
        ({"pattern": "^x"}, SECRET, ("/a", "does not match the pattern ^x", "pattern")),
        ({"format": "date"}, SECRET, ("/a", "is not a valid date", "format")),
        ({"uniqueItems": True}, [1, 1], ("/a", "has items that are equal", "uniqueItems")),
        ({"required": ["k"]}, {}, ("/a", "lacks the key 'k', which is required", "required")),
        (False, SECRET, ("/a", "is not allowed", "false")),
        (
            {"additionalProperties": False, "properties": {"k": {}}, "patternProperties": {"^x": {}}},
            {"k": 1, "x1": 1, "z": SECRET},
            ("/a", "has the key 'z', which is not allowed", "additionalProperties"),
        ),
        (
            {"additionalProperties": {"type": "null"}},
            {"a/b~": 1},
            ("/a/a~1b~0", "is not of type null", "type"),
        ),
        (
            {"patternProperties": {"^x": {"type": "null"}}},
            {"y": 1, "x": 1},
            ("/a/x", "is not of type null", "type"),
        ),
        (
            {"propertyNames": {"maxLength": 2}},
            {"ab": 1, "abc": SECRET},
            ("/a", "has the key 'abc', which is not an allowed name", "propertyNames"),
        ),
        ({"items": {"type": "null"}}, [None, 1], ("/a/1", "is not of type null", "type")),
        (
            {"prefixItems": [{"const": 1}], "items": {"const": 2}},
            [1, 2, 3],
            ("/a/2", "is not the allowed value", "const"),
        ),
        ({"prefixItems": [{"const": 1}, {}]}, [2], ("/a/0", "is not the allowed value", "const")),
        (
            {"contains": {"const": 1}},
            [2],
            ("/a", "has too few items of the kind it must contain", "contains"),
        ),
        (
            {"contains": {"const": 1}, "maxContains": 1},
            [1, 1],
            ("/a", "has too many items of a kind it may contain", "contains"),
        ),
        ({"contains": {"const": 1}, "maxItems": 1}, [1, 2], ("/a", "has more than 1 items", "maxItems")),
        ({"allOf": [{}, {"type": "null"}]}, 1, ("/a", "is not of type null", "type")),
        (
            {"anyOf": [{"type": "null"}, {"type": "string"}]},
            1,
            ("/a", "matches none of the alternatives", "anyOf"),
        ),
        (
            {"anyOf": [{"type": "null"}, {"type": "string", "maxLength": 1}]},
            "xx",
            ("/a", "is longer than 1 characters", "maxLength"),
        ),
        ({"anyOf": [{}], "oneOf": [{}, {}]}, 1, ("/a", "matches more than one alternative", "oneOf")),
        (
            {"oneOf": [False, {"$ref": "#/$defs/s"}, {"if": {}, "else": False, "then": False}]},
            1,
            ("/a", "is not allowed", "false"),
        ),
        ({"not": {}}, SECRET, ("/a", "is what the schema excludes", "not")),
        ({"not": {"type": "null"}, "type": "integer"}, SECRET, ("/a", "is not of type integer", "type")),
        (
            {"if": {"type": "string"}, "then": {"maxLength": 1}},
            "xx",
            ("/a", "is longer than 1 characters", "maxLength"),
        ),
        ({"if": {"type": "string"}, "else": {"minimum": 5}}, 1, ("/a", "is less than 5", "minimum")),
        ({"if": {}, "maximum": 0}, 1, ("/a", "is greater than 0", "maximum")),
        (
            {"dependentSchemas": {"q": {}, "k": {"required": ["l"]}}},
            {"k": 1},
            ("/a", "lacks the key 'l', which is required", "required"),
        ),
        (
            {"dependencies": {"k": ["l"]}},
            {"k": 1},
            ("/a", "lacks the key 'l', which is required", "dependencies"),
        ),
        (
            {"dependentRequired": {"k": ["l"]}},
            {"k": 1},
            ("/a", "has a key that requires another key", "dependentRequired"),
        ),
        ({"$ref": "#/$defs/s"}, 1, ("/a", "is not of type string", "type")),
        (
            {"allOf": [{"properties": {"k": {}}}], "unevaluatedProperties": False},
            {"z": SECRET},
            ("/a", "has parts that the schema does not allow", "unevaluatedProperties"),
        ),
        (
            {
                "type": "string",
                **{word: {} for word in ("items", "contains", "additionalProperties", "propertyNames")},
            },
            1,
            ("/a", "is not of type string", "type"),
        ),
    ],
)
def test_violation_names_place_and_rule_but_no_value(schema: Any, value: Any, expected: tuple[str, str, str]) -> None:
    compiled = compile_schema({"properties": {"a": schema}, "$defs": {"s": {"type": "string"}}})
    assert not compiled.is_valid({"a": value})
    found = compiled.violations({"a": value})
    assert found == [Violation(*expected)]
    assert SECRET not in repr(found)
    assert compiled.violations({"a": value}) == found


def test_keyword_for_another_type_says_nothing() -> None:
    words: dict[str, Any] = {
        "required": ["x"],
        "properties": {},
        "patternProperties": {"x": {}},
        "propertyNames": {},
    }
    words |= {"additionalProperties": False, "dependentSchemas": {"x": {}}, "prefixItems": [{}], "items": {}}
    words |= {"contains": {}, "type": "null", "x-unknown": 1}
    assert [violation.keyword for violation in field(words).violations({"a": 7})] == ["type"]


def test_violations_stop_at_the_limit_and_are_not_repeated() -> None:
    compiled = compile_schema({"properties": {"a": {"items": {"type": "string"}}}, "required": ["x", "y"]})
    assert len(compiled.violations({"a": [1] * 1000})) == 8
    assert len(compiled.violations({"a": [1] * 1000}, limit=3)) == 3
    twice = compile_schema(
        {"$defs": {"d": {"required": ["k"]}}, "allOf": [{"$ref": "#/$defs/d"}, {"$ref": "#/$defs/d"}]}
    )
    assert len(twice.violations({})) == 1


def test_long_keys_are_cut_in_messages() -> None:
    [violation] = compile_schema({"additionalProperties": False}).violations({"k" * 5000: 1})
    assert len(violation.message) < 150


def test_explaining_gives_up_after_enough_questions() -> None:
    patterns = {f"^{index}x": {"type": "integer"} for index in range(120)}
    compiled = compile_schema({"patternProperties": patterns, "maxProperties": 1})
    found = compiled.violations({f"k{index}": "s" for index in range(20_000)}, limit=9)
    assert [violation.keyword for violation in found] == ["schema"]
    assert compiled.canonical.startswith(b'{"maxProperties":1')
