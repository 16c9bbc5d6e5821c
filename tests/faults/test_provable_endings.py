"""Endings that are no doubt: what provably never began is tried again unasked, what is recorded is joined."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from tests.faults.bank import BEGIN, END, HOST, Strike, banking
from tests.faults.cut_proxy import proxied
from tests.faults.endings import PLACES, STORES
from tests.faults.failing_log import FULL, failing_log, open_log
from tests.faults.nursery import Life, Nursery
from tests.faults.stage import FIRST, pass_time
from tests.faults.story import RETRIES, Story
from tests.faults.theatre import Theatre
from tests.postgres import Cluster, needs_postgres
from tests.sandboxes import needs_sandbox

from toolgate import Gate, Result
from toolgate.errors import StoreError
from toolgate.kernel.call import Status
from toolgate.testing.patience import until

NEEDS = {"sandbox": needs_sandbox, "postgres": needs_postgres}
ON_SQLITE = pytest.mark.parametrize("store", ["sqlite"])


def each(*places: str, stores: tuple[str, ...] = STORES) -> pytest.MarkDecorator:
    """Placements, each with one of the four combinations of store and tool; each of those as often as the others."""
    table = []
    for turn, place in enumerate(places):
        store = stores[turn % len(stores)]
        marks = [NEEDS[part] for part in (place, store) if part in NEEDS]
        table.append(pytest.param(place, store, turn // 2 % 2 == 0, marks=marks))
    return pytest.mark.parametrize(("place", "store", "keyed"), table)


@each(*PLACES, *reversed(PLACES))
async def test_a_handler_that_says_nothing_happened(place: str, keyed: bool, theatre: Theatre) -> None:
    stage, bank = theatre.stage(place, keyed=keyed), theatre.bank
    async with stage.open() as gate:
        bank.strike = Strike("refuse", BEGIN)
        first = await stage.call_to_its_end(gate, FIRST)
        assert (first.status, first.error_code) == (Status.FAILED, "not_executed")
        await Story(stage, bank, gate).from_nothing()
    await theatre.judge()


@each(*PLACES)
async def test_a_connection_that_is_refused_sends_nothing(place: str, keyed: bool, theatre: Theatre) -> None:
    with socket.socket() as nobody:
        nobody.bind((HOST, 0))  # nobody listens there
        theatre.bank.port = nobody.getsockname()[1]
        stage = theatre.stage(place, keyed=keyed)
        gate = stage.open()
        first = await stage.call_to_its_end(gate, FIRST)
        assert first.status is Status.FAILED
    async with gate:
        with banking(theatre.world.ledger, stage.port) as bank:
            await Story(stage, bank, gate).from_nothing()
    await theatre.judge()


async def nobody_comes(gate: Gate) -> None:
    pass_time(gate, timedelta(hours=2))


async def somebody_cancels(gate: Gate) -> None:
    await gate.cancel(FIRST)


@pytest.mark.parametrize("end", [nobody_comes, somebody_cancels])
@each("client", "worker", "caller", "worker", "caller", "client")
async def test_what_nobody_took_did_not_begin(
    place: str, keyed: bool, end: Callable[[Gate], Any], theatre: Theatre
) -> None:
    stage = theatre.stage(place, keyed=keyed)
    async with stage.open() as gate:
        await stage.call(gate, FIRST)
        await end(gate)
        first = await until_final(gate)
        assert first.status in (Status.FAILED, Status.CANCELLED, Status.TIMEOUT)
        await Story(stage, theatre.bank, gate).from_nothing()
    await theatre.judge()


async def until_final(gate: Gate) -> Result:
    async def is_final() -> bool:
        return (await gate.get(FIRST)).is_final

    await until(is_final)
    return await gate.get(FIRST)


@each("sandbox", "sandbox")
async def test_a_sandbox_that_never_started(place: str, keyed: bool, theatre: Theatre) -> None:
    stage = theatre.stage(place, keyed=keyed)
    held = socket.socket()  # nothing that could be sent to another process

    def pay(_given: object) -> int:
        return held.fileno()

    async with stage.open(handler=pay) as gate:
        assert (await stage.call(gate, FIRST)).status is Status.FAILED
        held.close()
        gate.register(stage.definition())
        await Story(stage, theatre.bank, gate).from_nothing()
    await theatre.judge()


@each(*PLACES, stores=("sqlite",))
async def test_a_disk_that_is_full_at_the_claim(place: str, keyed: bool, theatre: Theatre) -> None:
    stage = theatre.stage(place, keyed=keyed)
    async with stage.open() as gate:
        open_log(gate)
        with failing_log(theatre.world.file, FULL), pytest.raises(StoreError):
            await stage.call(gate, FIRST)
        await Story(stage, theatre.bank, gate).from_nothing()
    await theatre.judge()


@each(*PLACES, stores=("sqlite",))
async def test_a_disk_that_is_full_at_the_result(place: str, keyed: bool, theatre: Theatre) -> None:
    stage, bank = theatre.stage(place, keyed=keyed), theatre.bank
    async with stage.open() as gate:
        bank.strike = Strike("wait", END, carried=True)
        running = asyncio.create_task(stage.call_to_its_end(gate, FIRST))
        await until(bank.reached.is_set)
        with failing_log(theatre.world.file, FULL):
            bank.hang_up()
            with pytest.raises(StoreError):
                await running
        if place == "client":  # who could not report does so again
            taken = await gate.calls.get(FIRST)
            await gate.complete(FIRST, stage.paid(), fence=taken.fence)
        await until_final(gate)
        await Story(stage, bank, gate).from_success()
    await theatre.judge()


@each("async", "thread", "sandbox", "worker", "caller")
async def test_a_caller_that_goes_away_meanwhile(place: str, keyed: bool, theatre: Theatre) -> None:
    stage, bank = theatre.stage(place, keyed=keyed), theatre.bank
    async with stage.open() as gate:
        bank.strike = Strike("wait", END, carried=True)
        running = asyncio.create_task(stage.call_to_its_end(gate, FIRST))
        await until(bank.reached.is_set)
        running.cancel()
        bank.hang_up()
        await asyncio.gather(running, return_exceptions=True)
        await until_final(gate)
        await Story(stage, bank, gate).from_success()
    await theatre.judge()


POINTS = {"dispatch": "doubt", "dispatch.done": "doubt", "result": "doubt", "result.done": "success"}
"""Where the process dies around the run, and what its death leaves."""


@pytest.mark.parametrize("keyed", [True, False])
@pytest.mark.parametrize("point", POINTS)
@ON_SQLITE
async def test_a_death_around_the_commits_of_a_run(point: str, keyed: bool, theatre: Theatre, nursery: Nursery) -> None:
    stage = theatre.stage("async", keyed=keyed)
    stage.write()
    assert nursery.live(Life("payment", stage.folder, point=point)).killed
    async with stage.open() as gate:
        await gate.recover()
        await gate.wait(FIRST)
        story = Story(stage, theatre.bank, gate)
        await (story.from_doubt("answers") if POINTS[point] == "doubt" else story.from_success())
    await theatre.judge()


@pytest.mark.parametrize("arrives", [True, False])
@pytest.mark.parametrize("at", ["claim", "result"])
@each("async", "thread", "client", "caller", stores=("postgres",))
async def test_an_answer_to_a_commit_that_is_lost(
    place: str, keyed: bool, at: str, arrives: bool, theatre: Theatre, postgres_cluster: Cluster
) -> None:
    bank = theatre.bank
    with proxied(postgres_cluster.port) as proxy:
        theatre.url = postgres_cluster.url(theatre.url.rpartition("/")[2], port=proxy.port)
        stage = theatre.stage(place, keyed=keyed)
        async with stage.open() as gate:
            bank.strike = Strike("wait", END, carried=True)
            proxy.before, proxy.cuts = not arrives, int(at == "claim")
            running = asyncio.create_task(stage.call_to_its_end(gate, FIRST))
            await until(bank.reached.is_set)
            proxy.cuts = int(at == "result")
            bank.hang_up()
            assert (await running).success
            await Story(stage, bank, gate).from_success()
        await theatre.judge()


@pytest.mark.parametrize("keyed", [True, False])
@pytest.mark.parametrize("store", ["sqlite", pytest.param("postgres", marks=needs_postgres)])
async def test_three_retries_of_an_open_question_are_one_question_one_yes_and_one_payment(
    keyed: bool, theatre: Theatre
) -> None:
    stage = theatre.stage("async", keyed=keyed)
    async with stage.open("ask") as gate:
        asked = [await stage.call(gate, id) for id in (FIRST, *RETRIES)]
        assert [one.call_id for one in asked] == [FIRST] * 4
        (question,) = await gate.pending()
        await gate.decide(question.id, "approve", by="bob")
        assert (await gate.wait(FIRST)).success
        for id in RETRIES:  # the replies were lost after they had joined
            lost = await stage.call(gate, id)
            assert (lost.call_id, lost.joined, lost.data) == (FIRST, True, {"paid": "p1"})
        assert theatre.bank.effects() == 1
    await theatre.judge()
