"""The list of signals: each is taken once, and stays open until its report was delivered or refused."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from toolgate.errors import StoreError
from toolgate.interfaces.runner.ledger import Delivery, Ledger, Taken
from toolgate.interfaces.runner.signals import Signal

ONE = Signal(tool_id="t1", tool_name="write_file", fence="f1", attempt=1, lease_s=30.0, params={"content": "canary-77"})


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    ledger = Ledger(tmp_path / "signals.db")
    yield ledger
    ledger.close()


def test_a_signal_is_new_once(ledger: Ledger) -> None:
    assert [ledger.take(ONE), ledger.take(ONE)] == [Taken.NEW, Taken.DUPLICATE]
    assert [record.tool_id for record in ledger.open_signals()] == ["t1"]


def test_a_later_offer_of_the_same_call_takes_the_place_of_the_earlier(ledger: Ledger) -> None:
    ledger.take(ONE)
    record = ledger.open_signals()[0]
    again = dataclasses.replace(ONE, fence="f2", attempt=2)
    assert ledger.take(again) is Taken.AGAIN
    assert not ledger.close_signal(record, Delivery.DELIVERED)
    assert [(record.fence, record.attempt) for record in ledger.open_signals()] == [("f2", 2)]


@pytest.mark.parametrize("attempt", [0, 1])
def test_an_earlier_or_equal_attempt_under_another_fence_is_no_new_offer(ledger: Ledger, attempt: int) -> None:
    ledger.take(ONE)
    assert ledger.take(dataclasses.replace(ONE, fence="f2", attempt=attempt)) is Taken.DUPLICATE


@pytest.mark.parametrize("change", [{"tool_name": "delete_file"}, {"undo_of": "t0"}])
def test_an_id_belongs_to_one_tool_and_one_purpose(ledger: Ledger, change: dict[str, str]) -> None:
    ledger.take(ONE)
    forged = dataclasses.replace(ONE, fence="f2", attempt=2, **change)  # type: ignore[arg-type]
    assert ledger.take(forged) is Taken.FOREIGN
    assert ledger.open_signals()[0].fence == "f1"


@pytest.mark.parametrize("state", [Delivery.DELIVERED, Delivery.REFUSED])
def test_what_was_delivered_or_refused_is_open_no_more(ledger: Ledger, state: Delivery) -> None:
    ledger.take(ONE)
    [record] = ledger.open_signals()
    assert ledger.close_signal(record, state)
    assert ledger.open_signals() == []
    assert ledger.open_signal("t1") is None
    assert ledger.take(ONE) is Taken.DUPLICATE


def test_it_is_there_after_the_process_and_holds_no_parameters(tmp_path: Path) -> None:
    path = tmp_path / "signals.db"
    first = Ledger(path)
    first.take(ONE)
    first.note("t1", "too much to do")
    second = Ledger(path)  # the first was never closed, as after a kill
    [record] = second.open_signals()
    assert (record.signal, record.note) == (dataclasses.replace(ONE, params={}), "too much to do")
    assert path.stat().st_mode & 0o077 == 0
    assert all(b"canary-77" not in file.read_bytes() for file in tmp_path.iterdir())
    first.close()
    second.close()


def test_a_file_that_is_no_list_is_refused(tmp_path: Path) -> None:
    (tmp_path / "signals.db").write_bytes(b"something else" * 1000)
    with pytest.raises(StoreError, match="cannot be used") as refused:
        Ledger(tmp_path / "signals.db")
    held = {file.path for file in psutil.Process().open_files()}
    assert str(tmp_path / "signals.db") not in held, f"still open after: {refused.value}"
