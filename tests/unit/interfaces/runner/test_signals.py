"""What a server sends is read strictly: what is no signal is named, and nothing of it is acted upon."""

from __future__ import annotations

from typing import Any

import pytest

from toolgate.errors import UsageError
from toolgate.interfaces.runner.signals import LONGEST_LEASE_S, Recall, Signal, printable, signal_of

RUN: dict[str, Any] = {
    "tool_id": "t1",
    "tool_name": "read_file",
    "tool_params": {"path": "a"},
    "fence": "f1",
    "attempt": 1,
    "timeout_seconds": 30,
    "timestamp": "now",
}


def test_a_signal_to_run_is_read() -> None:
    read = signal_of("tool.execution_signal", RUN)
    assert read == Signal(
        tool_id="t1", tool_name="read_file", fence="f1", attempt=1, lease_s=30.0, params={"path": "a"}
    )
    assert "path" not in repr(read)  # parameters may be secret


@pytest.mark.parametrize(
    ("sent", "read"), [({"effect_key": "refund:p1"}, "refund:p1"), ({"effect_key": None}, ""), ({}, None)]
)
def test_the_key_of_an_effect_is_read(sent: dict[str, Any], read: str | None) -> None:
    signal = signal_of("tool.execution_signal", {**RUN, **sent})
    assert isinstance(signal, Signal)
    assert signal.effect_key == read


def test_a_signal_to_undo_takes_no_data_of_the_servers() -> None:
    undo = {**RUN, "undo_of": "t0", "undo_data": {"path": "/etc/passwd", "before": "x"}}
    read = signal_of("tool.undo_signal", undo)
    assert isinstance(read, Signal)
    assert (read.undo_of, read.params) == ("t0", {})


def test_a_recall_is_read_and_its_words_cannot_move_the_cursor() -> None:
    read = signal_of("tool.cancel_signal", {"tool_id": "t1", "reason": "stop\x1b[2J\nnow"})
    assert read == Recall(tool_id="t1", reason="stop [2J now")


def test_other_events_ask_nothing() -> None:
    assert signal_of("tool.completed", {"anything": 1}) is None
    assert signal_of("", {}) is None


def test_a_lease_lasts_a_day_at_most() -> None:
    read = signal_of("tool.execution_signal", {**RUN, "timeout_seconds": 1e300})
    assert isinstance(read, Signal)
    assert read.lease_s == LONGEST_LEASE_S


@pytest.mark.parametrize(
    "change",
    [
        {"tool_id": ""},
        {"tool_id": 7},
        {"tool_id": "a\nb"},
        {"tool_id": "x" * 129},
        {"tool_name": "rm -rf /"},
        {"tool_name": None},
        {"tool_params": "path=a"},
        {"tool_params": None},
        {"tool_params": [1]},
        {"fence": None},
        {"fence": ""},
        {"attempt": -1},
        {"attempt": "1"},
        {"effect_key": 7},
        {"effect_key": "a\x1b[2J"},
        {"effect_key": "a" * 257},
        {"attempt": 10**9},
        {"timeout_seconds": 0},
        {"timeout_seconds": -1},
        {"timeout_seconds": "soon"},
        {"timeout_seconds": float("nan")},
        {"timeout_seconds": float("inf")},
    ],
)
def test_what_does_not_fit_is_no_signal(change: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        signal_of("tool.execution_signal", {**RUN, **change})


@pytest.mark.parametrize("name", ["tool.execution_signal", "tool.undo_signal", "tool.cancel_signal"])
def test_an_empty_signal_is_none(name: str) -> None:
    with pytest.raises(UsageError, match=name):
        signal_of(name, {})


def test_a_refusal_does_not_repeat_what_was_sent() -> None:
    with pytest.raises(UsageError) as refused:
        signal_of("tool.execution_signal", {**RUN, "tool_id": "secret\x1b[31m"})
    assert "secret" not in str(refused.value)
    assert "\x1b" not in str(refused.value)


def test_words_are_one_short_line() -> None:
    assert printable("a\r\n\tb\x00c" + "d" * 500) == ("a b c" + "d" * 500)[:200]
