"""Every model that is a service, through pydantic-ai: OpenAI and what speaks like it, Anthropic, Gemini, local ones.

What goes wrong with one is put into words for people; nothing of a key or of what a provider said is told.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from toolgate.agent.history import AgentSaid, PersonSaid, Said, ToolsSaid
from toolgate.agent.model import Hear, Question, Reply, Wanted
from toolgate.errors import ModelError, UsageError
from toolgate.kernel.extras import how_to_install
from toolgate.kernel.text.formats import fresh_id
from toolgate.kernel.tool import ToolDefinition
from toolgate.ports.threads import Usage

try:
    from pydantic_ai import exceptions as failures
    from pydantic_ai import messages as parts
    from pydantic_ai.direct import model_request_stream
    from pydantic_ai.models import Model as AnyModel
    from pydantic_ai.models import ModelRequestParameters, infer_model
    from pydantic_ai.providers import infer_provider_class
    from pydantic_ai.settings import ModelSettings
    from pydantic_ai.tools import ToolDefinition as Offered
except ImportError as missing:
    raise UsageError(
        f"Models come with the extra `agent` ({missing}): {how_to_install('agent')}, or use `scripted`."
    ) from missing

BUSY_S = 2.0
"""When to ask again a model that is busy and does not say when."""
NAMELESS = "tool_without_a_name"
"""What a call is called that names no tool; providers take no empty name back."""
LONGEST_S = 60.0
"""Longer than this nobody waits for a provider's limit: the run fails and says when to come back."""


class ProviderModel:
    """A model of pydantic-ai in the shape the loop wants."""

    def __init__(self, model: AnyModel[Any], *, timeout_s: float = 120.0, key: str | None = None) -> None:
        self._model = model
        self._timeout_s = timeout_s
        self.key = key
        """The key it shows its provider, wherever that came from; to be hidden, not to be used."""

    @classmethod
    def open(cls, name: str, *, base_url: str | None, key: str | None, timeout_s: float) -> ProviderModel:
        """Return the model of a name such as `anthropic:claude-sonnet-4-5`; UsageError where there is none."""
        provider, colon, model = name.partition(":")
        if not colon or not model:
            raise UsageError(f"{name[:80]!r} is not a model; write a provider and a model, such as `openai:gpt-5`.")
        if provider == "openai" and base_url is not None:
            name = f"openai-chat:{model}"  # what is only compatible rarely has the newer interface
        given = {"base_url": base_url, "api_key": key}

        def make(kind: str) -> Any:
            return infer_provider_class(kind)(**{word: value for word, value in given.items() if value is not None})

        try:
            made = infer_model(name, provider_factory=make)
        except (failures.UserError, ValueError, TypeError, ImportError) as error:
            raise UsageError(_hidden(f"The model {name[:80]!r} cannot be used: {error}", key)) from None
        client: Any = getattr(made, "client", None)
        if hasattr(client, "max_retries"):
            client.max_retries = 0  # the loop asks again itself, and says so
        holder = getattr(client, "_api_client", client)  # where Google's client keeps its key
        found = getattr(holder, "api_key", None)
        return cls(made, timeout_s=timeout_s, key=key or (found if isinstance(found, str) else None))

    @property
    def name(self) -> str:
        return f"{self._model.system}:{self._model.model_name}"

    async def answer(self, question: Question, hear: Hear) -> Reply:
        messages = _messages(question.said, question.instructions)
        asked = ModelRequestParameters(function_tools=[_offered(tool) for tool in question.tools])
        settings = ModelSettings(request_timeout=self._timeout_s)
        try:
            async with model_request_stream(
                self._model, messages, model_settings=settings, model_request_parameters=asked
            ) as stream:
                async for event in stream:
                    piece = _piece(event)
                    if piece:
                        await hear(piece)
                response = _named(stream)
        except failures.AgentRunError as error:
            raise _told(error) from None
        except Exception as error:  # noqa: BLE001  # four SDKs beneath, each with errors of its own
            raise _unexpected(error) from None
        return _reply(response)

    async def close(self) -> None:
        client = getattr(self._model, "client", None)
        close = getattr(client, "close", None)
        if close is not None:
            with contextlib.suppress(Exception):  # a connection that does not close well is no matter to anybody
                closing = close()
                if hasattr(closing, "__await__"):
                    await closing


def _messages(said: Sequence[Said], instructions: str) -> list[Any]:
    """The conversation in pydantic-ai's own messages; what a model wrote is given back as it wrote it."""
    messages: list[Any] = []
    for one in said:
        if isinstance(one, PersonSaid):
            messages.append(parts.ModelRequest(parts=[parts.UserPromptPart(content=one.text)]))
        elif isinstance(one, ToolsSaid):
            returned = [
                parts.ToolReturnPart(
                    tool_name=outcome.name,
                    content=outcome.told,
                    tool_call_id=outcome.ref,
                    outcome="failed" if outcome.is_error else "success",
                )
                for outcome in one.outcomes
            ]
            messages.append(parts.ModelRequest(parts=returned))
        else:
            messages.append(_response(one))
    if messages and isinstance(messages[-1], parts.ModelRequest):
        messages[-1].instructions = instructions or None
    return messages


def _response(said: AgentSaid) -> Any:
    if said.raw is not None:
        return parts.ModelMessagesTypeAdapter.validate_json(said.raw)[0]
    written: list[Any] = [parts.TextPart(content=said.text)] if said.text else []
    written += [
        parts.ToolCallPart(tool_name=call.name, args=call.arguments, tool_call_id=call.ref) for call in said.calls
    ]
    return parts.ModelResponse(parts=written)


def _offered(tool: ToolDefinition) -> Offered:
    return Offered(
        name=tool.name, description=tool.description, parameters_json_schema=dict(tool.input_schema), strict=False
    )


