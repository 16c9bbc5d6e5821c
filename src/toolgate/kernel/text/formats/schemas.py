"""Tell a provider which tools there are, in its own shape and within its rules.

What a model is told is advice; what it sends is checked against the tool's own schema either way. So where a
provider refuses a part of a schema, that part is left out of what the model sees. A name a provider refuses is an
error: names match byte for byte, and there are no aliases.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from copy import deepcopy
from typing import Any, Final

from toolgate.errors import DefinitionError, UsageError
from toolgate.kernel.misuse import explained, fits
from toolgate.kernel.text.formats.read import Format
from toolgate.kernel.text.schema.guards import positions
from toolgate.kernel.tool import Effects, ToolDefinition

_NAMES: Final = {
    Format.OPENAI: r"[A-Za-z0-9_-]{1,64}",
    Format.OPENAI_RESPONSES: r"[A-Za-z0-9_-]{1,64}",
    Format.ANTHROPIC: r"[A-Za-z0-9_-]{1,64}",
    Format.BEDROCK: r"[A-Za-z0-9_-]{1,64}",
    Format.GEMINI: r"[A-Za-z_][A-Za-z0-9_.:-]{0,127}",
    Format.MCP: r"[A-Za-z0-9_.-]{1,128}",
}
_PROPERTY_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_CHECK_PROPERTY_NAMES: Final = frozenset({Format.ANTHROPIC, Format.BEDROCK})
_REFUSED_AT_THE_TOP: Final = ("anyOf", "oneOf", "allOf", "not", "enum", "const", "if", "then", "else")
_KEEPS_ALL: Final = frozenset({Format.MCP, Format.GEMINI})

_STRICT: Final = frozenset({Format.OPENAI, Format.OPENAI_RESPONSES, Format.ANTHROPIC, Format.BEDROCK})
_ALL_REQUIRED: Final = frozenset({Format.OPENAI, Format.OPENAI_RESPONSES})
_STRICT_WORDS: Final = frozenset(
    "type properties required additionalProperties items enum const anyOf $ref $defs description title format".split()
)
_OPENAI_STRICT_WORDS: Final = _STRICT_WORDS | frozenset(
    "pattern multipleOf minimum maximum exclusiveMinimum exclusiveMaximum minItems maxItems".split()
)
_MOST_PROBLEMS: Final = 5


@explained
def export_tools(
    tools: Iterable[ToolDefinition], format: Format | str, *, strict: bool = False
) -> list[dict[str, Any]]:
    """Return the tools as a provider's `tools` parameter takes them.

    Raise DefinitionError for a name the provider refuses and, with `strict`, for a schema its strict mode cannot
    follow, naming what stands in the way.
    """
    shape = Format(format)
    if shape not in _NAMES:
        raise UsageError(f"Tools are exported for {', '.join(_NAMES)}; '{shape}' has calls only.")
    if strict and shape not in _STRICT:
        raise UsageError(f"'{shape}' has no strict mode; leave `strict` out.")
    exported = [_export(tool, shape, strict) for tool in tools]
    if shape is Format.GEMINI:
        return [{"functionDeclarations": exported}] if exported else []
    return exported


def _export(tool: ToolDefinition, shape: Format, strict: bool) -> dict[str, Any]:
    if not fits(tool, ToolDefinition):
        raise DefinitionError(f"{type(tool).__name__} is not a tool; export a list of definitions.")
    _check_names(tool, shape)
    schema = _shown_schema(tool, shape)
    if strict:
        problems = list(strict_problems(schema, shape))
        if problems:
            raise DefinitionError(
                f"Tool `{tool.name}` cannot be offered to '{shape}' in strict mode: "
                f"{'; '.join(problems[:_MOST_PROBLEMS])}. Change its schema or export it without `strict`."
            )
    return _SHAPES[shape](tool, schema, strict)


def _check_names(tool: ToolDefinition, shape: Format) -> None:
    if not re.fullmatch(_NAMES[shape], tool.name):
        raise DefinitionError(
            f"Tool `{tool.name}` cannot be offered to '{shape}', which takes names of the form "
            f"{_NAMES[shape]}. Rename the tool."
        )
    if shape in _CHECK_PROPERTY_NAMES:
        for name in tool.input_schema.get("properties", {}):
            if not _PROPERTY_NAME.fullmatch(name):
                raise DefinitionError(
                    f"Tool `{tool.name}` cannot be offered to '{shape}': its parameter '{name[:64]}' is not "
                    f"of the form {_PROPERTY_NAME.pattern}. Rename the parameter."
                )


def _shown_schema(tool: ToolDefinition, shape: Format) -> dict[str, Any]:
    """Return the schema with an object at its top, which every provider wants."""
    schema = {key: value for key, value in deepcopy(dict(tool.input_schema)).items() if key != "$schema"}
    if shape not in _KEEPS_ALL:
        schema = {key: value for key, value in schema.items() if key not in _REFUSED_AT_THE_TOP}
    return {**schema, "type": "object", "properties": schema.get("properties", {})}


def strict_problems(schema: dict[str, Any], format: Format | str) -> Iterator[str]:
    """Yield what keeps a schema from the provider's strict mode, with the place of each."""
    shape = Format(format)
    words = _OPENAI_STRICT_WORDS if shape in _ALL_REQUIRED else _STRICT_WORDS
    for pointer, node in positions(schema).items():
        where = f"at '#{pointer[:100]}'"
        if not isinstance(node, dict):
            if not pointer.endswith("/additionalProperties"):
                yield f"a schema that is only true or false {where}"
            continue
        for word in sorted(node.keys() - words):
            yield f"`{word}` {where} is not supported"
        if "type" not in node and not node.keys() & {"anyOf", "$ref", "enum", "const"}:
            yield f"no type {where}"
        yield from _object_problems(node, where, all_required=shape in _ALL_REQUIRED)


