"""Looking for calls of other servers: by a hint, after hints were lost, and never for nobody."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import toolgate
from toolgate.adapters.runners.client import ClientRunner, Offer, Seat
from toolgate.errors import StoreError
from toolgate.gate import Gate
from toolgate.interfaces.server import foreign
from toolgate.interfaces.server.foreign import Foreign
from toolgate.kernel.call import Status
from toolgate.ports.bus import LOOK_AGAIN, Hint
from toolgate.testing.patience import until

FAR = toolgate.ToolDefinition(
    "far", {}, lambda _given: toolgate.ToolOutput.ok(), placement="client", timeout_seconds=20
)


def a_gate(database: Path) -> tuple[Gate, ClientRunner]:
    clients = ClientRunner()
    return toolgate.open(f"sqlite:///{database}", tools=[FAR], runners={"client": clients}), clients


def a_seat(heard: list[Offer], recalled: list[str] | None = None) -> Seat:
    return Seat(
        project="default",
        principal="ann",
        tools=frozenset({"*"}),
        is_runner=True,
        offer=heard.append,
        recall=lambda call_id, _reason: (recalled if recalled is not None else []).append(call_id),
    )


async def test_a_hint_or_a_look_finds_what_another_process_claimed(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(foreign, "LOOK_EVERY_S", 0.05)
    monkeypatch.setattr(foreign, "PAGE", 1)
    (here, clients), (there, _) = a_gate(database), a_gate(database)
    watching, heard = Foreign(here, clients), list[Offer]()
    try:
        calls = [await there.call("far", call_id=f"c{number}", wait=False) for number in range(3)]
        seat = a_seat(heard)
        clients.join(seat)
        watching.joined("default")
        await until(lambda: len(heard) == 3)
        assert sorted(offer.call_id for offer in heard) == [call.call_id for call in calls]
        watching._on_hint(Hint("default", "c0", Status.EXECUTING))
        watching._on_hint(Hint("default", "no such call", Status.EXECUTING))
        watching._on_hint(Hint("nobody's", "c0", Status.EXECUTING))
        watching._on_hint(LOOK_AGAIN)
        await there.call("far", call_id="last", wait=False)
        await until(lambda: len(heard) == 4)
        clients.leave(seat)
        assert not clients.has_seats("default")
    finally:
        await watching.close()
        await here.aclose()
        await there.aclose()


async def test_a_recall_reaches_whoever_took_the_call_here_once(database: Path) -> None:
    (here, clients), (there, _) = a_gate(database), a_gate(database)
    watching, heard, recalled = Foreign(here, clients), list[Offer](), list[str]()
    try:
        seat = a_seat(heard, recalled)
        clients.join(seat)
        watching.joined("default")
        await there.call("far", call_id="c1", wait=False)
        watching._on_hint(Hint("default", "c1", Status.EXECUTING))
        await until(lambda: heard)
        await here.remote.dispatch("c1", to="ann")
        clients.took(seat, "c1")
        await there.cancel("c1", wait=False)
        for _ in range(3):
            watching._on_hint(Hint("default", "c1", Status.EXECUTING))
        await until(lambda: recalled)
        await asyncio.sleep(0)
        assert recalled == ["c1"]
    finally:
        await watching.close()
        await here.aclose()
        await there.aclose()


async def test_a_store_that_is_away_is_asked_again(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(foreign, "LOOK_EVERY_S", 0.02)
    (here, clients), (there, _) = a_gate(database), a_gate(database)
    watching, heard, failed = Foreign(here, clients), list[Offer](), list[Any]()
    listed = here.calls.list

    async def away(query: Any) -> Any:
        if not failed:
            failed.append(query)
            raise StoreError("away")
        return await listed(query)

    monkeypatch.setattr(here.calls, "list", away)
    try:
        await there.call("far", call_id="c1", wait=False)
        clients.join(a_seat(heard))
        watching.joined("default")
        await until(lambda: heard)
        assert failed
    finally:
        await watching.close()
        await here.aclose()
        await there.aclose()


async def test_nobody_here_means_nothing_is_looked_at(database: Path) -> None:
    here, clients = a_gate(database)
    watching = Foreign(here, clients)
    watching._on_hint(LOOK_AGAIN)
    assert clients.projects == ()
    clients.place_foreign(Offer("default", "c1", "far", "ann", None, None, False, None))
    await watching.close()
    await here.aclose()
