"""A handler with declared effects that does not return: its outcome is unknown, unless nothing happened for sure."""

from __future__ import annotations

import asyncio
import socket
import threading
from typing import Any

import pytest
from tests.journeys.scene import Open

import toolgate
from toolgate.errors import NotExecuted, ToolExecutionError, ToolUnknownOutcomeError
from toolgate.kernel.call import Status
from toolgate.policy import read_policy
from toolgate.testing.patience import until

DECLARED = ["reversible", "irreversible"]


def paying(error: BaseException, **options: Any) -> toolgate.ToolDefinition:
    """A tool whose handler raises this, and may have paid before."""

    async def pay(amount: int) -> int:
        raise error

    return toolgate.tool(name="pay", **options)(pay)


async def ended(open_gate: Open, tool: toolgate.ToolDefinition, policy: str = "tools: {pay: {decision: allow}}") -> Any:
    async with open_gate(tools=[tool], policy=read_policy(policy)) as gate:
        return await gate.call("pay", {"amount": 5})


@pytest.mark.parametrize("effects", DECLARED)
@pytest.mark.parametrize("error", [ValueError("no"), ConnectionResetError(), TimeoutError(), MemoryError()], ids=repr)
async def test_any_error_of_a_handler_with_declared_effects_is_unknown(
    open_gate: Open, effects: str, error: Exception
) -> None:
    result = await ended(open_gate, paying(error, effects=effects))
    assert (result.status, result.error_code) == (Status.UNKNOWN, "unknown")
    assert "had started" in result.error
    assert "unknown" in result.error
    assert isinstance(result.to_error(), ToolUnknownOutcomeError)
    assert result.to_error().__cause__ is error


@pytest.mark.parametrize("options", [{}, {"effects": "read"}, {"effects": "irreversible", "idempotent": True}], ids=str)
async def test_an_error_of_any_other_handler_is_a_failure(open_gate: Open, options: dict[str, Any]) -> None:
    result = await ended(open_gate, paying(ValueError("no"), **options))
    assert (result.status, result.error_code, result.error) == (Status.FAILED, "execution_failed", "no")


@pytest.mark.parametrize("options", [{}, {"effects": "irreversible"}], ids=str)
async def test_a_handler_can_say_that_nothing_happened(open_gate: Open, options: dict[str, Any]) -> None:
    result = await ended(open_gate, paying(NotExecuted("the account is closed"), **options))
    assert (result.status, result.error_code) == (Status.FAILED, "not_executed")
    with pytest.raises(NotExecuted, match="the account is closed"):
        result.unwrap()


@pytest.mark.parametrize("options", [{}, {"effects": "read"}, {"idempotent": True}], ids=str)
async def test_a_handler_can_say_that_nobody_knows(open_gate: Open, options: dict[str, Any]) -> None:
    result = await ended(open_gate, paying(ToolUnknownOutcomeError("the bank did not answer"), **options))
    assert (result.status, result.error_code) == (Status.UNKNOWN, "unknown")
    assert "the bank did not answer" in result.error


async def test_a_tool_names_errors_that_mean_nothing_happened(open_gate: Open) -> None:
    class ClosedError(LookupError):
        pass

    named = {"effects": "irreversible", "nothing_happened": (ValueError, LookupError)}
    for error in (ValueError("no"), ClosedError("closed"), UnicodeError("odd")):
        assert (await ended(open_gate, paying(error, **named))).status is Status.FAILED
    assert (await ended(open_gate, paying(OSError("disk"), **named))).status is Status.UNKNOWN


async def test_a_policy_names_errors_that_mean_nothing_happened(open_gate: Open) -> None:
    policy = "tools: {pay: {decision: allow, nothing_happened: [ValueError, toolgate.errors.gate.StoreError]}}"
    assert (await ended(open_gate, paying(ValueError("no"), effects="irreversible"), policy)).status is Status.FAILED
    assert (await ended(open_gate, paying(TypeError("no"), effects="irreversible"), policy)).status is Status.UNKNOWN


