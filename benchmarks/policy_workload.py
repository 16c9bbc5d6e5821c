"""The policy everybody is measured with: 200 tools, each allowed for a role, asking above an amount, 50 grammars.

The question is the same for all: may an agent pay 50 with `tool_137`? It may.
"""

from typing import Any

TOOLS = 200
COMMANDS = 50
CHOSEN = "tool_137"
ARGUMENTS: dict[str, Any] = {"amount": 50, "note": "lunch"}
PATH_TOOL = "writer"


def policy_text(tools: int = TOOLS) -> str:
    """Return the policy as Toolgate reads it."""
    lines = ["default: deny", "tools:"]
    for number in range(tools):
        lines += [
            f"  tool_{number}:",
            "    allowed_in_modes: [NORMAL]",
            "    roles: {allowed: [agent]}",
            "    arguments: [{field: amount, above: 100, then: ask}]",
        ]
    lines += [
        f"  {PATH_TOOL}:",
        "    decision: allow",
        "    roles: {allowed: [agent]}",
        "    allowed_paths: ['${WORKSPACE}/**']",
        "    forbidden_paths: ['${WORKSPACE}/secret/**']",
        "commands:",
    ]
    for number in range(COMMANDS):
        lines += [
            f"  command_{number}:",
            "    flags: {-v: , --level: int, --output: {value: {type: path, access: write}, decision: ask}}",
            "    subcommands: {list: {positionals: [{name: file, value: path, at_most: any}]}, push: {decision: deny}}",
        ]
    return "\n".join(lines) + "\n"


def decisions_per_second(decide: Any, *, seconds: float = 0.5) -> float:
    """Return how often `decide()` runs in a second; it must answer True."""
    import time

    assert decide() is True
    done, began = 0, time.perf_counter()
    while (taken := time.perf_counter() - began) < seconds:
        for _ in range(50):
            decide()
        done += 50
    return done / taken
