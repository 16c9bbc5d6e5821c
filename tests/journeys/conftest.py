"""Every journey is made in memory, on a store whose commits must be awaited, and on a SQLite file."""

from __future__ import annotations

import itertools
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.journeys.scene import Open
from tests.postgres import needs_postgres

import toolgate
from toolgate.adapters.channels.callback import CallbackChannel
from toolgate.adapters.memory.bus import MemoryBus
from toolgate.adapters.memory.store import MemoryStore
from toolgate.adapters.runners.inline import InlineRunner
from toolgate.kernel.text.masking import Masker
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


ON_POSTGRES = {
    "test_a_doubt_holds_its_budget",
    "test_a_yes_is_remembered",
    "test_a_remembered_yes_cannot_be_forged",
    "test_a_vote_is_delegated",
    "test_brakes",
    "test_many_calls_at_once",
    "test_one_approval_executes_once",
    "test_one_effect_per_key",
    "test_retries_join",
    "test_same_call_id_runs_once",
    "test_undo",
    "test_unknown_outcome",
}
"""The journeys that tell most about a store; the conformance class is run on it in full."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "open_gate" in metafunc.fixturenames:
        stores: list[Any] = ["memory", "remote", "sqlite"]
        if metafunc.module.__name__.rpartition(".")[2] in ON_POSTGRES:
            stores.append(pytest.param("postgres", marks=needs_postgres))
        metafunc.parametrize("open_gate", stores, indirect=True)


@pytest.fixture
def open_gate(request: pytest.FixtureRequest, tmp_path: Path, empty_database: Path) -> Open:
    numbers = itertools.count()
    postgres_url = request.getfixturevalue("postgres_url") if request.param == "postgres" else ""

    def open_postgres(url: str = "", **options: Any) -> Any:
        if "store" in options:
            return open_remote(**options)
        return toolgate.open(postgres_url, **options)

    def open_sqlite(url: str = "", **options: Any) -> Any:
        if "store" in options:
            return open_remote(**options)
        path = tmp_path / f"journey{next(numbers)}.db"
        shutil.copy(empty_database, path)
        shutil.copy(f"{empty_database}.key", f"{path}.key")
        return toolgate.open(f"sqlite:///{path}", **options)

    opening: dict[str, Any] = {
        "memory": toolgate.open,
        "remote": open_remote,
        "sqlite": open_sqlite,
        "postgres": open_postgres,
    }
    opened: Open = opening[request.param]
    return opened
