"""Every journey is made on a store that writes at once and on one whose commits must be awaited."""

from __future__ import annotations

from typing import Any

import pytest
from tests.journeys.scene import Open

import toolgate
from toolgate.adapters.buses.memory import MemoryBus
from toolgate.adapters.channels.callback import CallbackChannel
from toolgate.adapters.runners.inline import InlineRunner
from toolgate.adapters.stores.memory import MemoryStore
from toolgate.kernel.masking import Masker
from toolgate.testing.stores import RemoteStore


def open_remote(*, approver: Any = None, secrets: Any = (), undo_ttl_seconds: float = 3600.0, **options: Any) -> Any:
    channels = [] if approver is None else [approver if hasattr(approver, "ask") else CallbackChannel(approver)]
    return toolgate.Gate(
        store=options.pop("store", None) or RemoteStore(MemoryStore()),
        bus=MemoryBus(),
        runners={"inline": InlineRunner()},
        channels=channels,
        masker=Masker(secrets),
        undo_ttl_s=undo_ttl_seconds,
        **options,
    )


@pytest.fixture(params=["memory", "remote"])
def open_gate(request: pytest.FixtureRequest) -> Open:
    opening: dict[str, Any] = {"memory": toolgate.open, "remote": open_remote}
    opened: Open = opening[request.param]
    return opened
