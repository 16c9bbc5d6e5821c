"""Every journey is made in memory, on a store whose commits must be awaited, and on a SQLite file."""

from __future__ import annotations

import itertools
import shutil
from pathlib import Path
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


@pytest.fixture(params=["memory", "remote", "sqlite"])
def open_gate(request: pytest.FixtureRequest, tmp_path: Path, empty_database: Path) -> Open:
    numbers = itertools.count()

    def open_sqlite(url: str = "", **options: Any) -> Any:
        if "store" in options:
            return open_remote(**options)
        path = tmp_path / f"journey{next(numbers)}.db"
        shutil.copy(empty_database, path)
        shutil.copy(f"{empty_database}.key", f"{path}.key")
        return toolgate.open(f"sqlite:///{path}", **options)

    opening: dict[str, Any] = {"memory": toolgate.open, "remote": open_remote, "sqlite": open_sqlite}
    opened: Open = opening[request.param]
    return opened
