"""Models of every kind on servers that speak their wire formats: answers, calls, and everything that goes wrong."""

from __future__ import annotations

import asyncio
import socket
import warnings
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from pydantic_ai.models.test import TestModel
from tests.fake_provider import FakeProvider
from tests.unit.agent.office import Office, open_office

import toolgate
from toolgate import bootstrap
from toolgate.agent import provider
from toolgate.agent.build import build_agent
from toolgate.agent.history import AgentSaid, Made, PersonSaid, Said
from toolgate.agent.model import Question
from toolgate.agent.provider import ProviderModel
from toolgate.errors import ModelError, UsageError

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it has escapes in it that the compiler warns of, once
    import google.genai.types  # noqa: F401

KEY = "sk-canary-5f3a9c"
WIRES = ["openai-chat:m", "openai-responses:m", "anthropic:m", "google:m", "ollama:m"]


@toolgate.tool(effects="read")
async def add(left: int, right: int) -> int:
    """Add two numbers."""
    return left + right


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provider, "BUSY_S", 0.0)


def model_at(url: str, name: str = "openai:m", timeout_s: float = 20.0) -> ProviderModel:
    suffix = "/v1" if name.startswith(("openai", "ollama")) else ""
    return ProviderModel.open(name, base_url=url + suffix, key=KEY, timeout_s=timeout_s)


@asynccontextmanager
async def asking(*answers: dict[str, Any], name: str = "openai:m", **options: Any) -> AsyncIterator[Any]:
    async with FakeProvider(list(answers)).serving() as fake:
        timeout_s = options.pop("timeout_s", 20.0)
        async with open_office(model_at(fake.url, name, timeout_s), [add], **options) as office:
            yield fake, office


async def failed(office: Office) -> dict[str, Any]:
    await office.send("go")
    return await office.ears.next("chat.error")


@pytest.mark.parametrize("name", WIRES)
async def test_every_wire_format_calls_tools_and_streams_its_answer(name: str) -> None:
    calls = [
        {"name": "add", "arguments": {"left": 1, "right": 2}},
        {"name": "add", "arguments": {"left": 3, "right": 4}},
    ]
    async with asking({"text": "Let me see.", "calls": calls}, {"text": "It is 3 and 7."}, name=name) as (fake, office):
        told = await office.answer("add")
        assert told["answer"].strip() == "It is 3 and 7."
        assert told["analysis"].strip() == "Let me see."
        assert [one["result"] for one in told["tool_results"]] == [3, 7]
        assert told["usage"]["input_tokens"] == 22
        assert "It is 3" in office.ears.text()
        first, second = fake.requests
        assert first["key"] == KEY
        assert '"add"' in str(first["body"]["tools"]).replace("'", '"')
        assert "Let me see." in str(second["body"]), "the model is given back what it wrote"
        assert office.agent._model.name.endswith(":m")
        assert KEY not in str(office.ears.heard)


async def test_malformed_calls_are_told_to_the_model_which_may_correct_them() -> None:
    wrong = [
        {"name": "add", "arguments": '{"left": 1, "ri'},
        {"name": "nothing", "arguments": {}},
        {"name": "add", "arguments": {"left": "x"}},
    ]
    right = [{"name": "add", "arguments": {"left": 1, "right": 1}}]
    async with asking({"calls": wrong}, {"calls": right}, {"text": "ok"}) as (fake, office):
        told = await office.answer("add")
        assert [one["status"] for one in told["tool_results"]] == ["failed", "failed", "failed", "completed"]
        said = str(fake.requests[1]["body"]["messages"])
        assert "invalid_arguments" in said
        assert "tool_not_found" in said


@pytest.mark.parametrize("missing", [None, ""])
@pytest.mark.parametrize("name", WIRES)
async def test_a_call_without_a_name_is_told_to_be_unknown(name: str, missing: str | None) -> None:
    right = {"name": "add", "arguments": {"left": 1, "right": 2}}
    calls = [right, {"name": missing, "arguments": {"left": 3, "right": 4}}]
    async with asking({"text": "Let me see.", "calls": calls}, {"text": "done"}, name=name) as (fake, office):
        told = await office.answer("add")
        assert [one["status"] for one in told["tool_results"]] == ["completed", "failed"]
        assert told["tool_results"][1]["tool_name"] == provider.NAMELESS
        said = str(fake.requests[1]["body"])
        assert said.count(provider.NAMELESS) >= 1
        assert "tool_not_found" in said


@pytest.mark.parametrize(
    ("answer", "reason", "tries"),
    [
        ({"status": 401, "body": {"error": {"message": f"bad key {KEY}"}}}, "wrong_key", 1),
        ({"status": 404, "body": {"error": {"code": "model_not_found", "message": "no"}}}, "unknown_model", 1),
        ({"status": 429, "headers": {"Retry-After": "0"}}, "rate_limited", 3),
        ({"status": 429, "headers": {"Retry-After": "3600"}}, "rate_limited", 1),
        ({"status": 503}, "overloaded", 3),
        ({"status": 400, "body": {"error": {"message": "no"}}}, "refused", 1),
        ({"text": "half of an answer", "cut": True}, "truncated", 3),
        ({}, "truncated", 3),
        ({"text": "cut", "finish": "length"}, "truncated", 1),
        ({"text": "no", "finish": "content_filter"}, "refused", 1),
    ],
)
async def test_what_goes_wrong_is_told_without_what_the_provider_said(
    answer: dict[str, Any], reason: str, tries: int
) -> None:
    async with asking(answer) as (fake, office):
        told = await failed(office)
        assert told["reason"] == reason, told
        assert len(fake.requests) == tries
        assert KEY not in str(told)


