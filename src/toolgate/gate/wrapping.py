"""`gate.wrap`: a function or a tool object of any framework that does what it did, through the gate.

A wrapped tool waits where a person must answer; adapters in `toolgate.integrations` pause as their framework does.
"""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeVar

import orjson

from toolgate.errors import DefinitionError, ToolInputError, ToolOutputError
from toolgate.gate.bridge import Bridge, Outcome
from toolgate.kernel.context import Context
from toolgate.kernel.payload import encode
from toolgate.kernel.signature import derive
from toolgate.kernel.tool import is_async, unwrapped

if TYPE_CHECKING:
    from toolgate.gate.front import Gate

T = TypeVar("T")
_ENTRIES: Final = (
    ("func", "coroutine"),
    ("entrypoint",),
    ("_fn", "_async_fn"),
    ("fn",),
    ("forward",),
    ("_run", "_arun"),
)
"""Where tool objects keep what they run, in the order in which it is looked for: the first that is there counts."""
_SMOL_KEYS: Final = ("type", "description", "enum", "items", "properties")


def wrap(gate: Gate, target: T, *, name: str | None, context: Context | None, options: Mapping[str, Any]) -> T:
    """Return `target` governed: a function of the same signature, or a copy of a tool object."""
    bridge = Bridge(gate, "gate.wrap", context=context, wait=True)
    if inspect.isroutine(target) or isinstance(target, functools.partial):
        governed: Any = _function(bridge, target, name or _name_of(target), None, None, options)
        return governed  # type: ignore[no-any-return]  # of the same signature
    return _object(bridge, target, name, options)


def _name_of(function: Any) -> str:
    named = unwrapped(function)
    return str(getattr(named, "__name__", type(named).__name__))


def _object(bridge: Bridge, tool: T, name: str | None, options: Mapping[str, Any]) -> T:
    entries = next(
        (found for names in _ENTRIES if (found := [one for one in names if callable(getattr(tool, one, None))])), None
    )
    told = getattr(tool, "metadata", None) if not isinstance(getattr(tool, "name", None), str) else tool
    called = name or getattr(told, "name", None)
    if entries is None or not isinstance(called, str):
        raise DefinitionError(
            f"gate.wrap: {type(tool).__name__} is neither a function nor a tool object with a name and something to "
            "run, so nothing is governed. Wrap the function that the tool is made of."
        )
    clone, schema = copy.copy(tool), _schema(tool)
    description = str(getattr(told, "description", None) or "")
    for entry in entries:
        governed = _function(bridge, getattr(tool, entry), called, schema, description, options)
        object.__setattr__(clone, entry, governed)  # also where the object checks what is set on it
    return clone


def _schema(tool: Any) -> Mapping[str, Any] | None:
    """The JSON Schema a tool object says of its arguments; None where the function's own signature says it."""
    model = getattr(tool, "args_schema", None) or getattr(getattr(tool, "metadata", None), "fn_schema", None)
    if isinstance(model, type) and hasattr(model, "model_json_schema"):
        schema: Mapping[str, Any] = model.model_json_schema()
        return schema
    inputs = getattr(tool, "inputs", None)
    if isinstance(inputs, Mapping):
        fields = {key: {name: one[name] for name in _SMOL_KEYS if name in one} for key, one in inputs.items()}
        fields = {
            key: {name: v for name, v in one.items() if (name, v) != ("type", "any")} for key, one in fields.items()
        }
        needed = [key for key, one in inputs.items() if not one.get("nullable")]
        return {"type": "object", "properties": fields, "required": needed}
    parameters = getattr(tool, "parameters", None)
    is_told = isinstance(parameters, Mapping) and parameters.get("properties")
    return parameters if is_told else model if isinstance(model, Mapping) else None


def _function(
    bridge: Bridge,
    function: Callable[..., Any],
    name: str,
    schema: Mapping[str, Any] | None,
    description: str | None,
    options: Mapping[str, Any],
) -> Callable[..., Any]:
    derived = derive(function)
    if derived.inject is not None:
        raise DefinitionError(
            f"gate.wrap: `{name}` takes the gate's own ToolInput or Context, which a framework cannot give. "
            "Make a tool of it with `@tool`."
        )
    bridge.define(name, schema or derived.schema, derived.description if description is None else description, options)
    signature, bind = inspect.signature(function), derived.bind

    def read(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[bytes, Callable[[dict[str, Any]], Any]]:
        try:
            raw = encode(_arguments(signature, args, kwargs), what="arguments")
        except ToolOutputError as error:
            raise ToolInputError(f"gate.wrap: `{name}` was not called. {error}", tool=name) from None

        def run(arguments: dict[str, Any]) -> Any:
            # Whoever called may have changed what they gave while somebody was asked about it.
            if arguments == orjson.loads(raw) and encode(_arguments(signature, args, kwargs)) == raw:
                return function(*args, **kwargs)
            return function(**(arguments if bind is None else bind(orjson.dumps(arguments))))

        return raw, run

    if is_async(function):

        @functools.wraps(function)
        async def governed(*args: Any, **kwargs: Any) -> Any:
            raw, run = read(args, kwargs)
            return _value(await bridge.carry(name, raw, run))

        return governed

    @functools.wraps(function)
    def governed_plain(*args: Any, **kwargs: Any) -> Any:
        raw, run = read(args, kwargs)
        return _value(bridge.carry_sync(name, raw, run))

    return governed_plain


def _arguments(signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return every argument by name, as a model would have written it."""
    bound = signature.bind(*args, **kwargs).arguments
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD:
            bound = {**bound, **bound.pop(parameter.name, {})}
    return dict(bound)


def _value(outcome: Outcome) -> Any:
    """What a wrapped function returns: its value, or the recorded one; raises what else became of the call."""
    return outcome.value if outcome.is_success else outcome.result.unwrap()
