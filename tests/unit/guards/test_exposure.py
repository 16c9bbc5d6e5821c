"""Which files a confined program could write, whatever leads to them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from toolgate.guards.exposure import ABSENT, UNREADABLE, exposed, fingerprint, fingerprint_of, is_still, pin


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "w").mkdir()
    (tmp_path / "w" / "inner.yaml").write_text("a")
    (tmp_path / "outer.yaml").write_text("b")
    return tmp_path


def found(root: Path, path: str, *kept: str) -> bool | None:
    """Whether mounts keep a file that could be written; None: it is out of reach."""
    name = str(root / path)
    return exposed([name], writable=[str(root / "w")], kept=[str(root / one) for one in kept]).get(name)


def test_what_lies_in_reach_is_exposed_unless_mounts_keep_it(root: Path) -> None:
    assert found(root, "w/inner.yaml") is False
    assert found(root, "w/inner.yaml", "w/inner.yaml") is True
    assert found(root, "w/none.yaml", "w/inner.yaml") is False
    assert found(root, "outer.yaml") is None
    assert exposed([str(root / "outer.yaml")], writable=["/"], kept=[]) == {str(root / "outer.yaml"): False}
    assert exposed([str(root / "outer.yaml")], writable=[], kept=[]) == {}


def test_each_link_on_the_way_counts(root: Path) -> None:
    (root / "to.yaml").symlink_to("w/../w/./inner.yaml")
    (root / "w" / "back.yaml").symlink_to(root / "outer.yaml")
    assert found(root, "to.yaml") is False
    assert found(root, "to.yaml", "w/inner.yaml") is True
    assert found(root, "w/back.yaml") is False
    assert found(root, "w/back.yaml", "outer.yaml") is False  # the link itself can be replaced


def test_links_in_a_circle_come_to_an_end(root: Path) -> None:
    (root / "w" / "round").symlink_to("round")
    assert found(root, "w/round") is False


def test_a_file_with_other_names_may_be_in_reach(root: Path) -> None:
    os.link(root / "outer.yaml", root / "w" / "other.yaml")
    assert found(root, "outer.yaml") is False


def test_what_cannot_be_looked_at_may_be_in_reach(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os.path, "isfile", lambda _path: True)
    assert found(root, "gone.yaml") is False


def test_texts_folders_and_nothing_are_told_apart(root: Path) -> None:
    assert fingerprint(str(root / "outer.yaml")) == fingerprint_of("b")
    before = fingerprint(str(root / "w"))
    (root / "w" / "more").touch()
    assert fingerprint(str(root / "w")) != before
    assert fingerprint(str(root / "none")) == ABSENT
    (root / "round").symlink_to("round")
    assert fingerprint(str(root / "round")) == UNREADABLE


def test_a_pinned_file_is_known_again_and_no_other_one_is(root: Path) -> None:
    path = str(root / "outer.yaml")
    pinned = pin(path)
    assert pinned is not None
    with pinned:
        (root / "outer.yaml").write_text("changed in place")
        assert is_still(pinned, path)
        (root / "outer.yaml").unlink()
        assert not is_still(pinned, path)
        for _ in range(20):  # a number that is free is used again at once
            (root / "outer.yaml").unlink(missing_ok=True)
            (root / "outer.yaml").write_text("another one")
            assert not is_still(pinned, path)
    assert pin(str(root / "none")) is None
