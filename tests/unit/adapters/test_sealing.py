"""What is sealed can be opened with the right key, for the row it was sealed for, and by nobody else."""

from __future__ import annotations

import base64
import os
import stat
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.kernel.samples import NOW, an_approval

from toolgate.adapters.sealing import ENVIRONMENT, KEY_BYTES, Sealer, key_id, load, new_key
from toolgate.errors import StoreError
from toolgate.kernel.approval import ApprovalStatus
from toolgate.kernel.marks import Marks
from toolgate.kernel.record import evolve

OLD, NEW = bytes(KEY_BYTES), bytes(range(KEY_BYTES))
ROW = b"params\x00default\x00c1"


@pytest.fixture(autouse=True)
def no_key_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(ENVIRONMENT, raising=False)


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    return tmp_path / "toolgate.db.key"


def text(*keys: bytes) -> str:
    return "\n".join(base64.b64encode(key).decode() for key in keys) + "\n"


def put(path: Path, content: str, mode: int = 0o600) -> Path:
    path.write_text(content, encoding="latin-1")
    path.chmod(mode)
    return path


@given(data=st.binary(max_size=300), row=st.binary(max_size=50))
def test_what_is_sealed_can_be_opened(data: bytes, row: bytes) -> None:
    sealer = Sealer([OLD])
    assert sealer.open(sealer.seal(data, row), row) == data


def test_the_same_value_never_looks_the_same_twice() -> None:
    sealer = Sealer([OLD])
    boxes = {sealer.seal(b"secret", ROW) for _ in range(50)}
    assert len(boxes) == 50
    assert not [box for box in boxes if b"secret" in box]


def test_a_box_moved_to_another_row_is_refused() -> None:
    sealer = Sealer([OLD])
    box = sealer.seal(b"pay 1", ROW)
    with pytest.raises(StoreError, match="another row"):
        sealer.open(box, b"params\x00default\x00c2")


def test_a_box_with_any_bit_changed_is_refused() -> None:
    sealer = Sealer([OLD])
    box = sealer.seal(b"pay 1", ROW)
    for at in range(len(box)):
        altered = box[:at] + bytes([box[at] ^ 1]) + box[at + 1 :]
        with pytest.raises(StoreError):
            sealer.open(altered, ROW)


@pytest.mark.parametrize("kept", [0, 1, 4, 15, 16, 20])
def test_a_box_that_was_cut_short_is_refused(kept: int) -> None:
    sealer = Sealer([OLD])
    with pytest.raises(StoreError):
        sealer.open(sealer.seal(b"pay 1", ROW)[:kept], ROW)


def test_a_box_of_a_missing_key_says_which_one_is_missing() -> None:
    box = Sealer([OLD]).seal(b"pay 1", ROW)
    with pytest.raises(StoreError, match=key_id(OLD).hex()):
        Sealer([NEW]).open(box, ROW)


def test_a_key_on_top_seals_while_the_old_one_still_opens() -> None:
    before = Sealer([OLD]).seal(b"old", ROW)
    rotated = Sealer([NEW, OLD])
    after = rotated.seal(b"new", ROW)
    assert (rotated.open(before, ROW), rotated.open(after, ROW)) == (b"old", b"new")
    assert after.startswith(key_id(NEW))
    assert rotated.current == key_id(NEW).hex()
    with pytest.raises(StoreError):
        Sealer([OLD]).open(after, ROW)


def test_a_key_is_named_without_being_told() -> None:
    assert key_id(OLD) not in OLD
    assert Sealer([OLD]).knows(key_id(OLD).hex())
    assert not Sealer([OLD]).knows(key_id(NEW).hex())


@pytest.mark.parametrize("keys", [[], [b"short"], [OLD, b"short"]])
def test_a_sealer_needs_whole_keys(keys: list[bytes]) -> None:
    with pytest.raises(StoreError, match="32 bytes"):
        Sealer(keys)


def test_the_first_opening_makes_a_key_only_its_owner_may_read(key_file: Path) -> None:
    old = os.umask(0)
    try:
        first = load(key_file, create=True)
    finally:
        os.umask(old)
    assert stat.S_IMODE(key_file.stat().st_mode) == 0o600
    assert os.listdir(key_file.parent) == [key_file.name]
    box = first.seal(b"kept", ROW)
    assert load(key_file, create=False).open(box, ROW) == b"kept"


