"""From a Python function to a tool: its schema from the signature, its words from the docstring."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import types
import typing
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, Union, overload

import orjson

from toolgate.errors import DefinitionError, UnknownKeywordError
from toolgate.kernel.context import Context
from toolgate.kernel.input import ToolInput
from toolgate.kernel.spelling import unknown_name
from toolgate.kernel.text.lazy_pattern import lazy_pattern
from toolgate.kernel.text.schema.plain import Field, plain_schema
from toolgate.kernel.tool import Hook, Injections, ToolDefinition, unwrapped

Function = Callable[..., Any]
Bind = Callable[[bytes], dict[str, Any]]
"""Returns the arguments of a JSON object as a function takes them."""


_OWN = ("name", "handler", "function", "bind", "inject")
"""What is read off the function."""
_OPTIONS = tuple(item.name for item in dataclasses.fields(ToolDefinition) if item.init and item.name not in _OWN)


class Derived(NamedTuple):
    """What a signature and docstring say."""

    schema: dict[str, Any]
    description: str
    bind: Bind | None
    inject: Injections | None


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
    What a partial has bound is not part of the schema either.
    """
    for option in options:
        if option not in _OPTIONS:
            raise UnknownKeywordError(unknown_name("tool", option, _OPTIONS))
    if function is None:
        return lambda decorated: _define(decorated, name, options)
    return _define(function, name, options)


