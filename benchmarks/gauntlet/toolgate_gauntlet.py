"""Toolgate in every scenario, through its public names."""

# ruff: noqa: ASYNC220, ASYNC221

import asyncio
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.gauntlet.sheet import Cell, fill_in, judge

import toolgate
from toolgate.errors import DecisionConflictError, NotAllowedError
from toolgate.hitl import get_hitl_gate, hitl_tool, set_hitl_gate
from toolgate.kernel.policy import Policy
from toolgate.kernel.record import evolve
from toolgate.kernel.terms import ApprovalTerms

RAN: list[Any] = []


async def pay(to: str, amount: int) -> str:
    """Pay somebody."""
    RAN.append((to, amount))
    return "paid"


ASKING = toolgate.tool(requires_approval=True)(pay)
FREE = toolgate.tool()(pay)
CALL = {"to": "bob", "amount": 10}
AGENT = toolgate.Context(principal="agent:a", user="ann")


def opened(*tools: toolgate.ToolDefinition, **options: Any) -> toolgate.Gate:
    RAN.clear()
    return toolgate.open("memory://", tools=tools or (ASKING,), **options)


async def asked(gate: toolgate.Gate, **options: Any) -> Any:
    result = await gate.call("pay", CALL, context=AGENT, wait=False, **options)
    return await gate.approvals.get(str(result.approval_id))


async def refused(attempt: Any) -> bool:
    try:
        await attempt
    except (DecisionConflictError, NotAllowedError):
        return True
    return False


async def reject_while_relaxed() -> Cell:
    async with opened() as gate:
        approval = await asked(gate)
        gate.register(FREE)
        await gate.set_policy(Policy(revision="relaxed"), by="admin")
        await gate.decide(approval.id, "deny", by="bob")
        result = await gate.wait(approval.call_id)
        return judge(not RAN and result.status == "REJECTED", "it ended REJECTED and nothing ran", f"it ran: {RAN}")


async def resume_twice() -> Cell:
    async with opened() as gate:
        approval = await asked(gate)
        await gate.decide(approval.id, "approve", by="bob")
        await asyncio.gather(*(gate.wait(approval.call_id) for _ in range(20)))
        await gate.wait(approval.call_id)
        return judge(len(RAN) == 1, "20 waiters at once and one later: it ran once", f"it ran {len(RAN)} times")


async def changed_arguments() -> Cell:
    async with opened() as gate:
        given = dict(CALL)
        result = await gate.call("pay", given, context=AGENT, wait=False)
        given["amount"] = 10_000  # the caller's own object
        (await gate.approvals.get(str(result.approval_id))).arguments["amount"] = 10_000  # what an approver was shown
        store = gate._driver.store  # and the row itself, behind the gate's back
        key = (AGENT.project, result.call_id)
        call = store._calls[key]  # type: ignore[attr-defined]  # the memory store's own table
        store._calls[key] = evolve(call, arguments=b'{"amount":10000,"to":"eve"}')  # type: ignore[attr-defined]
        await gate.decide(str(result.approval_id), "approve", by="bob")
        end = await gate.wait(result.call_id)
        said = f"the row was altered behind its back: {end.status}, nothing ran"
        return judge(not RAN and end.status == "DENIED", said, f"it ran: {RAN}")


async def expired() -> Cell:
    async with opened() as gate:
        approval = await asked(gate, approval_timeout_s=0.05)
        result = await gate.wait(approval.call_id)
        late = await refused(gate.decide(approval.id, "approve", by="bob"))
        is_kept = late and not RAN and result.status == "TIMEOUT"
        return judge(is_kept, "the late yes was refused; the call ended TIMEOUT", f"it ran: {RAN}")


async def hidden_positional() -> Cell:
    RAN.clear()
    gate = toolgate.open("memory://")
    set_hitl_gate(gate)
    tool = hitl_tool(auto_threshold=100)(pay)
    marker = await tool("bob", 5000)
    shown = (await get_hitl_gate().approvals.get(marker["hitl_result"]["approval_id"])).arguments
    await gate.aclose()
    return judge(shown == {"to": "bob", "amount": 5000}, f"shown by name: {shown}", f"shown: {shown}")


async def quorum() -> Cell:
    async with opened(policy=Policy(terms=ApprovalTerms(quorum=2), revision="two")) as gate:
        first = await asked(gate)
        await gate.decide(first.id, "approve", by="bob")
        twice = await refused(gate.decide(first.id, "approve", by="bob"))
        one_is_too_few = not RAN
        await gate.decide(first.id, "deny", by="cid")
        after = await refused(gate.decide(first.id, "approve", by="dia"))
        second = await asked(gate)
        await gate.decide(second.id, "approve", by="bob")
        await gate.decide(second.id, "approve", by="cid")
        await gate.wait(second.call_id)
        is_kept = twice and one_is_too_few and after and len(RAN) == 1
        return judge(is_kept, "one vote each; two approved and it ran; a denial was final", f"it ran {len(RAN)} times")


