"""Read one tool call as a provider wrote it: which format it has, its id, its name and its raw arguments.

Nothing is looked up or validated here. What carries two calls at once, or one call twice with two meanings, is
ambiguous and refused; which of them the model meant is not for us to guess.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Final, NamedTuple

from toolgate.kernel.text.formats.look import UnreadableError, field, has


class Format(StrEnum):
    """How a provider writes calls and takes results."""

    OPENAI = "openai"
    OPENAI_CUSTOM = "openai_custom"
    OPENAI_LEGACY = "openai_legacy"
    OPENAI_RESPONSES = "openai_responses"
    OPENAI_RESPONSES_CUSTOM = "openai_responses_custom"
    ANTHROPIC = "anthropic"
    GEMINI = "gemini"
    BEDROCK = "bedrock"
    MCP = "mcp"
    PLAIN = "plain"


class FieldNames(NamedTuple):
    """Where a call of no known provider keeps its parts. With `wrapper`, name and arguments stand under that key."""

    id: str = "id"
    name: str = "name"
    arguments: str = "arguments"
    wrapper: str | None = "function"


class RawCall(NamedTuple):
    """A call as it was sent; every part may still be anything."""

    format: Format
    call_id: Any
    name: Any
    arguments: Any
    is_partial: bool = False


class AmbiguousError(UnreadableError):
    """Something that can be read as a tool call in more than one way."""


STANDARD: Final = FieldNames()

_WRAPPERS: Final = {
    "function": Format.OPENAI,
    "custom": Format.OPENAI_CUSTOM,
    "functionCall": Format.GEMINI,
    "function_call": Format.GEMINI,
    "toolUse": Format.BEDROCK,
    "tool_use": Format.BEDROCK,
}
_TYPED: Final = {
    "function": Format.OPENAI,
    "custom": Format.OPENAI_CUSTOM,
    "function_call": Format.OPENAI_RESPONSES,
    "custom_tool_call": Format.OPENAI_RESPONSES_CUSTOM,
    "tool_use": Format.ANTHROPIC,
    "tool_call": Format.PLAIN,
}
CALL_TYPES: Final = frozenset(_TYPED)
"""The types by which calls say what they are."""
_WRAPPED: Final = frozenset({Format.OPENAI, Format.OPENAI_CUSTOM})
_BY_CALL_ID: Final = frozenset({Format.OPENAI_RESPONSES, Format.OPENAI_RESPONSES_CUSTOM})
_ARGUMENTS: Final = ("arguments", "input", "args")


def read_call(item: Any, names: FieldNames, *, is_content: bool) -> RawCall | None:
    """Return the call an item holds; None for content of another kind. Raise UnreadableError for anything else."""
    if names != STANDARD:
        return _plain(item, names)
    if isinstance(item, str | bytes | int | float | list) or item is None:
        raise UnreadableError(f"it is a Python {type(item).__name__}, where a mapping or an SDK object is expected")
    method = field(item, "method")
    if method is not None and (method == "tools/call" or field(item, "params") is not None):
        return _mcp(item, method)
    kind = field(item, "type")
    kind = kind if isinstance(kind, str) else None
    wrappers = [name for name in _WRAPPERS if field(item, name) is not None]
    if len(wrappers) > 1:
        raise AmbiguousError(f"it holds both `{wrappers[0]}` and `{wrappers[1]}`")
    if wrappers:
        return _wrapped(item, wrappers[0], kind)
    if kind is not None and kind not in _TYPED:
        _pass_over(item, kind)
        return None
    if kind is None and field(item, "name") is None and not _has_arguments(item):
        if is_content or field(item, "text") is not None:
            return None
        raise UnreadableError("it has no field that a tool call has; pass calls, a message or a response")
    return _flat(item, kind)


def format_of(item: Any) -> Format:
    """Return the format of something that is no call otherwise, so that its provider can be answered."""
    try:
        kind, wrappers = field(item, "type"), [name for name in _WRAPPERS if field(item, name) is not None]
    except UnreadableError:
        return Format.PLAIN
    if isinstance(kind, str) and kind in _TYPED:
        return _TYPED[kind]
    return _WRAPPERS[wrappers[0]] if len(wrappers) == 1 else Format.PLAIN


def _wrapped(item: Any, wrapper: str, kind: str | None) -> RawCall:
    inner = field(item, wrapper)
    if field(item, "legacy") is True:
        return RawCall(Format.OPENAI_LEGACY, None, field(inner, "name"), field(inner, "arguments"))
    found = _WRAPPERS[wrapper]
    if kind is not None and _TYPED.get(kind) is not (found if found in _WRAPPED else None):
        raise AmbiguousError(f"its type is '{kind[:64]}', but it holds `{wrapper}`")
    for name in ("name", *_ARGUMENTS):
        outer = field(item, name)
        if outer is not None and not (isinstance(outer, str) and outer == field(inner, name)):
            raise AmbiguousError(f"it has a `{name}` beside the one in `{wrapper}`")
    if found is Format.GEMINI:
        return RawCall(found, field(inner, "id"), field(inner, "name"), field(inner, "args"), _is_partial(inner))
    if found is Format.BEDROCK:
        call_id = field(inner, "toolUseId")
        return RawCall(found, call_id, field(inner, "name"), field(inner, "input"))
    return RawCall(found, field(item, "id"), field(inner, "name"), _arguments(inner))


def _flat(item: Any, kind: str | None) -> RawCall:
    found = _TYPED[kind] if kind is not None else Format.PLAIN
    if found in _WRAPPED:
        raise UnreadableError(f"its type is '{kind}', but it holds no `{kind}`")
    if kind is None and has(item, "args") and not has(item, "arguments"):
        found = Format.GEMINI
    scope = next((field(item, name) for name in ("namespace", "toolset_name") if field(item, name) is not None), None)
    if scope is not None:
        raise UnreadableError("it calls a tool of a namespace or toolset, and registered tools are in none")
    by_call_id = found in _BY_CALL_ID or (kind is None and field(item, "id") is None)
    return RawCall(
        found,
        field(item, "call_id" if by_call_id else "id"),
        field(item, "name"),
        _arguments(item),
        _is_partial(item),
    )


def _has_arguments(item: Any) -> bool:
    return any(field(item, name) is not None for name in _ARGUMENTS)


def _is_partial(call: Any) -> bool:
    return field(call, "status") in ("in_progress", "incomplete") or any(
        field(call, name) not in (None, False)
        for name in ("partial_args", "partialArgs", "will_continue", "willContinue")
    )


def _arguments(holder: Any) -> Any:
    given = [name for name in _ARGUMENTS if field(holder, name) is not None]
    if len(given) > 1:
        raise AmbiguousError(f"it has both `{given[0]}` and `{given[1]}`")
    return field(holder, given[0]) if given else None


def _pass_over(item: Any, kind: str) -> None:
    """Pass over content, and over calls that the provider runs itself; refuse what looks like a call to us."""
    is_ours = field(item, "name") is not None and _has_arguments(item)
    if is_ours and not kind.startswith(("server_", "mcp_")):
        raise UnreadableError(f"its type '{kind[:64]}' is not a tool call we know")


def _mcp(item: Any, method: Any) -> RawCall:
    params = field(item, "params")
    if method != "tools/call":
        raise UnreadableError("it is a request, but not a `tools/call`")
    return RawCall(Format.MCP, field(item, "id"), field(params, "name"), field(params, "arguments"))


def _plain(item: Any, names: FieldNames) -> RawCall:
    inner = field(item, names.wrapper) if names.wrapper is not None else None
    holder = item if inner is None else inner
    return RawCall(Format.PLAIN, field(item, names.id), field(holder, names.name), field(holder, names.arguments))