def _define(function: Function, name: str | None, options: dict[str, Any]) -> ToolDefinition:
    if not callable(function):
        raise DefinitionError("`@tool` decorates a function; give options by keyword.")
    derived = derive(function)
    options = {"input_schema": derived.schema, "description": derived.description, **options}
    named = unwrapped(function)
    return ToolDefinition(
        name=name or str(getattr(named, "__name__", type(named).__name__)),
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

    named = unwrapped(function)
    handler.__module__ = named.__module__
    handler.__qualname__ = getattr(named, "__qualname__", type(named).__name__)
    return handler


def keywords(tool_input: ToolInput, bind: Bind | None, inject: Injections | None) -> dict[str, Any]:
    """Return the keyword arguments a function-style tool is called with; the payload stays as it is."""
    arguments = dict(tool_input.payload) if bind is None else bind(orjson.dumps(tool_input.payload))
    for parameter, kind in inject or ():
        arguments[parameter] = tool_input if kind == "input" else tool_input.context
    return arguments


def derive(function: Function) -> Derived:
    """Read schema, description and converters off a function; raise DefinitionError where it cannot be called."""
    summary, words = read_docstring(inspect.getdoc(unwrapped(function)) or "")
    fields: list[Field] = []
    converters: dict[str, Any] = {}
    inject: list[tuple[str, str]] = []
    bound = _bound(function)
    is_open = False
    for parameter, annotation in _parameters(function):
        if parameter.kind is parameter.VAR_KEYWORD:
            is_open = True
        elif parameter.name in bound:
            continue
        elif (kind := _injected(parameter, annotation)) is not None:
            inject.append((parameter.name, kind))
        else:
            fields.append(Field(parameter.name, annotation, parameter.default, words.get(parameter.name)))
            if not _is_plain(annotation):
                converters[parameter.name] = annotation
    schema = plain_schema(fields, is_open=is_open)
    if schema is None:
        schema = pydantic_schema(function, fields, is_open=is_open)
    if is_open:
        schema["properties"].update(dict.fromkeys(bound, False))  # open to any other name, not to these
    return Derived(schema, summary, _binder(converters) if converters else None, tuple(inject) or None)


def _bound(function: Function) -> list[str]:
    """Return the parameters a partial has given by name: the host's choice, which no caller may change."""
    return [*function.keywords, *_bound(function.func)] if isinstance(function, functools.partial) else []


def _injected(parameter: inspect.Parameter, annotation: Any) -> str | None:
    """Return which of the gate's own objects a parameter asks for; no part of one may come from a model."""
    bare = _bare(annotation)
    if isinstance(bare, type) and issubclass(bare, ToolInput):
        return "input"
    if isinstance(bare, type) and issubclass(bare, Context):
        return "context"
    if _mentions_ours(annotation):
        raise DefinitionError(
            f"Parameter `{parameter.name}` has ToolInput or Context inside a larger type; "
            "the gate gives them, so annotate the parameter with the one type alone."
        )
    return None


def _bare(annotation: Any) -> Any:
    """Return the annotation without `Annotated` and without `| None`."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return _bare(arguments[0])
    if origin in (Union, types.UnionType):
        others = [argument for argument in arguments if argument is not types.NoneType]
        return _bare(others[0]) if len(others) == 1 else annotation
    return annotation


def _mentions_ours(annotation: Any) -> bool:
    if isinstance(annotation, type):
        return issubclass(annotation, (ToolInput, Context))
    return any(_mentions_ours(argument) for argument in typing.get_args(annotation))


def _parameters(function: Function) -> list[tuple[inspect.Parameter, Any]]:
    try:
        signature = inspect.signature(function)
        hints = typing.get_type_hints(_annotated(function), include_extras=True)
    except (AttributeError, NameError, SyntaxError, TypeError, ValueError) as error:
        raise DefinitionError(f"The signature of {function!r} cannot be read: {error}.") from error
    found = []
    for parameter in signature.parameters.values():
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.VAR_POSITIONAL):
            raise DefinitionError(
                f"Parameter `{parameter.name}` of {function!r} cannot be passed by name; tools are called by keyword."
            )
        found.append((parameter, hints.get(parameter.name, Any)))
    return found


def _annotated(function: Function) -> Any:
    """Return the function that carries the annotations of a callable."""
    function = unwrapped(function)
    if inspect.isclass(function):
        return function.__init__
    return function if inspect.isroutine(function) else type(function).__call__


def pydantic_schema(function: Function, fields: list[Field], *, is_open: bool) -> dict[str, Any]:
    """Return the schema of the function's fields, whatever their types; where all are plain, `plain_schema`'s."""
    from pydantic import ConfigDict, create_model  # lazily: only signatures that are not plain need it
    from pydantic.errors import PydanticUserError

    config = ConfigDict(extra="allow" if is_open else "forbid", arbitrary_types_allowed=False)
    aliased: dict[str, Any] = {f"p_{index}": _model_field(field) for index, field in enumerate(fields)}
    names = [field.name for field in fields]
    try:
        # Parameters may have names Pydantic reserves (`schema`, `copy`), so fields are numbered and renamed.
        model = create_model("Arguments", __config__=config, **aliased)
        schema: dict[str, Any] = model.model_json_schema(by_alias=False)
    except (PydanticUserError, TypeError) as error:
        raise DefinitionError(f"No schema can be derived from {function!r}: {str(error).splitlines()[0]}") from error
    properties = schema["properties"]
    schema["properties"] = {names[int(key[2:])]: _untitled(value) for key, value in properties.items()}
    if "required" in schema:
        schema["required"] = [names[int(key[2:])] for key in schema["required"]]
    schema.pop("title", None)
    return schema


def _model_field(field: Field) -> Any:
    from pydantic import Field as ModelField
    from pydantic.fields import FieldInfo

    if isinstance(field.default, FieldInfo):
        raise DefinitionError(
            f"Parameter `{field.name}` has `Field(...)` as its default, which the function would receive; "
            "write `Annotated[<type>, Field(...)] = <default>`."
        )
    default = ... if field.default is inspect.Parameter.empty else field.default
    if getattr(field.annotation, "__metadata__", None) and field.description is None:
        return (field.annotation, default)
    return (field.annotation, ModelField(default, description=field.description))


def _untitled(schema: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in schema.items() if key != "title"}


_PLAIN = (str, int, float, bool, types.NoneType, Any, dict, list)


def _is_plain(annotation: Any) -> bool:
    """Whether a JSON value of this type is already what the function expects."""
    if annotation in _PLAIN:
        return True
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Literal:
        return all(type(value) in _PLAIN for value in arguments)
    if origin is typing.Annotated:
        return _is_plain(arguments[0]) and all(map(_is_told_by_schema, arguments[1:]))
    if origin is dict and arguments[:1] not in ((), (str,), (Any,)):
        return False  # JSON has only text for keys
    if origin in (list, dict, Union, types.UnionType):
        return all(_is_plain(argument) for argument in arguments)
    return False


def _is_told_by_schema(mark: object) -> bool:
    """Whether what `Annotated` adds is in the schema already; validators are not, they have to run."""
    from pydantic.fields import FieldInfo

    return isinstance(mark, str | FieldInfo)


def _binder(converters: dict[str, Any]) -> Bind:
    """Return what reads all parameters in one pass over the JSON; those without a converter stay as they are."""
    from pydantic import TypeAdapter
    from pydantic_core import SchemaValidator, core_schema

    fields: dict[str, Any] = {}
    shared: dict[str, Any] = {}
    for name, annotation in converters.items():
        # Each parameter's schema by itself: as fields of one model, an alias or a default in `Field(...)` would count,
        # which the tool's schema does not know, and a type without settings of its own would take the model's.
        schema = TypeAdapter(annotation).core_schema
        if schema["type"] == "definitions":
            shared.update({str(item.get("ref")): item for item in schema["definitions"]})
            schema = schema["schema"]
        # In JSON mode: what arrives is JSON, and strict types take less of it in Python mode. Being one of two also
        # keeps a default in the type from giving a parameter that was left out a value.
        either = core_schema.json_or_python_schema(schema, core_schema.any_schema())
        fields[name] = core_schema.typed_dict_field(either, required=False)
    whole: Any = core_schema.typed_dict_schema(fields, extra_behavior="allow")
    if shared:
        whole = core_schema.definitions_schema(whole, list(shared.values()))
    return SchemaValidator(whole).validate_json


_ARGUMENTS = ("Args", "Arguments", "Parameters")
_SECTION = lazy_pattern(r"^(Args|Arguments|Parameters|Returns|Raises|Yields|Example|Examples|Note|Notes):\s*$")
_GOOGLE = lazy_pattern(r"^\s{1,8}\*{0,2}(\w+)(?:\s*\([^)]*\))?:\s*(.+)$")
_SPHINX = lazy_pattern(r"^\s*:param\s+(?:\S+\s+)?(\w+):\s*(.+)$")
_OTHER_FIELD = lazy_pattern(r"^\s*:(?:type|returns?|rtype|raises?|yields?)\b[^:]*:")


def read_docstring(text: str) -> tuple[str, dict[str, str]]:
    """Return the summary and the description of each parameter (Google `Args:` or Sphinx `:param x:`)."""
    if ":" not in text:
        return "\n".join(text.splitlines()).strip(), {}
    summary: list[str] = []
    words: dict[str, str] = {}
    section = ""
    current = ""
    for line in text.splitlines():
        heading = _SECTION.match(line)
        told = _SPHINX.match(line) or (_GOOGLE.match(line) if section in _ARGUMENTS else None)
        if heading:
            section, current = heading[1], ""
        elif told:
            section, current = section or "fields", told[1]
            words[current] = told[2].strip()
        elif _OTHER_FIELD.match(line):
            section, current = section or "fields", ""
        elif current and line.startswith("  ") and line.strip():
            words[current] += " " + line.strip()
        elif not section:
            summary.append(line)
    return "\n".join(summary).strip(), words
