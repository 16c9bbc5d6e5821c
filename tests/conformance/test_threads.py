from __future__ import annotations

import shutil
import sqlite3
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.postgres import needs_postgres

from toolgate import bootstrap
from toolgate.adapters import sealing
from toolgate.adapters.memory.threads import MemoryThreads
from toolgate.adapters.sqlite.rekey import rekey
from toolgate.adapters.sqlite.upkeep import prune
from toolgate.errors import StoreError, UsageError
from toolgate.ports.threads import RunStatus, Threads
from toolgate.testing.clock import NOON
from toolgate.testing.conformance import ThreadsConformance
from toolgate.testing.conformance.threads import LATER, a_message, a_run


class TestMemoryThreads(ThreadsConformance):
    @pytest.fixture
    async def threads(self) -> AsyncIterator[Threads]:
        threads = MemoryThreads(is_alive=lambda _owner: False)
        yield threads
        await threads.close()


@pytest.fixture
def file(tmp_path: Path, empty_database: Path) -> Path:
    shutil.copy(empty_database, tmp_path / "t.db")
    return tmp_path / "t.db"


@pytest.fixture
async def threads(file: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Threads]:
    monkeypatch.delenv(sealing.ENVIRONMENT, raising=False)
    threads = bootstrap.threads(f"sqlite:///{file}")
    yield threads
    await threads.close()


class TestSqliteThreads(ThreadsConformance):
    pass


@needs_postgres
class TestPostgresThreads(ThreadsConformance):
    @pytest.fixture
    async def threads(self, postgres_url: str) -> AsyncIterator[Threads]:
        threads = bootstrap.threads(postgres_url)
        yield threads
        await threads.close()


async def test_what_was_said_is_sealed_and_bound_to_its_message(file: Path, threads: Threads) -> None:
    await threads.save(a_run(), messages=[a_message(), a_message("m2")])
    with sqlite3.connect(file) as thief:
        assert all(b"hunter2" not in str(row).encode() for row in thief.execute("SELECT * FROM messages"))
        thief.execute("UPDATE messages SET sealed_content=(SELECT sealed_content FROM messages WHERE id='m2')")
    thief.close()
    with pytest.raises(StoreError, match="another row"):
        await threads.messages("p", "ann", "s1")


async def test_messages_can_be_sealed_anew(file: Path, threads: Threads) -> None:
    await threads.save(a_run(), messages=[a_message()])
    key = file.with_name("t.db.key")
    key.write_text(sealing.new_key() + "\n" + key.read_text())
    assert rekey(file).resealed == 1
    key.write_text(key.read_text().split()[0])
    again = bootstrap.threads(f"sqlite:///{file}")
    assert await again.messages("p", "ann", "s1") == [a_message(position=1)]
    await again.close()


async def test_retention_forgets_what_was_said_in_runs_that_ended(file: Path, threads: Threads) -> None:
    ended, going_on = a_run(), a_run("r2", conversation_id="s2")
    await threads.save(ended, messages=[a_message()], title="a secret")
    await threads.save(replace(ended.next(NOON), status=RunStatus.COMPLETED, ended_at=NOON))
    await threads.save(going_on, messages=[a_message("m2", conversation_id="s2", run_id="r2")])
    prune(file, LATER)
    assert await threads.messages("p", "ann", "s1") == []
    assert [one.id for one in await threads.messages("p", "ann", "s2")] == ["m2"]
    assert {one.title for one in await threads.conversations("p", "ann")} == {""}


async def test_a_run_of_an_open_gate_is_no_orphan(file: Path, threads: Threads) -> None:
    store, bus = bootstrap.connect(f"sqlite:///{file}")
    await threads.save(a_run(owner=store.owner))
    assert await threads.orphans() == []
    await store.close()
    bus.close()
    assert [run.id for run in await threads.orphans()] == ["r1"]


async def test_closed_threads_say_so(file: Path, threads: Threads) -> None:
    await threads.save(a_run())
    await threads.close()
    with pytest.raises(StoreError, match="cannot be read"):
        await threads.run("p", "r1")


async def test_a_file_without_the_tables_is_an_error(file: Path, threads: Threads) -> None:
    with sqlite3.connect(file) as other:
        other.execute("DROP TABLE messages")
        other.execute("DROP TABLE conversations")
    other.close()
    with pytest.raises(StoreError, match="cannot be written"):
        await threads.save(a_run())
    assert await threads.run("p", "r1") is None


def test_an_unknown_scheme_is_refused() -> None:
    with pytest.raises(UsageError, match="not known"):
        bootstrap.threads("ldap://x")
