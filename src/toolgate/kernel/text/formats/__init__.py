"""What did the model send? Tool calls of any provider, read strictly and resolved to registered tools.

A call that can run exactly as it was sent becomes a `ResolvedToolCall`; any other one becomes an
`UnresolvedToolCall` that says why, and nothing raises. Nothing in a call is trusted: keys such as `approved` or
`risk_level` are arguments like any others, and no default is filled in. `kernel.formats_results` answers the
provider, `kernel.formats_schemas` tells it which tools there are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final, TypeVar
from uuid import uuid4

from toolgate.errors import ToolInputError
from toolgate.kernel.text.canonical import Arguments, Limits, canonical, read_arguments
from toolgate.kernel.text.formats.calls import OURS, FormatLimits, Reason, ResolvedToolCall, UnresolvedToolCall
from toolgate.kernel.text.formats.find import find_calls
from toolgate.kernel.text.formats.look import Found, UnreadableError, field
from toolgate.kernel.text.formats.read import (
    CALL_TYPES,
    AmbiguousError,
    FieldNames,
    Format,
    RawCall,
    format_of,
    read_call,
)
from toolgate.kernel.tool import ToolDefinition

__all__ = ["FieldNames", "Format", "FormatLimits", "Reason", "ResolvedToolCall", "UnresolvedToolCall", "parse_calls"]


Parsed = ResolvedToolCall | UnresolvedToolCall
DEFAULT_LIMITS: Final = FormatLimits()
_TOO_MUCH: Final = ("larger than", "nested")
_FREE_TEXT: Final = frozenset({Format.OPENAI_CUSTOM, Format.OPENAI_RESPONSES_CUSTOM})
_MAX_ID_BITS: Final = 512


def fresh_id() -> str:
    """Return an id for a call that came without one."""
    return f"{OURS}{uuid4().hex}"


def parse_calls(
    payload: Any,
    find: Callable[[str], ToolDefinition | None],
    *,
    names: FieldNames = FieldNames(),  # noqa: B008  # an immutable value
    limits: FormatLimits = DEFAULT_LIMITS,
    new_id: Callable[[], str] = fresh_id,
) -> tuple[list[ResolvedToolCall], list[UnresolvedToolCall]]:
    """Return the calls that can run and those that cannot, each in the order sent. Never raises.

    `payload` is a response, a message, a list of calls or one call, as dicts or SDK objects. `find` returns the
    tool of a name, as `ToolRegistry.find` does. With `names`, every call is read by these field names alone. A call
    that comes without an id where its provider gives one is unresolved, with an id of `new_id`.
    """
    try:
        found = find_calls(payload)
    except UnreadableError as error:
        return [], [_with_id(_malformed(payload, error), new_id)]
    parsed = [one for one in (_parse(item, find, names, limits) for item in found) if one is not None]
    parsed = [_with_id(one, new_id) for one in parsed]
    if len(parsed) > limits.max_calls:
        text = (
            f"The answer holds {len(parsed):,} calls; at most {limits.max_calls:,} are taken. Ask for fewer at a time."
        )
        parsed = [_refuse(one, Reason.OVERSIZED, text) for one in parsed]
    parsed = [replace(one, position=at) for at, one in enumerate(_without_duplicates(parsed))]
    resolved = [one for one in parsed if isinstance(one, ResolvedToolCall)]
    return resolved, [one for one in parsed if isinstance(one, UnresolvedToolCall)]


def _parse(
    found: Found, find: Callable[[str], ToolDefinition | None], names: FieldNames, limits: FormatLimits
) -> Parsed | None:
    try:
        raw = read_call(found.item, names, is_content=found.is_content)
    except UnreadableError as error:
        return _piece(_malformed(found.item, error)) if found.is_piece else _malformed(found.item, error)
    if raw is None:
        is_call = found.is_piece and not found.is_content
        return _piece(UnresolvedToolCall("", "", {}, "", found.item)) if is_call else None
    parsed = _resolve(raw, found.item, find, limits)
    if found.is_piece:
        return _piece(parsed)
    if raw.is_partial:
        parsed = _refuse(parsed, Reason.TRUNCATED, "The call is marked as unfinished. Wait for the whole of it.")
    if found.obstacle is not None:
        reason, text = found.obstacle
        parsed = _refuse(parsed, Reason(reason), f"The call was not taken: {text}.")
    return parsed


def _piece(one: Parsed) -> UnresolvedToolCall:
    text = "This is a piece of a call in a stream. Put the pieces together, then pass the whole message."
    return _refuse(one, Reason.TRUNCATED, text)


P = TypeVar("P", bound=Parsed)


def _with_id(one: P, new_id: Callable[[], str]) -> P:
    """Give an unresolved call that came without a usable id one of ours, so that it can be told and looked up."""
    if one.call_id or isinstance(one, ResolvedToolCall):
        return one
    return replace(one, call_id=new_id(), is_id_ours=True)


def _malformed(item: Any, error: UnreadableError) -> UnresolvedToolCall:
    reason = Reason.AMBIGUOUS if isinstance(error, AmbiguousError) else Reason.MALFORMED
    text = f"This is not a tool call that can be read: {error}."
    return UnresolvedToolCall(_id_of(item), "", {}, text, item, reason, None, format_of(item))


def _id_of(item: Any) -> str:
    """Return the id of something that is no call otherwise, so that its provider can be answered; empty for none."""
    try:
        kind, found = field(item, "type"), field(item, "call_id") or field(item, "id")
    except UnreadableError:
        return ""
    is_call = isinstance(kind, str) and kind in CALL_TYPES
    return found[: DEFAULT_LIMITS.max_call_id] if is_call and isinstance(found, str) and _is_plain(found) else ""


def _refuse(one: Parsed, reason: Reason, text: str) -> UnresolvedToolCall:
    if isinstance(one, UnresolvedToolCall):
        return replace(one, reason=reason, error=text)
    return UnresolvedToolCall(one.call_id, one.name, one.arguments, text, one.raw, reason, None, one.format)


def _resolve(raw: RawCall, item: Any, find: Callable[[str], ToolDefinition | None], limits: FormatLimits) -> Parsed:
    call_id, name = _text_id(raw.call_id), _text(raw.name)
    refused = UnresolvedToolCall(
        _shown(call_id, limits.max_call_id) if call_id and _is_plain(call_id) else "",
        _shown(name or "", limits.max_name),
        {},
        "",
        item,
        Reason.MALFORMED,
        None,
        raw.format,
    )
    wrong = _wrong_labels(call_id, name, raw.format, limits)
    if wrong is not None or name is None:
        return _refuse(refused, *(wrong or _NAMELESS))
    tool = find(name)
    try:
        arguments = _read_arguments(raw, tool, limits.arguments)
    except ToolInputError as error:
        too_much = any(words in str(error) for words in _TOO_MUCH)
        reason = Reason.OVERSIZED if too_much else Reason.MALFORMED
        return _refuse(refused, reason, f"The arguments of '{refused.name}' were not taken. {error}")
    refused = replace(refused, arguments=arguments.value)
    if tool is None:
        return _refuse(refused, Reason.UNKNOWN_TOOL, f"No tool named '{refused.name}' is registered.")
    violations = tool.schema.violations(arguments.value)
    if violations:
        listed = "; ".join(f"{one.location or '/'} {one.message}" for one in violations)
        text = f"The arguments of '{refused.name}' do not fit its schema: {listed}."
        return replace(_refuse(refused, Reason.INVALID_ARGUMENTS, text), location=violations[0].location)
    return ResolvedToolCall(tool, call_id or "", name, arguments.value, item, raw.format)


def _text(value: Any) -> str | None:
    return str.__str__(value) if isinstance(value, str) else None


def _text_id(value: Any) -> str | None:
    """Return a call id as text, empty where there is none; None for what cannot be an id."""
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() <= _MAX_ID_BITS:
        return str(int(value))
    return "" if value is None else _text(value)


_NAMELESS: Final = (
    Reason.MALFORMED,
    "The call names no tool: its name must be text. A piece of a stream may have none: pass the whole message.",
)


_WITH_IDS: Final = frozenset(Format) - {Format.GEMINI, Format.OPENAI_LEGACY, Format.PLAIN}
"""The formats whose calls always have an id: without it no result can be told."""


def _wrong_labels(
    call_id: str | None, name: str | None, format: Format, limits: FormatLimits
) -> tuple[Reason, str] | None:
    if call_id is None:
        return Reason.MALFORMED, "The call's id is neither text nor a whole number."
    if not _is_plain(call_id):
        return Reason.MALFORMED, "The call's id holds control characters. Ids are plain text."
    if len(call_id) > limits.max_call_id:
        return Reason.OVERSIZED, f"The call's id is longer than {limits.max_call_id} characters."
    if not name:
        return _NAMELESS
    if len(name) > limits.max_name:
        return Reason.OVERSIZED, f"The name of the tool is longer than {limits.max_name} characters."
    if not call_id and format in _WITH_IDS:
        text = f"The call has no id, and every call of the format `{format}` has one: its result could not be told."
        return Reason.MALFORMED, text
    return None


def _is_plain(text: str) -> bool:
    """Whether text has no characters that control how it is shown, or stored."""
    return text.isprintable()


def _shown(text: str, most: int) -> str:
    """Return text that is safe to store and print, cut to a limit; what controls how it is shown is escaped."""
    cut = text[:most]
    if _is_plain(cut):
        return cut
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in cut)


def _read_arguments(raw: RawCall, tool: ToolDefinition | None, limits: Limits) -> Arguments:
    """Return the arguments as plain JSON. None at all, or an empty text, stands for no arguments."""
    given = raw.arguments
    if raw.format in _FREE_TEXT and isinstance(given, str):
        return read_arguments({_text_parameter(tool): given}, limits=limits)
    if given is None or (isinstance(given, str) and not given.strip()):
        return read_arguments({}, limits=limits)
    if not isinstance(given, Mapping):
        return read_arguments(given, limits=limits)
    try:
        return read_arguments(dict(given), limits=limits)
    except ToolInputError:
        raise
    except Exception as error:  # noqa: BLE001  # a mapping of somebody else's may raise anything
        raise ToolInputError(f"They cannot be read ({type(error).__name__}); send a plain mapping.") from None


def _text_parameter(tool: ToolDefinition | None) -> str:
    """Return where the text of a custom tool call goes: its tool's only parameter, else `input`."""
    properties = tool.input_schema.get("properties", {}) if tool is not None else {}
    return next(iter(properties)) if len(properties) == 1 else "input"


def _without_duplicates(parsed: list[Parsed]) -> list[Parsed]:
    """Refuse calls that share an id. Where all say the same, the first one stands for all."""
    by_id: defaultdict[str, list[int]] = defaultdict(list)
    for at, one in enumerate(parsed):
        if one.call_id:
            by_id[one.call_id].append(at)
    kept = list(parsed)
    for places in by_id.values():
        if len(places) > 1:
            is_one = len({_meaning(parsed[at]) for at in places}) == 1
            for at in places[is_one:]:
                if isinstance(kept[at], ResolvedToolCall):
                    text = "Another call of this answer has the same id" + (
                        "." if is_one else ", and says something else."
                    )
                    kept[at] = _refuse(kept[at], Reason.DUPLICATE, text)
    return kept


def _meaning(one: Parsed) -> tuple[bool, str, bytes]:
    return isinstance(one, ResolvedToolCall), one.name, canonical(one.arguments)
