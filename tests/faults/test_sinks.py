"""Named event sinks over crashes, restarts, pruning and several processes: nothing is lost without being told."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.postgres import needs_postgres

import toolgate
from toolgate.adapters.sqlite.upkeep import prune
from toolgate.adapters.telemetry.metrics import METRICS
from toolgate.errors import StoreError
from toolgate.kernel.context import Context
from toolgate.kernel.event import Event
from toolgate.kernel.registry import ToolRegistry
from toolgate.testing.patience import until, until_sync

PATIENCE_S = 60.0
SHOP = Context(project="shop")
PROGRAM = """
import asyncio, os, sys
import toolgate
from toolgate.kernel.context import Context
from toolgate.kernel.registry import ToolRegistry

url, out, calls, takes = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])

@toolgate.tool(effects="read")
async def ping() -> str:
    return "pong"

class File:
    def __init__(self):
        self.left = takes
        self.file = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    async def emit(self, *, type, data):
        while not self.left:
            await asyncio.sleep(0.01)
        self.left -= 1
        os.write(self.file, b"%d\\n" % data["seq"])

async def main():
    gate = toolgate.open(url)
    realm = gate.host.attach("shop", ToolRegistry([ping]), sink=File(), sink_name="audit")
    for _ in range(calls):
        assert (await gate.call("ping", context=Context(project="shop"))).success
    print("done", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    await gate.aclose()

asyncio.run(main())
"""


@toolgate.tool(effects="read")
async def ping() -> str:
    return "pong"


class Sink:
    def __init__(self, *, is_up: bool = True) -> None:
        self.is_up = is_up
        self.told: list[tuple[str, dict[str, Any]]] = []

    async def emit(self, *, type: str, data: dict[str, Any]) -> None:
        if not self.is_up:
            raise OSError("down")
        self.told.append((type, data))

    @property
    def numbers(self) -> list[int]:
        return [data["seq"] for _, data in self.told]


@pytest.fixture
def lives() -> Iterator[list[subprocess.Popen[str]]]:
    """Processes that were started here, ended after the test."""
    started: list[subprocess.Popen[str]] = []
    yield started
    for life in started:
        if life.poll() is None:
            life.kill()
        life.wait()
        for pipe in (life.stdin, life.stdout):
            assert pipe is not None
            pipe.close()


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=needs_postgres)])
def url(request: pytest.FixtureRequest, database: Path) -> str:
    return f"sqlite:///{database}" if request.param == "sqlite" else str(request.getfixturevalue("postgres_url"))


def begin(lives: list[subprocess.Popen[str]], path: Path, out: Path, calls: int, takes: int) -> subprocess.Popen[str]:
    life = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, f"sqlite:///{path}", str(out), str(calls), str(takes)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    lives.append(life)
    return life


def finish_calls(life: subprocess.Popen[str]) -> None:
    assert life.stdout is not None
    assert life.stdout.readline() == "done\n"


def told_to(out: Path) -> list[int]:
    return [int(line) for line in out.read_text().split()] if out.exists() else []


async def test_what_a_killed_process_did_not_tell_is_told_by_the_next(
    database: Path, tmp_path: Path, lives: list[subprocess.Popen[str]]
) -> None:
    out, takes, calls = tmp_path / "told", 5, 10
    life = begin(lives, database, out, calls, takes)
    finish_calls(life)
    until_sync(lambda: len(told_to(out)) == takes, within_s=PATIENCE_S)
    os.kill(life.pid, signal.SIGKILL)
    life.wait()
    sink = Sink()
    async with toolgate.open(f"sqlite:///{database}") as gate:
        realm = gate.host.attach("shop", ToolRegistry([ping]), sink=sink, sink_name="audit")
        await until(lambda: sink.numbers[-1:] == [3 * calls], within_s=PATIENCE_S)  # without any call
        assert realm.relay is not None
    first = sink.numbers[0]
    assert told_to(out) == [1, 2, 3, 4, 5]
    assert sink.numbers == list(range(first, 3 * calls + 1))
    assert first <= takes + 1, "something was told to nobody"


async def test_of_two_processes_one_tells_the_sink_and_the_other_takes_over(
    database: Path, tmp_path: Path, lives: list[subprocess.Popen[str]]
) -> None:
    out, other_out, calls = tmp_path / "one", tmp_path / "two", 5
    first = begin(lives, database, out, calls, 10_000)
    finish_calls(first)
    second = begin(lives, database, other_out, calls, 10_000)
    finish_calls(second)
    until_sync(lambda: told_to(out)[-1:] == [6 * calls], within_s=PATIENCE_S)  # also what the other one did
    assert (told_to(out), told_to(other_out)) == (list(range(1, 6 * calls + 1)), [])
    os.kill(first.pid, signal.SIGKILL)
    first.wait()
    async with toolgate.open(f"sqlite:///{database}", tools=[ping]) as gate:
        await gate.call("ping", context=SHOP)  # by a process without the sink
    until_sync(lambda: told_to(other_out)[-1:] == [6 * calls + 3], within_s=PATIENCE_S)
    told = told_to(other_out)
    assert told == list(range(told[0], 6 * calls + 4))


async def test_what_was_pruned_before_it_was_told_is_told_as_a_gap(database: Path) -> None:
    url = f"sqlite:///{database}"
    async with toolgate.open(url) as gate:
        realm = gate.host.attach("shop", ToolRegistry([ping]), sink=Sink(is_up=False), sink_name="audit")
        await gate.call("ping", context=SHOP)
        at = (await gate.events(project="shop"))[-1].at
        assert realm.relay is not None
    assert prune(database, at + timedelta(microseconds=1), events=True)[1] == 3
    sink, before = Sink(), METRICS._sinks.get(("audit", "missed"), 0)
    async with toolgate.open(url) as gate:
        realm = gate.host.attach("shop", ToolRegistry([ping]), sink=sink, sink_name="audit")
        await gate.call("ping", context=SHOP)
        assert await gate.host.sink_heard(project="shop", timeout_s=PATIENCE_S)
        assert realm.relay is not None
    (name, gap), *rest = sink.told
    assert (name, gap["from"], gap["to"], gap["count"], gap["sink"]) == ("sink.gap", 1, 3, 3, "audit")
    assert [type for type, _ in rest] == ["tool.invoked", "tool.started", "tool.completed"]
    assert METRICS._sinks[("audit", "missed")] == before + 3
    assert 'sink_events_total{outcome="missed",sink="audit"}' in METRICS.render()


async def test_what_a_sink_missed_is_told_after_a_restart(url: str) -> None:
    async with toolgate.open(url) as gate:
        realm = gate.host.attach("shop", ToolRegistry([ping]), sink=Sink(is_up=False), sink_name="audit")
        for _ in range(3):
            assert (await gate.call("ping", context=SHOP)).success
        assert realm.relay is not None
    sink = Sink()
    async with toolgate.open(url) as gate:
        realm = gate.host.attach("shop", ToolRegistry([ping]), sink=sink, sink_name="audit")
        assert await gate.host.sink_heard(project="shop", timeout_s=PATIENCE_S)
    assert sink.numbers == list(range(1, 10))
    again = Sink()
    async with toolgate.open(url) as gate:
        realm = gate.host.attach("shop", ToolRegistry([ping]), sink=again, sink_name="audit")
        await gate.call("ping", context=SHOP)
        assert await gate.host.sink_heard(project="shop", timeout_s=PATIENCE_S)
        assert realm.relay is not None
    assert again.numbers == [10, 11, 12]


async def test_a_required_sink_that_another_process_tells_is_waited_for(url: str) -> None:
    sink, idle = Sink(), Sink()
    async with toolgate.open(url) as one, toolgate.open(url) as two:
        realms = [
            gate.host.attach("shop", ToolRegistry([ping]), sink=which, sink_name="audit", sink_required=True)
            for gate, which in ((one, sink), (two, idle))
        ]
        for realm, timeout_s in zip(realms, (PATIENCE_S, PATIENCE_S), strict=True):
            assert realm.relay is not None
            realm.relay.required_s = timeout_s
            await realm.relay.open()
        assert (await two.call("ping", context=SHOP)).success
        assert idle.told == []
        assert [type for type, _ in sink.told][:2] == ["tool.invoked", "tool.started"]
        sink.is_up = False
        assert realms[1].relay is not None
        realms[1].relay.required_s = 0.1
        refused = await two.call("ping", context=SHOP)
        assert (refused.status, refused.error_code) == ("FAILED", "unheard")
        assert "was not told by the process that tells it" in str(refused.error)


async def test_a_database_that_fails_while_the_sink_is_told_delays_it_and_no_more(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = Sink()
    async with toolgate.open(f"sqlite:///{database}") as gate:
        realm = gate.host.attach("shop", ToolRegistry([ping]), sink=sink, sink_name="audit")
        store, is_away = gate._driver.store, True
        events = store.events

        async def fail(project: str, **options: Any) -> list[Event]:
            if is_away:
                raise StoreError("The database cannot be read.")
            return await events(project, **options)

        monkeypatch.setattr(store, "events", fail)
        assert (await gate.call("ping", context=SHOP)).success
        assert sink.told == []
        is_away = False
        await until(lambda: sink.numbers == [1, 2, 3], within_s=PATIENCE_S)
        assert realm.relay is not None


def test_a_program_ends_although_its_sink_hangs() -> None:
    program = """
import asyncio, threading
from toolgate.tools import Action, ToolDefinition, ToolExecutor, ToolOutput

class Hanging:
    def emit(self, *, type, data):
        threading.Event().wait()

class HangingAsync:
    async def emit(self, *, type, data):
        await asyncio.Event().wait()

async def echo(given):
    return ToolOutput.ok("hello")

async def main():
    for sink in (Hanging(), HangingAsync()):
        executor = ToolExecutor([ToolDefinition("echo", {}, echo)], event_sink=sink)
        print((await executor.execute(Action(type="echo", payload={}))).data)

asyncio.run(main())
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=50, check=True)
    assert ended.stdout == "hello\nhello\n"
    assert "Traceback" not in ended.stderr
