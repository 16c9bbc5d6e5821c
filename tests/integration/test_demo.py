"""`toolgate demo` as a newcomer runs it: it keeps its promises by itself, and however it ends nothing is left of it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.integration.programs import here
from tests.sandboxes import needs_sandbox

from toolgate.interfaces.demo import scene, story
from toolgate.interfaces.demo.story import SECRET
from toolgate.testing.patience import PATIENCE_S

IGNORING = ["sh", "-c", """trap '' INT TERM; exec "$@" """, "sh"]  # as a script's background jobs begin, and worse
DEMO = [*IGNORING, sys.executable, "-m", "toolgate", "demo", "--json"]


@contextmanager
def running(folder: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    environment = {**os.environ, "TMPDIR": str(folder), "TOOLGATE_DATABASE": "memory://"}  # which must not matter
    with subprocess.Popen(
        [*DEMO, *options], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as demo:
        try:
            yield demo
        finally:
            demo.kill()


def told(demo: subprocess.Popen[str], event: str, **fields: str) -> dict[str, Any]:
    """The next thing of this kind that it tells."""
    assert demo.stdout is not None
    for line in demo.stdout:
        found: dict[str, Any] = json.loads(line)
        if found["event"] == event and fields.items() <= found.items():
            return found
    raise AssertionError(f"it ended without telling of {event}")


def everybody(demo: subprocess.Popen[str]) -> list[psutil.Process]:
    return [psutil.Process(demo.pid), *psutil.Process(demo.pid).children(recursive=True)]


def nothing_is_left(folder: Path, processes: list[psutil.Process]) -> bool:
    """Whether all of them end, and the folder they worked in is gone."""
    psutil.wait_procs(processes, timeout=PATIENCE_S)
    alive = [one for one in processes if one.is_running() and one.status() != psutil.STATUS_ZOMBIE]
    return not alive and list(folder.glob("toolgate-demo-*")) == []


@needs_sandbox
def test_it_decides_by_itself_and_everything_it_promises_holds(tmp_path: Path) -> None:
    with running(tmp_path, "--auto") as demo:
        out, _ = demo.communicate(timeout=PATIENCE_S)
    events = [json.loads(line) for line in out.splitlines()]
    assert demo.returncode == 0
    assert events[-1]["ok"]
    assert set(events[-1]["answers"].values()) == {"approved", "edited", "rejected"}
    assert events[-1]["undone"]["edit_file prices.py"] == "undone"
    assert [one["status"] for one in events if one["event"] == "call" and one["about"] == ".env"] == ["denied"]
    assert [one["status"] for one in events if one["event"] == "call" and one["tool"] == "refund"] == [
        "unknown",
        "completed",
    ]
    assert SECRET not in out
    assert os.listdir(tmp_path) == []


@needs_sandbox
def test_a_step_that_fails_is_named_and_the_exit_code_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scene, "policy", lambda _port: story.policy(1))  # which allows another port than the page's
    ended = here("demo", "--auto", "--json")
    last = json.loads(ended.out.splitlines()[-1])
    assert (ended.code, last["event"], last["ok"]) == (1, "end", False)
    assert [one["step"].split()[0] for one in last["failed"]] == ["fetch_url"]
    assert "denied" in last["failed"][0]["why"]


def test_nobody_at_the_keyboard_is_said_in_a_line(tmp_path: Path) -> None:
    with running(tmp_path, "--terminal") as demo:
        out, _ = demo.communicate("", timeout=PATIENCE_S)
    assert demo.returncode == 1
    assert "nobody at the keyboard" in json.loads(out.splitlines()[-1])["failed"][0]["why"]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGKILL, -9), (signal.SIGINT, 130), (signal.SIGTERM, 130)])
def test_whatever_ends_it_nothing_is_left(tmp_path: Path, number: signal.Signals, code: int) -> None:
    with running(tmp_path, "--terminal") as demo:
        if number is signal.SIGKILL:  # when everything runs
            told(demo, "question")
        else:  # when it has just begun
            told(demo, "note", what="workspace")
        processes = everybody(demo)
        demo.send_signal(number)
        assert demo.wait(PATIENCE_S) == code
        assert nothing_is_left(tmp_path, processes)
