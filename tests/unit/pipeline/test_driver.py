"""Who hears of a commit: those who wait, those who count, those who listen."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.unit.kernel.samples import NOW, a_call
from tests.unit.pipeline.rig import Rig

import toolgate
from toolgate.adapters.memory.bus import MemoryBus
from toolgate.adapters.memory.store import MemoryStore
from toolgate.adapters.runners.inline import InlineRunner
from toolgate.kernel.context import PRIVATE, Context
from toolgate.kernel.payload import encode
from toolgate.kernel.registry import ToolRegistry
from toolgate.kernel.text.masking import MASK
from toolgate.kernel.undo import UndoRecord


@toolgate.tool(effects="read")
async def look() -> str:
    return "seen"


@pytest.mark.parametrize("counts", [True, False])
async def test_a_tally_hears_of_every_change_but_claims(counts: bool) -> None:
    heard: list[str] = []
    gate = toolgate.Gate(
        store=MemoryStore(),
        bus=MemoryBus(),
        runners={"inline": InlineRunner()},
        tools=[look],
        tally=(lambda change: heard.append(change.call.status)) if counts else None,  # type: ignore[union-attr]  # each has a call
    )
    await gate.call("look")
    gate._driver.listeners.append(lambda _change: None)
    await gate.call("look")
    assert heard == ["COMPLETED", "COMPLETED"] * counts
    await gate.aclose()


async def test_a_loop_that_ends_while_the_sink_is_told_leaves_a_call_that_did_not_run() -> None:
    telling, ran = asyncio.Event(), []

    class Slow:
        async def emit(self, *, type: str, data: dict[str, Any]) -> None:
            if not telling.is_set():
                telling.set()
                await asyncio.sleep(60)

    @toolgate.tool
    async def touch() -> None:
        ran.append(1)

    async with toolgate.open() as gate:
        realm = gate.host.attach("mine", ToolRegistry([touch]), sink=Slow())
        waiting = asyncio.ensure_future(gate.call("touch", context=Context(project="mine"), call_id="c"))
        await telling.wait()
        for task in asyncio.all_tasks() - {asyncio.current_task(), waiting}:  # as the end of `asyncio.run` does
            task.cancel()
        assert (await waiting).status == "CANCELLED"
        assert (ran, realm.relay is not None) == ([], True)


def test_what_nobody_here_can_run_is_seldom_offered() -> None:
    gate = toolgate.open(tools=[look])
    driver = gate._driver
    assert driver.grace_s("default") < driver.grace_s(f"{PRIVATE}gone")
    gate.close()


KEYED = "sw0rdfish-by-key-only"


def undo(**data: Any) -> UndoRecord:
    return UndoRecord(project="p", call_id="c1", tool_name="edit", data=encode(data), created_at=NOW, expires_at=NOW)


def test_words_are_masked_plainly_where_neither_arguments_nor_undo_data_hide_anything() -> None:
    driver = Rig().driver
    large = undo(path="notes.txt", before="x" * 1_000_000)
    assert driver.masker_of(a_call()) is driver.masker
    assert driver.masker_of(a_call(), undo()) is driver.masker
    assert driver.masker_of(a_call(), large, room=40) is driver.masker


@pytest.mark.parametrize("room", [None, 40, 2_000_000])
def test_what_undo_data_hides_is_hidden_in_words_however_much_stands_beside_it(room: int | None) -> None:
    kept = undo(before="x" * 1_000_000, password=KEYED)
    assert Rig().driver.masker_of(a_call(), kept, room=room).text(f"cannot sign in with {KEYED}") == (
        f"cannot sign in with {MASK}"
    )


def test_what_arguments_hide_is_hidden_in_words_that_are_as_long() -> None:
    secret = "".join(f"{number:x}-" for number in range(2000))
    call = a_call(arguments=encode({"password": secret}), shown={"password": MASK}, hides=True)
    text = f"wrong: {secret}"
    assert Rig().driver.masker_of(call, room=len(text)).text(text) == f"wrong: {MASK}"
