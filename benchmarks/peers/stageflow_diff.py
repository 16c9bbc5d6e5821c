"""stageflow's side of the diff section: `python -m benchmarks.peers.stageflow_diff <case>`. Prints one JSON line."""

# mypy: disable-error-code="import-not-found"

from benchmarks.diff_cases import run
from stageflow.tools import diff_json, diff_text

if __name__ == "__main__":
    run(diff_text, diff_json)
