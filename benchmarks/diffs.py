"""The diff section: texts and documents of 1 MB, by Toolgate and by stageflow, one fresh process for each."""

from collections.abc import Callable
from typing import Any

from benchmarks.contenders import MeasurementFailedError, measure, own_python
from benchmarks.diff_cases import CASES
from benchmarks.environments import ENVIRONMENTS, EnvironmentFailedError, ensure

Say = Callable[[str], None]


def measure_diffs(rounds: int, *, say: Say) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """Return the lines of both contenders by case; what fails is named and left out."""
    pythons = {"toolgate": (own_python(), "benchmarks.toolgate_diff")}
    try:
        pythons["stageflow"] = (ensure(ENVIRONMENTS["stageflow"], say=say), "benchmarks.peers.stageflow_diff")
    except EnvironmentFailedError as error:
        say(f"diff: stageflow is left out, its environment could not be built: {error}")
    lines: dict[str, dict[str, list[dict[str, Any]]]] = {case: {} for case in CASES}
    for number in range(1, rounds + 1):
        for case in CASES:
            for name, (python, module) in pythons.items():
                try:
                    line = measure(python, "-m", module, case, is_own=name == "toolgate")
                except MeasurementFailedError as error:
                    say(f"diff {case} by {name}: failed: {error}")
                    continue
                lines[case].setdefault(name, []).append(line)
                say(f"diff {number}/{rounds} {case} by {name}: {line['ms']:.0f} ms")
    return lines
