"""Writing, editing and deleting: preview, precondition, undo."""

from __future__ import annotations

import asyncio
import base64
import os
import shutil
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

import toolgate
from toolgate.catalog import changes
from toolgate.catalog.changes import Change, edited, replace_file, written
from toolgate.guards.edges import Edges
from toolgate.guards.files import PathRefused, Workspace
from toolgate.kernel.approval import Approval
from toolgate.kernel.call import Status
from toolgate.kernel.undo import UndoMetadata
from toolgate.testing.patience import PATIENCE_S


async def test_a_new_file_is_written_and_taken_back_with_its_directories(gate: toolgate.Gate, workspace: Path) -> None:
    done = await gate.call("write_file", {"path": "a/b/new.txt", "content": "hällo\n"})
    assert done.unwrap() == {"path": "a/b/new.txt", "size": 7, "created": True}
    assert (workspace / "a" / "b" / "new.txt").read_bytes() == "hällo\n".encode()
    assert (await gate.undo(done.call_id)).success
    assert not (workspace / "a").exists()


async def test_undo_leaves_directories_that_others_use(gate: toolgate.Gate, workspace: Path) -> None:
    done = await gate.call("write_file", {"path": "a/new.txt", "content": "x"})
    (workspace / "a" / "other").write_text("mine")
    assert (await gate.undo(done.call_id)).success
    assert [path.name for path in (workspace / "a").iterdir()] == ["other"]


async def test_content_and_mode_are_put_back(gate: toolgate.Gate, workspace: Path) -> None:
    target = workspace / "notes.txt"
    target.chmod(0o640)
    done = await gate.call("write_file", {"path": "notes.txt", "content": "new"})
    assert (target.read_text(), target.stat().st_mode & 0o777) == ("new", 0o640)
    assert (await gate.undo(done.call_id)).success
    assert (target.read_text(), target.stat().st_mode & 0o777) == ("one\ntwo\nthree\n", 0o640)


@pytest.mark.parametrize(
    ("content", "is_text"),
    [
        (b"", True),
        (b"x", True),
        (b'two\r\nlines\tand "quotes" \\', True),
        ("hällo \U0001f600\n".encode() * 50_000, True),
        (b"\xff\xfe\x00", False),
        (b"\x00\x01\x02\x03" * 1000, False),
        (b"\n" * 1000, False),
        ("a\u2028b\ufeff".encode(), True),
    ],
    ids=range(8),
)
async def test_any_content_is_put_back_byte_by_byte(
    gate: toolgate.Gate, workspace: Path, content: bytes, is_text: bool
) -> None:
    target = workspace / "notes.txt"
    target.write_bytes(content)
    done = await gate.call("write_file", {"path": "notes.txt", "content": "new"})
    kept = await gate.host.undo_data(done.call_id)
    assert kept is not None
    assert (kept.undo_data.get("encoding") == "text") is is_text
    assert len(kept.undo_data["before"]) <= len(base64.b64encode(content)) + changes.QUOTES
    assert (await gate.undo(done.call_id)).success
    assert target.read_bytes() == content


async def test_undo_data_of_earlier_versions_is_put_back(workspace: Path) -> None:
    data = {"path": str(workspace / "notes.txt"), "before": base64.b64encode(b"old").decode(), "mode": 0o644}
    with Workspace(workspace) as opened:
        change = Change(Edges(workspace=opened), "write_file", written)
        change.undo(UndoMetadata("c1", "write_file", {**data, "directories": []}))
    assert (workspace / "notes.txt").read_bytes() == b"old"


async def test_undo_refuses_what_changed_since(gate: toolgate.Gate, workspace: Path) -> None:
    done = await gate.call("write_file", {"path": "notes.txt", "content": "new"})
    (workspace / "notes.txt").write_text("somebody else")
    refused = await gate.undo(done.call_id)
    assert refused.error_code == "undo_conflict"
    assert (workspace / "notes.txt").read_text() == "somebody else"
    assert (await gate.undo(done.call_id, force=True)).success
    assert (workspace / "notes.txt").read_text() == "one\ntwo\nthree\n"


