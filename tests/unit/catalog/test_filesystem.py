"""Reading files and directories."""

from __future__ import annotations

import base64
import os
from pathlib import Path

import pytest

import toolgate
from toolgate.catalog.filesystem import QUICK_BYTES


async def test_a_file_is_read_whole(gate: toolgate.Gate) -> None:
    data = (await gate.call("read_file", {"path": "notes.txt"})).unwrap()
    assert data == {"size": 14, "content": "one\ntwo\nthree\n"}


async def test_a_file_is_read_by_lines(gate: toolgate.Gate) -> None:
    data = (await gate.call("read_file", {"path": "notes.txt", "first_line": 2, "max_lines": 1})).unwrap()
    assert (data["content"], data["total_lines"], data["truncated"]) == ("two\n", 3, True)
    rest = (await gate.call("read_file", {"path": "notes.txt", "first_line": 3})).unwrap()
    assert rest["content"] == "three\n"


async def test_bytes_come_as_base64_and_are_never_mangled(gate: toolgate.Gate, workspace: Path) -> None:
    content = bytes(range(256)) * 3
    (workspace / "blob").write_bytes(content)
    refused = await gate.call("read_file", {"path": "blob"})
    assert "not UTF-8" in str(refused.error)
    data = (await gate.call("read_file", {"path": "blob", "encoding": "base64"})).unwrap()
    assert base64.b64decode(data["content"]) == content


@pytest.mark.parametrize("text", ["\ufeffbom", "crlf\r\n", "no end", "", "\x00nul", "\u2028"])
async def test_text_comes_back_exactly(gate: toolgate.Gate, workspace: Path, text: str) -> None:
    (workspace / "t").write_bytes(text.encode())
    assert (await gate.call("read_file", {"path": "t"})).unwrap()["content"] == text


async def test_size_limits_count_bytes(gate: toolgate.Gate, workspace: Path) -> None:
    (workspace / "wide").write_text("ä" * 600_000)
    refused = await gate.call("read_file", {"path": "wide", "max_size_mb": 1})
    assert "1200000 bytes, more than the 1048576 allowed" in str(refused.error)
    assert (await gate.call("read_file", {"path": "wide", "max_size_mb": 1.2})).success
    assert QUICK_BYTES < 1_200_000


@pytest.mark.parametrize(
    "path",
    [
        "../{name}-outside",
        "/etc/passwd",
        "out",
        ".env",
        ".ENV",
        "linked-env",
        "pipe",
        "/dev/zero",
        "/proc/self/environ",
    ],
)
async def test_what_may_not_be_read_is_refused_without_a_word_of_it(
    gate: toolgate.Gate, workspace: Path, path: str
) -> None:
    (workspace / "out").symlink_to(f"../{workspace.name}-outside")
    (workspace / "linked-env").symlink_to(".env")
    os.mkfifo(workspace / "pipe")
    result = await gate.call("read_file", {"path": path.format(name=workspace.name)})
    assert not result.success
    assert "canary" not in str(result)


async def test_odd_ends_are_errors(gate: toolgate.Gate) -> None:
    assert "does not exist" in str((await gate.call("read_file", {"path": "missing"})).error)
    assert "directory" in str((await gate.call("read_file", {"path": "src"})).error)
    assert "not a directory" in str((await gate.call("list_directory", {"path": "notes.txt"})).error)
    assert "does not exist" in str((await gate.call("list_directory", {"path": "missing"})).error)


async def test_a_directory_is_listed(gate: toolgate.Gate, workspace: Path) -> None:
    (workspace / "link").symlink_to("src")
    (workspace / os.fsdecode(b"bad\xff")).write_text("x")
    data = (await gate.call("list_directory")).unwrap()
    assert [(entry["name"], entry["type"]) for entry in data["entries"]] == [
        (".env", "file"),
        ("bad\\xff", "file"),
        ("link", "link"),
        ("notes.txt", "file"),
        ("src", "directory"),
    ]
    short = (await gate.call("list_directory", {"max_entries": 2})).unwrap()
    assert (len(short["entries"]), short["total"], short["truncated"]) == (2, 5, True)


async def test_a_directory_is_listed_with_what_lies_beneath(gate: toolgate.Gate, workspace: Path) -> None:
    (workspace / "src" / "deep").mkdir()
    (workspace / "src" / "deep" / "a.py").write_text("x")
    (workspace / "src" / "up").symlink_to("..")
    (workspace / ".ssh").mkdir()
    (workspace / ".ssh" / "id_rsa").write_text("private")
    data = (await gate.call("list_directory", {"recursive": True})).unwrap()
    names = [entry["name"] for entry in data["entries"]]
    assert {"src", "src/deep", "src/deep/a.py", "src/up", ".ssh"} <= set(names)
    assert not any(name.startswith((".ssh/", "src/up/")) for name in names)
    assert (data["total"], data["truncated"]) == (len(names), False)
    short = (await gate.call("list_directory", {"recursive": True, "max_entries": 3})).unwrap()
    assert (len(short["entries"]), short["truncated"]) == (3, True)
    beneath = (await gate.call("list_directory", {"path": "src/deep", "recursive": True})).unwrap()
    assert [entry["name"] for entry in beneath["entries"]] == ["a.py"]