def _object_problems(node: dict[str, Any], where: str, *, all_required: bool) -> Iterator[str]:
    types = node.get("type")
    if types != "object" and not (isinstance(types, list) and "object" in types):
        return
    if node.get("additionalProperties") is not False:
        yield f"`additionalProperties` {where} must be false"
    optional = node.get("properties", {}).keys() - set(node.get("required", ()))
    if all_required and optional:
        yield f"`{min(optional)[:64]}` {where} must be required, and null where it may be left out"


def _described(tool: ToolDefinition, **rest: Any) -> dict[str, Any]:
    told = {"name": tool.name, **({"description": tool.description} if tool.description else {})}
    return {**told, **rest}


def _openai(tool: ToolDefinition, schema: dict[str, Any], strict: bool) -> dict[str, Any]:
    function = _described(tool, parameters=schema, **({"strict": True} if strict else {}))
    return {"type": "function", "function": function}


def _responses(tool: ToolDefinition, schema: dict[str, Any], strict: bool) -> dict[str, Any]:
    # Without the key this API turns strict mode on by itself.
    return {"type": "function", **_described(tool, parameters=schema, strict=strict)}


def _anthropic(tool: ToolDefinition, schema: dict[str, Any], strict: bool) -> dict[str, Any]:
    return _described(tool, input_schema=schema, **({"strict": True} if strict else {}))


def _gemini(tool: ToolDefinition, schema: dict[str, Any], strict: bool) -> dict[str, Any]:
    return _described(tool, parametersJsonSchema=schema)


def _bedrock(tool: ToolDefinition, schema: dict[str, Any], strict: bool) -> dict[str, Any]:
    return {"toolSpec": _described(tool, inputSchema={"json": schema}, **({"strict": True} if strict else {}))}


def _mcp(tool: ToolDefinition, schema: dict[str, Any], strict: bool) -> dict[str, Any]:
    told = _described(tool, inputSchema=schema)
    if tool.output_schema is not None:
        told["outputSchema"] = deepcopy(dict(tool.output_schema))
    if tool.effects is not None:
        is_read = tool.effects is Effects.READ
        told["annotations"] = {
            "readOnlyHint": is_read,
            "destructiveHint": tool.effects is Effects.IRREVERSIBLE,
            "idempotentHint": is_read or tool.idempotent,
        }
    return told


_SHAPES: Final = {
    Format.OPENAI: _openai,
    Format.OPENAI_RESPONSES: _responses,
    Format.ANTHROPIC: _anthropic,
    Format.GEMINI: _gemini,
    Format.BEDROCK: _bedrock,
    Format.MCP: _mcp,
}
