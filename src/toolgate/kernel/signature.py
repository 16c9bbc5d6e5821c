"""From a Python function to a tool: its schema from the signature, its words from the docstring."""

from __future__ import annotations

import inspect
import re
import types
import typing
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, Union, overload

from toolgate.errors import DefinitionError
from toolgate.kernel.context import Context
from toolgate.kernel.input import ToolInput
from toolgate.kernel.tool import Hook, ToolDefinition

Function = Callable[..., Any]
Bind = Callable[[dict[str, Any]], dict[str, Any]]


class Derived(NamedTuple):
    """What a signature and docstring say."""

    schema: dict[str, Any]
    description: str
    bind: Bind | None
    inject: str | None


@overload
def tool(function: Function, /) -> ToolDefinition: ...
@overload
def tool(
    function: None = None, /, *, name: str | None = None, **options: Any
) -> Callable[[Function], ToolDefinition]: ...
def tool(
    function: Function | None = None, /, *, name: str | None = None, **options: Any
) -> ToolDefinition | Callable[[Function], ToolDefinition]:
    """Make a tool of a function: `@tool` or `@tool(effects="read", ...)`.

    The schema comes from the type hints, descriptions from the docstring; every field of
    ToolDefinition can be given as an option. A parameter annotated `ToolInput` receives the input
    itself (progress, cancellation) and is not part of the schema; `Context` receives the context.
    """
    if function is None:
        return lambda decorated: _define(decorated, name, options)
    return _define(function, name, options)


def _define(function: Function, name: str | None, options: dict[str, Any]) -> ToolDefinition:
    if not callable(function):
        raise DefinitionError("`@tool` decorates a function; give options by keyword.")
    derived = derive(function)
    options.setdefault("input_schema", derived.schema)
    options.setdefault("description", derived.description)
    return ToolDefinition(
        name=name or str(getattr(function, "__name__", type(function).__name__)),
        handler=_as_handler(function, derived),
        function=function,
        bind=derived.bind,
        inject=derived.inject,
        **options,
    )


def _as_handler(function: Function, derived: Derived) -> Hook:
    """Return the function as a handler that takes a ToolInput."""

    def handler(tool_input: ToolInput) -> Any:
        return function(**keywords(tool_input, derived.bind, derived.inject))

    handler.__module__ = function.__module__
    handler.__qualname__ = getattr(function, "__qualname__", type(function).__name__)
    return handler


def keywords(tool_input: ToolInput, bind: Bind | None, inject: str | None) -> dict[str, Any]:
    """Return the keyword arguments a function-style tool is called with."""
    arguments = tool_input.payload if bind is None else bind(tool_input.payload)
    if inject is not None:
        parameter, _, kind = inject.partition(":")
        arguments[parameter] = tool_input if kind == "input" else tool_input.ctx
    return arguments


def derive(function: Function) -> Derived:
    """Read schema, description and converters off a function; raise DefinitionError where it cannot be called."""
    summary, words = read_docstring(inspect.getdoc(function) or "")
    fields: dict[str, Any] = {}
    converters: dict[str, Any] = {}
    inject: str | None = None
    extra = "forbid"
    for parameter, annotation in _parameters(function):
        if annotation in (ToolInput, Context):
            inject = f"{parameter.name}:{'input' if annotation is ToolInput else 'context'}"
        elif parameter.kind is parameter.VAR_KEYWORD:
            extra = "allow"
        else:
            fields[parameter.name] = _field(parameter, annotation, words)
            if not _is_plain(annotation):
                converters[parameter.name] = annotation
    schema = _schema_of(function, fields, extra)
    return Derived(schema, summary, _binder(converters) if converters else None, inject)


def _parameters(function: Function) -> list[tuple[inspect.Parameter, Any]]:
    try:
        signature = inspect.signature(function)
        target = function if inspect.isroutine(function) else type(function).__call__
        hints = typing.get_type_hints(target, include_extras=True)
    except (NameError, TypeError, ValueError) as error:
        raise DefinitionError(f"The signature of {function!r} cannot be read: {error}.") from error
    found = []
    for parameter in signature.parameters.values():
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.VAR_POSITIONAL):
            raise DefinitionError(
                f"Parameter `{parameter.name}` of {function!r} cannot be passed by name; tools are called by keyword."
            )
        found.append((parameter, hints.get(parameter.name, Any)))
    return found


