"""Comparing the stored modes with the events that set them: everybody's, and those of projects, agents and runs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

from toolgate.adapters.sealing import Sealer
from toolgate.adapters.sql import brakes
from toolgate.adapters.sql.people import Fetch
from toolgate.adapters.sql.rows import EVENT_COLUMNS, event_of
from toolgate.kernel.brake import EVERYBODY, Brake, Scope
from toolgate.kernel.comparing import NO_MARK, Difference
from toolgate.kernel.context import SYSTEM_PROJECT, Mode

PAGE = 500
_ROW = "SELECT value FROM settings WHERE name='mode'"
_BASE = "SELECT base_seq FROM chain_heads WHERE project_id=?"
_CHANGES = (
    f"SELECT {', '.join(EVENT_COLUMNS)} FROM events WHERE project_id=? AND seq>? AND type='mode.changed' "
    "ORDER BY seq LIMIT ?"
)


async def compare_modes(fetch: Fetch, sealer: Sealer | None) -> AsyncIterator[Difference]:
    """Every mode that is stored otherwise than it was last set, or without the mark of this gate."""
    told: dict[Scope, dict[str, Any]] = {}
    last = 0
    while page := await fetch(_CHANGES, SYSTEM_PROJECT, last, PAGE):
        for event in map(event_of, page):
            last, said = event.seq, event.data
            told[Scope(**said.get("scope", {}))] = said
    rows, base = await fetch(_ROW), await fetch(_BASE, SYSTEM_PROJECT)
    text = rows[0][0] if rows else None
    is_cut = bool(base and base[0][0])
    if text is None:
        for what in ("its row is missing",) if told else ():
            yield Difference(SYSTEM_PROJECT, "mode", str(EVERYBODY), what)
        return
    stored = brakes.read(text)
    if stored is None:
        yield Difference(SYSTEM_PROJECT, "mode", str(EVERYBODY), "its row cannot be read")
        return
    if sealer is not None and not brakes.is_marked(text, sealer.marks):
        yield Difference(SYSTEM_PROJECT, "mode", str(EVERYBODY), NO_MARK)
    if stored.serial != last and not (is_cut and not told):
        what = f"it is of event {stored.serial}, its events say that event {last} set it last"
        yield Difference(SYSTEM_PROJECT, "mode", str(EVERYBODY), what)
    for scope in sorted({EVERYBODY, *stored.scoped, *told}, key=str):
        for what in _differences(stored.at(scope), told.get(scope), is_cut=is_cut):
            yield Difference(SYSTEM_PROJECT, "mode", str(scope), what)


def _differences(brake: Brake, told: dict[str, Any] | None, *, is_cut: bool) -> Iterator[str]:
    if told is None:
        if brake.mode is not Mode.NORMAL and not is_cut:
            yield f"it is {brake.mode}, and no event tells that it was set"
        return
    if brake.mode.value != told["to"]:
        yield f"it is {brake.mode}, its events say {told['to']}"
    elif brake.mode is not Mode.NORMAL and brake.by != told["by"]:
        yield f"by is {brake.by[:100]}, its events say {told['by']}"
    if brake.mode.value == told["to"] and [*brake.holds] != told.get("holds", []):
        yield f"holds is {', '.join(brake.holds)[:100] or 'nobody'}, its events say others"
