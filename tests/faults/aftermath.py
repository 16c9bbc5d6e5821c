"""What comes after a death: another process opens the file, and everything that can be settled is."""

from __future__ import annotations

from tests.faults.judge import Findings, judge
from tests.faults.world import AT_MOST_ONCE, World

from toolgate import Gate, Result
from toolgate.kernel.call import Status
from toolgate.ports.store import CallQuery
from toolgate.testing.patience import until

SETTLED = {Status.COMPLETED, Status.FAILED, Status.DENIED, Status.REJECTED, Status.TIMEOUT, Status.CANCELLED}


async def aftermath(world: World, calls: dict[str, str]) -> Findings:
    """Judge, recover, let every agent ask for its calls again, let people answer and settle; judge again.

    `calls` are the ids and tools the dead were asked for, whether or not anything of them was recorded.
    """
    before = judge(world.file, world.ledger)
    async with world.open() as gate:
        await recovered(gate)
        await _answer_all(world, gate)
        asked = {**calls, **{row.id: row.tool for row in before.rows.values() if row.undo_of is None}}
        for id, tool in asked.items():
            _as_promised(world, await _ask_again(world, gate, tool, id), before)
        for row in before.rows.values():
            if row.undo_of is not None:
                await _settle(world, gate, await gate.wait(row.id), world_says=bool(before.undos[row.undo_of]))
    after = judge(world.file, world.ledger)
    left = {row.id: row.status for row in after.rows.values() if row.status not in SETTLED}
    assert not left, f"never ended: {left}"
    return after


async def recovered(gate: Gate) -> None:
    """Return when what can be found out without a person has been, by this call or by the gate's own sweeper."""
    await gate.recover()

    async def is_known() -> bool:
        unknown = await gate.calls.list(CallQuery(statuses=frozenset({Status.UNKNOWN})))
        return not any(call.tool_name == "book" for call in unknown)

    await until(is_known)


async def _answer_all(world: World, gate: Gate) -> None:
    for approval in await gate.pending():
        await world.decide(gate, approval.id, "approve", by="bob")


async def _ask_again(world: World, gate: Gate, tool: str, id: str) -> Result:
    """The agent comes back with the same call id and gets the end of its call, whoever ran it."""
    result = await world.call(gate, tool, id, wait=tool != "send")
    if result.status is Status.AWAITING_APPROVAL:
        assert result.approval_id is not None
        await world.decide(gate, result.approval_id, "approve", by="bob")
    result = await gate.wait(id)
    return await _settle(world, gate, result, world_says=bool(world.ledger.effects_of(id)))


async def _settle(world: World, gate: Gate, result: Result, *, world_says: bool) -> Result:
    """A person looks at the world and says what an unknown call did; the call says so from then on."""
    if result.status is not Status.UNKNOWN:
        return result
    assert result.error_code == "unknown"
    settled = await gate.settle(result.call_id, happened=world_says, by="cat", reason="looked at the ledger")
    world.acknowledge("result", call=result.call_id, status=settled.status, data=None)
    return result


def _as_promised(world: World, result: Result, before: Findings) -> None:
    """Unknown only where it may have run and may not be tried again; otherwise it has the end it would have had."""
    row = before.rows.get(result.call_id)
    was_running = row is not None and row.status in (Status.EXECUTING, Status.UNKNOWN)
    if result.status is Status.UNKNOWN:
        assert was_running, f"{result.call_id} was {row and row.status} and is UNKNOWN"
        assert result.tool_name in AT_MOST_ONCE
        assert result.tool_name != "book", "its reconcile handler knows"
        return
    if was_running and result.tool_name == "book":
        assert result.success == bool(world.ledger.effects_of(result.call_id))
    elif row is None or not row.status.is_final:
        assert result.success, result