def _field(parameter: inspect.Parameter, annotation: Any, words: dict[str, str]) -> Any:
    from pydantic import Field  # lazily: only tools made of functions need it

    default = ... if parameter.default is parameter.empty else parameter.default
    described = Field(default, description=words.get(parameter.name))
    if getattr(annotation, "__metadata__", None) and words.get(parameter.name) is None:
        return (annotation, default)
    return (annotation, described)


def _schema_of(function: Function, fields: dict[str, Any], extra: str) -> dict[str, Any]:
    from pydantic import ConfigDict, create_model
    from pydantic.errors import PydanticUserError

    config = ConfigDict(extra=typing.cast(Literal["allow", "forbid"], extra), arbitrary_types_allowed=False)
    aliased = {f"p_{index}": value for index, value in enumerate(fields.values())}
    names = list(fields)
    try:
        # Parameters may have names Pydantic reserves (`schema`, `copy`), so fields are numbered and renamed.
        model = create_model("Arguments", __config__=config, **aliased)
        schema: dict[str, Any] = model.model_json_schema()
    except (PydanticUserError, TypeError) as error:
        raise DefinitionError(f"No schema can be derived from {function!r}: {str(error).splitlines()[0]}") from error
    properties = schema.get("properties", {})
    schema["properties"] = {names[int(key[2:])]: _untitled(value) for key, value in properties.items()}
    if "required" in schema:
        schema["required"] = [names[int(key[2:])] for key in schema["required"]]
    schema.pop("title", None)
    return schema


def _untitled(schema: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in schema.items() if key != "title"}


_PLAIN = (str, int, float, bool, type(None), Any, dict, list)


def _is_plain(annotation: Any) -> bool:
    """Whether a JSON value of this type is already what the function expects."""
    if annotation in _PLAIN:
        return True
    origin = typing.get_origin(annotation)
    if origin is Literal:
        return all(isinstance(value, str | int | bool | None) for value in typing.get_args(annotation))
    if origin is typing.Annotated:
        return _is_plain(typing.get_args(annotation)[0])
    if origin in (list, dict, Union, types.UnionType):
        return all(_is_plain(argument) for argument in typing.get_args(annotation))
    return False


def _binder(converters: dict[str, Any]) -> Bind:
    from pydantic import TypeAdapter

    adapters = {name: TypeAdapter(annotation) for name, annotation in converters.items()}

    def bind(payload: dict[str, Any]) -> dict[str, Any]:
        return {
            name: adapters[name].validate_python(value) if name in adapters else value
            for name, value in payload.items()
        }

    return bind


_SECTION = re.compile(r"^(Args|Arguments|Parameters|Returns|Raises|Yields|Example|Examples|Note|Notes):\s*$")
_GOOGLE = re.compile(r"^\s{1,8}\*{0,2}(\w+)(?:\s*\([^)]*\))?:\s*(.+)$")
_SPHINX = re.compile(r"^\s*:param\s+(?:\S+\s+)?(\w+):\s*(.+)$")


def read_docstring(text: str) -> tuple[str, dict[str, str]]:
    """Return the summary and the description of each parameter (Google `Args:` or Sphinx `:param x:`)."""
    summary: list[str] = []
    words: dict[str, str] = {}
    section = ""
    current = ""
    for line in text.splitlines():
        heading = _SECTION.match(line)
        sphinx = _SPHINX.match(line)
        google = _GOOGLE.match(line) if section in ("Args", "Arguments", "Parameters") else None
        if heading:
            section = heading[1]
        elif sphinx or google:
            current, words_of = (sphinx or google or [""])[1], (sphinx or google or ["", "", ""])[2]
            section = section or "params"
            words[current] = words_of.strip()
        elif current and line.startswith("  ") and line.strip():
            words[current] += " " + line.strip()
        elif not section:
            summary.append(line)
    return "\n".join(summary).strip(), words
