"""Workers that die, freeze, lose their connection or have the wrong time: no effect twice, nothing left unsaid."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.faults.fleet.fleet import LEASE_S, PROJECT, Fleet
from tests.faults.fleet.proxy import proxy_to
from tests.faults.fleet.tools import FOLDER, TOOLS
from tests.postgres import ROLE, Cluster

import toolgate
from toolgate import Context, Result
from toolgate.adapters.postgres.bus import PostgresBus
from toolgate.adapters.postgres.dispatcher import PgQueuerDispatcher
from toolgate.adapters.postgres.store import PostgresStore
from toolgate.adapters.runners.inline import InlineRunner
from toolgate.adapters.runners.worker import WorkerRunner
from toolgate.errors import StoreError
from toolgate.gate import Gate
from toolgate.kernel.call import Status
from toolgate.ports.runner import Runner
from toolgate.testing.patience import PATIENCE_S, until

CONTEXT = Context(project=PROJECT, principal="agent:ann")


@pytest.fixture
def fleet(
    tmp_path: Path, postgres_cluster: Cluster, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Fleet]:
    monkeypatch.setenv(FOLDER, str(tmp_path))
    fleet = Fleet(tmp_path, postgres_cluster, postgres_url, seed=1)
    yield fleet
    fleet.close()


@pytest.fixture
async def gate(fleet: Fleet) -> AsyncIterator[Gate]:
    async with toolgate.open(fleet.url, tools=TOOLS) as gate:
        yield gate


async def begun(gate: Gate, fleet: Fleet, tool: str, call_id: str, **payload: float) -> asyncio.Task[Result]:
    """A call that a worker of another process runs by now."""
    waiting = asyncio.ensure_future(gate.call(tool, payload, context=CONTEXT, call_id=call_id))

    async def is_taken() -> bool:
        try:
            return (await gate.calls.get(call_id, project=PROJECT)).runner is not None
        except toolgate.errors.NotFoundError:
            return False

    await until(is_taken)
    return waiting


async def test_what_a_killed_worker_had_is_unknown_or_runs_at_another(gate: Gate, fleet: Fleet) -> None:
    victim = fleet.start("worker")
    effect = await begun(gate, fleet, "send", "effect", before_s=20)
    read = await begun(gate, fleet, "look", "read", before_s=LEASE_S)
    victim.kill()
    assert (await effect).status is Status.UNKNOWN
    fleet.start("worker")
    done = await asyncio.wait_for(read, PATIENCE_S)
    assert done.status is Status.COMPLETED
    assert (await gate.calls.get("read", project=PROJECT)).attempt == 2
    assert fleet.lines("effects") == []


async def test_a_worker_that_froze_past_its_lease_reports_in_vain(gate: Gate, fleet: Fleet) -> None:
    frozen = fleet.start("worker")
    waiting = await begun(gate, fleet, "send", "effect", before_s=LEASE_S)  # frozen before it acts
    frozen.signal(signal.SIGSTOP)
    assert (await waiting).status is Status.UNKNOWN
    frozen.signal(signal.SIGCONT)

    async def has_evidence() -> bool:
        events = await gate.events(project=PROJECT, call_id="effect")
        return "tool.late_result" in [event.type for event in events]

    await until(has_evidence)
    assert (await gate.get("effect", project=PROJECT)).status is Status.UNKNOWN
    assert len(fleet.lines("effects")) <= 1


async def test_a_worker_ends_in_good_order_on_sigterm(gate: Gate, fleet: Fleet) -> None:
    leaving = fleet.start("worker")
    waiting = await begun(gate, fleet, "send", "effect", before_s=0.5)
    leaving.signal(signal.SIGTERM)
    assert (await waiting).status is Status.COMPLETED
    assert await asyncio.to_thread(leaving.wait) == 0
    assert fleet.lines("effects") == ["effect"]


async def test_a_worker_behind_a_line_that_breaks_and_is_slow_loses_nothing(gate: Gate, fleet: Fleet) -> None:
    with proxy_to(fleet.cluster.port) as line:
        name = fleet.url.rpartition("/")[2]
        distant = fleet.cluster.url(name, role=ROLE, port=line.port)
        async with toolgate.open(distant, tools=TOOLS) as worker:
            line.delay_s = 0.005
            first = await gate.call("send", context=CONTEXT, call_id="first", wait=False)
            assert (await worker.remote.work(first.call_id, by="worker:far", project=PROJECT)).success
            await gate.call("send", {"before_s": 0.2}, context=CONTEXT, call_id="second", wait=False)
            working = asyncio.ensure_future(worker.remote.work("second", by="worker:far", project=PROJECT, lease_s=30))
            await until(lambda: "second" in fleet.lines("begun"))
            line.cut()
            await until(lambda: "second" in fleet.lines("effects"))
            line.heal()
            try:
                assert (await working).status is Status.COMPLETED
            except StoreError:
                await until(lambda: _is(gate, "second", Status.COMPLETED))  # it is recorded a little later
            assert fleet.lines("effects").count("second") == 1


async def _is(gate: Gate, call_id: str, status: Status) -> bool:
    return (await gate.calls.get(call_id, project=PROJECT)).status is status


@pytest.mark.parametrize("wrong_by", [timedelta(hours=1), timedelta(hours=-1)])
async def test_a_worker_with_the_wrong_time_goes_by_the_databases(
    gate: Gate, fleet: Fleet, wrong_by: timedelta
) -> None:
    store = PostgresStore(fleet.url, owner="wrong", clock=lambda: datetime.now(UTC) + wrong_by)
    runners: dict[str, Runner] = {"inline": InlineRunner(), "worker": WorkerRunner(PgQueuerDispatcher(fleet.url))}
    worker = Gate(store=store, bus=PostgresBus(store.open_news()), runners=runners, tools=TOOLS)
    try:
        assert abs(store.now() - datetime.now(UTC)) < timedelta(seconds=30)
        await gate.call("send", {"before_s": 1.5}, context=CONTEXT, call_id="effect", wait=False)
        done = await worker.remote.work("effect", by="worker:wrong", project=PROJECT, lease_s=LEASE_S)
        assert done.status is Status.COMPLETED
        assert fleet.lines("effects") == ["effect"]
    finally:
        await worker.aclose()
