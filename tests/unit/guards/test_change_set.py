"""What a layer would change, found by comparing it with a folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from toolgate.guards import change_set
from toolgate.guards.change_set import ABSENT, Change, ChangeRefused, changes_of, load, look
from toolgate.guards.files import Root
from toolgate.ports.confinement import Written


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Root]:
    (tmp_path / "file").write_text("old")
    (tmp_path / "folder" / "inner").mkdir(parents=True)
    (tmp_path / "folder" / "one").write_text("1")
    (tmp_path / "folder" / "inner" / "two").write_text("2")
    (tmp_path / "link").symlink_to("file")
    made = Root(tmp_path)
    yield made
    made.descriptor.close()


def of(root: Root, *written: dict[str, Any]) -> dict[str, str]:
    """Return each changed path with what becomes of it."""
    return {change.path: change.action for change in found(root, *written)}


def found(root: Root, *written: dict[str, Any]) -> tuple[Change, ...]:
    entries = [Written(root=root.path, **{"mode": 0o644, "mtime_ns": 1, **one}) for one in written]
    return changes_of(entries, {root.path: root})


def test_files_are_created_changed_touched_and_given_other_modes(root: Root) -> None:
    now = os.stat(f"{root.path}/file")
    same = {"path": b"file", "kind": "file", "content": b"old", "mode": now.st_mode & 0o777}

    assert of(root, {"path": b"new", "kind": "file", "content": b"x"}) == {"new": "create"}
    assert of(root, {"path": b"file", "kind": "file", "content": b"x"}) == {"file": "change"}
    assert of(root, same) == {"file": "touch"}
    assert of(root, same | {"mtime_ns": now.st_mtime_ns}) == {}
    assert of(root, same | {"mode": 0o700}) == {"file": "mode"}
    assert of(root, {"path": b"link", "kind": "link", "target": b"else"}) == {"link": "change"}
    assert of(root, {"path": b"folder", "kind": "folder", "mode": 0o700}) == {"folder": "mode"}


def test_what_is_gone_takes_what_was_in_it_along(root: Root) -> None:
    deleted = {"folder": "delete", "folder/one": "delete", "folder/inner": "delete", "folder/inner/two": "delete"}

    assert of(root, {"path": b"folder", "kind": "gone"}) == deleted
    assert of(root, {"path": b"never", "kind": "gone"}) == {}
    assert of(root, {"path": b"folder", "kind": "file"}) == deleted | {"folder": "replace"}
    assert of(root, {"path": b"file", "kind": "folder", "mode": 0o755}) == {"file": "replace"}


def test_a_folder_that_was_made_anew_keeps_nothing_of_the_old_one_nor_do_those_in_it(root: Root) -> None:
    mode = os.stat(f"{root.path}/folder").st_mode & 0o777
    whole = {"path": b"folder", "kind": "folder", "mode": mode, "is_whole": True}
    inner = {"path": b"folder/inner", "kind": "folder", "mode": mode}

    assert of(root, whole, inner) == {"folder/inner/two": "delete", "folder/one": "delete"}
    assert of(root, whole | {"is_whole": False}, inner) == {}


def test_another_name_of_a_file_is_kept_as_that(root: Root) -> None:
    first = {"path": b"a", "kind": "file", "content": b"x" * 1000}
    other = {"path": b"b", "kind": "file", "same_as": b"a"}

    changes = found(root, first, other)
    loaded = load([change.as_json() for change in changes])

    assert [(change.path, change.same_as, change.after.content) for change in loaded] == [
        ("a", None, b"x" * 1000),
        ("b", "a", b"x" * 1000),
    ]
    assert loaded == changes
    assert "z" in changes[0].as_json()["after"]


@pytest.mark.parametrize(
    ("entry", "kind"),
    [
        ({"path": b"s", "kind": "other"}, "special"),
        ({"path": b"s", "kind": "file", "mode": 0o4755}, "set_id"),
        ({"path": b"s", "kind": "file", "mode": 0o2755}, "set_id"),
        ({"path": b"\xff", "kind": "file"}, "encoding"),
        ({"path": b"l", "kind": "link", "target": b"\xff"}, "encoding"),
        ({"path": b"link/x", "kind": "file"}, "unreadable"),
        ({"path": b"pipes", "kind": "gone"}, "special"),
    ],
)
def test_what_cannot_be_applied_is_refused(root: Root, entry: dict[str, Any], kind: str) -> None:
    (Path(root.path) / "pipes").mkdir()
    os.mkfifo(f"{root.path}/pipes/p")

    with pytest.raises(ChangeRefused) as refused:
        found(root, entry)

    assert refused.value.kind == kind


def test_a_set_has_a_size(root: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change_set, "MAX_BYTES", 10)
    monkeypatch.setattr(change_set, "MAX_CHANGES", 2)
    (Path(root.path) / "file").write_text("123456")

    for entries in (
        [{"path": b"n", "kind": "file", "content": b"12345678901"}],
        [{"path": b"file", "kind": "file", "content": b"12345"}],
    ):
        with pytest.raises(ChangeRefused) as refused:
            found(root, *entries)
        assert refused.value.kind == "too_large"
    with pytest.raises(ChangeRefused) as many:
        found(root, *({"path": b"%d" % number, "kind": "file"} for number in range(3)))
    assert many.value.kind == "too_many"


def test_a_file_too_large_to_be_put_back_is_refused(root: Root) -> None:
    with pytest.raises(ChangeRefused, match="more than the 2 that can be kept"):
        look(root, "file", most=2)
    assert look(root, "nothing/there") == ABSENT
    assert look(root, "file/there") == ABSENT