@pytest.mark.parametrize(
    ("said", "options", "status"),
    [
        ("unknown", {}, Status.UNKNOWN),
        ("unknown", {"effects": "read"}, Status.UNKNOWN),
        ("failed", {"effects": "irreversible"}, Status.FAILED),
    ],
)
async def test_a_policy_says_how_errors_end(
    open_gate: Open, said: str, options: dict[str, Any], status: Status
) -> None:
    policy = f"tools: {{pay: {{decision: allow, on_error: {said}}}}}"
    assert (await ended(open_gate, paying(ValueError("no"), **options), policy)).status is status


def wrapped(error: Exception) -> Exception:
    """An error as libraries wrap it."""
    outer = RuntimeError("request failed")
    outer.__context__ = error
    return outer


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (ConnectionResetError(), Status.UNKNOWN),
        (ConnectionAbortedError(), Status.UNKNOWN),
        (BrokenPipeError(), Status.UNKNOWN),
        (wrapped(ConnectionResetError()), Status.UNKNOWN),
        (ExceptionGroup("all", [OSError(), ConnectionResetError()]), Status.UNKNOWN),
        (ConnectionRefusedError(), Status.FAILED),
        (socket.gaierror(-2, "no such name"), Status.FAILED),
        (TimeoutError(), Status.FAILED),
    ],
    ids=repr,
)
async def test_a_lost_connection_is_unknown_even_where_nothing_is_declared(
    open_gate: Open, error: Exception, status: Status
) -> None:
    assert (await ended(open_gate, paying(error))).status is status


@pytest.mark.parametrize("effects", [None, "read", "irreversible"])
async def test_a_stopped_handler_with_declared_effects_may_have_done_it(open_gate: Open, effects: str | None) -> None:
    async def pay(amount: int) -> int:
        await asyncio.Event().wait()
        return amount

    tool = toolgate.tool(name="pay", effects=effects, timeout_seconds=0.05)(pay)
    result = await ended(open_gate, tool)
    is_declared = effects == "irreversible"
    assert (result.status, result.timed_out) == (Status.UNKNOWN if is_declared else Status.FAILED, True)
    assert "timed out" in result.error


async def test_a_cancelled_payment_may_have_been_made(open_gate: Open) -> None:
    started = asyncio.Event()

    async def pay(amount: int) -> int:
        started.set()
        await asyncio.Event().wait()
        return amount

    async with open_gate(tools=[toolgate.tool(effects="irreversible", risk_level="low")(pay)]) as gate:
        asked = asyncio.create_task(gate.call("pay", {"amount": 5}, call_id="c1"))
        await started.wait()
        await gate.cancel("c1")
        assert (await asked).status is Status.UNKNOWN


async def test_one_that_waited_for_a_thread_and_never_began_was_cancelled() -> None:
    let_go = threading.Event()

    def pay(amount: int) -> int:
        let_go.wait(60)
        return amount

    pay_tool = toolgate.tool(effects="irreversible", risk_level="low")(pay)
    runners = {"inline": toolgate.InlineRunner(max_threads=1)}
    async with toolgate.open("memory://", tools=[pay_tool], runners=runners) as gate:
        first = asyncio.create_task(gate.call("pay", {"amount": 1}, call_id="c1"))
        await until(lambda: _is(gate, "c1", Status.EXECUTING))
        second = asyncio.create_task(gate.call("pay", {"amount": 2}, call_id="c2"))
        await until(lambda: _is(gate, "c2", Status.EXECUTING))
        await gate.cancel("c2")
        result = await second
        let_go.set()
        assert (await first).status is Status.COMPLETED
        assert result.status is Status.CANCELLED
        assert "had not begun" in str(result.error)


async def _is(gate: Any, call_id: str, status: Status) -> bool:
    try:
        return (await gate.get(call_id)).status is status
    except toolgate.errors.NotFoundError:
        return False


async def test_an_unusable_answer_of_a_payment_is_no_failure(open_gate: Open) -> None:
    async def pay(amount: int) -> Any:
        return object()

    result = await ended(open_gate, toolgate.tool(name="pay", effects="irreversible")(pay))
    assert result.status is Status.UNKNOWN


