"""What every store must do about how far sinks were told."""

from __future__ import annotations

from toolgate.kernel.change import Change
from toolgate.ports.sink import Cursor
from toolgate.ports.store import Store
from toolgate.testing.clock import NOON
from toolgate.testing.conformance.rows import PROJECT, a_fact, commit


async def _happen(store: Store, count: int, project: str = PROJECT) -> None:
    await commit(store, Change(project=project, at=NOON, events=tuple(a_fact() for _ in range(count))))


class CursorLaws:
    """Inherited by StoreConformance."""

    async def test_a_sink_that_is_new_begins_after_what_was(self, store: Store) -> None:
        assert await store.open_cursor(PROJECT, "early") == Cursor(0, 0, is_ours=True)
        await _happen(store, 3)
        assert await store.open_cursor(PROJECT, "late") == Cursor(3, 3, is_ours=True)
        assert await store.open_cursor(PROJECT, None) == Cursor(3, 3, is_ours=True)

    async def test_a_sink_goes_on_where_it_was_and_never_back(self, store: Store) -> None:
        await store.open_cursor(PROJECT, "audit")
        await _happen(store, 5)
        assert await store.move_cursor(PROJECT, "audit", 4)
        assert await store.move_cursor(PROJECT, "audit", 2)
        await store.close_cursor(PROJECT, "audit")
        assert await store.open_cursor(PROJECT, "audit") == Cursor(4, 5, is_ours=True)

    async def test_each_project_and_each_name_has_a_place_of_its_own(self, store: Store) -> None:
        for project, sink in ((PROJECT, "a"), (PROJECT, "b"), ("other", "a")):
            await store.open_cursor(project, sink)
        await _happen(store, 2)
        await store.move_cursor(PROJECT, "a", 2)
        assert (await store.open_cursor(PROJECT, "b")).seq == 0
        assert await store.open_cursor("other", "a") == Cursor(0, 0, is_ours=True)

    async def test_a_sink_without_a_name_is_kept_nowhere(self, store: Store) -> None:
        await store.open_cursor(PROJECT, None)
        await _happen(store, 2)
        await store.close_cursor(PROJECT, None)
        assert await store.open_cursor(PROJECT, None) == Cursor(2, 2, is_ours=True)
