"""A process that is killed while it applies what a command changed: nobody claims to know, and it can be told apart."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.sandboxes import needs_bubblewrap

import toolgate
from toolgate.kernel.call import Status

pytestmark = needs_bubblewrap
POLICY = """
version: 1
tools: {execute_command: {commands: {overlay: true}}}
commands: {sh: {writes: true, flags: {-c: str}, positionals: [{name: word, at_most: any}]}}
"""
SCRIPT = "for i in 1 2 3 4 5 6; do echo new > f$i; done; rm gone; echo run >> ran"
PROCESS = """
import asyncio, os, signal, sys
import toolgate
from toolgate.catalog import applying
put, point, seen = applying._put, int(sys.argv[4]), []
def killed(one, **more):
    if len(seen) == point:
        os.kill(os.getpid(), signal.SIGKILL)
    seen.append(one.path)
    put(one, **more)
    if len(seen) == point == 7:
        os.kill(os.getpid(), signal.SIGKILL)
applying._put = killed
async def main(workspace, policy, database):
    async with toolgate.open(database, workspace=workspace, policy=policy, built_in_tools=True) as gate:
        await gate.call("execute_command", {"command": "sh", "args": ["-c", sys.argv[5]]}, call_id="c1")
asyncio.run(main(*sys.argv[1:4]))
"""


@pytest.mark.parametrize("point", [0, 3, 7])
async def test_a_kill_while_changes_are_applied_can_be_told_and_taken_back(tmp_path: Path, point: int) -> None:
    workspace, policy = tmp_path / "workspace", tmp_path / "policy.yaml"
    workspace.mkdir()
    (workspace / "f1").write_text("old\n")
    (workspace / "gone").write_text("gone\n")
    before = {path.name: path.read_text() for path in workspace.iterdir()}
    policy.write_text(POLICY)
    url = f"sqlite:///{tmp_path}/calls.db"
    line = [sys.executable, "-c", PROCESS, str(workspace), str(policy), url, str(point), SCRIPT]
    done = subprocess.run(line, capture_output=True, text=True, check=False)  # noqa: ASYNC221  # nothing else runs
    assert done.returncode == -signal.SIGKILL, done.stderr

    async with toolgate.open(url, workspace=workspace, policy=policy, built_in_tools=True) as gate:
        await gate.recover()
        call = await gate.get("c1")
        found = sorted(path.name for path in workspace.iterdir() if not path.name.endswith(".toolgate"))
        if point == 7:
            assert call.status is Status.COMPLETED
            assert found == ["f1", "f2", "f3", "f4", "f5", "f6", "ran"]
            assert (workspace / "ran").read_text() == "run\n", "it ran once"
            return
        # What was deleted went first, so some of it was applied in any case.
        assert call.status is Status.UNKNOWN
        told = "; ".join(str(event.data.get("reason")) for event in await gate.events(call_id="c1"))
        assert f"{point + 1} of 8 changes were applied" in told
        assert "Not applied" in told
        await gate.settle("c1", happened=True, by="ann", reason="to take it back")
        undone = await gate.undo("c1")
        assert undone.success, undone.error
    left = {path.name: path.read_text() for path in workspace.iterdir() if not path.name.endswith(".toolgate")}
    assert left == before
