"""Windows over the policy's files: what is recorded, what is believed, and what waits for a person."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

import toolgate
from toolgate.adapters.memory.store import MemoryStore
from toolgate.confines import policy_windows
from toolgate.errors import ConflictError, PolicyHeldError, StoreError, UsageError
from toolgate.gate import windows as module
from toolgate.gate.windows import PolicyWindows, is_named, revision_of
from toolgate.kernel.call import Call, Status
from toolgate.kernel.change import Change
from toolgate.kernel.context import DEFAULT_CONTEXT, SYSTEM_PROJECT
from toolgate.kernel.event import Draft
from toolgate.kernel.tool import Placement
from toolgate.kernel.window import Window
from toolgate.policy.loader import PolicySource
from toolgate.testing.clock import NOON

STRICT, LOOSE = "{version: 1, default: deny}", "{version: 1, default: ask}"
CALL = Call(id="c1", project="default", tool_name="run", context=DEFAULT_CONTEXT, created_at=NOON)


class Place:
    """A policy in a folder, and what looks after it; each `windows` is a process of its own."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "toolgate.yaml"
        self.file.write_text(STRICT)
        (folder / "own").mkdir()
        self.store = MemoryStore()
        self.source = PolicySource(folder, projects=folder / "own")
        self.policy = self.source.load()
        self.windows = self.another()

    def another(self) -> PolicyWindows:
        return policy_windows("memory://", self.store, self.source, mask=str)

    async def open(self, *kept: str) -> Window:
        files = self.windows.exposed(self.policy, ["/"], kept)
        return await self.windows.open(CALL, self.policy, files)

    async def run(self, text: str) -> tuple[str, ...]:
        window = await self.open()
        self.file.write_text(text)
        return await self.windows.close(window)

    async def told(self) -> list[str]:
        return [one.type.removeprefix("policy.") for one in await self.store.events(SYSTEM_PROJECT)]


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    place = Place(tmp_path)
    yield place
    await place.store.close()


async def test_what_a_run_wrote_waits_in_every_process(place: Place) -> None:
    assert await place.run(LOOSE) == (str(place.file),)
    for windows in (place.windows, place.another()):
        held = await windows.held(place.source.load())
        assert held is not None
        assert (held.kept, held.files) == (revision_of(place.policy), (str(place.file),))
        assert f"-{STRICT}\n+{LOOSE}\n" in held.diff
        assert held.as_json()["files"] == [str(place.file)]
    assert await place.told() == ["window_opened", "held"]


async def test_while_a_run_goes_on_only_what_was_there_is_believed(place: Place) -> None:
    window = await place.open()
    other = place.another()
    assert await other.doubted(place.policy) == ()
    place.file.write_text(LOOSE)
    assert await other.doubted(place.source.load()) == (str(place.file),)
    await other.accept(place.source.load(), revision_of(place.source.load()), by="ann")
    assert await other.doubted(place.source.load()) == ()
    assert await place.windows.close(window) == ()
    assert await place.told() == ["window_opened", "accepted", "window_closed"]
    assert await place.windows.close(window) == ()  # it is closed already


async def test_a_second_run_does_not_make_the_first_one_s_text_believed(place: Place) -> None:
    await place.run(LOOSE)
    window = await place.open("/")
    assert await place.windows.close(window) == (str(place.file),)
    assert await place.windows.doubted(place.source.load()) == (str(place.file),)
    place.file.write_text(STRICT)
    await place.windows.settle()
    assert await place.windows.doubted(place.policy) == ()
    assert await place.told() == ["window_opened", "held"] * 2 + ["released"] * 2


async def test_what_a_mount_keeps_is_believed_by_who_holds_it_alone(place: Place) -> None:
    window = await place.open("/")
    place.file.write_text(LOOSE)
    changed = place.source.load()
    assert await place.windows.doubted(changed) == ()
    assert await place.another().doubted(changed) == (str(place.file),)
    assert await place.windows.close(window) == ()
    assert await place.another().doubted(changed) == ()


async def test_a_new_file_where_a_mount_kept_the_old_one_is_held(place: Place) -> None:
    window = await place.open("/")
    place.file.unlink()
    place.file.write_text(LOOSE)
    assert await place.windows.close(window) == (str(place.file),)
    assert await place.windows.doubted(place.source.load()) == (str(place.file),)


async def test_a_policy_planted_at_another_place_is_held_until_it_is_gone(place: Place, tmp_path: Path) -> None:
    window = await place.open()
    planted = tmp_path / "own" / "shop.yaml"
    planted.write_text(LOOSE)
    found = place.source.load()
    assert revision_of(found) != found.revision == revision_of(place.policy)
    assert await place.windows.close(window) == (str(planted.parent),)
    await place.windows.accept(found, revision_of(found), by="ann")
    assert await place.windows.doubted(found) == ()


async def test_an_included_file_that_is_gone_can_be_accepted(place: Place, tmp_path: Path) -> None:
    more = tmp_path / "more.yaml"
    more.write_text("version: 1")
    place.file.write_text("{version: 1, default: deny, include: [more.yaml]}")
    place.policy = place.source.load()
    window = await place.open()
    more.unlink()
    place.file.write_text(STRICT)
    assert set(await place.windows.close(window)) == {str(place.file), str(more)}
    await place.windows.accept(place.source.load(), revision_of(place.source.load()), by="ann")
    assert (await place.windows.read()).guards() == ()


