"""Actions through an executor: allowed, refused, once, alone, cancelled, timed out, from anywhere."""

from __future__ import annotations

import asyncio
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from tests.unit.tools.scene import Shelf, Sink, act, answer, asked, echo

import toolgate
from toolgate.errors import ConflictError, ToolUnknownOutcomeError
from toolgate.kernel.context import PRIVATE
from toolgate.kernel.policy import Default, Policy
from toolgate.testing.patience import PATIENCE_S
from toolgate.tools import (
    Action,
    AdvancedToolExecutor,
    ToolApprovalTimeoutError,
    ToolDefinition,
    ToolDeniedError,
    ToolExecutor,
    ToolExecutorConfig,
    ToolInput,
    ToolInputError,
    ToolOutput,
    ToolRegistry,
    ToolTimeoutError,
    get_approval_service,
    get_tool_registry,
    get_undo_store,
)
from toolgate.tools.examples import register_examples


async def test_an_allowed_tool_runs_and_gives_its_own_output() -> None:
    output = ToolOutput.ok({"when": datetime.now(UTC), "pair": (1, 2)})
    seen: list[ToolInput] = []

    async def give(given: ToolInput) -> ToolOutput:
        seen.append(given)
        return output

    tool = ToolDefinition(name="give", action_type="GIVE", handler=give, allowed_behaviors=("work",))
    action, ctx = act("GIVE", a=[1]), {"behavior": "work", "own": object()}
    assert await ToolExecutor(registry=ToolRegistry([tool])).execute(action, ctx) is output
    (given,) = seen
    assert (given.action_id, given.tool_name, given.payload, given.action.type) == (
        action.id,
        "give",
        {"a": [1]},
        "GIVE",
    )
    assert given.ctx is ctx
    assert given.payload["a"] is not action.payload["a"]


async def test_the_same_action_runs_once_and_gives_the_same_again() -> None:
    shelf, action = Shelf(), act("put", state="x")
    executor = AdvancedToolExecutor([ToolDefinition("put", {}, shelf.put)])
    outputs = await asyncio.gather(*(executor.execute(action) for _ in range(20)))
    assert shelf.runs == 1
    assert all((output.success, output.data) == (True, {"state": "x"}) for output in outputs)
    with pytest.raises(ConflictError, match="use a new id"):
        await executor.execute(Action(id=action.id, type="put", payload={"state": "y"}))


async def test_executors_share_no_ids_rates_or_events() -> None:
    shelf, action = Shelf(), act("put")
    registry = ToolRegistry([ToolDefinition("put", {}, shelf.put, rate_limit_per_hour=1)])
    sinks = [Sink(), Sink()]
    for sink in sinks:
        executor = AdvancedToolExecutor(registry, event_sink=sink)
        assert executor.project.startswith(PRIVATE)
        await executor.execute(action)
        with pytest.raises(ToolDeniedError, match="Rate limit"):
            await executor.execute(act("put"))
    assert shelf.runs == 2
    assert [sink.types[:3] for sink in sinks] == [["tool.invoked", "tool.started", "tool.completed"]] * 2


async def test_tools_of_one_name_in_two_registries_are_two_tools() -> None:
    shelves = Shelf(), Shelf()
    executors = [ToolExecutor([ToolDefinition("put", {}, shelf.put)]) for shelf in shelves]
    for _ in range(3):
        for executor in executors:
            await executor.execute(act("put"))
    assert [shelf.runs for shelf in shelves] == [3, 3]


async def test_a_tool_registered_later_or_anew_is_the_one_that_runs() -> None:
    executor, shelf = ToolExecutor([]), Shelf()
    executor.register(ToolDefinition("echo", {}, echo))
    assert (await executor.execute(act("echo", a=1))).data == {"a": 1}
    executor.register(ToolDefinition("echo", {}, shelf.put))
    await executor.execute(act("echo"))
    assert shelf.runs == 1


async def test_cancelling_the_wait_stops_a_running_handler() -> None:
    begun, ended = asyncio.Event(), []

    async def wait(_given: ToolInput) -> ToolOutput:
        begun.set()
        try:
            await asyncio.sleep(60)
        finally:
            ended.append("stopped")
        return ToolOutput.ok()

    sink = Sink()
    executor = AdvancedToolExecutor([ToolDefinition("wait", {}, wait)], event_sink=sink)
    running = asyncio.ensure_future(executor.execute(act("wait")))
    await begun.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert ended == ["stopped"]
    assert sink.types == ["tool.invoked", "tool.started", "tool.failed"]