def _piece(event: Any) -> str:
    if isinstance(event, parts.PartStartEvent) and isinstance(event.part, parts.TextPart):
        return event.part.content
    if isinstance(event, parts.PartDeltaEvent) and isinstance(event.delta, parts.TextPartDelta):
        return event.delta.content_delta
    return ""


def _named(stream: Any) -> parts.ModelResponse:
    """Return the whole answer, with a name for every call that came without one.

    The library leaves a call out of the answer that no name came for, without a word. Under a name that no tool has
    it is told to be unknown, and the model may correct itself.
    """
    response: parts.ModelResponse = stream.get()
    lost = [part for part in stream._parts_manager._parts if isinstance(part, parts.ToolCallPartDelta)]
    for part in response.parts:
        if isinstance(part, parts.ToolCallPart) and not part.tool_name:
            part.tool_name = NAMELESS
    found = [
        parts.ToolCallPart(NAMELESS, part.args_delta, tool_call_id=part.tool_call_id or fresh_id()) for part in lost
    ]
    return replace(response, parts=[*response.parts, *found])


def _reply(response: parts.ModelResponse) -> Reply:
    calls = [part for part in response.parts if isinstance(part, parts.ToolCallPart)]
    if response.finish_reason == "length":
        raise ModelError(
            "The model's answer was cut off at its longest length; nothing of it was done. Ask for less at once.",
            reason="truncated",
        )
    if response.finish_reason == "content_filter":
        raise ModelError("The provider's filter held the answer back. Put the request differently.", reason="refused")
    text = "".join(part.content for part in response.parts if isinstance(part, parts.TextPart))
    # A service says why it ended; one that does not was cut off. Models that are no service have no address.
    is_cut = "finish_reason" not in (response.provider_details or {}) and response.provider_url is not None
    if is_cut or (not text and not calls):
        raise ModelError("The model's answer was empty or broke off.", reason="truncated", retry_after_s=BUSY_S)
    return Reply(
        text=text,
        calls=tuple(Wanted(ref=part.tool_call_id, name=part.tool_name, arguments=_arguments(part)) for part in calls),
        usage=_usage(response),
        raw=parts.ModelMessagesTypeAdapter.dump_json([response]).decode(),
    )


def _arguments(part: parts.ToolCallPart) -> str:
    """What the model wrote, as it wrote it where that is text: the gate says what is wrong with it."""
    return part.args if isinstance(part.args, str) else part.args_as_json_str()


def _usage(response: parts.ModelResponse) -> Usage:
    used = response.usage
    try:
        cost: float | None = float(response.cost().total_price)
    except (LookupError, ValueError, AssertionError):  # a model whose price is not known
        cost = None
    return Usage(input_tokens=used.input_tokens, output_tokens=used.output_tokens, cost=cost)


_REASONS: tuple[tuple[type[Exception], str, str], ...] = (
    (
        failures.ModelAuthenticationError,
        "wrong_key",
        "The provider does not take the key. Set `TOOLGATE_AGENT_KEY`, or the provider's own variable, to a valid one.",
    ),
    (failures.ModelNotFoundError, "unknown_model", "The provider has no such model. Correct `TOOLGATE_AGENT_MODEL`."),
    (
        failures.ModelContextWindowExceededError,
        "too_long",
        "The conversation is longer than the model can take. Begin a new one.",
    ),
    (failures.ModelQuotaExceededError, "quota", "The account at the provider has no credit or quota left."),
    (failures.ModelRateLimitError, "rate_limited", "The provider's rate limit is reached."),
    (failures.ModelTimeoutError, "timeout", "The model did not answer in time."),
    (failures.ModelRequestTimeout, "timeout", "The model did not answer in time."),
    (
        failures.ModelConnectionError,
        "unreachable",
        "The provider cannot be reached, or the connection broke. Is `TOOLGATE_AGENT_BASE_URL` right, and does it run?",
    ),
    (failures.ModelUnavailableError, "overloaded", "The provider is overloaded or down for now."),
    (failures.ModelServerError, "overloaded", "The provider has a fault of its own."),
    (failures.ModelRequestRejectedError, "refused", "The provider refused the request."),
    (failures.ContentFilterError, "refused", "The provider's filter held the answer back."),
    (failures.UnexpectedModelBehavior, "truncated", "The model's answer broke off or makes no sense."),
)
_WORTH_ANOTHER_TRY = frozenset({"rate_limited", "timeout", "unreachable", "overloaded", "truncated"})


def _told(error: failures.AgentRunError) -> ModelError:
    """What went wrong, in words that hold nothing the provider said: bodies quote keys and conversations."""
    known = (row[1:] for row in _REASONS if isinstance(error, row[0]))
    reason, text = next(known, ("failed", "The provider answered with an error."))
    status = getattr(error, "status_code", None)
    detail = f" (HTTP {status})" if status is not None else ""
    wait = getattr(error, "retry_after", None)
    if reason not in _WORTH_ANOTHER_TRY:
        return ModelError(f"{text}{detail}", reason=reason)
    if wait is not None and wait > LONGEST_S:
        return ModelError(f"{text}{detail} It asks to come back in {wait:.0f} seconds.", reason=reason)
    return ModelError(f"{text}{detail}", reason=reason, retry_after_s=BUSY_S if wait is None else max(0.0, wait))


def _unexpected(error: Exception) -> ModelError:
    """An error of a library beneath: connections that break in the middle of an answer often end up here."""
    text = f"The model's answer could not be read ({type(error).__name__})."
    return ModelError(text, reason="truncated", retry_after_s=BUSY_S)


def _hidden(text: str, key: str | None) -> str:
    return text if not key else text.replace(key, "***")