@pytest.mark.parametrize("name", WIRES)
async def test_an_answer_that_is_cut_off_is_not_taken_for_a_whole_one(name: str) -> None:
    async with asking({"text": "half of an answer", "cut": True}, {"text": "whole"}, name=name) as (_, office):
        assert (await office.answer("go"))["answer"].strip() == "whole"


@pytest.mark.parametrize("name", ["anthropic:m", "google:m"])
async def test_other_providers_fail_in_the_same_words(name: str) -> None:
    body = {"type": "error", "error": {"type": "authentication_error", "message": KEY, "status": "UNAUTHENTICATED"}}
    async with asking({"status": 401, "body": body}, name=name) as (_, office):
        assert (await failed(office))["reason"] == "wrong_key"
    busy = {"type": "error", "error": {"type": "rate_limit_error", "message": "slow", "status": "RESOURCE_EXHAUSTED"}}
    async with asking({"status": 429, "body": busy}, {"text": "here"}, name=name) as (_, office):
        assert (await office.answer("go"))["answer"].strip() == "here"


async def test_a_busy_provider_is_asked_again() -> None:
    async with asking({"status": 429, "headers": {"Retry-After": "0"}}, {"text": "here"}) as (_, office):
        assert (await office.answer("go"))["answer"].strip() == "here"
        assert "rate limit" in (await office.ears.next("chat.retry"))["error"]


async def test_a_provider_that_does_not_answer_is_given_up() -> None:
    async with asking({"hang": True}, timeout_s=0.2, retries=0) as (_, office):
        assert (await failed(office))["reason"] == "timeout"


async def test_a_provider_that_is_not_there_is_told() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    async with open_office(model_at(url), [add], retries=0) as office:
        told = await failed(office)
        assert (told["reason"], "BASE_URL" in told["error"]) == ("unreachable", True)


async def test_a_conversation_that_another_model_began_is_gone_on_with() -> None:
    async with FakeProvider([{"text": "ok"}]).serving() as fake:
        model = model_at(fake.url)
        made = Made(call_id="c", ref="r", name="add", arguments='{"left": 1, "right": 2}')
        said: list[Said] = [PersonSaid(text="hi"), AgentSaid(text="hello", calls=(made,)), PersonSaid(text="and?")]

        async def hear(_piece: str) -> None:
            await asyncio.sleep(0)

        assert (await model.answer(Question(said=said, tools=[]), hear)).text.strip() == "ok"
        assert "hello" in str(fake.requests[0]["body"])
        await model.close()


async def test_a_model_of_the_librarys_own_works_too() -> None:
    model = ProviderModel(TestModel(custom_output_text="hello there"))
    async with open_office(model, [add]) as office:
        told = await office.answer("hi")
        assert (told["answer"], told["tool_results"][0]["result"]) == ("hello there", 0)


async def test_the_library_of_a_provider_may_break(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_args: Any, **_options: Any) -> Any:
        raise OSError(f"secret {KEY}")

    monkeypatch.setattr(provider, "model_request_stream", broken)
    with pytest.raises(ModelError) as caught:
        await model_at("http://127.0.0.1:1").answer(Question(said=[], tools=[]), lambda _piece: asyncio.sleep(0))
    assert KEY not in str(caught.value)


@pytest.mark.parametrize("name", ["nonsense", "openai:", "nowhere:x", "openai:gpt-5"])
def test_a_model_that_is_none_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(UsageError):
        ProviderModel.open(name, base_url=None, key=None, timeout_s=1)


@pytest.mark.parametrize("is_given", [True, False])
async def test_the_key_is_hidden_wherever_the_gate_masks(is_given: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "plain-old-words")
    key = KEY if is_given else None
    async with toolgate.open("memory://") as gate:
        agent = build_agent(
            gate, bootstrap.threads("memory://"), model="openai:m", base_url="http://127.0.0.1:1/v1", key=key
        )
        assert gate.host.masker.text(f"it is {key or 'plain-old-words'}") == "it is ***"
        await agent.close()


@pytest.mark.parametrize(
    ("model", "variable"),
    [
        ("openai:gpt-5", "OPENAI_API_KEY"),
        ("anthropic:claude-sonnet-4-5", "ANTHROPIC_API_KEY"),
        ("google:gemini-2.5-flash", "GOOGLE_API_KEY"),
    ],
)
async def test_a_key_from_the_providers_own_variable_is_hidden(
    model: str, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, "meadow-harbour-lantern")
    async with toolgate.open("memory://") as gate:
        agent = build_agent(gate, bootstrap.threads("memory://"), model=model)
        assert "harbour" not in gate.host.masker.text("it said meadow-harbour-lantern to me")
        await agent.close()
