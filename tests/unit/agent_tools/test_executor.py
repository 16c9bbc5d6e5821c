"""Document 004's executor, approvals and rows, over the gate."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import create_engine, select
from sqlalchemy.orm import Session
from sqlalchemy.pool import NullPool

import toolgate
from toolgate import agent_tools
from toolgate.adapters.runners.client import ClientRunner, Offer, Seat
from toolgate.agent_tools import ApprovalManager, ToolExecution, ToolExecutionState, ToolExecutor
from toolgate.catalog.client import client_tools
from toolgate.errors import DecisionConflictError
from toolgate.gate import Gate
from toolgate.kernel.tool import Placement
from toolgate.testing.patience import until


class Editor:
    """A client that runs what it is offered, and remembers it."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        runner = gate.host.runner("client")
        assert isinstance(runner, ClientRunner)
        self.ran: list[tuple[str, bytes]] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop = asyncio.get_running_loop()
        runner.join(
            Seat(
                project="default",
                principal="editor",
                tools=frozenset({"*"}),
                is_runner=True,
                offer=self._on_offer,
                recall=lambda *_told: None,
            )
        )

    def _on_offer(self, offer: Offer) -> None:
        self._loop.call_soon_threadsafe(self._begin, offer)

    def _begin(self, offer: Offer) -> None:
        task = self._loop.create_task(self._run(offer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run(self, offer: Offer) -> None:
        call = await self._gate.remote.dispatch(offer.call_id, to="editor")
        self.ran.append((call.tool_name, call.arguments))
        output = toolgate.ToolOutput.ok({"stdout": "ok", "exit_code": 0})
        await self._gate.complete(call.id, output, by="editor")


@pytest.fixture
async def executor() -> AsyncIterator[ToolExecutor]:
    executor = ToolExecutor()
    yield executor
    await executor.gate.aclose()


async def test_a_low_risk_tool_runs_at_the_client_without_asking(executor: ToolExecutor) -> None:
    editor = Editor(executor.gate)
    response = await executor.execute_tool(tool_name="read_file", tool_params={"path": "a"}, session_id=uuid4())
    assert (response.status, response.result, response.approval_id) == (
        "completed",
        {"stdout": "ok", "exit_code": 0},
        None,
    )
    assert editor.ran == [("read_file", b'{"path":"a"}')]
    assert str(UUID(response.tool_id)) == response.tool_id


@pytest.mark.parametrize(("decision", "status"), [("approve", "completed"), ("deny", "rejected")])
async def test_a_medium_risk_tool_waits_for_a_person(executor: ToolExecutor, decision: str, status: str) -> None:
    editor = Editor(executor.gate)
    params = {"command": "npm", "args": ["test"], "timeout": 30}
    running = asyncio.create_task(executor.execute_tool(tool_name="execute_command", tool_params=params))
    await until(executor.gate.pending)
    approval = (await executor.gate.pending())[0]
    assert ((approval.expires_at - approval.created_at).total_seconds(), editor.ran) == (300, [])
    await executor.gate.decide(approval.id, decision, by="ann")
    response = await running
    assert (response.status, response.approval_id) == (status, approval.id)
    assert len(editor.ran) == (status == "completed")


@pytest.mark.parametrize(("name", "params"), [("gone", {}), ("read_file", {"path": 5}), ("execute_command", {})])
async def test_what_cannot_run_fails_and_nothing_is_sent(
    executor: ToolExecutor, name: str, params: dict[str, Any]
) -> None:
    editor = Editor(executor.gate)
    response = await executor.execute_tool(tool_name=name, tool_params=params)
    assert (response.status, editor.ran) == ("failed", [])
    assert response.error


async def test_a_closed_gate_is_a_failed_response() -> None:
    executor = ToolExecutor()
    await executor.gate.aclose()
    response = await executor.execute_tool("read_file", {"path": "a"})
    assert (response.status, response.error_type) == ("failed", "gate_closed")


def test_the_client_tools_never_run_on_the_server() -> None:
    tools = {tool.name: tool for tool in client_tools()}
    assert set(tools) == {"read_file", "write_file", "list_directory", "execute_command"}
    for tool in tools.values():
        assert tool.runs_in is Placement.CLIENT
        assert tool.handler is not None
        with pytest.raises(toolgate.errors.ToolExecutionError, match="at the client"):
            tool.handler(toolgate.ToolInput(action_id="a", tool_name=tool.name, payload={}))
    assert {name: tool.risk.value for name, tool in tools.items()} == {
        "read_file": "low",
        "list_directory": "low",
        "execute_command": "medium",
        "write_file": "high",
    }


@pytest.fixture
async def manager() -> AsyncIterator[ApprovalManager]:
    manager = ApprovalManager()
    yield manager
    await manager.gate.aclose()


@pytest.mark.parametrize("approved", [True, False])
async def test_a_person_answers_what_the_manager_asked(manager: ApprovalManager, approved: bool) -> None:
    asked = await manager.request_tool_approval("execute_command", {"password": "correct-horse-9"}, session_id=uuid4())
    assert "correct-horse-9" not in repr(asked)
    assert [one.id for one in await manager.pending()] == [asked.id]
    waiting = asyncio.create_task(manager.wait_for_approval(asked.id))
    await manager.decide(asked.id, approved, by="ann")
    assert await waiting is approved


@pytest.mark.parametrize(("risk", "seconds"), [("MEDIUM", 300), ("HIGH", 600), ("low", 300)])
async def test_the_risk_says_how_long_people_have(manager: ApprovalManager, risk: str, seconds: int) -> None:
    asked = await manager.request_tool_approval("write_file", risk_level=risk, user_id=uuid4(), description="Sure?")
    assert (asked.expires_at - asked.created_at).total_seconds() == seconds
    assert asked.message == "Sure?"


async def test_a_question_nobody_answers_in_time_is_a_no_for_ever(manager: ApprovalManager) -> None:
    asked = await manager.request_tool_approval("write_file", tool_id="t1")
    assert await manager.wait_for_approval(asked.id, timeout=0.05) is False
    with pytest.raises(DecisionConflictError):
        await manager.decide(asked.id, True, by="ann")
    soon = await manager.request_tool_approval("write_file", timeout_seconds=0.05)
    assert await manager.wait_for_approval(soon.id) is False


async def test_a_question_that_cannot_be_asked_is_an_error(manager: ApprovalManager) -> None:
    await manager.gate.set_mode("LOCKDOWN", by="ann")
    with pytest.raises(toolgate.errors.ToolDeniedError):
        await manager.request_tool_approval("write_file")


async def test_rows_are_read_as_document_004_maps_them(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    gate = toolgate.open(f"sqlite:///{path}", tools=client_tools(), runners={"client": ClientRunner()})
    user = uuid4()
    executor = ToolExecutor(gate, user=str(user))
    Editor(gate)
    done = await executor.execute_tool("read_file", {"path": "a", "token": "x"})
    assert done.status == "failed"
    done = await executor.execute_tool("read_file", {"path": "correct"}, session_id="s1")
    parked = await gate.call("execute_command", {"command": "ls"}, wait=False)
    await gate.cancel(parked.call_id)
    await gate.aclose()
    engine = create_engine(f"sqlite:///{path}", poolclass=NullPool)
    with Session(engine) as session:
        rows = {row.status: row for row in session.scalars(select(ToolExecution))}
    engine.dispose()
    row = rows["COMPLETED"]
    assert (row.tool_name, row.session_id, row.risk_level, row.requires_approval) == ("read_file", "s1", "LOW", False)
    assert (str(row.id), row.state) == (done.tool_id, ToolExecutionState.COMPLETED)
    assert row.user_id == user
    assert isinstance(row.created_at, datetime)
    assert row.execution_time_ms is not None
    assert rows["CANCELLED"].state is ToolExecutionState.REJECTED
    assert not hasattr(ToolExecution, "sealed_params")


def test_every_name_of_the_door_is_there() -> None:
    for name in agent_tools.__all__:
        assert getattr(agent_tools, name) is not None
    with pytest.raises(AttributeError):
        agent_tools.nothing  # noqa: B018  # looked up on purpose
