"""Toolgate's side of the policy section: decisions, governed calls, path checks and replays, taking turns."""

import argparse
import asyncio
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import orjson
from benchmarks.policy_workload import ARGUMENTS, CHOSEN, PATH_TOOL, TOOLS, policy_text

import toolgate
from toolgate.guards.beneath import open_beneath
from toolgate.kernel.call import Call
from toolgate.kernel.context import Context, Mode
from toolgate.kernel.policy import Word
from toolgate.kernel.ruling import look, rule_on, rules_over
from toolgate.policy.compile import FilePolicy
from toolgate.policy.loader import read_policy
from toolgate.policy.simulate import Simulation, Timeline

AGENT = Context(roles=frozenset({"agent"}))
ROUNDS = 9


def decider(policy: FilePolicy, name: str, arguments: dict[str, Any]) -> Callable[[], bool]:
    """Return one whole decision about a call: looking, judging and assessing."""
    schema: dict[str, Any] = {"properties": {"path": {}, "amount": {}, "note": {}}}
    tool = toolgate.ToolDefinition(name=name, handler=handler, input_schema=schema)
    stance = policy.stance(tool)
    rules, now = rules_over(tool, stance), datetime.now(UTC)
    call = Call(id="c", project="default", tool_name=name, context=AGENT, created_at=now)

    def decide() -> bool:
        facts = look(call, tool, stance, arguments, mode=Mode.NORMAL, now=now)
        return rule_on(call, tool, stance, rules, facts).word is Word.ALLOW

    assert decide()
    return decide


def time_us(work: Callable[[], Any], count: int) -> float:
    began = time.perf_counter()
    for _ in range(count):
        work()
    return (time.perf_counter() - began) / count * 1e6


async def call_us(gate: toolgate.Gate, name: str, arguments: bytes, count: int) -> float:
    began = time.perf_counter()
    for _ in range(count):
        await gate.call(name, arguments, context=AGENT)
    return (time.perf_counter() - began) / count * 1e6


def recorded(count: int) -> list[Call]:
    """Return calls as a store gives them back."""
    now = datetime.now(UTC)
    return [
        Call(
            id=f"c{number}",
            project="default",
            tool_name=f"tool_{number % TOOLS}",
            context=AGENT,
            created_at=now,
            arguments=orjson.dumps({"amount": number % 105, "note": f"lunch {number}"}),
            shown={},
        )
        for number in range(count)
    ]


def bare_us(policy: FilePolicy, calls: list[Call]) -> float:
    """What deciding about the same calls takes by itself: nothing is read, parsed, compared or counted."""
    known: dict[str, Any] = {}
    for name in {call.tool_name for call in calls}:
        tool = toolgate.ToolDefinition(name=name, handler=handler)
        stance = policy.stance(tool)
        known[name] = (tool, stance, rules_over(tool, stance))
    ready = [(call, *known[call.tool_name], orjson.loads(call.arguments)) for call in calls]
    began = time.perf_counter()
    for call, tool, stance, rules, arguments in ready:
        facts = look(call, tool, stance, arguments, mode=Mode.NORMAL, now=call.created_at)
        rule_on(call, tool, stance, rules, facts)
    return (time.perf_counter() - began) / len(calls) * 1e6


def simulate_us(policy: FilePolicy, calls: list[Call]) -> float:
    simulation = Simulation(policy, Timeline(()))
    began = time.perf_counter()
    simulation.replay(calls)
    taken = time.perf_counter() - began
    assert simulation.calls == len(calls)
    return taken / len(calls) * 1e6


async def measure(count: int) -> dict[str, float]:
    """Return the medians of rounds in which everything takes its turn."""
    with tempfile.TemporaryDirectory() as folder:
        large = read_policy(policy_text(), workspace=folder)
        small = read_policy(policy_text(tools=140), workspace=folder)
        huge = read_policy(policy_text(tools=TOOLS * 10), workspace=folder)
        os.close(os.open(os.path.join(folder, "file.txt"), os.O_CREAT | os.O_WRONLY))
        root = os.open(folder, os.O_PATH | os.O_DIRECTORY)

        def open_once() -> None:
            os.close(open_beneath(root, b"file.txt", os.O_PATH))

        named = toolgate.tool(name=CHOSEN, effects="read")(pay)
        writer = toolgate.tool(name=PATH_TOOL, effects="read")(write)
        plain = toolgate.open("memory://", tools=[named, writer])
        governed = toolgate.open("memory://", tools=[named, writer], policy=large)
        works: dict[str, Callable[[], Any]] = {
            "decide_us": decider(large, CHOSEN, ARGUMENTS),
            "decide_small_us": decider(small, CHOSEN, ARGUMENTS),
            "decide_huge_us": decider(huge, CHOSEN, ARGUMENTS),
            "decide_path_us": decider(large, PATH_TOOL, {"path": "file.txt"}),
            "decide_no_path_us": decider(large, PATH_TOOL, {"path": []}),
            "openat2_us": open_once,
        }
        calls = recorded(count * 20)
        lines: dict[str, list[float]] = {}
        for _ in range(ROUNDS):
            for name, work in works.items():
                lines.setdefault(name, []).append(time_us(work, count))
            lines.setdefault("plain_call_us", []).append(await call_us(plain, CHOSEN, b'{"amount":50}', count))
            lines.setdefault("policy_call_us", []).append(await call_us(governed, CHOSEN, b'{"amount":50}', count))
            lines.setdefault("path_call_us", []).append(
                await call_us(governed, PATH_TOOL, b'{"path":"file.txt"}', count)
            )
            lines.setdefault("plain_path_call_us", []).append(
                await call_us(plain, PATH_TOOL, b'{"path":"file.txt"}', count)
            )
            lines.setdefault("bare_us", []).append(bare_us(large, calls))
            lines.setdefault("simulate_us", []).append(simulate_us(large, calls))
        await plain.aclose()
        await governed.aclose()
        os.close(root)
    return {name: statistics.median(values) for name, values in lines.items()}


async def pay(amount: int) -> None:
    """Do nothing."""


async def write(path: str) -> None:
    """Do nothing with a path."""


async def handler(_given: toolgate.ToolInput) -> toolgate.ToolOutput:
    return toolgate.ToolOutput.ok(None)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    found = asyncio.run(measure(parser.parse_args().count))
    found["per_s"] = 1e6 / found["decide_us"]
    found["simulate_per_s"] = 1e6 / found["simulate_us"]
    found["bare_per_s"] = 1e6 / found["bare_us"]
    found["added_us"] = found["policy_call_us"] - found["plain_call_us"]
    found["path_added_us"] = found["path_call_us"] - found["plain_path_call_us"]
    found["path_allowance_us"] = found["plain_path_call_us"] + 3 * found["openat2_us"]
    print(json.dumps(found))