async def undo() -> Cell:
    world = {"balance": 100}

    async def take(given: toolgate.ToolInput) -> toolgate.ToolOutput:
        before = world["balance"]
        world["balance"] -= given.payload["amount"]
        return toolgate.ToolOutput.ok(undo_metadata={"before": before})

    async def back(data: Any) -> None:
        world["balance"] = data.undo_data["before"]

    tool = toolgate.ToolDefinition("take", {}, take, undoable=True, undo_handler=back)
    async with opened(tool) as gate:
        done = await gate.call("take", {"amount": 30})
        undone = await gate.undo(done.call_id)
        return judge(undone.success and world["balance"] == 100, "the effect was taken back", f"balance {world}")


async def changed_definition() -> Cell:
    async with opened() as gate:
        approval = await asked(gate)
        gate.register(toolgate.tool(requires_approval=True, description="Pays twice the amount.")(pay))
        await gate.decide(approval.id, "approve", by="bob", digest=approval.digest)
        for _ in range(200):
            if await gate.pending():
                break
            await asyncio.sleep(0.01)
        again = await gate.pending()
        is_kept = not RAN and len(again) == 1 and again[0].id != approval.id
        return judge(is_kept, "the old yes ran nothing; a new approval asks about the new tool", f"it ran: {RAN}")


async def double_click() -> Cell:
    async with opened() as gate:
        approval = await asked(gate)
        clicks = [gate.decide(approval.id, "approve" if n % 2 else "deny", by=f"p{n}") for n in range(100)]
        done = await asyncio.gather(*clicks, return_exceptions=True)
        wins = sum(not isinstance(one, BaseException) for one in done)
        await gate.wait(approval.call_id)
        is_kept = wins == 1 and len(RAN) <= 1
        return judge(is_kept, "of 100 clicks at once one counted, 99 were refused", f"{wins} counted, ran {len(RAN)}")


CHILD = """
import asyncio, os, sys, toolgate

@toolgate.tool(requires_approval=True)
async def pay(to: str, amount: int) -> str:
    with open(sys.argv[2], "a") as file:
        file.write("paid\\n")
    if sys.argv[3] == "die":
        os._exit(9)
    return "paid"

async def main():
    async with toolgate.open("sqlite:///" + sys.argv[1], tools=[pay]) as gate:
        if sys.argv[3] == "die":
            asked = await gate.call("pay", {"to": "bob", "amount": 1}, wait=False, call_id="c1")
            print(asked.approval_id, flush=True)
            await gate.wait("c1")
        else:
            await gate.recover()
            print((await gate.wait("c1")).status, flush=True)

asyncio.run(main())
"""


async def crash() -> Cell:
    with tempfile.TemporaryDirectory() as folder:
        database, effects = f"{folder}/gate.db", Path(folder) / "effects"
        command = [sys.executable, "-c", CHILD, database, str(effects)]
        with subprocess.Popen([*command, "die"], stdout=subprocess.PIPE, text=True) as dying:
            assert dying.stdout is not None
            approval_id = dying.stdout.readline().strip()
            async with toolgate.open(f"sqlite:///{database}") as gate:  # another process decides
                await gate.decide(approval_id, "approve", by="bob")
            await asyncio.to_thread(dying.wait)
        again = [subprocess.run([*command, "resume"], capture_output=True, text=True, check=True) for _ in range(2)]
        count, status = effects.read_text().count("paid"), again[-1].stdout.strip()
        said = f"one effect, then {status} until a person settles it"
        return judge(count == 1 and status == "UNKNOWN", said, f"{count} effects, {status}")


async def own_approval() -> Cell:
    policy = Policy(terms=ApprovalTerms(separation=True), revision="separation")
    async with opened(policy=policy) as gate:
        approval = await asked(gate)
        second_login = toolgate.Principal(name="ann", roles=frozenset({"admin"}))
        as_uuid = str(toolgate.Principal.of("ann").id)
        tries = [
            await refused(gate.decide(approval.id, "approve", by=who)) for who in (second_login, as_uuid, "agent:a")
        ]
        return judge(all(tries) and not RAN, "refused for the same person under any login", f"it ran: {RAN}")


def run(scenario: Any) -> Any:
    return lambda: asyncio.run(scenario())


if __name__ == "__main__":
    mine = globals()
    from benchmarks.gauntlet.sheet import SCENARIOS

    fill_in("toolgate", {name: run(mine[name]) for name in SCENARIOS})
