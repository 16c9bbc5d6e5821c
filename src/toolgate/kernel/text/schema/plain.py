"""The JSON Schema of a signature whose annotations are plain, without loading Pydantic.

Plain are `str`, `int`, `float`, `bool`, `None`, `Any`, `list`, `dict` with text keys, and unions and literals of
these. For them the schema is the one Pydantic derives, key order included; `signature` asks Pydantic for the rest.
"""

from __future__ import annotations

import inspect
import math
import types
import typing
from collections.abc import Iterable
from typing import Any, Final, Literal, NamedTuple, Union

Json = dict[str, Any]

_ABSENT: Final = inspect.Parameter.empty
_KINDS: Final[tuple[tuple[Any, Json], ...]] = (
    (str, {"type": "string"}),
    (int, {"type": "integer"}),
    (float, {"type": "number"}),
    (bool, {"type": "boolean"}),
    (types.NoneType, {"type": "null"}),
    (Any, {}),
    (dict, {"additionalProperties": True, "type": "object"}),
)
_TYPES: Final = {str: "string", int: "integer", float: "number", bool: "boolean"}


class Field(NamedTuple):
    """One parameter a caller fills."""

    name: str
    annotation: Any
    default: Any = _ABSENT
    description: str | None = None


class _NotPlainError(Exception):
    """The schema is Pydantic's to derive."""


def plain_schema(fields: Iterable[Field], *, is_open: bool) -> Json | None:
    """Return the schema of an object with these fields, or `None` where one of them is not plain.

    `is_open`: other names are accepted too.
    """
    properties: Json = {}
    required = []
    try:
        for field in fields:
            properties[field.name] = _property(field)
            if field.default is _ABSENT:
                required.append(field.name)
    except _NotPlainError:
        return None
    schema: Json = {"additionalProperties": is_open, "properties": properties}
    if required:
        schema["required"] = required
    return {**schema, "type": "object"}


def _property(field: Field) -> Json:
    schema = _schema(field.annotation)
    if field.default is not _ABSENT:
        schema["default"] = _default(field.default)
    if field.description is not None:
        schema["description"] = field.description
    return dict(sorted(schema.items()))


def _schema(annotation: Any) -> Json:
    """Return a new schema, its keys in alphabetical order."""
    for kind, schema in _KINDS:
        if annotation is kind:
            return dict(schema)
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Literal:
        return _literal(arguments)
    if origin in (Union, types.UnionType):
        return _union(arguments)
    if annotation is list:
        return {"items": {}, "type": "array"}
    if origin is list and len(arguments) == 1:
        return {"items": _schema(arguments[0]), "type": "array"}
    if origin is dict and len(arguments) == 2 and arguments[0] is str:
        return {"additionalProperties": _schema(arguments[1]) or True, "type": "object"}
    raise _NotPlainError


def _literal(values: tuple[Any, ...]) -> Json:
    if not all(map(_is_scalar, values)):
        raise _NotPlainError
    if values == (None,):
        return {"const": None, "type": "null"}
    schema: Json = {"const": values[0]} if len(values) == 1 else {"enum": list(values)}
    kinds = {type(value) for value in values}
    if len(kinds) == 1:
        schema["type"] = _TYPES[kinds.pop()]
    return schema


def _union(choices: tuple[Any, ...]) -> Json:
    schemas = [_schema(choice) for choice in choices if choice is not types.NoneType]
    if len(schemas) < len(choices):
        schemas.append({"type": "null"})  # last, wherever it was written
    if any(schema in schemas[:index] for index, schema in enumerate(schemas)):
        raise _NotPlainError  # Pydantic merges choices that look the same
    return {"anyOf": schemas}


def _default(value: Any) -> Any:
    if _is_scalar(value):
        return value
    if type(value) is list and all(map(_is_scalar, value)):
        return list(value)
    if type(value) is dict and not value:
        return {}
    raise _NotPlainError


def _is_scalar(value: Any) -> bool:
    """Whether a value is in the schema as it is. What is not finite, or perhaps not Unicode, is left to Pydantic."""
    kind = type(value)
    if kind is str:
        return bool(value.isascii())
    return value is None or kind is int or kind is bool or (kind is float and math.isfinite(value))
