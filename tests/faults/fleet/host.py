"""A server of the fleet without the wire: makes calls, decides what is asked, and says what it was promised.

`python -m tests.faults.fleet.host URL POLICY NAME PROJECT`. A line is written only after the gate answered, so whatever
stands in the file must stand in the database, whoever was killed meanwhile.
"""

from __future__ import annotations

import asyncio
import random
import sys

from tests.faults.fleet.tools import TOOLS, note

import toolgate
from toolgate.errors import ToolgateError
from toolgate.gate import Gate
from toolgate.kernel.approval import ApprovalStatus
from toolgate.ports.store import ApprovalQuery


async def ask(gate: Gate, name: str, project: str, dice: random.Random) -> None:
    """Make calls for ever, a few at a time."""
    number = 0
    while True:
        number += 1
        tool = dice.choice(["send", "send", "pay", "look", "here"])
        call_id = f"{name}-{number}"
        before, after = dice.choice([0, 0, 0.02]), dice.choice([0, 0, 0.05])
        try:
            context = toolgate.Context(project=project, principal=f"agent:{name}")
            await gate.call(
                tool, {"before_s": before, "after_s": after}, context=context, call_id=call_id, wait=dice.random() < 0.3
            )
            note("accepted", f"{call_id} {tool}")
        except ToolgateError:
            await asyncio.sleep(0.1)  # the store is away: the call may be there or not
        await asyncio.sleep(dice.random() * 0.05)


async def decide(gate: Gate, project: str, dice: random.Random) -> None:
    """Answer questions of every server for ever."""
    while True:
        try:
            query = ApprovalQuery(project=project, status=ApprovalStatus.PENDING, limit=20)
            for approval in await gate.approvals.list(query):
                word = dice.choice(["approve", "approve", "deny"])
                await gate.decide(approval.id, word, by="ann", project=project, reason="fleet")
                note("decided", f"{approval.id} {word}")
        except ToolgateError:
            await asyncio.sleep(0.05)
        await asyncio.sleep(0.05)


async def main(url: str, policy: str, name: str, project: str) -> None:
    dice = random.Random(name)
    async with toolgate.open(url, tools=TOOLS, policy=policy) as gate:
        await asyncio.gather(
            *(ask(gate, f"{name}.{lane}", project, dice) for lane in range(3)), decide(gate, project, dice)
        )


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
