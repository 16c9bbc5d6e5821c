"""A worker in this process: it runs orders, shows them, passes over what is not its own, ends on a signal."""

from __future__ import annotations

import asyncio
import io
import json
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

import toolgate
from toolgate.errors import StoreError
from toolgate.gate import Gate
from toolgate.interfaces.cli.app import app
from toolgate.interfaces.cli.worker import _view
from toolgate.interfaces.worker.views import JsonLines, Lines, Live
from toolgate.interfaces.worker.worker import Worker
from toolgate.kernel.call import Status
from toolgate.ports.dispatcher import Order
from toolgate.testing.patience import PATIENCE_S, until


async def _letter(given: toolgate.ToolInput) -> toolgate.ToolOutput:
    if given.payload.get("fail"):
        return toolgate.ToolOutput.fail("no stamps")
    await asyncio.sleep(given.payload.get("wait_s", 0))
    return toolgate.ToolOutput.ok("sent")


SEND = toolgate.ToolDefinition("send", {}, _letter, placement="worker", risk_level="low", timeout_seconds=20)
NEAR = toolgate.ToolDefinition("near", {}, _letter)


@toolgate.tool(effects="irreversible", risk_level="low", placement="worker", effect_key="refund:{payment}")
async def refund(payment: str, run: toolgate.ToolInput) -> str | None:
    """Refund a payment."""
    return run.effect_key


TOOLS = [SEND, NEAR, refund]


def opened(database: Path) -> tuple[Gate, Any]:
    gate = toolgate.open(f"sqlite:///{database}", tools=TOOLS, workers=True)
    runner: Any = gate.host.runner("worker")
    return gate, runner.dispatcher


@pytest.fixture
async def host(database: Path) -> AsyncIterator[Gate]:
    gate, _ = opened(database)
    yield gate
    await gate.aclose()


async def ended(working: asyncio.Task[None]) -> None:
    os.kill(os.getpid(), signal.SIGTERM)
    await asyncio.wait_for(working, PATIENCE_S)


@pytest.mark.parametrize("view", [Lines, JsonLines])
async def test_a_worker_tells_what_it_does_in_lines(host: Gate, database: Path, view: Any) -> None:
    gate, dispatcher = opened(database)
    said: list[str] = []
    worker = Worker(gate, dispatcher, view(said.append), name="worker:1", concurrency=2, lease_s=10)
    working = asyncio.ensure_future(worker.run({"default"}, drain_s=5))
    assert (await host.call("send", {"to": "ann"})).data == "sent"
    assert (await host.call("send", {"fail": True})).status is Status.FAILED
    await until(lambda: len(said) >= 5)
    await ended(working)
    if view is JsonLines:
        events = [json.loads(line)["event"] for line in said]
        assert (events[0], events[-1], events.count("started"), events.count("ended")) == ("ready", "draining", 2, 2)
    else:
        text = "\n".join(said)
        assert "Working as worker:1 on default" in text
        assert "started" in text
        assert "execution_failed: no stamps" in text
        assert "0 still running" in text


async def test_a_worker_gives_its_handler_the_key_of_the_effect(host: Gate, database: Path) -> None:
    gate, dispatcher = opened(database)
    worker = Worker(gate, dispatcher, Lines(print), name="worker:1", concurrency=2, lease_s=10)
    working = asyncio.ensure_future(worker.run({"default"}, drain_s=5))
    first = await host.call("refund", {"payment": "p1"})
    again = await host.call("refund", {"payment": "p1"})
    await ended(working)
    assert (first.data, again.joined, again.call_id) == ("refund:p1", True, first.call_id)


