"""The examples run as programs, and say what they did."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from toolgate.testing.patience import PATIENCE_S

ROOT = Path(__file__).resolve().parents[2]


def test_the_agent_that_edits_is_refused_approved_and_undone() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "examples" / "agent_edits.py"],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
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


def printed_by(example: str) -> str:
    done = subprocess.run(
        [sys.executable, ROOT / "examples" / example], capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_the_agent_stage_tells_what_worked_and_what_did_not() -> None:
    told = printed_by("agent_stage.py")
    assert told.startswith("1 of 3 done\n  weather: rain in Oslo\n")
    assert "sing: Tool `sing` is not registered" in told
    assert "archive: Tool `archive` is not allowed in behavior" in told


def test_the_agent_stage_with_a_model_waits_for_a_person_and_answers() -> None:
    told = printed_by("llm_agent_stage.py")
    assert "ann is asked: transfer" in told
    assert "2 calls. Here is what I found: 40; moved 60 from savings to daily" in told
