"""Tools as providers take them: shapes, name rules and strict modes."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.kernel.provider_samples import TOOLS

from toolgate.errors import DefinitionError, UsageError
from toolgate.kernel.text.formats import Format
from toolgate.kernel.text.formats.schemas import export_tools
from toolgate.kernel.tool import ToolDefinition

CONVERT = TOOLS["convert"]
SCHEMA = dict(CONVERT.input_schema)


def tool(name: str = "t", schema: dict[str, Any] | None = None, **options: Any) -> ToolDefinition:
    return ToolDefinition(name=name, input_schema=schema or {}, handler=print, **options)


@pytest.mark.parametrize(
    ("format", "expected"),
    [
        (
            "openai",
            {
                "type": "function",
                "function": {"name": "convert", "description": "Convert money.", "parameters": SCHEMA},
            },
        ),
        (
            "openai_responses",
            {
                "type": "function",
                "name": "convert",
                "description": "Convert money.",
                "parameters": SCHEMA,
                "strict": False,
            },
        ),
        ("anthropic", {"name": "convert", "description": "Convert money.", "input_schema": SCHEMA}),
        (
            "gemini",
            {
                "functionDeclarations": [
                    {"name": "convert", "description": "Convert money.", "parametersJsonSchema": SCHEMA}
                ]
            },
        ),
        (
            "bedrock",
            {"toolSpec": {"name": "convert", "description": "Convert money.", "inputSchema": {"json": SCHEMA}}},
        ),
        ("mcp", {"name": "convert", "description": "Convert money.", "inputSchema": SCHEMA}),
    ],
)
def test_a_tool_is_told_in_the_provider_s_shape(format: str, expected: dict[str, Any]) -> None:
    assert export_tools([CONVERT], format) == [expected]
    assert export_tools([], format) == []


def test_what_is_exported_is_a_copy() -> None:
    export_tools([CONVERT], "anthropic")[0]["input_schema"]["properties"]["amount"]["type"] = "string"
    assert CONVERT.input_schema["properties"]["amount"]["type"] == "integer"


def test_the_top_of_a_schema_is_always_an_object() -> None:
    open_tool = tool(schema={"$schema": "https://json-schema.org/draft/2020-12/schema"})
    assert export_tools([open_tool], "anthropic")[0] == {
        "name": "t",
        "input_schema": {"type": "object", "properties": {}},
    }


def test_alternatives_at_the_top_are_left_out_where_they_are_refused() -> None:
    either = tool(schema={"type": "object", "properties": {"a": {}, "b": {}}, "anyOf": [{"required": ["a"]}]})
    assert "anyOf" not in export_tools([either], "openai")[0]["function"]["parameters"]
    assert "anyOf" in export_tools([either], "mcp")[0]["inputSchema"]


@pytest.mark.parametrize(
    ("format", "name"),
    [
        ("openai", "files/read"),
        ("openai_responses", "a.b"),
        ("anthropic", "n" * 65),
        ("bedrock", "a:b"),
        ("gemini", "1st"),
        ("mcp", "a/b"),
    ],
)
def test_a_name_the_provider_refuses_is_an_error(format: str, name: str) -> None:
    with pytest.raises(DefinitionError, match="Rename the tool"):
        export_tools([tool(name)], format)


def test_a_name_one_provider_takes_need_not_please_another() -> None:
    assert export_tools([tool("a.b:c")], "gemini")
    assert export_tools([tool("a.b")], "mcp")


def test_a_parameter_name_the_provider_refuses_is_an_error() -> None:
    odd = tool(schema={"type": "object", "properties": {"a b": {}}})
    with pytest.raises(DefinitionError, match="Rename the parameter"):
        export_tools([odd], "anthropic")
    assert export_tools([odd], "openai")


def strict_schema(**options: Any) -> dict[str, Any]:
    inner = {"type": "object", "properties": {"x": {"type": ["string", "null"]}}, "required": ["x"]}
    return {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {**inner, "additionalProperties": False}},
        "required": ["a", "b"],
        "additionalProperties": False,
        **options,
    }


@pytest.mark.parametrize("format", ["openai", "openai_responses", "anthropic", "bedrock"])
def test_a_fitting_schema_is_told_as_strict(format: str) -> None:
    exported = export_tools([tool(schema=strict_schema())], format, strict=True)[0]
    assert {**exported, **exported.get("function", {}), **exported.get("toolSpec", {})}["strict"] is True


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({}, "`additionalProperties` at '#' must be false"),
        (strict_schema(required=["b"]), "`a` at '#' must be required"),
        (strict_schema(minProperties=1), "`minProperties` at '#' is not supported"),
        (strict_schema(properties={"a": {"type": "integer"}, "b": {}}), "no type at '#/properties/b'"),
        (strict_schema(properties={"a": {"type": "integer"}, "b": True}), "only true or false at '#/properties/b'"),
        (
            strict_schema(properties={"a": {"type": "integer"}, "b": {"type": ["object", "null"]}}),
            "`additionalProperties` at '#/properties/b' must be false",
        ),
        (strict_schema(additionalProperties=True), "must be false"),
    ],
)
def test_strict_mode_names_what_stands_in_its_way(schema: dict[str, Any], words: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        export_tools([tool(schema=schema)], "openai", strict=True)
    assert words in str(caught.value)


def test_strict_modes_differ() -> None:
    optional = strict_schema(required=["b"])
    assert export_tools([tool(schema=optional)], "anthropic", strict=True)
    bounded = strict_schema(properties={"a": {"type": "integer", "minimum": 1}}, required=["a"])
    assert export_tools([tool(schema=bounded)], "openai", strict=True)
    with pytest.raises(DefinitionError, match="`minimum`"):
        export_tools([tool(schema=bounded)], "anthropic", strict=True)


@pytest.mark.parametrize("format", ["gemini", "mcp"])
def test_strict_mode_is_refused_where_there_is_none(format: str) -> None:
    with pytest.raises(UsageError, match="no strict mode"):
        export_tools([CONVERT], format, strict=True)


def test_formats_of_calls_alone_have_no_export() -> None:
    with pytest.raises(UsageError, match="has calls only"):
        export_tools([CONVERT], Format.PLAIN)


def test_mcp_learns_of_effects_and_output() -> None:
    output = {"type": "object", "properties": {"n": {"type": "integer"}}}
    read = export_tools([tool(effects="read", output_schema=output)], "mcp")[0]
    assert read["outputSchema"] == output
    assert read["annotations"] == {"readOnlyHint": True, "destructiveHint": False, "idempotentHint": True}
    wipe = export_tools([tool(effects="irreversible")], "mcp")[0]
    assert wipe["annotations"] == {"readOnlyHint": False, "destructiveHint": True, "idempotentHint": False}
