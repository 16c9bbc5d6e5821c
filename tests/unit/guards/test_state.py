"""Where a folder's database and policy are: outside of it, if they are kept there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import toolgate
from toolgate.adapters.sqlite.place import known, make_place, workspace_database
from toolgate.errors import UsageError
from toolgate.guards.state import database_of, place_of, policy_folder, state_folder
from toolgate.policy.loader import PolicySource, find_policy


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    (tmp_path / "a" / "shop").mkdir(parents=True)
    return tmp_path / "a" / "shop"


def test_the_state_folder_is_the_users(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert state_folder() == home / "toolgate"
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    monkeypatch.setenv("HOME", "/home/ann")
    assert state_folder() == Path("/home/ann/.local/state/toolgate")
    monkeypatch.setattr(os.path, "expanduser", lambda _path: "~")  # a user without an entry, and no HOME
    assert state_folder() is None
    assert place_of(".") is None
    assert database_of("/nowhere") is None
    assert policy_folder("x") == Path("x")
    assert known() == []
    with pytest.raises(UsageError, match=r"no home folder.*--database FILE or TOOLGATE_DATABASE"):
        workspace_database("/nowhere")


def test_each_folder_has_one_of_its_own_by_its_real_path(shop: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(shop)
    (tmp_path / "b" / "shop").mkdir(parents=True)
    one = place_of(shop)
    assert one is not None
    assert one == place_of(tmp_path / "link") == place_of(shop / ".." / "shop")
    assert one != place_of(tmp_path / "b" / "shop")
    assert one.name.startswith("shop-")
    odd = place_of(tmp_path / "-.äö \n\udcff")
    root = place_of("/")
    assert odd is not None
    assert odd.name.isascii()
    assert root is not None
    assert root.name.startswith("folder-")


def test_what_is_kept_outside_comes_before_what_is_put_into_the_folder(shop: Path) -> None:
    (shop / "toolgate.db").write_bytes(b"of an earlier version")
    assert database_of(shop) == workspace_database(shop) == shop / "toolgate.db"
    place = make_place(shop)
    (place / "toolgate.db").write_bytes(b"kept")
    assert database_of(shop) == workspace_database(shop) == place / "toolgate.db"


def test_a_place_is_its_owners_alone(shop: Path, home: Path) -> None:
    database = toolgate.workspace_database(shop)
    assert not database.exists()
    assert {one.stat().st_mode & 0o777 for one in (database.parent, *database.parents[1:3])} == {0o700}
    assert known() == []
    with toolgate.open(database):
        pass
    assert [(one.folder, one.database, one.is_gone) for one in known()] == [(str(shop), database, False)]
    shop.rename(shop.with_name("store"))
    assert known()[0].is_gone
    (database.parent / "folder").unlink()
    assert known()[0].folder == "?"


def test_a_place_that_cannot_be_made_says_what_to_do(shop: Path, home: Path) -> None:
    home.write_text("no folder")
    with pytest.raises(UsageError, match=r"cannot be used \(Not a directory\).*--database FILE"):
        workspace_database(shop)


def test_a_policy_kept_outside_is_the_only_one(shop: Path) -> None:
    (shop / "config" / "governance").mkdir(parents=True)
    for planted in (shop / "toolgate.yaml", shop / "config" / "governance" / "tools.yaml"):
        planted.write_text("version: 1\ndefault: allow\n")
    assert len(find_policy(shop)) == 2
    kept = make_place(shop) / "toolgate.yaml"
    kept.write_text("version: 1\ndefault: deny\n")
    assert find_policy(shop) == (kept,)
    assert PolicySource(shop).load().documents[0].name == str(kept)