def test_a_closing_loop_ends_its_calls() -> None:
    sink = Sink()
    service = get_approval_service()
    tool = ToolDefinition("ask", {}, echo, requires_approval=True)
    executor = AdvancedToolExecutor([tool], event_sink=sink)

    async def leave() -> None:
        asyncio.ensure_future(executor.execute(act("ask")))  # noqa: RUF006  # left behind on purpose
        await asked(service)

    asyncio.run(leave())
    assert asyncio.run(service.list_pending()) == []
    assert sink.types[-1] == "tool.failed"


async def test_a_slow_handler_is_stopped_in_time() -> None:
    async def slow(_given: ToolInput) -> ToolOutput:
        await asyncio.sleep(60)
        return ToolOutput.ok()

    release = threading.Event()

    def stuck(_given: ToolInput) -> ToolOutput:
        release.wait(PATIENCE_S)
        return ToolOutput.ok()

    tools = [
        ToolDefinition("slow", {}, slow, timeout_seconds=0.05),
        ToolDefinition("stuck", {}, stuck, timeout_seconds=0.5),
    ]
    executor = ToolExecutor(tools)
    with pytest.raises(ToolTimeoutError):
        await executor.execute(act("slow"))
    try:
        with pytest.raises(ToolUnknownOutcomeError):
            await executor.execute(act("stuck"))
    finally:
        release.set()


def test_plain_handlers_work_off_the_loop_and_several_loops_use_one_executor() -> None:
    where: list[str] = []

    def plain(given: ToolInput) -> ToolOutput:
        where.append(threading.current_thread().name)
        return ToolOutput.ok(given.payload)

    executor = ToolExecutor([ToolDefinition("plain", {}, plain)])
    for number in range(3):
        output = asyncio.run(executor.execute(act("plain", number=number)))
        assert output.data == {"number": number}
    assert all(name != threading.main_thread().name for name in where)


async def test_what_is_not_json_is_told_as_json_or_refused() -> None:
    executor = ToolExecutor([ToolDefinition("echo", {}, echo)])
    id, at = uuid4(), datetime(2026, 1, 2, tzinfo=UTC)
    output = await executor.execute(act("echo", id=id, at=at, pair=(1, 2)))
    assert output.data == {"id": str(id), "at": at.isoformat(), "pair": [1, 2]}
    with pytest.raises(ToolInputError):
        await executor.execute(act("echo", thing=object()))


async def test_an_action_may_be_a_mapping_and_ids_any_text() -> None:
    executor = ToolExecutor([ToolDefinition("echo", {}, echo)])
    assert (await executor.execute({"id": "order-7", "type": "echo", "payload": {"a": 1}})).data == {"a": 1}
    assert (await executor.gate.calls.get("order-7", project=executor.project)).tool_name == "echo"


async def test_execute_tool_answers_and_raises_nothing() -> None:
    async def explode(_given: ToolInput) -> ToolOutput:
        raise RuntimeError("kaboom")

    shelf = Shelf()
    put = ToolDefinition("put", {}, shelf.put, undoable=True, undo_handler=shelf.put_back)
    ask = ToolDefinition("ask", {}, echo, requires_approval=True)
    hurry = ToolDefinition("hurry", {}, echo, requires_approval=True, approval_timeout_seconds=0.05)
    executor = ToolExecutor([put, ask, hurry, ToolDefinition("explode", {}, explode)])
    done = await executor.execute_tool(tool_name="put", tool_params={"state": "x"}, session_id="s")
    assert (done.status, done.result, done.success) == ("completed", {"state": "x"}, True)
    assert await executor.undo_action(done.tool_id)
    assert [(await executor.execute_tool(name)).status for name in ("explode", "nothing")] == ["failed", "failed"]
    late = await executor.execute_tool("hurry")
    assert (late.status, late.error, late.error_type) == ("rejected", "timeout", "approval_timeout")
    running = asyncio.ensure_future(executor.execute_tool("ask", ctx={"user_id": "bob"}))
    await answer(False)
    assert (await running).status == "rejected"


