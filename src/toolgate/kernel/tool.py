"""The definition of a tool: a named, typed capability and everything the gate must know before running it."""

from __future__ import annotations

import copy
import functools
import hashlib
import inspect
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from typing import Any

from toolgate.errors import DefinitionError, ToolInputError
from toolgate.kernel.context import Mode
from toolgate.kernel.effect import EffectKey, effect_key
from toolgate.kernel.spelling import spelled_fields
from toolgate.kernel.text.canonical import canonical
from toolgate.kernel.text.schema import Schema, compile_schema

DEFAULT_QUEUE = "default"
QUEUE_PATTERN = re.compile(r"[a-z0-9][a-z0-9_.\-]{0,47}\Z")
NAME_PATTERN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.\-/:]{0,127}\Z")


class Effects(StrEnum):
    """What running a tool does to the world. Undeclared counts as having effects."""

    READ = "read"
    REVERSIBLE = "reversible"
    IRREVERSIBLE = "irreversible"


class RiskLevel(StrEnum):
    """How bad it is if it goes wrong. Spelled in any case."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"

    @classmethod
    def _missing_(cls, value: object) -> RiskLevel | None:
        return cls._value2member_map_.get(value.lower()) if isinstance(value, str) else None  # type: ignore[return-value]  # values are members

    @property
    def rank(self) -> int:
        return ("low", "medium", "high").index(self.value)


class Placement(StrEnum):
    """Where the handler runs."""

    INLINE = "inline"
    SANDBOX = "sandbox"
    CLIENT = "client"
    WORKER = "worker"
    CALLER = "caller"


@spelled_fields
@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """Confidence needed to run without asking (`auto`) and with a quick question (`quick`)."""

    auto: int = 85
    quick: int = 60

    def __post_init__(self) -> None:
        if not 0 <= self.quick <= self.auto <= 100:
            raise DefinitionError("Thresholds must satisfy 0 <= quick <= auto <= 100.")


@spelled_fields
@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """What a `prepare` hook found out, without changing anything.

    `preview` is shown to the approver, `preconditions` must still hold at dispatch, and `undo_data` is durable before
    the effect: an undoable tool that prepares can undo the calls for which there is some. `asks` says why a person must
    be asked although the rules, or a grant, let the call run.
    """

    preview: Any = None
    preconditions: Any = None
    undo_data: dict[str, Any] | None = None
    asks: str | None = None


Hook = Callable[..., Any]
Injections = tuple[tuple[str, str], ...]
"""Parameters the gate fills, each with what it gets: its `input` or its `context`."""


@spelled_fields
@dataclass(frozen=True)
class ToolDefinition:
    """A tool.

    name: what callers and models say; letters, digits and `_ . - / :`.
    input_schema: JSON Schema 2020-12 of the arguments; `{}` accepts any object.
    handler: `(ToolInput) -> ToolOutput`, async or plain; plain ones run off the event loop.
    allowed_behaviors: the behaviors in which it may run; empty means all.
    requires_approval: a person must say yes to every call.
    approval_message: what that person is asked.
    undoable: the effect can be taken back with `undo_handler`.
    undo_handler: `(UndoMetadata) -> None`.
    artifact_type: label of the artifacts it produces.
    action_type: a second name it is found by; the name by default.
    description: what it does, for people and models.
    timeout_seconds: how long the handler may run.
    approval_timeout_seconds: how long a person may take; by level where None.
    risk_level: low, medium or high; low where undeclared, medium for irreversible effects.
    category: what the policy file groups it by.
    allowed_modes: the modes in which it may run; empty means all but LOCKDOWN.
    rate_limit_per_hour: at most this many executions an hour in a project.
    effects: read, reversible or irreversible; undeclared counts as having effects.
    idempotent: running it twice with one call id is the same as once.
    nothing_happened: errors of the handler that mean its effect did not happen; others may leave the outcome unknown.
    effect_key: the identity of its effect, such as `refund:{payment_id}`: one call at a time holds it.
    placement: inline, sandbox, client, worker, or caller: whoever made the call runs it, so it needs no handler.
    queue: the queue its calls wait in for a worker.
    output_schema: JSON Schema that its data is checked against.
    prepare: `(ToolInput) -> Prepared`, pure; runs before anybody is asked and again before dispatch.
    fingerprint: `(UndoMetadata) -> JSON value` of the state the effect left; undo refuses when it changed.
    reconcile: `(ToolInput) -> ToolOutput | None` that finds out what an interrupted run did.
    undo_ttl_seconds: how long undo data is kept; the gate's default where None.
    thresholds: confidence thresholds of this tool.
    requires_reason: a rejection must carry a reason.
    approve_label: what the button says that approves.
    reject_label: what the button says that rejects.
    requires_sandbox: the handler may run only in a sandbox.
    version: the tool's own version; part of what is approved.
    """

    name: str
    input_schema: Mapping[str, Any] = field(default_factory=dict)
    handler: Hook | None = None
    allowed_behaviors: tuple[str, ...] = ()
    requires_approval: bool = False
    approval_message: str | None = None
    undoable: bool = False
    undo_handler: Hook | None = None
    artifact_type: str | None = None
    action_type: str = field(default="", kw_only=True)
    description: str = field(default="", kw_only=True)
    timeout_seconds: float = field(default=30.0, kw_only=True)
    approval_timeout_seconds: float | None = field(default=None, kw_only=True)
    risk_level: RiskLevel | str | None = field(default=None, kw_only=True)
    category: str | None = field(default=None, kw_only=True)
    allowed_modes: tuple[str, ...] = field(default=(), kw_only=True)
    rate_limit_per_hour: int | None = field(default=None, kw_only=True)
    effects: Effects | str | None = field(default=None, kw_only=True)
    idempotent: bool = field(default=False, kw_only=True)
    nothing_happened: tuple[type[BaseException], ...] = field(default=(), kw_only=True)
    effect_key: str | None = field(default=None, kw_only=True)
    placement: Placement | str = field(default=Placement.INLINE, kw_only=True)
    queue: str = field(default=DEFAULT_QUEUE, kw_only=True)
    output_schema: Mapping[str, Any] | None = field(default=None, kw_only=True)
    prepare: Hook | None = field(default=None, kw_only=True)
    fingerprint: Hook | None = field(default=None, kw_only=True)
    reconcile: Hook | None = field(default=None, kw_only=True)
    undo_ttl_seconds: float | None = field(default=None, kw_only=True)
    thresholds: Thresholds | None = field(default=None, kw_only=True)
    requires_reason: bool = field(default=False, kw_only=True)
    approve_label: str | None = field(default=None, kw_only=True)
    reject_label: str | None = field(default=None, kw_only=True)
    requires_sandbox: bool = field(default=False, kw_only=True)
    version: str | None = field(default=None, kw_only=True)
    function: Hook | None = field(default=None, kw_only=True, repr=False)
    bind: Callable[[bytes], dict[str, Any]] | None = field(default=None, kw_only=True, repr=False)
    inject: Injections | None = field(default=None, kw_only=True, repr=False)

    schema: Schema = field(init=False, repr=False, compare=False)
    result_schema: Schema | None = field(init=False, repr=False, compare=False)
    effect: EffectKey | None = field(init=False, repr=False, compare=False)
    is_async: bool = field(init=False, repr=False, compare=False)
    risk: RiskLevel = field(init=False, repr=False, compare=False)
    hash: str = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _check(self)
        put = functools.partial(object.__setattr__, self)
        put("schema", compile_schema(self.input_schema, what="input_schema"))
        put("input_schema", copy.deepcopy(self.schema.source))
        put("effect", _effect(self))
        put("action_type", self.action_type or self.name)
        put("allowed_behaviors", tuple(self.allowed_behaviors))
        put("nothing_happened", tuple(self.nothing_happened))
        put(
            "allowed_modes",
            tuple(_closed(Mode, mode, "allowed_modes", self.name) for mode in self.allowed_modes),
        )
        put("placement", _closed(Placement, self.placement, "placement", self.name))
        if self.effects is not None:
            put("effects", _closed(Effects, self.effects, "effects", self.name))
        if self.risk_level is not None:
            put("risk_level", _closed(RiskLevel, self.risk_level, "risk_level", self.name))
        put("result_schema", _output_schema(self))
        if self.result_schema is not None:
            put("output_schema", copy.deepcopy(self.result_schema.source))
        hook = self.function or self.handler
        put("is_async", hook is not None and is_async(hook))
        put("risk", _risk(self))
        put("hash", _hash(self))

    @property
    def has_effects(self) -> bool:
        """Whether running it may change something; undeclared effects count."""
        return self.effects is not Effects.READ

    @property
    def can_retry(self) -> bool:
        """Whether a second attempt on the same call is harmless."""
        return self.idempotent or self.effects is Effects.READ

    @property
    def runs_in(self) -> Placement:
        """Where the handler runs; a tool that requires a sandbox never runs inline."""
        if self.requires_sandbox and self.placement is Placement.INLINE:
            return Placement.SANDBOX
        return Placement(self.placement)

    def allows_mode(self, mode: Mode) -> bool:
        """Whether the tool may run in this mode; LOCKDOWN must be listed by name."""
        return mode in self.allowed_modes if self.allowed_modes else mode is not Mode.LOCKDOWN

    def is_behavior_allowed(self, behavior: str | None) -> bool:
        """Whether the tool may run in this behavior; a tool that lists none runs in all."""
        return not self.allowed_behaviors or behavior in self.allowed_behaviors

    def to_dict(self) -> dict[str, Any]:
        """Return everything declared as JSON values; handlers and other code are left out."""
        told = {item.name: getattr(self, item.name) for item in fields(self) if item.name not in _NOT_TOLD}
        told["thresholds"] = None if self.thresholds is None else asdict(self.thresholds)
        told["nothing_happened"] = tuple(map(_home_of, self.nothing_happened))
        return {name: list(value) if isinstance(value, tuple) else copy.deepcopy(value) for name, value in told.items()}


def unwrapped(hook: Hook) -> Hook:
    """Return the callable inside a partial, or the hook itself."""
    while isinstance(hook, functools.partial):
        hook = hook.func
    return hook


def is_async(hook: Hook) -> bool:
    """Whether calling the hook gives a coroutine (also for partials and objects with async `__call__`)."""
    hook = unwrapped(hook)
    return inspect.iscoroutinefunction(hook) or inspect.iscoroutinefunction(getattr(hook, "__call__", None))  # noqa: B004  # looks for an async __call__


def _closed(kind: type[Any], value: object, what: str, name: str) -> Any:
    try:
        return kind(value)
    except ValueError:
        allowed = ", ".join(str(member) for member in kind)
        raise DefinitionError(f"Tool `{name}`: {what} {value!r} is not one of: {allowed}.") from None


def _check(tool: ToolDefinition) -> None:
    if not isinstance(tool.name, str) or not NAME_PATTERN.match(tool.name):
        raise DefinitionError(
            f"Tool name {str(tool.name)[:80]!r} is refused: use 1 to 128 letters, digits and `_ . - / :`."
        )
    if not callable(tool.handler) and not (tool.handler is None and tool.placement == Placement.CALLER):
        raise DefinitionError(f"Tool `{tool.name}` needs a callable handler.")
    if not isinstance(tool.input_schema, Mapping):
        raise DefinitionError(f"Tool `{tool.name}`: input_schema must be a mapping, `{{}}` accepts any object.")
    if not (_is_list_of_names(tool.allowed_behaviors) and _is_list_of_names(tool.allowed_modes)):
        raise DefinitionError(f"Tool `{tool.name}`: behaviors and modes are tuples of names, not one string.")
    _check_queue(tool)
    _check_errors(tool)
    if not isinstance(tool.thresholds, Thresholds | None):
        raise DefinitionError(f"Tool `{tool.name}`: thresholds must be a Thresholds(auto=..., quick=...).")
    for what in ("timeout_seconds", "approval_timeout_seconds", "undo_ttl_seconds", "rate_limit_per_hour"):
        value = getattr(tool, what)
        if not _is_positive(value) and (value is not None or what == "timeout_seconds"):
            raise DefinitionError(f"Tool `{tool.name}`: {what} must be a positive number.")
    for what in ("undo_handler", "prepare", "fingerprint", "reconcile"):
        if getattr(tool, what) is not None and not callable(getattr(tool, what)):
            raise DefinitionError(f"Tool `{tool.name}`: {what} must be callable.")


def _check_queue(tool: ToolDefinition) -> None:
    if not isinstance(tool.queue, str) or not QUEUE_PATTERN.match(tool.queue):
        raise DefinitionError(
            f"Tool `{tool.name}`: queue {str(tool.queue)[:60]!r} is refused: use 1 to 48 lower-case letters, digits "
            "and `_ . -`."
        )


def _check_errors(tool: ToolDefinition) -> None:
    named = tool.nothing_happened
    is_list = isinstance(named, Collection) and not isinstance(named, str)
    if not is_list or not all(isinstance(kind, type) and issubclass(kind, BaseException) for kind in named):
        raise DefinitionError(
            f"Tool `{tool.name}`: nothing_happened takes classes of errors, such as (ValueError, FileNotFoundError)."
        )


def _is_positive(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < float("inf")


def _is_list_of_names(value: object) -> bool:
    # A generator would be used up by looking, and an empty tuple allows everything.
    return isinstance(value, Collection) and not isinstance(value, str) and all(isinstance(name, str) for name in value)


def _output_schema(tool: ToolDefinition) -> Schema | None:
    if tool.output_schema is None:
        return None
    return compile_schema(tool.output_schema, what="output_schema")


def _effect(tool: ToolDefinition) -> EffectKey | None:
    if tool.effect_key is None:
        return None
    try:
        effect = effect_key(tool.effect_key)
    except ValueError as error:
        raise DefinitionError(f"Tool `{tool.name}`: {error}.") from None
    if (problem := effect.problem(tool.schema.source)) is not None:
        raise DefinitionError(f"Tool `{tool.name}`: {problem}.")
    return effect


def _risk(tool: ToolDefinition) -> RiskLevel:
    if isinstance(tool.risk_level, RiskLevel):
        return tool.risk_level
    return RiskLevel.MEDIUM if tool.effects is Effects.IRREVERSIBLE else RiskLevel.LOW


_HASHED_AS_PRESENT = ("handler", "undo_handler", "prepare", "fingerprint", "reconcile", "function")
_NOT_HASHED = {"bind", "inject", "schema", "result_schema", "effect", "is_async", "risk", "hash"}
_NOT_TOLD = _NOT_HASHED.union(_HASHED_AS_PRESENT)
_CAME_LATER: dict[str, Any] = {"queue": DEFAULT_QUEUE, "nothing_happened": (), "effect_key": None}
"""Fields that leave what was approved before they came as it was, where they say nothing."""


def _hash(tool: ToolDefinition) -> str:
    """The SHA-256 of everything an approver relies on; code counts by where it lives."""
    content: dict[str, Any] = {}
    for item in fields(tool):
        if item.name in _NOT_HASHED:
            continue
        value = getattr(tool, item.name)
        if item.name in _CAME_LATER and value == _CAME_LATER[item.name]:
            continue
        if item.name == "nothing_happened":
            content[item.name] = sorted(map(_home_of, value))
        elif item.name in _HASHED_AS_PRESENT:
            content[item.name] = None if value is None else _home_of(value)
        elif isinstance(value, Thresholds):
            content[item.name] = [value.auto, value.quick]
        else:
            content[item.name] = sorted(value) if isinstance(value, tuple) else value
    try:
        return hashlib.sha256(canonical(content)).hexdigest()
    except ToolInputError as error:
        raise DefinitionError(f"Tool `{tool.name}` holds something that is not JSON. {error}") from None


def _home_of(hook: Hook) -> str:
    hook = unwrapped(hook)
    named = hook if hasattr(hook, "__qualname__") else type(hook)
    return f"{named.__module__}.{named.__qualname__}"