async def test_a_reported_failure_is_the_handlers_word(open_gate: Open) -> None:
    async def pay(given: toolgate.ToolInput) -> toolgate.ToolOutput:
        return toolgate.ToolOutput.fail("declined")

    tool = toolgate.ToolDefinition("pay", {}, pay, effects="irreversible", risk_level="low")
    async with open_gate(tools=[tool]) as gate:
        result = await gate.call("pay", {})
        assert (result.status, result.error) == (Status.FAILED, "declined")


async def test_the_documents_module_keeps_its_error_and_the_row_tells_the_truth() -> None:
    from toolgate.tools import ToolExecutor, ToolRegistry

    async def pay(given: Any) -> Any:
        raise ConnectionResetError("gone")

    registry = ToolRegistry()
    registry.register(toolgate.ToolDefinition("pay", {}, pay, effects="irreversible", risk_level="low"))
    async with toolgate.open("memory://") as gate:
        executor = ToolExecutor(registry, gate=gate)
        with pytest.raises(ToolExecutionError) as told:
            await executor.execute({"id": "a1", "type": "pay", "payload": {}}, {})
    assert isinstance(told.value.__cause__, ConnectionResetError)
    assert told.value.code == "unknown"


def test_a_name_that_does_not_exist_sends_nothing() -> None:
    with pytest.raises(NotExecuted), toolgate.nothing_sent():
        raise socket.gaierror(-2, "no such name")


async def test_a_refused_connection_sends_nothing() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # nobody listens there
        with pytest.raises(NotExecuted, match="nothing was sent"), toolgate.nothing_sent():
            await asyncio.open_connection(*taken.getsockname())


@pytest.mark.parametrize("error", [ConnectionResetError(), ValueError("no"), wrapped(BrokenPipeError())], ids=repr)
def test_any_other_error_is_passed_on(error: Exception) -> None:
    with pytest.raises(type(error)) as told, toolgate.nothing_sent():
        raise error
    assert told.value is error


def test_a_connection_that_was_lost_before_it_was_refused_may_have_carried_it() -> None:
    refused = ConnectionRefusedError()
    refused.__context__ = ConnectionResetError()
    with pytest.raises(ConnectionRefusedError), toolgate.nothing_sent():
        raise refused


@pytest.mark.parametrize("named", ["ValueError", (1,), (int,)], ids=repr)
def test_only_errors_can_mean_that_nothing_happened(named: Any) -> None:
    with pytest.raises(toolgate.errors.DefinitionError, match="nothing_happened takes classes of errors"):
        paying(ValueError(), nothing_happened=named)


async def test_a_report_of_an_error_is_made_again_where_the_row_changed_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tool = toolgate.ToolDefinition("pay", {}, placement="caller", effects="irreversible", risk_level="low")
    async with toolgate.open("memory://", tools=[tool]) as gate:
        asked = await gate.call("pay", {}, context=toolgate.Context(principal="agent:a"), wait=False)
        await gate.remote.claim(asked.call_id, by="agent:a", fence="f" * 20)
        record, tries = gate._leases._recorder.record, list[int]()

        async def changed_once(*given: Any) -> Any:
            tries.append(1)
            return None if len(tries) == 1 else await record(*given)

        monkeypatch.setattr(gate._leases._recorder, "record", changed_once)
        told = await gate.remote.doubt(asked.call_id, "boom", raised=["ValueError"], fence="f" * 20)
        assert (told.status, len(tries)) == (Status.UNKNOWN, 2)


async def test_a_caller_elsewhere_can_say_that_nothing_happened() -> None:
    tool = toolgate.ToolDefinition("pay", {}, placement="caller", effects="irreversible", risk_level="low")
    async with toolgate.open("memory://", tools=[tool]) as gate:
        asked = await gate.call("pay", {}, context=toolgate.Context(principal="agent:a"), wait=False)
        await gate.remote.claim(asked.call_id, by="agent:a", fence="f" * 20)
        raised = ["toolgate.errors.calls.NotExecuted"]
        told = await gate.remote.doubt(asked.call_id, "closed", raised=raised, fence="f" * 20)
        assert (told.status, told.error_code) == (Status.FAILED, "not_executed")