async def test_a_worker_shows_a_table_on_a_terminal(host: Gate, database: Path) -> None:
    gate, dispatcher = opened(database)
    screen = io.StringIO()
    view = Live(Console(file=screen, force_terminal=True, width=100))
    worker = Worker(gate, dispatcher, view, name="worker:1", concurrency=2, lease_s=10)
    working = asyncio.ensure_future(worker.run({"default"}, drain_s=5))
    waiting = asyncio.ensure_future(host.call("send", {"to": "ann", "wait_s": 0.3}))
    await until(lambda: view._running)
    Console(file=screen, width=100).print(view._table())
    assert (await waiting).success
    await until(lambda: view._ended)
    Console(file=screen, width=100).print(view._table())
    await ended(working)
    assert "running" in screen.getvalue()
    assert "completed" in screen.getvalue()
    assert "1 done" in screen.getvalue()


async def test_a_worker_that_cannot_say_so_ends_all_the_same(database: Path) -> None:
    def say(line: str) -> None:
        if "stopping" in line:
            raise BrokenPipeError("nobody reads the log any more")

    gate, dispatcher = opened(database)
    worker = Worker(gate, dispatcher, Lines(say), name="worker:1", concurrency=2, lease_s=10)
    working = asyncio.ensure_future(worker.run({"default"}, drain_s=5))
    await asyncio.sleep(0)
    with pytest.raises(BrokenPipeError):
        await ended(working)


async def test_a_second_signal_stops_what_runs(host: Gate, database: Path) -> None:
    gate, dispatcher = opened(database)
    said: list[str] = []
    worker = Worker(gate, dispatcher, Lines(said.append), name="worker:1", concurrency=2, lease_s=10)
    working = asyncio.ensure_future(worker.run({"default"}, drain_s=20))
    waiting = asyncio.ensure_future(host.call("send", {"wait_s": 15}))
    await until(lambda: any("started" in line for line in said))
    os.kill(os.getpid(), signal.SIGTERM)
    await until(lambda: any("1 still running" in line for line in said))
    await ended(working)
    assert (await waiting).status is Status.CANCELLED


async def test_orders_that_are_nobodys_or_cannot_be_kept_now_end_quietly(
    host: Gate, database: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    worker = Worker(host, None, Lines(said.append), name="worker:1", concurrency=1, lease_s=10)  # type: ignore[arg-type]
    await worker._take(Order("default", "no such call", "default"))
    done = await host.call("near")
    await worker._take(Order("default", done.call_id, "default"))

    async def away(*_given: Any, **_more: Any) -> Any:
        worker._told.add("c1")
        raise StoreError("away")

    monkeypatch.setattr(host.remote, "work", away)
    await worker._take(Order("default", "c1", "default"))
    assert "could not be taken or recorded now" in caplog.text
    assert "in doubt" in said[0]


async def test_a_dispatcher_that_fails_ends_the_worker_with_its_error(database: Path) -> None:
    gate, _ = opened(database)

    class Broken:
        async def deliver(self, *_given: Any, **_more: Any) -> None:
            raise RuntimeError("no engine")

    worker = Worker(gate, Broken(), Lines(list[str]().append), name="worker:1", concurrency=1, lease_s=10)  # type: ignore[arg-type]
    with pytest.raises(RuntimeError, match="no engine"):
        await worker.run({"default"}, drain_s=1)


def test_the_command_refuses_what_cannot_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run = CliRunner().invoke
    assert "policy" in str(run(app, ["worker", "--tools", f"{__name__}:TOOLS"]).exception).lower()
    (tmp_path / "toolgate.yaml").write_text("version: 1\ndefault: by_risk\n", encoding="utf-8")
    refused = run(app, ["worker", "--queue", "mail", "--tools", f"{__name__}:TOOLS"])
    assert "No tool has the placement `worker` and a queue of mail" in str(refused.exception)
    refused = run(app, ["worker", "--database", "memory://", "--tools", f"{__name__}:TOOLS"])
    assert "cannot share" in str(refused.exception)


def test_the_command_chooses_how_to_show_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(_view(plain=False, json=True), JsonLines)
    assert isinstance(_view(plain=True, json=False), Lines)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert isinstance(_view(plain=False, json=False), Live)
