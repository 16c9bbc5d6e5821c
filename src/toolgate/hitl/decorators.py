"""`@hitl_tool`: an async function whose calls run through the gate, at once or after a person said yes.

The decorated function binds its arguments by name, so that positional ones count and are shown like all others,
and returns its own result, or a pending marker that carries the approval's id for `resume`.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import string
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, Protocol, cast

from toolgate.errors import DefinitionError, NotAsyncError, ToolInputError, ToolOutputError, UsageError
from toolgate.gate import Gate
from toolgate.hitl.audit import is_sensitive_key as _is_sensitive_key
from toolgate.hitl.audit import log_auto_execution as _log_auto_execution
from toolgate.hitl.gate import get_hitl_gate, offer
from toolgate.hitl.models import HITLConfig, HITLToolResult, determine_approval_level
from toolgate.kernel.assessment import ApprovalLevel
from toolgate.kernel.confidence import calculate_confidence, is_true
from toolgate.kernel.context import Context
from toolgate.kernel.input import ToolInput
from toolgate.kernel.misuse import explained
from toolgate.kernel.output import Result, ToolOutput
from toolgate.kernel.payload import encode, plain
from toolgate.kernel.signature import derive, keywords
from toolgate.kernel.tool import Thresholds, ToolDefinition, is_async

__all__ = [
    "ApprovalLevel",
    "HITLConfig",
    "HITLTool",
    "HITLToolResult",
    "_is_sensitive_key",
    "_log_auto_execution",
    "as_tool",
    "calculate_confidence",
    "determine_approval_level",
    "get_hitl_config",
    "hitl_tool",
    "invoke",
    "is_hitl_pending",
    "is_hitl_tool",
    "resume",
]

PENDING: Final = "__hitl_pending__"
CONTEXT: Final = "_hitl_context"


class HITLTool(Protocol):
    """A decorated function: its own parameters and, from the host, `_hitl_context`."""

    __name__: str
    _hitl_config: HITLConfig
    _hitl_definition: ToolDefinition

    def __call__(self, *args: Any, **kwargs: Any) -> Coroutine[Any, Any, Any]: ...


@dataclass(slots=True)
class _Handoff:
    """Rides along with one call in this process and brings the function's own result back."""

    value: Any = None
    is_set: bool = False


@explained
def hitl_tool(
    approval_type: str | None = None,
    risk_level: str | None = None,
    auto_threshold: int | None = None,
    quick_threshold: int | None = None,
    requires_reason: bool | None = None,
    approve_label: str | None = None,
    reject_label: str | None = None,
    description_template: str | None = None,
) -> Callable[[Callable[..., Awaitable[Any]]], HITLTool]:
    """Make an async function a tool whose calls are routed by confidence; see HITLConfig for the options."""
    config = HITLConfig(**{name: value for name, value in locals().items() if value is not None})

    def decorate(function: Callable[..., Awaitable[Any]]) -> HITLTool:
        definition = _define(function, config)

        @functools.wraps(function)
        async def wrapper(*args: Any, **kwargs: Any) -> Any:
            told = kwargs.pop(CONTEXT, None)
            return await _run(definition, config, _bind(function, args, kwargs), told)

        tool = cast(HITLTool, wrapper)
        tool._hitl_config = config
        tool._hitl_definition = definition
        offer(definition)
        return tool

    return decorate


def is_hitl_tool(func: object) -> bool:
    """Whether a function was decorated with `@hitl_tool`."""
    return get_hitl_config(func) is not None


def get_hitl_config(func: object) -> HITLConfig | None:
    """Return how a decorated function is approved; None for any other."""
    config = getattr(func, "_hitl_config", None)
    return config if isinstance(config, HITLConfig) else None


def is_hitl_pending(result: object) -> bool:
    """Whether a result is the marker of a call that waits for a person."""
    return isinstance(result, dict) and result.get(PENDING) is True


def as_tool(func: object) -> ToolDefinition:
    """Return the tool behind a decorated function, for a gate, a registry or a model's list of tools."""
    definition = getattr(func, "_hitl_definition", None)
    if not isinstance(definition, ToolDefinition):
        raise DefinitionError(f"{func!r} is not decorated with @hitl_tool.")
    return definition


@explained
async def invoke(func: HITLTool, arguments: Mapping[str, Any], *, context: Mapping[str, Any] | None = None) -> Any:
    """Call a decorated function with arguments a model wrote. A `_hitl_context` among them is refused, not trusted."""
    as_tool(func)
    if CONTEXT in arguments:
        raise ToolInputError(f"`{CONTEXT}` comes from the host, not from arguments; leave it out.", tool=func.__name__)
    named = {str(name): value for name, value in arguments.items()}
    try:
        inspect.signature(func).bind(**named)
    except TypeError as error:
        raise ToolInputError(f"The arguments do not fit `{func.__name__}`: {error}.", tool=func.__name__) from None
    return await func(**named, **{CONTEXT: context})


@explained
async def resume(approval_id: str, *, wait: bool = False) -> Any:
    """Return the result of a call that was approved, running it if nobody has; its marker while it is undecided.

    With `wait`, wait for the decision. However often it is resumed, the function runs once. A call that was
    rejected, timed out or failed raises its error.
    """
    gate = get_hitl_gate()
    approval = await gate.approvals.get(approval_id)
    if approval.is_pending and not wait:
        return await _marker(gate, approval_id)
    result = await gate.wait(approval.call_id, project=approval.project)
    return result.unwrap()


