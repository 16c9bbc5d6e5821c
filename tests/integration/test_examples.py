"""The examples run as programs, and say what they did."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_agent_that_edits_is_refused_approved_and_undone() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "examples" / "agent_edits.py"], capture_output=True, text=True, timeout=50, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    told = [line.split()[0] for line in done.stdout.splitlines() if line.startswith("  tool.") or "approval." in line]
    assert told == [
        "tool.invoked",
        "tool.denied",
        "tool.invoked",
        "approval.requested",
        "approval.decided",
        "tool.started",
        "tool.completed",
        "tool.undone",
    ]
    assert done.stdout.rstrip().endswith("the plan is now: draft")