async def test_an_executor_on_a_gate_uses_its_tools_policy_and_record(tmp_path: Path) -> None:
    shelf = Shelf()
    put = ToolDefinition("put", {}, shelf.put, undoable=True, undo_handler=shelf.put_back)
    async with toolgate.open(f"sqlite:///{tmp_path}/gate.db", tools=[put]) as gate:
        at_home = ToolExecutor(gate=gate)
        action = act("put")
        await at_home.execute(action)
        assert (await gate.get(str(action.id))).success
        guest = ToolExecutor([ToolDefinition("echo", {}, echo)], gate=gate, project="guests")
        assert (await guest.execute(act("echo", a=1))).data == {"a": 1}
        assert (await gate.call("put")).success  # the gate's own project still goes by its own tools
        assert [call.tool_name for call in await gate.calls.list(toolgate_query("guests"))] == ["echo"]
        await gate.set_policy(Policy(default=Default.DENY, revision="closed"), by="ann")
        relaxed = ToolExecutor(gate=gate, config=ToolExecutorConfig(require_approval_for_risky=False))
        for executor in (at_home, guest, relaxed):
            with pytest.raises(ToolDeniedError):
                await executor.execute(act("put" if executor is not guest else "echo"))


def toolgate_query(project: str) -> Any:
    from toolgate.ports.store import CallQuery

    return CallQuery(project=project)


async def test_the_policys_own_times_come_before_the_configurations() -> None:
    policy = Policy(approval_timeout_s=60, undo_ttl_s=60, revision="timed")
    config = ToolExecutorConfig(approval_timeout_seconds=1, undo_ttl_seconds=1)
    async with toolgate.open(tools=[], policy=policy) as gate:
        executor = ToolExecutor([], gate=gate, config=config)
        assert gate is executor.gate
        adjusted = gate._driver.policy_of(executor.project).stance(ToolDefinition("echo", {}, echo))
        assert (adjusted.approval_timeout_s, adjusted.undo_ttl_s) == (60, 60)


async def test_a_policy_file_governs_executors_too(tmp_path: Path) -> None:
    path = tmp_path / "toolgate.yaml"
    path.write_text(
        "version: 1\ndefault: by_risk\ntools:\n  put:\n    forbidden_in_modes: [NORMAL]\n  ask:\n"
        "    requires_approval_in_modes: [NORMAL]\n",
        encoding="utf-8",
    )
    shelf = Shelf()
    tools = [ToolDefinition(name, {}, shelf.put, risk_level="high") for name in ("put", "ask", "free")]
    config = ToolExecutorConfig(require_approval_for_risky=False, approval_timeout_seconds=0.05)
    async with toolgate.open(policy=path) as gate:
        executor = ToolExecutor(tools, gate=gate, config=config)
        with pytest.raises(ToolDeniedError, match="NORMAL"):
            await executor.execute(act("put"))
        with pytest.raises(ToolApprovalTimeoutError):
            await executor.execute(act("ask"))
        await executor.execute(act("free"))
    assert shelf.runs == 1


async def test_the_registry_runs_its_tools_through_the_gate_too() -> None:
    registry = get_tool_registry()
    archive = register_examples(registry)
    await registry.execute(act("STORE_MEMORY", text="tea at five"), {})
    assert archive.memories == ["tea at five"]
    archive.documents["d"] = "old"
    edit = act("EDIT_DOCUMENT", document_id="d", content="new")
    running = asyncio.ensure_future(registry.execute(edit, {"behavior": "practice"}))
    await answer(True)
    assert (await running).data == {"document_id": "d", "characters": 3}
    assert archive.documents == {"d": "new"}
    assert await registry.executor.undo_action(edit.id, {"behavior": "doc_edit"})
    assert archive.documents == {"d": "old"}
    made = act("EDIT_DOCUMENT", document_id="e", content="new")
    running = asyncio.ensure_future(registry.execute(made, {"behavior": "practice"}))
    await answer(True)
    await running
    assert await registry.executor.undo_action(made.id, {"behavior": "doc_edit"})
    assert "e" not in archive.documents


async def test_ids_are_given_back_as_they_came() -> None:
    seen: list[Any] = []

    async def look(given: ToolInput) -> ToolOutput:
        seen.append(given.action_id)
        return ToolOutput.ok(undo_metadata={})

    async def undo(metadata: Any) -> None:
        seen.append(metadata.action_id)

    executor = ToolExecutor([ToolDefinition("look", {}, look, undoable=True, undo_handler=undo)])
    for id in (uuid4(), str(uuid4()), "plain"):
        await executor.execute(Action(id=id, type="look"))
        kept = await get_undo_store().get(id)
        assert kept is not None
        assert kept.action_id == id
        await executor.undo_action(id)
        assert seen == [id, id]
        assert isinstance(seen[0], UUID) == isinstance(id, UUID)
        seen.clear()