async def test_a_changed_mode_counts_as_a_change(gate: toolgate.Gate, workspace: Path) -> None:
    done = await gate.call("write_file", {"path": "notes.txt", "content": "new"})
    (workspace / "notes.txt").chmod(0o600)
    assert (await gate.undo(done.call_id)).error_code == "undo_conflict"


async def test_a_file_is_deleted_and_comes_back(gate: toolgate.Gate, workspace: Path) -> None:
    (workspace / "notes.txt").chmod(0o755)
    done = await gate.call("delete_file", {"path": "notes.txt"})
    assert not (workspace / "notes.txt").exists()
    assert (await gate.undo(done.call_id)).success
    assert (workspace / "notes.txt").read_text() == "one\ntwo\nthree\n"
    assert (workspace / "notes.txt").stat().st_mode & 0o777 == 0o755


async def test_bytes_are_written_as_they_are(gate: toolgate.Gate, workspace: Path) -> None:
    content = base64.b64encode(bytes(range(256))).decode()
    assert (await gate.call("write_file", {"path": "blob", "content": content, "encoding": "base64"})).success
    assert (workspace / "blob").read_bytes() == bytes(range(256))
    refused = await gate.call("write_file", {"path": "blob", "content": "???", "encoding": "base64"})
    assert "not valid base64" in str(refused.error)


@pytest.mark.parametrize(
    ("asked", "left"),
    [
        ({"old_text": "two", "new_text": "2"}, "one\n2\nthree\n"),
        ({"old_text": "two\n", "new_text": ""}, "one\nthree\n"),
        ({"old_text": "e", "new_text": "E", "replace_all": True}, "onE\ntwo\nthrEE\n"),
    ],
)
async def test_an_edit_replaces_exactly(gate: toolgate.Gate, workspace: Path, asked: dict[str, Any], left: str) -> None:
    done = await gate.call("edit_file", {"path": "notes.txt", **asked})
    assert (workspace / "notes.txt").read_text() == left
    assert (await gate.undo(done.call_id)).success
    assert (workspace / "notes.txt").read_text() == "one\ntwo\nthree\n"


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ({"path": "notes.txt", "old_text": "four", "new_text": ""}, "does not occur"),
        ({"path": "notes.txt", "old_text": "e", "new_text": ""}, "occurs 3 times"),
        ({"path": "missing", "old_text": "e", "new_text": ""}, "does not exist"),
    ],
)
async def test_an_edit_that_is_not_clear_changes_nothing(
    gate: toolgate.Gate, workspace: Path, asked: dict[str, Any], why: str
) -> None:
    assert why in str((await gate.call("edit_file", asked)).error)
    assert (workspace / "notes.txt").read_text() == "one\ntwo\nthree\n"


def apply(diff: str, workspace: Path) -> None:
    if shutil.which("patch") is None:
        pytest.skip("patch is not installed")
    subprocess.run(["patch", "-p1", "-s"], input=diff.encode(), cwd=workspace, check=True)


async def test_the_preview_is_a_diff_that_patch_applies(workspace: Path) -> None:
    seen: list[Approval] = []

    def look(approval: Approval) -> bool:
        seen.append(approval)
        return False

    async with toolgate.open("memory://", workspace=workspace, built_in_tools=True, approver=look) as gate:
        await gate.call("edit_file", {"path": "notes.txt", "old_text": "two", "new_text": "2"})
        await gate.call("write_file", {"path": "new.txt", "content": "fresh\n"})
        await gate.call("delete_file", {"path": "notes.txt"})
        await gate.call("write_file", {"path": "blob", "content": "AP8=", "encoding": "base64"})
    assert (workspace / "notes.txt").read_text() == "one\ntwo\nthree\n"
    assert [approval.preview["action"] for approval in seen] == ["replace", "create", "delete", "create"]
    assert (seen[0].preview["additions"], seen[0].preview["deletions"]) == (1, 1)
    assert seen[3].preview["diff"] is None
    for approval in seen[:2]:
        apply(approval.preview["diff"], workspace)
    assert (workspace / "notes.txt").read_text() == "one\n2\nthree\n"
    assert (workspace / "new.txt").read_text() == "fresh\n"


