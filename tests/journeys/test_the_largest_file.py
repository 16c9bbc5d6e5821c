"""What the developer profile lets a tool write, a gate as it comes takes: 10 MiB, by the same count at every step."""

from __future__ import annotations

from pathlib import Path

import pytest

import toolgate
from toolgate.catalog import built_in_tools
from toolgate.guards.edges import Edges
from toolgate.guards.files import Workspace
from toolgate.policy.profiles import render

MEBIBYTE = 1 << 20
LINE = 'print("an ordinary line of code, with its quotes")\n'


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    found = tmp_path / "work"
    found.mkdir()
    for name, text in render("developer").items():
        (found / name).write_text(text)
    return found


def of_size(size: int) -> str:
    return (LINE * (size // len(LINE) + 1))[:size]


async def test_the_largest_file_the_profile_allows_is_written_read_and_taken_back(
    tmp_path: Path, workspace: Path
) -> None:
    async with toolgate.open(
        tmp_path / "gate.db", policy=workspace, workspace=workspace, built_in_tools=True, approver=lambda _: True
    ) as gate:
        largest = of_size(10 * MEBIBYTE)
        written = await gate.call("write_file", {"path": "large.py", "content": largest})
        assert written.unwrap()["size"] == 10 * MEBIBYTE
        assert (await gate.call("read_file", {"path": "large.py"})).unwrap()["content"] == largest
        above = await gate.call("write_file", {"path": "larger.py", "content": largest + "x"})
        assert "has 10,485,761 bytes; at most 10,485,760 are allowed" in str(above.error)
        assert (await gate.undo(written.call_id)).success
        assert not (workspace / "large.py").exists()


async def test_a_tool_and_the_policy_count_the_same_way(workspace: Path) -> None:
    (workspace / "file").write_text(of_size(MEBIBYTE))
    (workspace / "more").write_text(of_size(MEBIBYTE + 1))
    with Workspace(str(workspace)) as opened:
        async with toolgate.open("memory://", tools=built_in_tools(Edges(workspace=opened))) as gate:
            assert (await gate.call("read_file", {"path": "file", "max_size_mb": 1})).success
            assert not (await gate.call("read_file", {"path": "more", "max_size_mb": 1})).success
    policy = workspace / "one.yaml"
    policy.write_text("tools: {read_file: {decision: allow, max_file_size_mb: 1}}\n")
    async with toolgate.open("memory://", policy=policy, workspace=workspace, built_in_tools=True) as gate:
        assert (await gate.call("read_file", {"path": "file"})).success
        assert not (await gate.call("read_file", {"path": "more"})).success
