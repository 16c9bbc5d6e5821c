"""The book of programs: what events tell, and what counts as another program."""

from __future__ import annotations

import json
from typing import Any

import pytest

from toolgate.kernel.event import Event
from toolgate.kernel.pin import FIRST_USE, FORGOTTEN, PINNED, PinBook, Program, stream_of
from toolgate.kernel.terms import NO_TERMS, ApprovalTerms
from toolgate.testing.clock import NOON

OLD = Program(
    "/srv/shop/bin/lint", "/srv/shop/bin/lint", "aa" * 32, 1234, "2026-01-01T00:00:00+00:00", "/bin/sh", "/bin/sh"
)
NEW = OLD._replace(sha256="bb" * 32, size=4, stamp="1:2:3:4:5")


def event(seq: int, name: str, **data: Any) -> Event:
    frame = json.dumps({"data": data}).encode()
    return Event("_system", seq, name, NOON, stream_of(""), frame, None, b"", b"")


def pinned(seq: int, program: Program, by: str = FIRST_USE) -> Event:
    return event(seq, PINNED, **program._asdict(), by=by)


def book(*events: Event) -> PinBook:
    found = PinBook()
    found.take(events)
    return found


def test_a_program_is_pinned_until_it_is_forgotten() -> None:
    found = book(pinned(3, OLD))
    assert found.pins[OLD.path] == (OLD, FIRST_USE, NOON)
    assert found.pins[OLD.path].as_json()["pinned_at"] == NOON.isoformat()
    found.take([event(5, FORGOTTEN, paths=[OLD.path]), pinned(3, OLD)])  # what was taken already changes nothing
    assert (found.pins, found.seq) == ({}, 5)


def test_of_two_first_uses_only_one_counts_and_a_persons_word_always_does() -> None:
    found = book(pinned(1, OLD), pinned(2, NEW))
    assert found.pins[OLD.path].program == OLD
    found.take([pinned(3, NEW, "ann")])
    assert found.pins[OLD.path][:2] == (NEW, "ann")


def test_another_time_or_number_is_no_other_program() -> None:
    found = book(pinned(1, OLD))
    assert found.changed(OLD._replace(modified="today", stamp="9")) is None
    assert found.knows([OLD])
    assert not found.knows([OLD, OLD._replace(path="/srv/shop/bin/other")])


@pytest.mark.parametrize("other", [{"sha256": "cc"}, {"target": "/elsewhere"}, {"interpreter": "/srv/shop/bin/sh"}])
def test_another_content_target_or_interpreter_is_another_program(other: dict[str, Any]) -> None:
    found = book(pinned(1, OLD))
    changed = found.changed(OLD._replace(**other))
    assert changed is not None
    assert not found.knows([changed.now])
    assert changed.as_json()["before"]["sha256"] == OLD.sha256
    assert changed.as_json()["now"][next(iter(other))] == next(iter(other.values()))


def test_the_reason_has_what_a_person_compares() -> None:
    changed = book(pinned(1, OLD)).changed(NEW._replace(interpreter=None))
    assert changed is not None
    for part in (OLD.path, "aa" * 8, "1,234 bytes", "2026-01-01", "run by /bin/sh", "bb" * 8, "4 bytes", FIRST_USE):
        assert part in changed.reason


def test_the_record_is_read_again_before_a_program_counts_as_changed() -> None:
    found = book(pinned(1, OLD))
    looks: list[str] = []

    def refresh() -> None:
        looks.append("looked")
        found.take([pinned(2, NEW, "ann")])

    found.refresh = refresh
    assert (found.all_changed([OLD]), looks) == ((), [])
    assert (found.all_changed([NEW]), looks) == ((), ["looked"])
    assert len(found.all_changed([OLD])) == 1


def test_terms_that_want_somebody_are_met_by_such_terms_alone() -> None:
    in_person = ApprovalTerms(in_person=True)
    assert ApprovalTerms.of_json(in_person.as_json()) == in_person
    assert "in_person" not in NO_TERMS.as_json()
    assert NO_TERMS.stricter(in_person) == in_person
    assert (NO_TERMS.covers(in_person), in_person.covers(in_person), in_person.covers(NO_TERMS)) == (False, True, True)
