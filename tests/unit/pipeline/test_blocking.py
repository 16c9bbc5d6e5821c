"""The blocking faces of gate and client."""

from __future__ import annotations

import asyncio
import inspect
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from toolgate.client import Client, SyncClient
from toolgate.errors import GateClosedError
from toolgate.gate import Gate, SyncGate
from toolgate.gate import approvals as gate_parts
from toolgate.gate import sync as gate_sync
from toolgate.gate.grants import Grants
from toolgate.gate.host import Host
from toolgate.gate.remote import Remote
from toolgate.gate.rows import Calls
from toolgate.interfaces.client import approvals as client_approvals
from toolgate.interfaces.client import calls as client_calls
from toolgate.interfaces.client import grants as client_grants
from toolgate.interfaces.client import remote as client_remote
from toolgate.interfaces.client import sync as client_sync
from toolgate.pipeline.background import Background
from toolgate.pipeline.blocking import Blocking, waited
from toolgate.testing.patience import PATIENCE_S


class Target:
    async def double(self, number: int) -> int:
        """Return twice as much."""
        return 2 * number

    async def wait(self, begun: threading.Event) -> None:
        """Wait for what never comes."""
        begun.set()
        await asyncio.Event().wait()


class Face(Blocking):
    double = waited(Target.double)
    wait = waited(Target.wait)


def test_a_method_is_the_async_one_waited_for() -> None:
    background = Background("test")
    face = Face(Target(), background)
    assert (face.double(2), face.double(number=3), face.double.__doc__) == (4, 6, "Return twice as much.")
    background.close()
    with pytest.raises(GateClosedError, match="closed; open a new one"):
        face.double(1)


def test_whoever_waits_while_it_is_closed_is_told() -> None:
    background, begun = Background("test"), threading.Event()
    face = Face(Target(), background)
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(face.wait, begun)
        assert begun.wait(PATIENCE_S)
        background.close()
        with pytest.raises(GateClosedError):
            waiting.result(PATIENCE_S)


def test_one_that_is_closed_at_that_very_moment_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    background = Background("test")
    face = Face(Target(), background)

    def closed(coroutine: object) -> None:
        coroutine.close()  # type: ignore[attr-defined]  # as the background does
        raise GateClosedError("closed")

    monkeypatch.setattr(background, "submit", closed)
    with pytest.raises(GateClosedError, match="closed; open a new one"):
        face.double(1)
    background.close()


PARTS = [
    (SyncGate, Gate), (gate_sync.SyncApprovals, gate_parts.Approvals), (gate_sync.SyncGrants, Grants),
    (gate_sync.SyncCalls, Calls), (gate_sync.SyncRemote, Remote), (gate_sync.SyncHost, Host),
    (SyncClient, Client), (client_sync.SyncApprovals, client_approvals.Approvals),
    (client_sync.SyncCalls, client_calls.Calls), (client_sync.SyncGrants, client_grants.Grants),
    (client_sync.SyncRemote, client_remote.Remote),
]  # fmt: skip


@pytest.mark.parametrize(("face", "target"), PARTS, ids=[str(face) for face, _ in PARTS])
def test_a_face_has_every_method_that_must_be_waited_for(face: type, target: type) -> None:
    named = {name for name, _ in inspect.getmembers(target, inspect.iscoroutinefunction) if not name.startswith("_")}
    # A caller's function runs on the loop that carries it; `Bridge.carry_sync` is the way for threads.
    assert named - {"aclose", "carry"} - set(dir(face)) == set()
