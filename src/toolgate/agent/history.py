"""What was said in a conversation, as values: how it is kept, what of it is shown, and how gaps in it are closed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import dropwhile
from typing import Any

import orjson

from toolgate.ports.threads import Message, Role

UNANSWERED = "The run ended before this call did. Its outcome was not waited for."


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonSaid:
    """What a person wrote."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A tool call the agent made: its id at the gate, the model's own id of it, and what the model wrote."""

    call_id: str
    ref: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSaid:
    """What the agent said. A notice is said by the loop about the run, and no model is told of it."""

    text: str
    calls: tuple[Made, ...] = ()
    raw: str | None = None
    is_notice: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a call ended: the status word and what came of it. `shown` is what people are told.

    `note` is said to the model besides. `joined` is the earlier call that it was, where it joined one.
    """

    call_id: str
    ref: str
    name: str
    status: str
    value: Any
    shown: Any = None
    is_error: bool = False
    note: str | None = None
    joined: str | None = None

    @property
    def told(self) -> Any:
        """What the model is told."""
        if self.note is None:
            return self.value
        value = self.value if isinstance(self.value, dict) else {"result": self.value}
        return {**value, "note": self.note}

    @property
    def text(self) -> str:
        return self.value if isinstance(self.value, str) else orjson.dumps(self.value).decode()


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolsSaid:
    """The outcomes of all calls of one step, in the order in which they were made."""

    outcomes: tuple[Outcome, ...]


Said = PersonSaid | AgentSaid | ToolsSaid
Mask = Callable[[object], Any]


def role_of(said: Said) -> Role:
    """Who said it."""
    return {PersonSaid: Role.PERSON, AgentSaid: Role.AGENT, ToolsSaid: Role.TOOLS}[type(said)]


def content_of(said: Said) -> bytes:
    """What is kept of it, all of it, as JSON."""
    if isinstance(said, PersonSaid):
        return orjson.dumps({"text": said.text})
    if isinstance(said, ToolsSaid):
        return orjson.dumps({"outcomes": [_outcome(one, one.value) for one in said.outcomes]})
    calls = [
        {"call_id": one.call_id, "ref": one.ref, "name": one.name, "arguments": one.arguments} for one in said.calls
    ]
    return orjson.dumps({"text": said.text, "calls": calls, "raw": said.raw, "is_notice": said.is_notice})


def _outcome(one: Outcome, value: Any) -> dict[str, Any]:
    return {
        "call_id": one.call_id,
        "ref": one.ref,
        "name": one.name,
        "status": one.status,
        "value": value,
        "is_error": one.is_error,
        "note": one.note,
        "joined": one.joined,
    }


def shown_of(said: Said, mask: Mask) -> dict[str, Any]:
    """What people are shown of it."""
    if isinstance(said, PersonSaid):
        return {"text": mask(said.text)}
    if isinstance(said, ToolsSaid):
        results = [
            {
                "tool_id": one.call_id,
                "tool_name": mask(one.name),
                "status": one.status,
                "result": mask(one.shown),
                "joined": one.joined,
            }
            for one in said.outcomes
        ]
        return {"tool_results": results}
    shown: dict[str, Any] = {"text": mask(said.text)}
    if said.calls:
        shown["tool_calls"] = [
            {"tool_id": one.call_id, "tool_name": mask(one.name), "tool_params": mask(parsed(one.arguments))}
            for one in said.calls
        ]
    if said.is_notice:
        shown["notice"] = True
    return shown


def parsed(arguments: str) -> Any:
    """What a model wrote as arguments, as JSON where it is some; otherwise the text itself."""
    try:
        return orjson.loads(arguments)
    except orjson.JSONDecodeError:
        return arguments


def said_of(message: Message) -> Said:
    """The value a message was made of; what people are shown of outcomes comes from the masked view."""
    kept = orjson.loads(message.content)
    if message.role is Role.PERSON:
        return PersonSaid(text=kept["text"])
    if message.role is Role.AGENT:
        return AgentSaid(
            text=kept["text"],
            calls=tuple(Made(**one) for one in kept["calls"]),
            raw=kept["raw"],
            is_notice=kept["is_notice"],
        )
    views = [one["result"] for one in message.shown["tool_results"]]
    return ToolsSaid(
        outcomes=tuple(Outcome(shown=view, **one) for one, view in zip(kept["outcomes"], views, strict=True))
    )


def told(said: Iterable[Said]) -> list[Said]:
    """What a model is told: without notices, and with an outcome for every call, since providers insist on it.

    It begins with a person's words: of a run that retention forgot in part, outcomes without calls may be left.
    """
    begun = dropwhile(lambda one: not isinstance(one, PersonSaid), said)
    kept = [one for one in begun if not (isinstance(one, AgentSaid) and one.is_notice)]
    whole: list[Said] = []
    for at, one in enumerate(kept):
        whole.append(one)
        if not isinstance(one, AgentSaid) or not one.calls:
            continue
        follows = kept[at + 1] if at + 1 < len(kept) else None
        if not isinstance(follows, ToolsSaid):
            whole.append(ToolsSaid(outcomes=tuple(_unanswered(call) for call in one.calls)))
    return whole


def _unanswered(call: Made) -> Outcome:
    value = {"status": "cancelled", "error": UNANSWERED}
    return Outcome(
        call_id=call.call_id, ref=call.ref, name=call.name, status="cancelled", value=value, shown=value, is_error=True
    )


def recent(said: Sequence[Said], limit: int) -> Sequence[Said]:
    """The last things said, at most about `limit` of them, beginning with a person's message."""
    if len(said) <= limit:
        return said
    starts = [at for at, one in enumerate(said) if isinstance(one, PersonSaid)]
    fitting = [at for at in starts if len(said) - at <= limit]
    return said[fitting[0] if fitting else starts[-1] :]