async def test_a_file_that_changes_while_a_person_thinks_is_asked_about_again(workspace: Path) -> None:
    previews: list[str] = []

    def change_first(approval: Approval) -> bool:
        previews.append(approval.preview["diff"])
        if len(previews) == 1:
            (workspace / "notes.txt").write_text("meanwhile\n")
        return True

    async with toolgate.open("memory://", workspace=workspace, built_in_tools=True, approver=change_first) as gate:
        assert (await gate.call("write_file", {"path": "notes.txt", "content": "new\n"})).success
    assert len(previews) == 2
    assert "-meanwhile" in previews[1]


@pytest.mark.parametrize(
    "path",
    [
        "../x",
        "/etc/x",
        "out/x",
        ".env",
        ".Env.local",
        ".git/hooks/pre-commit",
        "toolgate.yaml",
        "src",
        "new/",
        "pipe",
        ".",
    ],
)
async def test_what_may_not_be_written_is_refused_and_unchanged(
    gate: toolgate.Gate, workspace: Path, path: str
) -> None:
    (workspace / "out").symlink_to("..")
    os.mkfifo(workspace / "pipe")
    before = sorted(workspace.rglob("*"))
    for name, more in (("write_file", {"content": "x"}), ("delete_file", {})):
        assert not (await gate.call(name, {"path": path, **more})).success
    assert sorted(workspace.rglob("*")) == before
    assert (workspace / ".env").read_text() == "TOKEN=canary-secret"


async def test_a_write_follows_a_link_inside_and_replaces_what_it_points_at(
    gate: toolgate.Gate, workspace: Path
) -> None:
    (workspace / "link").symlink_to("notes.txt")
    assert (await gate.call("write_file", {"path": "link", "content": "through"})).success
    assert (workspace / "link").is_symlink()
    assert (workspace / "notes.txt").read_text() == "through"


@pytest.mark.parametrize("target", ["notes.txt", "src", "nowhere/at/all", "link", "..", "/etc/hostname", ".env"])
async def test_deleting_a_link_removes_the_link_alone_and_undo_brings_it_back(
    gate: toolgate.Gate, workspace: Path, target: str
) -> None:
    (workspace / "link").symlink_to(target)
    before = sorted(workspace.rglob("*"))
    done = await gate.call("delete_file", {"path": "link"})
    assert (done.success, done.error) == (True, None)
    assert sorted(workspace.rglob("*")) == [path for path in before if path.name != "link"]
    assert (await gate.undo(done.call_id)).success
    assert os.readlink(workspace / "link") == target
    assert (workspace / "notes.txt").read_text() == "one\ntwo\nthree\n"


async def test_a_link_on_the_way_is_followed_where_one_is_deleted(gate: toolgate.Gate, workspace: Path) -> None:
    (workspace / "way").symlink_to("src")
    (workspace / "src" / "link").symlink_to("../notes.txt")
    assert (await gate.call("delete_file", {"path": "way/link"})).success
    assert not (workspace / "src" / "link").is_symlink()
    (workspace / "out").symlink_to("..")
    (workspace.parent / f"{workspace.name}-link").symlink_to("notes.txt")
    refused = await gate.call("delete_file", {"path": f"out/{workspace.name}-link"})
    assert not refused.success
    (workspace.parent / f"{workspace.name}-link").unlink()
    for path in ("way/", "way/."):
        assert not (await gate.call("delete_file", {"path": path})).success
    assert (workspace / "way").is_symlink()


async def test_a_link_is_not_put_back_over_something_else(gate: toolgate.Gate, workspace: Path) -> None:
    (workspace / "link").symlink_to("notes.txt")
    done = await gate.call("delete_file", {"path": "link"})
    (workspace / "link").write_text("mine")
    assert (await gate.undo(done.call_id)).error_code == "undo_conflict"
    assert not (await gate.undo(done.call_id, force=True)).success
    assert (workspace / "link").read_text() == "mine"


async def test_a_person_is_told_that_only_the_link_goes(workspace: Path) -> None:
    seen: list[Approval] = []

    def look(approval: Approval) -> bool:
        seen.append(approval)
        return True

    (workspace / "link").symlink_to("notes.txt")
    async with toolgate.open("memory://", workspace=workspace, built_in_tools=True, approver=look) as gate:
        assert (await gate.call("delete_file", {"path": "link"})).success
    assert "a link to 'notes.txt'" in seen[0].preview["note"]


