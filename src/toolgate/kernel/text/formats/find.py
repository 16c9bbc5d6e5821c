"""Find the tool calls in what a model's provider returned: a response, a message, a list, or one call.

Dicts and SDK objects are read alike, by field name; no SDK is imported. This file finds where calls stand and
whether their answer was cut off; `kernel.formats_read` reads one call, `kernel.formats_stream` knows the pieces of one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from toolgate.kernel.text.formats.look import Found, UnreadableError, field, has, items
from toolgate.kernel.text.formats.stream import find_pieces, within

_CUT_OFF: Final = frozenset(
    """
    length max_tokens max_output_tokens model_context_window_exceeded context_length_exceeded incomplete in_progress
    queued failed cancelled content_filter content_filtered refusal guardrail_intervened malformed_tool_use
    malformed_model_output error
    """.split()
)
_CONVERSATION: Final = ("ambiguous", "the list is a conversation; pass the one message that the model just wrote")
_HOLDERS: Final = ("tool_calls", "function_calls", "functionCalls", "choices", "candidates", "output")
"""Where answers keep what they hold."""
_GEMINI_COMPLETE: Final = frozenset({"stop", "finish_reason_unspecified"})


def find_calls(payload: Any) -> list[Found]:
    """Return every item that may be a call. Raise UnreadableError where the payload itself cannot be read."""
    if payload is None:
        return []
    listed = items(payload)
    if listed is None:
        return list(_in_object(payload))
    inside = [_in_item(item) for item in listed]
    spoken = [one for one in inside if one is not None]
    found: list[Found] = []
    for item, calls in zip(listed, inside, strict=True):
        obstacle = _CONVERSATION if len(spoken) > 1 and calls is not None else None
        found += [
            one._replace(obstacle=one.obstacle or obstacle) for one in ([Found(item)] if calls is None else calls)
        ]
    if any(_is_said_by_others(item) for item in listed):
        return [one._replace(obstacle=_CONVERSATION) for one in found]
    return found


def _in_item(item: Any) -> list[Found] | None:
    """Return the calls of a message, choice or candidate in a list; None for an item that is none of these."""
    try:
        if (pieces := _stream(item)) is not None:
            return list(pieces)
        is_message = has(item, "tool_calls") or any(field(item, name) is not None for name in ("role", "message"))
        is_candidate = _list_of(field(item, "content"), "parts") is not None
        return list(_in_object(item)) if is_message or is_candidate else None
    except UnreadableError:
        return None  # it is read again as a call, and refused with the reason


def _is_said_by_others(item: Any) -> bool:
    """Whether an item was not written by a model: then the list is a conversation, and its calls may be answered."""
    try:
        role = field(item, "role")
    except UnreadableError:
        return False
    return isinstance(role, str) and role not in ("assistant", "model")


def _in_object(payload: Any) -> Iterator[Found]:
    for look in _LOOKS:
        found = look(payload)
        if found is not None:
            yield from found
            return
    yield Found(payload)


def _stream(payload: Any) -> Iterable[Found] | None:
    """The calls in an event or chunk of a stream; None for anything else."""
    whole = within(payload)
    if whole is not None:
        return _output(whole) or _message(whole) or []
    choices = _list_of(payload, "choices") or []
    if any(field(choice, "delta") is not None for choice in choices):
        return _chat_response(payload)
    return find_pieces(payload)


def _chat_response(payload: Any) -> Iterable[Found] | None:
    return _alternatives(_list_of(payload, "choices"), "choices", _choice)


def _choice(choice: Any) -> Iterable[Found] | None:
    message = field(choice, "message")
    if message is None:
        return find_pieces(choice)
    found = _message(message)
    return _stopped([Found(message)] if found is None else found, field(choice, "finish_reason"))


def _gemini_response(payload: Any) -> Iterable[Found] | None:
    return _alternatives(_list_of(payload, "candidates"), "candidates", _candidate)


def _candidate(candidate: Any) -> Iterable[Found]:
    reason = _word(_either(candidate, "finish_reason", "finishReason"))
    found = _message(field(candidate, "content")) or []
    if reason and reason not in _GEMINI_COMPLETE:
        return (_obstructed(one, reason) for one in found)
    return found


def _one_candidate(payload: Any) -> Iterable[Found] | None:
    return None if _list_of(field(payload, "content"), "parts") is None else _candidate(payload)


def _alternatives(choices: list[Any] | None, what: str, read: Any) -> Iterable[Found] | None:
    """Return the calls of the one answer; several answers are alternatives, and nobody chose one."""
    if choices is None:
        return None
    found = [one for choice in choices for one in read(choice) or ()]
    if len(choices) < 2:
        return found
    text = f"the response holds {len(choices)} alternative answers; pass the message of the one you chose from `{what}`"
    return [one._replace(obstacle=("ambiguous", text)) for one in found]


def _output(payload: Any) -> Iterable[Found] | None:
    output = field(payload, "output")
    if output is None:
        return None
    listed = _list_of(payload, "output")
    if listed is not None:
        return _stopped([Found(item, is_content=True) for item in listed], field(payload, "status"))
    found = _message(field(output, "message"))
    return None if found is None else _stopped(found, _either(payload, "stopReason", "stop_reason"))


def _message(message: Any) -> Iterable[Found] | None:
    if message is None:
        return None
    calls = _list_of(message, "tool_calls")
    if calls:
        return [Found(item) for item in calls]
    if field(message, "tool_calls") is not None and calls is None:
        return [Found(field(message, "tool_calls"))]  # not a list: one call, or nothing that can be read
    legacy = field(message, "function_call")
    if legacy is not None and field(message, "role") is not None:
        return [Found({"type": "function_call", "legacy": True, "function_call": legacy})]
    for name in ("content", "parts"):
        blocks = _list_of(message, name)
        if blocks is not None:
            found = [Found(block, is_content=True) for block in blocks]
            return _stopped(found, _either(message, "stop_reason", "stopReason"))
    return [] if field(message, "role") is not None or _has_no_calls(message) else None


def _has_no_calls(message: Any) -> bool:
    """Whether something says by itself that it holds no calls: its list of them is empty or null."""
    return has(message, "tool_calls") and field(message, "name") is None


def _live_calls(payload: Any) -> Iterable[Found] | None:
    holder = _either(payload, "tool_call", "toolCall")
    for one in (payload, holder):
        for name in ("function_calls", "functionCalls"):
            calls = _list_of(one, name)
            if calls is not None:
                return [Found({"functionCall": call}) for call in calls]
    return None


def _empty(payload: Any) -> Iterable[Found] | None:
    """Nothing, for what has a place for calls and null there."""
    is_call = any(field(payload, name) is not None for name in ("name", "type", "function"))
    return [] if not is_call and any(has(payload, name) for name in _HOLDERS) else None


_LOOKS: Final = (
    _stream,
    _chat_response,
    _gemini_response,
    _output,
    _one_candidate,
    _message,
    _live_calls,
    _choice,
    _empty,
)
"""The shapes an answer may have, in the order in which they are told apart."""


def _stopped(found: Iterable[Found], reason: Any) -> Iterator[Found]:
    word = _word(reason)
    for one in found:
        yield _obstructed(one, word) if word in _CUT_OFF else one


def _obstructed(one: Found, word: str) -> Found:
    text = f"the model's answer is not complete (it ended with '{word[:64]}'), so the call may be only a part"
    return one._replace(obstacle=one.obstacle or ("truncated", text))


def _word(reason: Any) -> str:
    value = field(reason, "value") if not isinstance(reason, str) else reason
    return value.lower() if isinstance(value, str) else ""


def _either(item: Any, *names: str) -> Any:
    return next((found for found in (field(item, name) for name in names) if found is not None), None)


def _list_of(item: Any, name: str) -> list[Any] | None:
    value = field(item, name)
    return None if value is None else items(value)