@pytest.mark.parametrize(
    ("status", "placement", "told"),
    [
        (Status.EXECUTING, Placement.WORKER, ["window_opened"]),
        (Status.EXECUTING, Placement.SANDBOX, ["window_opened"]),
        (Status.COMPLETED, Placement.SANDBOX, ["window_opened", "held"]),
        (None, None, ["window_opened", "held"]),
    ],
)
async def test_the_window_of_a_dead_run_is_closed_by_whoever_comes(
    place: Place,
    status: Status | None,
    placement: Placement | None,
    told: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def call(_project: str, _call_id: str) -> Call | None:
        if status is None or placement is None:
            return None
        return replace(CALL, status=status, placement=placement.value)

    monkeypatch.setattr(place.store, "call", call)
    await place.open()
    place.file.write_text(LOOSE)
    with pytest.raises(PolicyHeldError):
        await place.another().admit(place.source.load(), None, by="ann")
    assert await place.told() == told


async def test_a_start_names_exactly_what_it_accepts(place: Place) -> None:
    await place.windows.admit(place.policy, "whatever", by="ann")
    await place.run(LOOSE)
    found = place.source.load()
    with pytest.raises(PolicyHeldError):
        await place.windows.admit(found, revision_of(place.policy), by="ann")
    with pytest.raises(ConflictError, match="look at what changed"):
        await place.windows.accept(found, revision_of(place.policy), by="ann")
    await place.windows.admit(found, revision_of(found)[:12], by="ann")
    assert await place.told() == ["window_opened", "held", "accepted"]


def test_a_few_characters_name_no_revision() -> None:
    assert is_named("ab", "ab")
    assert is_named("0123456789abcdef", "0123456789ab")
    assert not is_named("0123456789abcdef", "0123456789a")
    assert not is_named("0123456789abcdef", "")


async def test_what_cannot_be_recorded_does_not_begin(place: Place) -> None:
    async def fail(_change: Change) -> None:
        raise StoreError("full")

    place.windows.commit = fail
    with pytest.raises(StoreError):
        await place.open("/")
    assert await place.told() == []


async def test_a_late_reader_begins_where_it_matters(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LOOK_BACK", 1)
    monkeypatch.setattr(module, "PAGE", 2)
    for _ in range(3):
        await place.run(STRICT)
    await place.run(LOOSE)
    other: Draft = ("sandbox.tested", None, {}, None)
    for _ in range(10):
        place.store.commit(Change(project=SYSTEM_PROJECT, at=NOON, events=(other,)))
    late = place.another()
    assert await late.doubted(place.source.load()) == (str(place.file),)


async def test_a_text_that_was_destroyed_is_said_to_be_lost(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    await place.run(LOOSE)

    async def nothing(*_args: object, **_more: object) -> list[object]:
        return []

    await place.windows.read()
    monkeypatch.setattr(place.store, "events", nothing)
    held = await place.windows.held(place.source.load())
    assert held is not None
    assert held.diff.startswith("The text from before is not known")


@contextmanager
def run_of(gate: toolgate.Gate) -> Iterator[None]:
    with gate.host.policy_window(CALL, ["/"], ()):
        yield


async def test_a_gate_follows_what_another_process_accepted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolgate.gate.policies.LOOK_AFTER_S", 0.0)
    file = tmp_path / "toolgate.yaml"
    file.write_text(STRICT)
    async with toolgate.open(tmp_path / "g.db", policy=tmp_path) as gate:

        def run() -> None:
            with run_of(gate):
                file.write_text(LOOSE)

        await asyncio.to_thread(run)
        held = await gate.host.held_policy()
        assert held is not None
        assert await gate.host.held_policy() == held  # nothing was said meanwhile
        async with toolgate.open(tmp_path / "g.db", policy=tmp_path, accept_policy=held.revision):
            assert await gate.host.held_policy() is None
        assert gate.policy.revision == held.revision


async def test_a_gate_without_files_has_nothing_to_accept() -> None:
    async with toolgate.open("memory://") as gate:
        assert await gate.host.held_policy() is None
        with pytest.raises(UsageError, match="set_policy"):
            await gate.host.accept_policy("0" * 12, by="ann")
        with run_of(gate):
            pass


async def test_an_edit_before_a_run_is_not_the_run_s(tmp_path: Path) -> None:
    file = tmp_path / "toolgate.yaml"
    file.write_text(STRICT)
    async with toolgate.open("memory://", policy=tmp_path) as gate:
        before = gate.policy.revision
        file.write_text(LOOSE)

        def run() -> None:
            with run_of(gate):
                assert gate.policy.revision != before

        await asyncio.to_thread(run)
        assert await gate.host.held_policy() is None


async def test_an_end_that_cannot_be_recorded_leaves_the_window_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "toolgate.yaml").write_text(STRICT)

    async def fail(*_args: object) -> None:
        raise StoreError("full")

    async with toolgate.open("memory://", policy=tmp_path) as gate:

        def run() -> None:
            with run_of(gate):
                monkeypatch.setattr(PolicyWindows, "close", fail)

        await asyncio.to_thread(run)
        assert "is not recorded: full" in caplog.text
        monkeypatch.undo()
