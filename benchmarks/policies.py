"""The policy section: decisions, governed calls and replays under a policy of 200 tools, beside Cedar and Casbin.

The peers run in environments of their own; everything of Toolgate's takes turns inside one process.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.contenders import MeasurementFailedError, measure, own_python
from benchmarks.environments import ENVIRONMENTS, EnvironmentFailedError, ensure

Say = Callable[[str], None]
PEERS = ("cedarpy", "pycasbin")


def measure_policies(rounds: int, *, say: Say) -> dict[str, list[dict[str, Any]]]:
    """Return the lines of each contender by name, a round after the other; what fails is named and left out."""
    pythons: dict[str, Path] = {"toolgate": own_python()}
    for name in PEERS:
        try:
            pythons[name] = ensure(ENVIRONMENTS[name], say=say)
        except EnvironmentFailedError as error:
            say(f"{name}: left out, its environment could not be built: {error}")
    lines: dict[str, list[dict[str, Any]]] = {}
    for number in range(1, rounds + 1):
        for name, python in pythons.items():
            module = "benchmarks.policy_calls" if name == "toolgate" else f"benchmarks.peers.{name}_policy"
            try:
                line = measure(python, "-m", module, is_own=name == "toolgate")
            except MeasurementFailedError as error:
                say(f"policy {name}: failed: {error}")
                continue
            lines.setdefault(name, []).append(line)
        say(f"policy {number}/{rounds}")
    return lines
