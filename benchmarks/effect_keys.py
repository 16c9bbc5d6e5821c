"""What an effect key adds to a call in memory: CPU time without one, with one, and where a doubt is looked for.

The calls go in turns in one process, a new payment each: a call whose effect is held would join, and cost less. `doubt`
is an irreversible tool without a key, whose calls look whether the same one ended unknown; `run` is the same in a run.
"""

import asyncio
import json
import statistics
import time
from collections.abc import Mapping
from typing import Any

import toolgate
from toolgate.kernel.tool import ToolDefinition

CALLS, ROUNDS = 500, 15
TOOLS: Mapping[str, Mapping[str, Any]] = {
    "none": {"effects": "reversible"},
    "key": {"effects": "reversible", "effect_key": "refund:{payment_id}"},
    "doubt": {"effects": "irreversible"},
    "run": {"effects": "irreversible"},
}


def refunding(options: Mapping[str, Any]) -> ToolDefinition:
    """Return a tool that would pay an amount back."""

    @toolgate.tool(risk_level="low", **options)
    async def refund(payment_id: str, amount: int, note: str) -> str:
        return f"{amount} for {payment_id}: {note}"

    return refund


async def call_us(gate: toolgate.Gate, first: int, context: toolgate.Context) -> float:
    """Return the CPU time of one of many calls."""
    began = time.process_time()
    for number in range(first, first + CALLS):
        arguments = {"payment_id": f"pay_{number:08d}", "amount": 1250, "note": "the parcel never arrived"}
        result = await gate.call("refund", arguments, context=context)
        assert result.success
        assert not result.joined
    return (time.process_time() - began) / CALLS * 1e6


async def measure() -> dict[str, float]:
    gates = {name: toolgate.open("memory://", tools=[refunding(options)]) for name, options in TOOLS.items()}
    contexts = {name: toolgate.Context(run_id="run-1" if name == "run" else None) for name in TOOLS}
    taken: dict[str, list[float]] = {name: [] for name in TOOLS}
    for round_number in range(ROUNDS):
        for name, gate in gates.items():
            taken[name].append(await call_us(gate, round_number * CALLS, contexts[name]))
    for gate in gates.values():
        await gate.aclose()
    found = {f"{name}_us": statistics.median(lines) for name, lines in taken.items()}
    return found | {f"{name}_added_us": found[f"{name}_us"] - found["none_us"] for name in TOOLS if name != "none"}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(measure())))
