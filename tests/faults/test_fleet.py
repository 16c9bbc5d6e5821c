"""Servers, workers and PostgreSQL killed at random under load: nothing decided is lost, nothing happens twice."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.faults.fleet.fleet import Fleet
from tests.postgres import KEY, Cluster
from tests.soak import times

from toolgate.testing.patience import until_sync

log = logging.getLogger("toolgate.fleet")


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    monkeypatch.setenv("TOOLGATE_KEY", KEY)
    cluster = Cluster()
    yield cluster
    cluster.close()


def campaign(fleet: Fleet, *, hosts: int, workers: int, kills: int, crashes: int, pause_s: float) -> None:
    for kind, number in (("host", hosts), ("worker", workers)):
        for _ in range(number):
            fleet.start(kind)
    until_sync(lambda: len(fleet.lines("effects")) > 20)
    crash_at = {round((at + 1) * kills / (crashes + 1)) for at in range(crashes)}
    for number in range(kills):
        seen = len(fleet.lines("effects"))
        until_sync(lambda seen=seen: len(fleet.lines("effects")) > seen + 1)  # type: ignore[misc]  # bound now
        time.sleep(fleet.dice.random() * pause_s)  # whoever dies dies at work, at no particular moment of it
        if number in crash_at:
            fleet.crash_database()
        fleet.kill_one(fleet.dice.choice(["host", "worker", "worker"]))
    before = len(fleet.lines("effects"))
    until_sync(lambda: len(fleet.lines("effects")) > before + 5)  # it still works


def finish(fleet: Fleet, tally: Counter[str]) -> None:
    fleet.stop("host")
    asyncio.run(fleet.settle())
    fleet.stop("worker")
    ends = asyncio.run(fleet.judge())
    decided, effects = len(fleet.lines("decided")), len(fleet.lines("effects"))
    log.info("kills %s; calls %s; %d decisions, %d effects", dict(fleet.kills), dict(ends), decided, effects)
    tally.update(kills=fleet.kills.total(), calls=ends.total(), decisions=decided, effects=effects)
    assert ends["COMPLETED"] > 0
    assert decided > 0


def test_a_fleet_that_is_killed_loses_no_decision_and_doubles_no_effect(
    tmp_path: Path, cluster: Cluster, tally: Counter[str]
) -> None:
    fleet = Fleet(tmp_path, cluster, cluster.new_database(), seed=11)
    try:
        campaign(fleet, hosts=1, workers=2, kills=5, crashes=1, pause_s=0.3)
        finish(fleet, tally)
    finally:
        fleet.close()


@pytest.mark.soak
def test_a_fleet_survives_a_hundred_kills(tmp_path: Path, cluster: Cluster, tally: Counter[str]) -> None:
    fleet = Fleet(tmp_path, cluster, cluster.new_database(), seed=int(time.time()))
    try:
        campaign(fleet, hosts=3, workers=4, kills=times(100), crashes=times(3), pause_s=0.3)
        finish(fleet, tally)
    finally:
        fleet.close()