def _define(function: Callable[..., Any], config: HITLConfig) -> ToolDefinition:
    if not is_async(function) or inspect.isasyncgenfunction(function):
        name = getattr(function, "__name__", type(function).__name__)
        raise NotAsyncError(f"@hitl_tool needs an async function; `{name}` is not one. Write `async def {name}(...)`.")
    if CONTEXT in inspect.signature(function).parameters:
        raise DefinitionError(f"`{CONTEXT}` never reaches a tool; take it out of the parameters of {function!r}.")
    derived = derive(function)

    async def handler(given: ToolInput) -> ToolOutput:
        value = await function(**keywords(given, derived.bind, derived.inject))
        if isinstance(given.ctx, _Handoff):
            given.ctx.value, given.ctx.is_set = value, True
        return ToolOutput.ok(_recordable(value))

    handler.__module__, handler.__qualname__ = function.__module__, function.__qualname__
    return ToolDefinition(
        function.__name__,
        derived.schema,
        handler,
        description=derived.description,
        risk_level=config.risk_level,
        thresholds=Thresholds(auto=config.auto_threshold, quick=config.quick_threshold),
        requires_reason=config.requires_reason,
        approve_label=config.approve_label,
        reject_label=config.reject_label,
        version=_version(function),
    )


def _version(function: Callable[..., Any]) -> str | None:
    """A mark of the code itself: an approval is for what the function was when it was asked about."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    return None if code is None else hashlib.sha256(code.co_code + repr(code.co_names).encode()).hexdigest()[:16]


def _recordable(value: Any) -> Any:
    """What the record keeps of a result: itself, or its type where it has no JSON form. The caller gets it whole."""
    try:
        encode(value)
    except ToolOutputError:
        return {"type": type(value).__name__}
    return value


def _bind(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments by name, defaults included, as JSON values."""
    bound = inspect.signature(function).bind(*args, **kwargs)
    given = set(bound.arguments)
    bound.apply_defaults()
    named: dict[str, Any] = {}
    for name, value in bound.arguments.items():
        kind = inspect.signature(function).parameters[name].kind
        if kind is inspect.Parameter.VAR_KEYWORD:
            named.update({key: _json(item) for key, item in value.items()})
        else:
            try:
                named[name] = _json(value)
            except ToolInputError:
                if name in given:
                    raise
    return named


def _json(value: Any) -> Any:
    if isinstance(value, Decimal):
        number = float(value)
        return number if value.is_finite() and Decimal(repr(number)) == value else str(value)
    try:
        return plain(value)
    except ToolOutputError as error:
        raise ToolInputError(f"An argument cannot be shown to an approver: {error}") from None


def _context(told: Mapping[str, Any] | None, handoff: _Handoff) -> Context:
    if told is not None and not isinstance(told, Mapping):
        raise UsageError(f"`{CONTEXT}` is a mapping such as {{'user_id': 'ann'}}, not {type(told).__name__}.")
    told = told or {}
    role, user = told.get("user_role"), told.get("user_id")
    return Context(
        user=None if user is None else str(user),
        roles=frozenset() if role is None else frozenset({str(role)}),
        session_id=None if told.get("session_id") is None else str(told["session_id"]),
        workspace_verified=is_true(told.get("workspace_verified")),
        host=handoff,
    )


async def _run(definition: ToolDefinition, config: HITLConfig, arguments: dict[str, Any], told: Any) -> Any:
    gate = get_hitl_gate()
    if gate.registry.find(definition.name) is not definition:
        gate.register(definition)  # another function of this name was decorated since
    handoff = _Handoff()
    context = _context(told, handoff)
    result = await gate.call(
        definition, arguments, context=context, wait=False, message=_describe(config, gate, arguments), distinct=True
    )
    if result.is_pending:
        return await _marker(gate, result.approval_id or "", config)
    confidence = (await gate.calls.get(result.call_id, project=context.project)).confidence
    if result.approved_by is not None:
        _log_auto_execution(
            definition.name, arguments, confidence or 0, told, masker=gate.host.masker, error=_error_of(result)
        )
    if result.success:
        return handoff.value if handoff.is_set else result.data
    raise _error_of(result) or result.to_error()


def _error_of(result: Result) -> BaseException | None:
    return None if result.success else result.cause or result.to_error()


async def _marker(gate: Gate, approval_id: str, config: HITLConfig | None = None) -> dict[str, Any]:
    approval = await gate.approvals.get(approval_id)
    known = config or _config_of(gate, approval.tool_name)
    told = HITLToolResult(
        requires_approval=True,
        approval_level=ApprovalLevel(approval.level),
        confidence_score=approval.confidence or 0,
        tool_name=approval.tool_name,
        tool_args=approval.arguments or {},
        config=known,
        approval_id=approval.id,
    )
    return {PENDING: True, "hitl_result": told.model_dump(mode="json")}


def _config_of(gate: Gate, name: str) -> HITLConfig:
    tool = gate.registry.find(name)
    if tool is None or tool.thresholds is None:
        return HITLConfig()
    return HITLConfig(
        auto_threshold=tool.thresholds.auto,
        quick_threshold=tool.thresholds.quick,
        risk_level=tool.risk.value,
        requires_reason=tool.requires_reason,
        approve_label=tool.approve_label or "Approve",
        reject_label=tool.reject_label or "Reject",
    )


class _Names(string.Formatter):
    """Fills names in, and nothing else: no attributes, no indexing, no conversion; an unknown name stays as it is."""

    def get_field(self, field_name: str, _args: Any, kwargs: Any) -> Any:
        return kwargs.get(field_name, f"{{{field_name}}}"), field_name


def _describe(config: HITLConfig, gate: Gate, arguments: dict[str, Any]) -> str | None:
    """Return the question in the tool's own words, filled with the masked arguments."""
    if config.description_template is None:
        return None
    masked = gate.host.masker(arguments)
    try:
        return _Names().vformat(config.description_template, (), cast(Mapping[str, Any], masked))
    except (ValueError, TypeError):
        return config.description_template
