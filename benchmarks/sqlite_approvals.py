"""Approval workflows per second: request, decide, execute and record through the gate, by 256 tasks.

The bare loop commits the four state changes of such a workflow to the same kind of store, by as many tasks: no
policy, no waiting for a person, no reading, no handler. Prints one JSON line.
"""

import argparse
import asyncio
import json
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import uuid_utils
from benchmarks.sqlite_recording import opened

import toolgate
from toolgate.adapters.sqlite.store import SqliteStore
from toolgate.kernel.call import Call
from toolgate.kernel.change import Change, Durability
from toolgate.kernel.context import DEFAULT_CONTEXT
from toolgate.kernel.marks import Marks
from toolgate.kernel.text.masking import Masker
from toolgate.kernel.tool import ToolDefinition
from toolgate.pipeline import steps

TASKS = 256
ARG = {"order": "A-1", "amount": 12}
_mask = Masker()
_MARKS = Marks.fresh()


@toolgate.tool(effects="read", requires_approval=True)
async def refund(order: str, amount: int) -> dict[str, Any]:
    """Return a refund's receipt."""
    return {"order": order, "amount": amount}


async def through_the_gate(path: Path, flows: int) -> float:
    """Return workflows per second: each task asks, waits for the end, and somebody approves meanwhile."""
    gate = toolgate.open(f"sqlite:///{path}", tools=[refund])

    async def work() -> None:
        for _ in range(flows):
            asked = await gate.call("refund", ARG, wait=False)
            assert asked.approval_id is not None
            waiting = asyncio.create_task(gate.wait(asked.call_id))
            await gate.decide(asked.approval_id, "approve", by="alice")
            (await waiting).unwrap()

    started = time.perf_counter()
    await asyncio.gather(*(work() for _ in range(TASKS)))
    seconds = time.perf_counter() - started
    await gate.aclose()
    return TASKS * flows / seconds


def four_changes(tool: ToolDefinition, *, timeout_s: float = 300.0) -> Iterator[Change]:
    """Yield the state changes of one workflow, made by the functions the pipeline uses."""
    now = datetime.now(UTC)
    call = Call(
        id=str(uuid_utils.uuid7()),
        project="default",
        tool_name=tool.name,
        context=DEFAULT_CONTEXT,
        created_at=now,
        arguments=b'{"amount":12,"order":"A-1"}',
        shown=_mask(ARG),
        definition_hash=tool.hash,
        has_effects=False,
    )
    id, nonce = str(uuid_utils.uuid7()), str(uuid_utils.uuid7())
    asked = steps.ask(call, tool, now=now, timeout=timeout_s, mode=0, marks=_MARKS, id=id, nonce=nonce)
    yield asked
    assert asked.call is not None
    approved = steps.decide(
        asked.call, asked.approvals[0], approve=True, by="alice", reason=None, now=datetime.now(UTC), marks=_MARKS
    )
    yield approved
    assert approved.call is not None
    claimed = steps.claim(approved.call, now=datetime.now(UTC), owner="bench", mode=0, durability=Durability.COMMITTED)
    yield claimed
    assert claimed.call is not None
    shown = _mask(ARG)
    yield steps.complete(
        claimed.call,
        now=datetime.now(UTC),
        duration_ms=0.1,
        result=b'{"order":"A-1","amount":12}',
        shown=shown,
        summary=shown,
    )


async def bare(store: SqliteStore, flows: int) -> float:
    """Return workflows per second of the four changes alone."""

    async def work() -> None:
        for _ in range(flows):
            for change in four_changes(refund):
                writing = store.commit(change)
                if writing is not None:
                    await writing

    started = time.perf_counter()
    await asyncio.gather(*(work() for _ in range(TASKS)))
    return TASKS * flows / (time.perf_counter() - started)


async def measure(flows: int, turns: int) -> dict[str, float]:
    """Alternate both, each on a new file, and return the workflows per second of each."""
    gate_s, bare_s = 0.0, 0.0
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for turn in range(turns):
            gate_s += 1 / await through_the_gate(folder / f"gate{turn}.db", flows)
            async with opened(folder, f"bare{turn}") as store:
                bare_s += 1 / await bare(store, flows)
    return {"ours_per_s": turns / gate_s, "bare_per_s": turns / bare_s}


def main() -> None:
    """Read the arguments, measure and print the line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--flows", type=int, default=8, help="workflows of each task")
    parser.add_argument("--turns", type=int, default=2)
    options = parser.parse_args()
    print(json.dumps(asyncio.run(measure(options.flows, options.turns))))


if __name__ == "__main__":
    main()