def test_every_database_gets_a_key_of_its_own(tmp_path: Path) -> None:
    one, two = (load(tmp_path / name, create=True) for name in ("a.key", "b.key"))
    assert one.current != two.current


def test_many_who_open_at_once_agree_on_one_key(key_file: Path) -> None:
    together, found = threading.Barrier(8), []

    def open_it() -> None:
        together.wait()
        found.append(load(key_file, create=True).current)

    threads = [threading.Thread(target=open_it) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(found), len(set(found))) == (8, 1)


def test_a_missing_key_is_an_error_and_no_other_one_is_made(key_file: Path) -> None:
    with pytest.raises(StoreError, match="missing"):
        load(key_file, create=False)
    assert not key_file.exists()


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o601])
def test_a_key_file_that_others_can_read_is_refused(key_file: Path, mode: int) -> None:
    put(key_file, text(OLD), mode)
    with pytest.raises(StoreError, match="chmod 600"):
        load(key_file, create=True)
    assert key_file.read_text() == text(OLD)


@pytest.mark.parametrize(
    "content", ["", " \n", "garbage", text(OLD) + "garbage", text(b"too short"), text(OLD + b"more"), "\xff\xfe"]
)
def test_a_key_file_with_anything_but_keys_in_it_is_refused_and_left_alone(key_file: Path, content: str) -> None:
    put(key_file, content)
    with pytest.raises(StoreError, match=r"toolgate\.db\.key"):
        load(key_file, create=True)
    assert key_file.read_text(encoding="latin-1") == content


def test_an_error_never_quotes_the_key(key_file: Path) -> None:
    put(key_file, text(OLD)[:-9])
    with pytest.raises(StoreError) as refused:
        load(key_file, create=True)
    assert text(OLD)[:8] not in str(refused.value)


def test_a_key_file_that_is_a_folder_is_refused(key_file: Path) -> None:
    key_file.mkdir(mode=0o700)
    with pytest.raises(StoreError, match="cannot be"):
        load(key_file, create=True)


def test_a_key_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be created"):
        load(tmp_path / "no such folder" / "toolgate.db.key", create=True)


@pytest.mark.parametrize("separator", [",", " ", "\n", ", "])
def test_keys_in_the_environment_come_first(key_file: Path, monkeypatch: pytest.MonkeyPatch, separator: str) -> None:
    put(key_file, "garbage that is not looked at")
    monkeypatch.setenv(ENVIRONMENT, separator.join(text(NEW, OLD).split()))
    sealer = load(key_file, create=True)
    assert sealer.current == key_id(NEW).hex()
    assert sealer.knows(key_id(OLD).hex())


def test_with_a_key_in_the_environment_no_file_is_made(key_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENVIRONMENT, new_key())
    load(key_file, create=True)
    assert not key_file.exists()


@pytest.mark.parametrize("value", [" ", ",", "garbage", text(b"too short")])
def test_garbage_in_the_environment_is_refused(key_file: Path, monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv(ENVIRONMENT, value)
    with pytest.raises(StoreError, match=ENVIRONMENT):
        load(key_file, create=True)
    assert not key_file.exists()


def test_new_keys_are_keys() -> None:
    made = {new_key() for _ in range(20)}
    assert len(made) == 20
    assert {len(base64.b64decode(key)) for key in made} == {KEY_BYTES}


def test_a_decision_marked_under_a_rotated_key_still_holds(key_file: Path) -> None:
    approval = an_approval().close(ApprovalStatus.APPROVED, at=NOW, by="ann")
    old = load(put(key_file, text(OLD)), create=False).marks
    marked = old.put(approval)
    put(key_file, text(NEW, OLD))
    new = load(key_file, create=False).marks
    assert new.hold(marked)
    remarked = new.put(approval)
    assert remarked.mark != marked.mark
    assert old.hold(remarked), "a process that has been open for longer looks into the file again"
    put(key_file, text(NEW))
    assert not load(key_file, create=False).marks.hold(marked)


def test_the_key_that_marks_is_not_the_one_that_seals() -> None:
    approval = an_approval().close(ApprovalStatus.APPROVED, at=NOW, by="ann")
    sealer = Sealer([OLD])
    forged = Marks(sealer.current, {sealer.current: OLD}.get).put(approval)
    assert not sealer.marks.hold(forged)
    assert not sealer.marks.hold(evolve(approval, mark="no hex:00"))
