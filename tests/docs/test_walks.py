"""The walks on the architecture page are the ones a call takes."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.docs.pages import quoted, rows, sections
from tests.walks import walking

import toolgate
from toolgate.kernel.policy import Policy

PAGE = "docs/explanation/architecture.md"


@toolgate.tool(effects="read")
async def add(left: int, right: int) -> int:
    return left + right


@toolgate.tool(effects="irreversible")
async def pay(cents: int) -> int:
    return cents


async def test_a_call_in_memory_goes_through_these_files() -> None:
    async with toolgate.open("memory://", tools=[add]) as gate:
        for _ in range(3):  # keys and plans are known then
            await gate.call("add", {"left": 1, "right": 2})
        with walking() as walk:
            await gate.call("add", '{"left": 1, "right": 2}')
    told = [quoted(row[0])[0] for row in rows(sections(PAGE, 3)["A call in memory that needs nobody"])]
    assert list(walk.files) == told


async def test_a_call_that_another_process_decides_goes_through_these(tmp_path: Path, empty_database: Path) -> None:
    shutil.copy(empty_database, tmp_path / "a.db")
    shutil.copy(f"{empty_database}.key", tmp_path / "a.db.key")
    url = f"sqlite:///{tmp_path}/a.db"
    async with toolgate.open(url, tools=[pay]) as holder, toolgate.open(url, policy=Policy()) as other:
        await _workflow(holder, other)  # plans and keys are known then
        with walking() as walk:  # whoever holds the tool may notice the answer at any time: all three together
            await _workflow(holder, other)
    table = rows(sections(PAGE, 3)["A call on SQLite that another process decides"])
    told = {name for row in table for name in quoted(row[1])}
    assert {name for name in walk.files if name.startswith(("gate/", "pipeline/"))} == told


async def _workflow(holder: toolgate.Gate, other: toolgate.Gate) -> None:
    asked = await holder.call("pay", '{"cents": 1}', wait=False)
    await other.decide(str(asked.approval_id), "approve", by="ann")
    assert (await holder.wait(asked.call_id)).success