async def test_a_link_that_changes_while_a_person_looks_is_asked_about_again(workspace: Path) -> None:
    seen: list[str] = []

    def swap(approval: Approval) -> bool:
        seen.append(approval.preview["note"])
        if len(seen) == 1:
            (workspace / "link").unlink()
            (workspace / "link").symlink_to("src")
        return len(seen) == 1

    (workspace / "link").symlink_to("notes.txt")
    async with toolgate.open("memory://", workspace=workspace, built_in_tools=True, approver=swap) as gate:
        assert not (await gate.call("delete_file", {"path": "link"})).success
    assert ["'notes.txt'" in seen[0], "'src'" in seen[1]] == [True, True]
    assert os.readlink(workspace / "link") == "src"


async def test_missing_directories_are_not_made_where_not_wanted(gate: toolgate.Gate, workspace: Path) -> None:
    asked = {"path": "a/new.txt", "content": "x", "create_directories": False}
    assert "does not exist" in str((await gate.call("write_file", asked)).error)
    assert not (workspace / "a").exists()


async def test_no_temporary_file_is_left(gate: toolgate.Gate, workspace: Path) -> None:
    await gate.call("write_file", {"path": "notes.txt", "content": "x"})
    assert not [path for path in workspace.iterdir() if "toolgate" in path.name]


def test_a_write_during_swaps_never_lands_outside(workspace: Path) -> None:
    """A directory is swapped for a link to the outside, again and again, while files are written beneath it."""
    outside = workspace.parent / f"{workspace.name}-elsewhere"
    outside.mkdir()
    (workspace / "door").mkdir()
    (workspace / "spare").symlink_to(outside)
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            for one, two in (("door", "kept"), ("spare", "door"), ("door", "spare"), ("kept", "door")):
                os.rename(workspace / one, workspace / two)

    thread = threading.Thread(target=swap)
    thread.start()
    wrote = 0
    try:
        with Workspace(workspace) as opened:
            change = Change(Edges(workspace=opened), "write_file", written)
            for number in range(100_000):  # on a loaded machine the door may be away for long
                if number >= 400 and wrote:
                    break
                try:
                    change._run({"path": "door/new.txt", "content": str(number), "create_directories": False}, "")
                    wrote += 1
                except (PathRefused, toolgate.errors.ToolExecutionError, OSError):
                    continue
    finally:
        stop.set()
        thread.join()
    left = list(outside.iterdir())
    outside.rmdir()
    assert left == []
    assert wrote


async def test_a_write_cancelled_halfway_is_not_said_to_have_stopped(
    gate: toolgate.Gate, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go_on, done = threading.Event(), threading.Event(), threading.Event()

    def slow(*given: Any, **named: Any) -> None:
        begun.set()
        go_on.wait(PATIENCE_S)
        replace_file(*given, **named)
        done.set()

    monkeypatch.setattr(changes, "replace_file", slow)
    parked = await gate.call("write_file", {"path": "slow.txt", "content": "late"}, wait=False)
    assert await asyncio.to_thread(begun.wait, 30)
    ended = await gate.cancel(parked.call_id)
    go_on.set()
    assert ended.status is Status.UNKNOWN
    assert await asyncio.to_thread(done.wait, PATIENCE_S)  # before its folder is removed


def test_what_is_refused_before_it_is_tried() -> None:
    from toolgate.catalog.changes import NOTHING

    with pytest.raises(toolgate.errors.ToolExecutionError):
        edited({"path": "x", "old_text": "a", "new_text": "b"}, NOTHING)


async def test_a_hard_link_to_an_outside_file_cannot_be_changed_to_see_what_it_holds(
    gate: toolgate.Gate, workspace: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text("OUTSIDE")
    os.link(outside, workspace / "linked.txt")
    for name, more in (
        ("edit_file", {"old_text": "OUT", "new_text": "x"}),
        ("write_file", {"content": "x"}),
        ("delete_file", {}),
    ):
        refused = await gate.call(name, {"path": "linked.txt", **more})
        assert not refused.success
        assert "hard link" in str(refused.error)
        assert "OUTSIDE" not in str(refused)
    assert (workspace / "linked.txt").samefile(outside)
