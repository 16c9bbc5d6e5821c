"""Whether a call is another one over again, the server's gate decides; the runner's holds and joins nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.unit.interfaces.runner.stage import Stage

import toolgate

REFUND = {"payment": "p1"}
DONE: list[str | None] = []


@toolgate.tool(effects="irreversible", risk_level="low", effect_key="refund:{payment}")
async def slow_refund(payment: str, run: toolgate.ToolInput) -> str | None:
    """Refund a payment."""
    DONE.append(run.effect_key)
    return run.effect_key


@toolgate.tool(effects="irreversible", risk_level="low")
async def slow_send(to: str, run: toolgate.ToolInput) -> str:
    """Send a parcel, and lose the answer the first time."""
    DONE.append(run.effect_key)
    if len(DONE) == 1:
        raise ConnectionResetError
    return "sent"


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    DONE.clear()
    stage = Stage(tmp_path, slow_refund, slow_send)
    await stage.server.start()
    yield stage
    await stage.server.stop()


async def test_a_handler_gets_the_key_that_the_server_holds(stage: Stage) -> None:
    async with stage.runner():
        stage.server.run("t1", "slow_refund", REFUND, effect_key="refund:p1")
        assert (await stage.server.result())["result"] == "refund:p1"
        row = await stage.gate.calls.get("t1", project="demo")
        assert (row.effect_key, row.held_key) == (None, "refund:p1")


async def test_a_repeat_that_the_server_lets_run_is_no_conflict_here(stage: Stage) -> None:
    async with stage.runner():
        for number in (1, 2):
            stage.server.run(f"t{number}", "slow_refund", REFUND, effect_key="refund:p1")
            assert (await stage.server.result(number))["status"] == "completed"
    assert DONE == ["refund:p1"] * 2


async def test_a_doubt_that_was_settled_at_the_server_asks_nobody_here(stage: Stage) -> None:
    async with stage.runner():
        stage.server.run("t1", "slow_send", {"to": "ann"}, effect_key=None)
        assert (await stage.server.result(1))["status"] == "unknown"
        stage.server.run("t2", "slow_send", {"to": "ann"}, effect_key=None)
        assert (await stage.server.result(2))["result"] == "sent"
    assert DONE == [None, None]


async def test_for_a_server_that_knows_no_keys_the_runners_own_count(stage: Stage) -> None:
    async with stage.runner():
        stage.server.run("t1", "slow_refund", REFUND)
        assert (await stage.server.result(1))["result"] == "refund:p1"
        stage.server.run("t2", "slow_refund", REFUND)
        report = await stage.server.result(2)
        assert (report["tool_id"], report["status"], "Call t1" in report["error"]) == ("t2", "failed", True)
    assert DONE == ["refund:p1"]
