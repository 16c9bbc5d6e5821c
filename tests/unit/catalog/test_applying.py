"""Changes are made whole or not at all, and lead nowhere else."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from toolgate.catalog import applying
from toolgate.catalog.applying import Roots, apply, named, opened, restore
from toolgate.errors import ToolExecutionError, ToolUnknownOutcomeError
from toolgate.guards.change_set import ABSENT, Change, Node, file_node, look


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "file").write_text("old")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "inner").write_text("in")
    return tmp_path


@pytest.fixture
def roots(home: Path) -> Iterator[Roots]:
    with opened([str(home)]) as held:
        yield held


def change(roots: Roots, path: str, after: Node, same_as: str | None = None) -> Change:
    (root,) = roots
    return Change(root=root, path=path, before=look(roots[root], path), after=after, same_as=same_as)


def text(content: str, mode: int = 0o644) -> Node:
    return file_node(content.encode(), mode, 1_000_000_000)


def names(home: Path) -> list[str]:
    return sorted(str(path.relative_to(home)) for path in home.rglob("*"))


def test_more_files_than_are_synced_one_by_one_are_all_there(home: Path, roots: Roots) -> None:
    apply([change(roots, f"n{number}", text(str(number))) for number in range(40)], roots)

    assert (home / "n39").read_text() == "39"
    assert len(names(home)) == 43
    assert (home / "n0").stat().st_mtime_ns == 1_000_000_000


def test_a_folder_becomes_a_file_and_a_file_a_folder(home: Path, roots: Roots) -> None:
    apply(
        [
            change(roots, "file", Node(kind="folder", mode=0o750)),
            change(roots, "file/new", text("new")),
            change(roots, "folder", text("was a folder")),
            change(roots, "folder/inner", ABSENT),
        ],
        roots,
    )

    assert (home / "file" / "new").read_text() == "new"
    assert (home / "file").stat().st_mode & 0o777 == 0o750
    assert (home / "folder").read_text() == "was a folder"


def test_a_folder_that_was_closed_is_opened_for_what_goes_into_it(home: Path, roots: Roots) -> None:
    (home / "folder").chmod(0o555)

    apply(
        [change(roots, "folder", Node(kind="folder", mode=0o500)), change(roots, "folder/new", text("x"))],
        roots,
    )

    assert (home / "folder").stat().st_mode & 0o777 == 0o500
    (home / "folder").chmod(0o700)
    assert (home / "folder" / "new").read_text() == "x"


def test_attributes_and_special_bits_of_what_was_there_stay(home: Path, roots: Roots) -> None:
    os.setxattr(home / "file", "user.note", b"kept")
    (home / "folder").chmod(0o2755)

    apply([change(roots, "file", text("new")), change(roots, "folder", Node(kind="folder", mode=0o700))], roots)

    assert os.getxattr(home / "file", "user.note") == b"kept"
    assert (home / "folder").stat().st_mode & 0o7777 == 0o2700


def test_what_fails_halfway_is_put_back(home: Path, roots: Roots, monkeypatch: pytest.MonkeyPatch) -> None:
    before = names(home)
    write = applying._write

    def full(one: applying.Wanted, *rest: object, **more: object) -> None:
        if one.path == "z":
            raise OSError(28, "No space left on device")
        write(one, *rest, **more)  # type: ignore[arg-type]  # as they came

    monkeypatch.setattr(applying, "_write", full)
    changes = [change(roots, "file", text("new")), change(roots, "folder/inner", ABSENT), change(roots, "z", text("z"))]
    with pytest.raises(ToolExecutionError, match=r"No space left on device. All of them were taken back") as failed:
        apply(changes, roots)

    assert not isinstance(failed.value, ToolUnknownOutcomeError)
    assert names(home) == before
    assert (home / "file").read_text() == "old"


def test_where_nothing_can_be_put_back_nobody_claims_to_know(
    home: Path, roots: Roots, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(applying, "_put", broken)
    with pytest.raises(ToolUnknownOutcomeError, match="could not all be taken back"):
        apply([change(roots, "folder/inner", ABSENT), change(roots, "n", text("n"))], roots)


def test_a_file_that_changes_at_the_last_moment_is_left_alone(
    home: Path, roots: Roots, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = applying._write

    def race(one: applying.Wanted, *rest: object, **more: object) -> None:
        write(one, *rest, **more)  # type: ignore[arg-type]  # as they came
        if one.node.content == b"new":
            (home / "file").write_text("a person's")

    monkeypatch.setattr(applying, "_write", race)
    with pytest.raises(ToolExecutionError, match="changed at that moment"):
        apply([change(roots, "file", text("new")), change(roots, "aside", text("other"))], roots)

    assert (home / "file").read_text() == "a person's"
    assert not (home / "aside").exists()


def test_restoring_leaves_a_folder_that_something_else_is_in(home: Path, roots: Roots) -> None:
    (root,) = roots.values()
    (home / "made").mkdir()
    (home / "made" / "theirs").write_text("kept")

    restore([(root, "made", ABSENT), (root, "file", text("older"))])

    assert (home / "made" / "theirs").read_text() == "kept"
    assert (home / "file").read_text() == "older"


def test_a_hard_link_to_a_file_that_did_not_change_is_one(home: Path, roots: Roots) -> None:
    now = look(next(iter(roots.values())), "file")

    apply([change(roots, "other", replace(now, stamp=None), same_as="file")], roots)

    assert os.path.samefile(home / "file", home / "other")


def test_many_paths_are_not_all_named() -> None:
    assert named([str(number) for number in range(7)]) == "'0', '1', '2', '3', '4' and 2 more"
