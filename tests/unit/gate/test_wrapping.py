"""A wrapped function does what it did, through the gate."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
import pytest_asyncio
from pydantic import BaseModel

import toolgate
from toolgate import Gate, Status, ToolInput
from toolgate.errors import (
    DefinitionError,
    ToolApprovalDeniedError,
    ToolInputError,
    ToolOutputError,
    UsageError,
)
from toolgate.testing.patience import until


@pytest_asyncio.fixture
async def gate() -> AsyncIterator[Gate]:
    async with toolgate.open("memory://") as opened:
        yield opened


async def asked(gate: Gate) -> Any:
    await until(gate.pending)
    return (await gate.pending())[0]


async def test_an_async_function_runs_and_is_recorded(gate: Gate) -> None:
    @gate.wrap
    async def add(left: int, right: int = 2) -> int:
        """Add two numbers."""
        return left + right

    assert (await add(1), await add(1, right=5), add.__name__) == (3, 6, "add")
    tool = gate.registry.resolve("add")
    assert (tool.description, tool.placement, set(tool.input_schema["properties"])) == (
        "Add two numbers.",
        "caller",
        {"left", "right"},
    )
    assert [event.type for event in await gate.events()][-1] == "tool.completed"


async def test_a_plain_function_runs_on_the_thread_it_was_called_on(gate: Gate) -> None:
    where: list[threading.Thread] = []
    note = gate.wrap(lambda: where.append(threading.current_thread()), name="note")
    caller = threading.Thread(target=note)
    caller.start()
    await asyncio.to_thread(caller.join)
    assert where == [caller]


async def test_it_waits_for_a_person_and_runs_what_they_made_of_it(gate: Gate) -> None:
    ran: list[int] = []

    def pay(cents: int) -> int:
        ran.append(cents)
        return cents

    paying = asyncio.create_task(asyncio.to_thread(gate.wrap(pay, effects="irreversible"), 500))
    await gate.approvals.edit((await asked(gate)).id, {"cents": 5}, by="ann")
    assert (await paying, ran) == (5, [5])


async def test_what_the_caller_changes_while_somebody_is_asked_does_not_run(gate: Gate) -> None:
    seen: list[Any] = []

    async def pay(order: dict[str, int]) -> None:
        seen.append(dict(order))

    order = {"amount": 1}
    paying = asyncio.create_task(gate.wrap(pay, requires_approval=True)(order))
    approval = await asked(gate)
    order["amount"] = 1000
    await gate.decide(approval.id, "approve", by="ann")
    await paying
    assert seen == [{"amount": 1}]


async def test_a_no_is_raised_and_nothing_ran(gate: Gate) -> None:
    ran: list[int] = []

    async def pay(cents: int) -> None:
        ran.append(cents)

    paying = asyncio.create_task(gate.wrap(pay, effects="irreversible")(5))
    await gate.decide((await asked(gate)).id, "deny", by="ann")
    with pytest.raises(ToolApprovalDeniedError):
        await paying
    assert not ran


class Address(BaseModel):
    street: str


async def test_edited_arguments_come_in_the_types_of_the_function(gate: Gate) -> None:
    sent: list[Any] = []

    async def send(to: Address, *, note: str = "") -> None:
        sent.append((to, note))

    sending = asyncio.create_task(gate.wrap(send, effects="irreversible")(Address(street="A")))
    await gate.approvals.edit((await asked(gate)).id, {"to": {"street": "B"}}, by="ann")
    await sending
    await gate.wrap(partial(send, note="x"), name="send_x")(Address(street="C"))
    assert sent == [(Address(street="B"), ""), (Address(street="C"), "x")]


async def test_further_keywords_are_arguments_as_well(gate: Gate) -> None:
    async def tell(**words: str) -> dict[str, str]:
        return words

    assert await gate.wrap(tell)(a="b") == {"a": "b"}


async def test_what_has_no_json_form_is_refused_before_and_told_after(gate: Gate) -> None:
    async def echo(what: Any) -> Any:
        return {1, 2} if what == "set" else what

    wrapped = gate.wrap(echo)
    with pytest.raises(ToolInputError, match=r"gate\.wrap: `echo` was not called"):
        await wrapped(object())
    with pytest.raises(ToolOutputError, match=r"gate\.wrap: tool `echo` ran"):
        await wrapped("set")


async def test_calls_made_inside_a_wrapped_one_name_it_as_their_parent(gate: Gate) -> None:
    inner: Callable[[], int] = gate.wrap(lambda: 1, name="inner")
    outer = gate.wrap(lambda: inner() + 1, name="outer")
    assert await asyncio.to_thread(outer) == 2
    calls = {call.tool_name: call for call in await gate.calls.list(toolgate.CallQuery())}
    assert calls["inner"].context.parent_call_id == calls["outer"].id
    assert (calls["inner"].context.depth, calls["outer"].context.depth) == (1, 0)


async def test_what_a_plain_function_raises_is_the_outcome(gate: Gate) -> None:
    def stop() -> None:
        raise StopIteration

    def end() -> None:
        raise SystemExit(3)

    with pytest.raises(toolgate.errors.ToolExecutionError, match="StopIteration"):
        await asyncio.to_thread(gate.wrap(stop))
    with pytest.raises(SystemExit):
        await asyncio.to_thread(gate.wrap(end))
    await until(lambda: _ended(gate, "end"))


async def _ended(gate: Gate, name: str) -> bool:
    calls = await gate.calls.list(toolgate.CallQuery(tool_name=name))
    return all(call.status is Status.FAILED for call in calls)


async def test_it_is_refused_on_the_gates_own_thread(gate: Gate) -> None:
    wrapped: Callable[[], int] = gate.wrap(lambda: 1, name="one")

    async def call() -> Any:
        return wrapped()

    with pytest.raises(UsageError, match="would wait for itself"):
        await asyncio.wrap_future(gate.host.submit(call()))


async def test_giving_up_an_async_call_ends_it(gate: Gate) -> None:
    began, stopped = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    working = asyncio.create_task(gate.wrap(work)())
    await began.wait()
    working.cancel()
    with pytest.raises(asyncio.CancelledError):
        await working
    await stopped.wait()


async def test_a_plain_function_that_runs_out_of_time_is_not_said_to_have_stopped(gate: Gate) -> None:
    go_on = threading.Event()
    waiting = asyncio.create_task(asyncio.to_thread(gate.wrap(go_on.wait, name="hang", timeout_seconds=0.01)))
    calls = gate.calls.list
    await until(lambda: _is_unknown(calls))
    go_on.set()
    with pytest.raises(toolgate.errors.ToolUnknownOutcomeError, match="could not be stopped"):
        await waiting


async def _is_unknown(calls: Callable[..., Any]) -> bool:
    return [call.status for call in await calls(toolgate.CallQuery())] == [Status.UNKNOWN]


@dataclass
class Crew:
    """As CrewAI keeps a tool."""

    name: str
    description: str
    args_schema: type[BaseModel]

    def _run(self, street: str) -> str:
        return f"{self.name} {street}"


def smol() -> Any:
    """As smolagents keeps a tool."""
    inputs = {"q": {"type": "string", "description": "what"}, "n": {"type": "any", "description": "", "nullable": True}}
    return SimpleNamespace(name="search", description="Look", inputs=inputs, forward=lambda q, n=None: q)


def llama() -> Any:
    """As LlamaIndex keeps a tool."""
    return SimpleNamespace(
        metadata=SimpleNamespace(name="search", description="Look", fn_schema=Address),
        _fn=lambda street: street,
        _async_fn=None,
    )


def agno() -> Any:
    """As agno keeps a tool."""
    schema = {"type": "object", "properties": {"street": {"type": "string"}}}
    return SimpleNamespace(name="search", description="Look", parameters=schema, entrypoint=lambda street: street)


async def test_a_tool_object_is_copied_and_runs_through_the_gate(gate: Gate) -> None:
    crew = Crew("visit", "Go there", Address)
    wrapped = gate.wrap(crew)
    assert await asyncio.to_thread(wrapped._run, street="A") == "visit A"
    assert (type(wrapped), "_run" in vars(crew)) == (Crew, False)
    assert gate.registry.resolve("visit").input_schema["properties"]["street"]["type"] == "string"


@pytest.mark.parametrize(
    ("tool", "entry", "known"),
    [(smol(), "forward", {"q", "n"}), (llama(), "_fn", {"street"}), (agno(), "entrypoint", {"street"})],
    ids=["smolagents", "llama_index", "agno"],
)
async def test_tool_objects_of_other_frameworks_are_read(gate: Gate, tool: Any, entry: str, known: set[str]) -> None:
    wrapped = gate.wrap(tool)
    assert await asyncio.to_thread(getattr(wrapped, entry), "A") == "A"
    assert set(gate.registry.resolve("search").input_schema["properties"]) == known


async def test_the_schema_of_an_object_that_says_none_is_that_of_its_function(gate: Gate) -> None:
    def look(where: str) -> str:
        return where

    gate.wrap(SimpleNamespace(name="look", description="", func=look))
    assert gate.registry.resolve("look").input_schema["required"] == ["where"]


async def test_what_cannot_be_wrapped_is_named(gate: Gate) -> None:
    with pytest.raises(DefinitionError, match="int is neither a function nor a tool object"):
        gate.wrap(3)

    def ours(given: ToolInput) -> None: ...

    with pytest.raises(DefinitionError, match="`ours` takes the gate's own ToolInput"):
        gate.wrap(ours)


async def test_a_name_with_a_handler_of_its_own_is_refused_and_one_of_the_host_kept() -> None:
    handled = toolgate.tool(name="handled")(lambda: 1)
    kept = toolgate.ToolDefinition("kept", {}, placement="caller", effects="irreversible")
    async with toolgate.open("memory://", tools=[handled, kept]) as gate:
        with pytest.raises(DefinitionError, match="`handled` with a handler of its own"):
            gate.wrap(lambda: 2, name="handled")
        gate.wrap(lambda: 2, name="kept")
        assert gate.registry.resolve("kept") is kept


async def test_wrapping_again_replaces_the_definition(gate: Gate) -> None:
    gate.wrap(lambda: 1, name="one", description="first")
    gate.wrap(lambda: 1, name="one", description="second")
    assert gate.registry.resolve("one").description == "second"
