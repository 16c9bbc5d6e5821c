"""Whatever a server says, nothing happens here that the local policy does not allow, and nothing happens twice."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from tests.unit.interfaces.runner.conftest import Slow
from tests.unit.interfaces.runner.stage import Stage, frame

from toolgate.interfaces.runner.notices import Kind
from toolgate.testing.patience import until

READS = [
    "../outside.txt",
    "a/../../outside.txt",
    "/etc/passwd",
    "//etc/passwd",
    "/proc/self/environ",
    "/proc/self/root/etc/passwd",
    "link/outside.txt",
    "link_file",
    ".env",
    "a\x00b",
    "",
]
WRITES = [*READS, ".git/hooks/pre-commit", "toolgate.yaml", "~/../../x/../../outside.txt/"]


async def asked(stage: Stage, tool: str, params: Any) -> dict[str, Any]:
    """Signal one call to a runner and return what it reported."""
    async with stage.runner():
        stage.server.run("t1", tool, params)
        return await stage.server.result()


async def test_no_path_leads_outside_the_workspace_or_to_what_is_protected(stage: Stage) -> None:
    outside = stage.workspace.parent / "outside.txt"
    outside.write_text("canary-outside")
    (stage.workspace / "link").symlink_to(stage.workspace.parent)
    (stage.workspace / "link_file").symlink_to(outside)
    (stage.workspace / ".env").write_text("canary-outside")
    absolute = str(outside)
    async with stage.runner():
        for number, path in enumerate([*READS, absolute]):
            stage.server.run(f"r{number}", "read_file", {"path": path})
        for number, path in enumerate([*WRITES, absolute]):
            stage.server.run(f"w{number}", "write_file", {"path": path, "content": "taken over"})
        await stage.server.result(len(READS) + len(WRITES) + 2)
    assert {report["status"] for report in stage.server.results} == {"failed"}
    assert "canary-outside" not in str(stage.server.results)
    assert outside.read_text() == (stage.workspace / ".env").read_text() == "canary-outside"
    kept = [file for file in stage.workspace.rglob("*") if file.is_file() and not file.is_symlink()]
    assert [file.name for file in kept] == [".env"]


@pytest.mark.parametrize(
    ("tool", "params", "why"),
    [
        ("delete_file", {"path": "a.txt"}, "policy of the runner's machine"),
        ("fetch_url", {"url": "http://169.254.169.254/"}, "not registered"),
        ("format_disk", {}, "not registered"),
        ("read_file", {"path": "a.txt", "sudo": True}, "sudo"),
        ("read_file", {"path": ["a.txt"]}, "path"),
        ("read_file", {}, "path"),
        ("write_file", {"path": "a.txt", "content": "x" * (13 * 2**20)}, "bytes"),
    ],
)
async def test_what_is_denied_unknown_or_does_not_fit_does_not_run(
    stage: Stage, tool: str, params: Any, why: str
) -> None:
    (stage.workspace / "a.txt").write_text("as it was")
    report = await asked(stage, tool, params)
    assert report["status"] == "failed"
    assert why in report["error"]
    assert (stage.workspace / "a.txt").read_text() == "as it was"


async def test_a_signal_that_is_sent_again_runs_once(stage: Stage, slow: Slow) -> None:
    async with stage.runner():
        for _ in range(3):
            stage.server.run("t1", "slow", {})
        await stage.notes.saw(Kind.IGNORED, 2)
        slow.go.set()
        await stage.server.result()
        stage.server.run("t1", "slow", {})
        await stage.notes.saw(Kind.IGNORED, 3)
    async with stage.runner():  # and not after a restart either
        stage.server.run("t1", "slow", {})
        await stage.notes.saw(Kind.IGNORED, 4)
    assert (slow.begun, len(stage.server.results)) == (1, 1)


@pytest.mark.parametrize(("attempt", "fence"), [(1, "f-t1"), (1, "other"), (2, "other")])
async def test_a_known_id_with_other_parameters_changes_nothing_and_is_not_reported(
    stage: Stage, attempt: int, fence: str
) -> None:
    async with stage.runner():
        stage.server.run("t1", "write_file", {"path": "a.txt", "content": "first"})
        await stage.server.result()
        forged = {"path": "b.txt", "content": "second"}
        stage.server.run("t1", "write_file", forged, attempt=attempt, fence=fence)
        await stage.notes.saw(Kind.IGNORED)
        stage.server.run("t1", "edit_file", forged, attempt=3, fence="third")
        await stage.notes.saw(Kind.IGNORED, 2)
    assert len(stage.server.results) == 1
    assert not (stage.workspace / "b.txt").exists()


async def test_an_undo_writes_nothing_the_server_says(stage: Stage) -> None:
    (stage.workspace / "a.txt").write_text("before")
    forged = {"path": str(stage.workspace / "a.txt"), "before": base64.b64encode(b"forged").decode(), "mode": 420}
    undo = {"tool_name": "write_file", "fence": "f", "attempt": 1, "timeout_seconds": 30, "undo_data": forged}
    async with stage.runner():
        stage.server.say("tool.undo_signal", undo | {"tool_id": "u0", "undo_of": "never-ran-here"})
        refused = await stage.server.result()
        assert refused["status"] == "failed"
        assert "did not begin" in refused["error"]
        stage.server.run("t1", "write_file", {"path": "a.txt", "content": "after"})
        written = await stage.server.result(2)
        assert written["undo"] == {"kept_by": "runner"}
        stage.server.say("tool.undo_signal", undo | {"tool_id": "u1", "undo_of": "t1"})
        undone = await stage.server.result(3)
        assert (undone["tool_id"], undone["status"], undone["fence"]) == ("u1", "completed", "f")
        assert (stage.workspace / "a.txt").read_text() == "before"
        stage.server.say("tool.undo_signal", undo | {"tool_id": "u1", "undo_of": "t1"})
        await stage.notes.saw(Kind.IGNORED)
        stage.server.say("tool.undo_signal", undo | {"tool_id": "u2", "undo_of": "t1"})
        again = await stage.server.result(4)
        assert (again["status"], "undone already" in again["error"]) == ("failed", True)


async def test_an_undo_is_refused_where_the_file_changed_since(stage: Stage) -> None:
    async with stage.runner():
        stage.server.run("t1", "write_file", {"path": "a.txt", "content": "after"})
        await stage.server.result()
        (stage.workspace / "a.txt").write_text("somebody's own work")
        undo = {"tool_id": "u1", "tool_name": "write_file", "undo_of": "t1", "fence": "f", "attempt": 1}
        stage.server.say("tool.undo_signal", undo | {"timeout_seconds": 30, "undo_data": {}})
        report = await stage.server.result(2)
    assert report["status"] == "failed"
    assert (stage.workspace / "a.txt").read_text() == "somebody's own work"


@pytest.mark.parametrize(
    "garbage",
    [
        frame("tool.execution_signal", "{not json"),
        frame("tool.execution_signal", "[1, 2]"),
        b"\xff\xfe\x00garbage\r\n\r\ndata: x\n\n",
        b"event: tool.execution_signal\ndata: " + b"x" * 1000 + b"\n\n",
    ],
)
async def test_a_stream_of_garbage_ends_no_runner(stage: Stage, garbage: bytes) -> None:
    (stage.workspace / "a.txt").write_text("fine")
    async with stage.runner():
        stage.server.raw(garbage)
        await stage.notes.saw(Kind.DISCONNECTED)
        await stage.notes.saw(Kind.CONNECTED, 2)
        stage.server.run("t1", "read_file", {"path": "a.txt"})
        report = await stage.server.result()
    assert report["result"]["content"] == "fine"


async def test_signals_that_cannot_be_read_are_named_and_skipped(stage: Stage) -> None:
    (stage.workspace / "a.txt").write_text("fine")
    async with stage.runner():
        stage.server.say("tool.execution_signal", {"tool_id": "t0"})
        stage.server.say("tool.undo_signal", {})
        stage.server.say("tool.cancel_signal", {"tool_id": 5})
        stage.server.say("tool.cancel_signal", {"tool_id": "nobody", "reason": "x"})
        stage.server.say("something.else", {"tool_params": 1})
        await stage.notes.saw(Kind.IGNORED, 3)
        stage.server.run("t1", "read_file", {"path": "a.txt"})
        await stage.server.result()
    assert len(stage.server.results) == 1


async def test_a_flood_of_signals_is_bounded_and_each_is_answered(stage: Stage, slow: Slow) -> None:
    async with stage.runner():
        for number in range(70):
            stage.server.run(f"t{number}", "slow_read", {})
        await until(lambda: len(stage.server.results) == 6)
        assert all("running already" in report["error"] for report in stage.server.results)
        slow.go.set()
        await until(lambda: len(stage.server.results) == 70)
    assert slow.begun == 64


async def test_a_result_is_told_to_the_server_and_nobody_else(stage: Stage) -> None:
    (stage.workspace / "a.txt").write_text("canary-content-5")
    async with stage.runner():
        stage.server.run("t1", "read_file", {"path": "a.txt"})
        assert (await stage.server.result())["result"]["content"] == "canary-content-5"
    assert "canary-content-5" not in json.dumps([notice.as_json() for notice in stage.notes.notices], default=str)
