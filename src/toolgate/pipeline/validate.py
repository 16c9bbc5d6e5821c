"""Check arguments before anybody is asked, and again before they run: strict JSON, schema, typed parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import orjson

from toolgate.errors import ToolInputError
from toolgate.kernel.text.canonical import Arguments, Limits, read_arguments
from toolgate.kernel.tool import ToolDefinition

_new = tuple.__new__  # what a named tuple's own constructor does, without its Python frame


class Checked(NamedTuple):
    """Arguments that fit: parsed, in canonical form, and as the tool's function takes them; nobody else holds them."""

    value: dict[str, Any]
    canonical: bytes
    kwargs: dict[str, Any]


def validate(tool: ToolDefinition, raw: str | bytes | Mapping[str, object], limits: Limits) -> Checked:
    """Return the arguments as one canonical form; raise ToolInputError naming tool and location."""
    try:
        arguments = read_arguments(raw, limits=limits)
    except ToolInputError as error:
        error.tool = tool.name
        raise
    return check(tool, arguments)


def revalidate(tool: ToolDefinition, canonical: bytes) -> Checked:
    """Check stored arguments against the definition that is about to run them; raise ToolInputError."""
    return check(tool, Arguments(orjson.loads(canonical), canonical))


def check(tool: ToolDefinition, arguments: Arguments) -> Checked:
    """Return the arguments, checked and bound; raise ToolInputError where the schema or a parameter refuses them."""
    if not tool.schema.is_valid(arguments.value):
        violations = tool.schema.violations(arguments.value)
        listed = "; ".join(f"{item.location or '/'} {item.message}" for item in violations)
        raise ToolInputError(
            f"Arguments of `{tool.name}` do not fit its schema: {listed}. Correct them and call again.",
            tool=tool.name,
            location=violations[0].location,
        )
    value, canonical = arguments
    return _new(Checked, (value, canonical, value if tool.bind is None else _bound(tool, arguments)))


def _bound(tool: ToolDefinition, arguments: Arguments) -> dict[str, Any]:
    assert tool.bind is not None
    try:
        return tool.bind(arguments.canonical)
    except ValueError as error:
        refusal: Any = error  # Pydantic's ValidationError, the only one that leaves a binder; importing it here costs
        first = refusal.errors(include_url=False, include_context=False, include_input=False)[0]
        where = "/" + "/".join(str(part) for part in first["loc"])
        raise ToolInputError(
            f"Arguments of `{tool.name}` are refused by a parameter's type: {first['type']} at {where}.",
            tool=tool.name,
            location=where,
        ) from None
