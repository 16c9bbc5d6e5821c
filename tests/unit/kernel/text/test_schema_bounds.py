"""A schema that compiles validates in bounded time, and ordinary recursive schemas compile."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema_rs import Draft202012Validator
from pydantic import BaseModel, JsonValue

from toolgate.errors import DefinitionError
from toolgate.kernel.text.schema import compile_schema

Node = dict[str, Any]


def ref(name: str) -> Node:
    return {"$ref": f"#/$defs/{name}"}


def with_defs(start: str, **defs: Any) -> Node:
    return {"type": "object", "properties": {"x": ref(start)}, "$defs": defs}


def doubling(keyword: str, levels: int) -> Node:
    defs = {f"d{level}": {keyword: [ref(f"d{level - 1}")] * 2} for level in range(1, levels)}
    return with_defs(f"d{levels - 1}", d0={"type": "string"}, **defs)


def nodes(count: int, **tag: Any) -> Node:
    """An expression tree: `count` kinds of nodes, each with a left and a right expression."""
    kinds: dict[str, Node] = {}
    for index in range(count):
        kind = {key: {word: f"k{index}" if word == "const" else [f"k{index}"]} for key, word in tag.items()}
        fields = {"left": ref("expr"), "right": ref("expr"), **kind}
        kinds[f"n{index}"] = {"type": "object", "properties": fields, "required": list(kind)}
    return with_defs("expr", expr={"oneOf": [ref(name) for name in kinds]}, **kinds)


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"allOf": [{"$ref": "#"}]},
        {"not": {"$ref": "#"}},
        {"if": True, "then": {"anyOf": [{"$ref": "#"}]}},
        {"dependentSchemas": {"a": {"$ref": "#"}}},
        {"dependencies": {"a": {"$ref": "#"}}},
        {"$dynamicAnchor": "a", "allOf": [{"$dynamicRef": "#a"}]},
        with_defs("a", a=ref("b"), b={"oneOf": [ref("a")]}),
    ],
)
def test_cycle_that_stays_in_place_is_refused(schema: Node) -> None:
    with pytest.raises(DefinitionError, match="leads back to itself"):
        compile_schema(schema)


@pytest.mark.parametrize(
    "schema",
    [
        doubling("allOf", 30),
        doubling("anyOf", 30),
        doubling("oneOf", 30),
        {"type": "object", "properties": {"a": {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}}},
        {"properties": {"a": {"allOf": [{"$ref": "#"}, {"$ref": "#", "minProperties": 0}]}}},
        {"properties": {"a": {"$ref": "#"}}, "patternProperties": {"^a": {"$ref": "#"}}},
        {"patternProperties": {"^a": {"$ref": "#"}, "a$": {"$ref": "#"}}},
        {"properties": {"a": {"$ref": "#"}}, "allOf": [{"additionalProperties": {"$ref": "#"}}]},
        {"items": {"$ref": "#"}, "contains": {"$ref": "#"}},
        {"prefixItems": [{"$ref": "#"}], "unevaluatedItems": {"$ref": "#"}},
        {"additionalProperties": {"$ref": "#"}, "unevaluatedProperties": {"$ref": "#"}},
        with_defs("a", a={"anyOf": [{"properties": {"n": ref("a")}}, {"properties": {"n": ref("a")}}]}),
        with_defs(
            "n9",
            n0=True,
            **{f"n{i}": {"properties": {"a": {"allOf": [ref(f"n{i}"), ref(f"n{i - 1}")]}}} for i in range(1, 10)},
        ),
        nodes(20),
        {"properties": {"a": {"enum": [[index] for index in range(20_000)]}}},
        {"patternProperties": {f"{index}x": {} for index in range(6_000)}},
        {"properties": {"a": {"anyOf": [{"pattern": f"{index}"} for index in range(300)]}}},
    ],
)
def test_schema_whose_work_explodes_is_refused(schema: Node) -> None:
    with pytest.raises(DefinitionError, match="more than 5000 steps"):
        compile_schema(schema)


def test_long_chain_of_subschemas_is_refused() -> None:
    chain = {f"d{index}": ref(f"d{index - 1}") for index in range(1, 100)}
    with pytest.raises(DefinitionError, match="behind each other"):
        compile_schema(with_defs("d99", d0={}, **chain))


class Employee(BaseModel):
    name: str
    boss: Employee | None = None
    team: list[Team] = []


class Team(BaseModel):
    members: dict[str, Employee]
    notes: JsonValue = None


JSON = {
    "anyOf": [
        {"type": ["string", "number", "boolean", "null"]},
        {"type": "array", "items": ref("json")},
        {"type": "object", "additionalProperties": ref("json")},
    ]
}
LIST = {"type": "object", "properties": {"next": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}}}
TREE = {"type": "object", "properties": {"children": {"type": "array", "items": {"$ref": "#"}}}}
BINARY = {
    "type": "object",
    "properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}},
    "additionalProperties": {"$ref": "#"},
}


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        (with_defs("json", json=JSON), {"x": {"a": [1, {"b": None}]}}, None),
        (LIST, {"next": {"next": None}}, {"next": {"next": 1}}),
        (TREE, {"children": [{"children": []}]}, {"children": [{"children": 1}]}),
        (BINARY, {"left": {"right": {}}, "other": {}}, {"left": {"right": 1}}),
        (Employee.model_json_schema(), {"name": "a", "boss": {"name": "b"}}, {"name": "a", "boss": {}}),
        (
            nodes(20, kind="const"),
            {"x": {"kind": "k3", "left": {"kind": "k19"}}},
            {"x": {"kind": "k3", "left": {"kind": "zz"}}},
        ),
        (nodes(5, a="enum", z="const"), {"x": {"a": "k1", "z": "k1"}}, {"x": {"a": "k1", "z": "k2"}}),
        ({"propertyNames": {"$ref": "#"}, "additionalProperties": {"$ref": "#"}}, {"a": {}}, None),
        (doubling("allOf", 6), {"x": "a"}, {"x": 1}),
        (
            with_defs(
                "e",
                e={
                    "anyOf": [
                        {"type": "number"},
                        ref("n"),
                        {"type": "object", "required": ["n"], "properties": {"n": ref("e"), "m": False}},
                    ]
                },
                n={"type": "array", "items": {"oneOf": [ref("e"), {"type": "integer", "minimum": 5}]}},
            ),
            {"x": {"n": [1.5]}},
            {"x": {"n": {"n": "1"}}},
        ),
        ({"prefixItems": [{"$ref": "#"}], "items": {"$ref": "#"}}, {}, None),
    ],
)
def test_ordinary_recursive_schema_compiles(schema: Node, good: Any, bad: Any) -> None:
    compiled = compile_schema(schema)
    assert compiled.is_valid(good)
    if bad is not None:
        assert not compiled.is_valid(bad)
        assert compiled.violations(bad)


@pytest.mark.parametrize("tag", ["a", "zz"])
def test_tagged_tree_is_checked_and_explained_quickly_at_full_depth(tag: str) -> None:
    compiled = compile_schema(nodes(20, **{tag: "const"}))
    value: Any = {tag: "k5", "left": 7}
    for _ in range(60):
        value = {"left": value, "right": {tag: "k0"}, tag: "k19"}
    started = time.process_time()
    assert not compiled.is_valid({"x": value})
    [violation] = compiled.violations({"x": value})
    assert time.process_time() - started < 5
    assert violation.location == "/x" + "/left" * 61


def test_reference_into_a_guarded_alternative_still_leads_there() -> None:
    schema = nodes(3, kind="const")
    fields = {"kind": {"const": "in"}, "left": ref("expr"), "size": {"type": "integer"}, "any": True}
    inline = {"type": "object", "properties": fields, "required": ["kind", "any"]}
    others = [
        {"type": "null"},
        False,
        {"type": "array", "const": [1]},
        {"type": "number", "not": {"const": 5}},
    ]
    schema["$defs"]["expr"]["oneOf"] += [inline, *others]
    schema["properties"]["y"] = {"$ref": "#/$defs/expr/oneOf/3/properties/size"}
    schema["properties"]["w"] = {"$ref": "#/$defs/expr/oneOf/3"}
    schema["dependencies"] = {"y": ["x"]}
    compiled = compile_schema(schema)
    assert compiled.is_valid({"x": None, "y": 1, "w": {"kind": "in", "any": 0, "left": {"kind": "k1"}}})
    assert [v.location for v in compiled.violations({"x": None, "y": "1"})] == ["/y"]
    assert [v.location for v in compiled.violations({"w": {"kind": "k0", "any": 0}})] == ["/w/kind"]
    assert [v.keyword for v in compiled.violations({"y": 1})] == ["dependencies"]
    assert [v.keyword for v in compiled.violations({"x": "text"})] == ["oneOf"]
    assert [v.keyword for v in compiled.violations({"x": 5})] == ["not"]


def test_too_many_alternatives_are_not_compared() -> None:
    with pytest.raises(DefinitionError, match="more than 5000 steps"):
        compile_schema(nodes(401, kind="const"))


def test_large_arguments_take_linear_time() -> None:
    big = {"a": [{"k": index} for index in range(60_000)]}
    schemas: list[Node] = [
        {"uniqueItems": True},
        {"contains": {"required": ["zz"]}, "minContains": 2},
        {"items": {"enum": [[index] for index in range(500)]}},
        {"items": {"patternProperties": {f"{index}$": {} for index in range(100)}}},
        {"items": {"anyOf": [{"required": [f"q{index}"]} for index in range(100)]}},
    ]
    for schema in schemas:
        compiled = compile_schema({"properties": {"a": schema}})
        started = time.process_time()
        compiled.is_valid(big)
        compiled.violations(big)
        assert time.process_time() - started < 20


NAMES = st.sampled_from(["a", "b"])
LEAVES = st.sampled_from(
    [
        {},
        True,
        False,
        {"type": "object"},
        {"type": "string"},
        {"required": ["a"]},
        {"const": 1},
        {"$ref": "#"},
        {"$ref": "#/$defs/d"},
        {"type": "array"},
    ]
)


def applied(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    one = st.sampled_from(["not", "items", "additionalProperties", "contains", "propertyNames", "if", "then", "else"])
    many = st.sampled_from(["allOf", "anyOf", "oneOf", "prefixItems"])
    keywords = st.dictionaries(one, inner, max_size=2)
    lists = st.dictionaries(many, st.lists(inner, min_size=1, max_size=3), max_size=2)
    maps = st.dictionaries(
        st.sampled_from(["properties", "patternProperties", "dependentSchemas"]),
        st.dictionaries(NAMES, inner, max_size=2),
        max_size=2,
    )
    kind = st.sampled_from([{}, {"type": "object"}, {"unevaluatedProperties": False}])
    return st.builds(
        lambda *parts: {key: value for part in parts for key, value in part.items()},
        keywords,
        lists,
        maps,
        kind,
    )


SCHEMAS = st.recursive(LEAVES, applied, max_leaves=8)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.sampled_from([None, 1, "a", {}]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=2),
    max_leaves=8,
)


@given(SCHEMAS.filter(lambda schema: isinstance(schema, dict)), SCHEMAS, st.lists(VALUES, min_size=1, max_size=4))
def test_compiled_schema_answers_like_the_plain_validator_and_explains_each_no(
    schema: Node, other: Any, values: list[Any]
) -> None:
    source = {**schema, "$defs": {"d": other}}
    try:
        compiled = compile_schema(source, what="output_schema")
    except DefinitionError:
        return
    plain = Draft202012Validator(json.loads(json.dumps(source)))
    for value in values:
        assert compiled.is_valid(value) == plain.is_valid(value)
        found = compiled.violations(value)
        assert bool(found) != compiled.is_valid(value)
        for violation in found:
            at = value
            for step in violation.location.split("/")[1:]:
                at = at[int(step)] if isinstance(at, list) else at[step]
