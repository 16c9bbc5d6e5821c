"""What the events of windows add up to."""

from __future__ import annotations

import json
from typing import Any

from toolgate.kernel.event import Event
from toolgate.kernel.window import ACCEPTED, CLOSED, HELD, OPENED, RELEASED, STREAM, Ledger, Window
from toolgate.testing.clock import NOON


def event(seq: int, name: str, **data: Any) -> Event:
    return Event("_system", seq, name, NOON, STREAM, json.dumps({"data": data}).encode(), None, b"", b"")


def window(key: str, place: str = "", *, texts_at: int = 0, **files: str) -> dict[str, Any]:
    trusted = {path: frozenset({text}) for path, text in files.items()}
    return Window(key, 0, place, "default", "c1", "r1", texts_at, trusted).told()


def after(*events: Event) -> Ledger:
    ledger = Ledger()
    ledger.take(events)
    return ledger


def test_nothing_counts_at_first() -> None:
    assert (Ledger().guards(), Ledger().since) == ((), 1)


def test_a_window_is_open_until_it_is_closed() -> None:
    opened = event(3, OPENED, **window("w", a="1"))
    ledger = after(opened)
    (found,) = ledger.guards()
    assert (found.seq, found.texts_at, found.files, ledger.since) == (3, 3, {"a": frozenset({"1"})}, 3)
    ledger.take([event(4, CLOSED, window="w"), opened])  # what was taken already changes nothing
    assert (ledger.guards(), ledger.since) == ((), 5)


def test_what_a_run_left_waits_until_it_is_released() -> None:
    ledger = after(event(3, OPENED, **window("w", a="1")), event(4, HELD, **window("w", texts_at=3, a="1")))
    assert (list(ledger.windows), ledger.holds["w"].texts_at, ledger.since) == ([], 3, 4)
    ledger.take([event(5, HELD, **window("w", texts_at=3, a="1"))])
    assert ledger.since == 4
    ledger.take([event(6, RELEASED, window="w")])
    assert ledger.guards() == ()


def test_what_a_person_accepts_is_trusted_at_that_place_alone() -> None:
    ledger = after(
        event(1, OPENED, **window("open", a="1", b="1")),
        event(2, OPENED, **window("there", "other", a="1")),
        event(3, HELD, **window("held", a="1")),
        event(4, HELD, **window("half", a="1", c="1")),
        event(5, HELD, **window("held there", "other", a="1")),
        event(6, ACCEPTED, place="", files={"a": "2"}),
    )
    assert ledger.windows["open"].files == {"a": frozenset({"1", "2"}), "b": frozenset({"1"})}
    assert ledger.windows["there"].files == {"a": frozenset({"1"})}
    assert {key: set(one.files) for key, one in ledger.holds.items()} == {"half": {"c"}, "held there": {"a"}}
