"""Sealing facts into a chain, and finding every way of tampering with it."""

from __future__ import annotations

import hashlib
from datetime import timedelta
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.kernel.samples import NOW

from toolgate.errors import ToolgateError
from toolgate.kernel.event import (
    EVENTS,
    SALT_BYTES,
    ChainError,
    Draft,
    Event,
    genesis,
    link,
    open_frames,
    seal,
    unlink,
    verify,
)

SIZE = 5


def chain(size: int = SIZE, project: str = "p") -> list[Event]:
    events: list[Event] = []
    prev = genesis(project)
    for seq in range(1, size + 1):
        draft = ("tool.progress", f"c{seq}", {"attempt": 1}, {"progress": seq})
        events.append(seal(draft, project, seq, NOW + timedelta(seconds=seq), prev))
        prev = events[-1].hash
    return events


def flipped(data: bytes, bit: int) -> bytes:
    changed = bytearray(data)
    changed[bit // 8 % len(data)] ^= 1 << bit % 8
    return bytes(changed)


positions = st.integers(0, SIZE - 1)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.lists(st.tuples(st.sampled_from(sorted(EVENTS)), st.none() | st.text(), json_values, json_values), max_size=6),
    st.text(),
)
def test_whatever_is_sealed_verifies(drafts: list[tuple[str, str | None, Any, Any]], project: str) -> None:
    events: list[Event] = []
    for seq, (name, call_id, value, said) in enumerate(drafts, 1):
        prev = events[-1].hash if events else genesis(project)
        events.append(seal((name, call_id, {"value": value}, {"said": said}), project, seq, NOW, prev))
    assert verify(events) == len(drafts)
    assert [event.data for event in events] == [{"value": value, "said": said} for _, _, value, said in drafts]
    bare = [event._replace(content=None) for event in events]
    assert verify(bare) == len(drafts)
    assert [event.data for event in bare] == [{"value": value} for _, _, value, _ in drafts]


def test_an_event_has_its_columns_and_a_body_that_tells_the_same() -> None:
    event = seal(("tool.started", "c1", {"attempt": 1}, None), "p", 1, NOW, genesis("p"))
    assert isinstance(event, Event)
    assert (event.project, event.seq, event.type, event.at, event.call_id) == ("p", 1, "tool.started", NOW, "c1")
    assert orjson.loads(event.body) == {
        "at": "2026-03-04T12:00:00Z",
        "call_id": "c1",
        "data": {"attempt": 1},
        "project": "p",
        "seq": 1,
        "type": "tool.started",
    }
    assert (event.frame, event.content) == (event.body, None)
    leaf = hashlib.sha256(b"\x00" + event.frame).digest()
    assert event.hash == hashlib.sha256(b"\x01" + event.prev + leaf).digest()


@pytest.mark.parametrize("facts", [{}, {"attempt": 1}, {"last": {}}])
def test_content_is_bound_by_its_digest_and_read_with_the_facts(facts: dict[str, Any]) -> None:
    said = {"payload_summary": {"iban": "DE02"}, "why": "ü"}
    event = seal(("tool.invoked", "c1", facts, said), "p", 1, NOW, genesis("p"))
    assert event.content is not None
    assert orjson.loads(event.content[SALT_BYTES:]) == said
    frame = orjson.loads(event.frame)
    assert frame["content"] == hashlib.sha256(event.content).hexdigest()
    assert frame["data"] == facts
    assert b"DE02" not in event.frame
    assert list(orjson.loads(event.body)) == ["at", "call_id", "project", "seq", "type", "data"]
    assert event.data == {**facts, **said}


def test_the_same_content_has_another_digest_in_every_event() -> None:
    draft: Draft = ("tool.invoked", "c1", {}, {"iban": "DE02"})
    linked = link([draft] * 600, "p", NOW, 0, genesis("p"))
    assert len({orjson.loads(unlink("p", one).frame)["content"] for one in linked}) == 600


def test_destroyed_content_is_no_fault_and_altered_content_is() -> None:
    events = chain()
    assert not events[2].is_redacted
    events[2] = events[2]._replace(content=None)
    assert verify(events) == SIZE
    assert events[2].is_redacted
    assert events[2].data == {"attempt": 1}
    assert orjson.loads(events[2].body)["seq"] == 3
    events[2] = events[2]._replace(content=events[1].content)
    with pytest.raises(ChainError, match="Event 3 of project 'p' was altered: its content differs"):
        verify(events)


def test_content_that_was_put_beside_an_event_is_found() -> None:
    event = seal(("tool.started", "c1", {"attempt": 1}, None), "p", 1, NOW, genesis("p"))
    with pytest.raises(ChainError, match="its content differs"):
        verify([event._replace(content=b"0" * SALT_BYTES + b'{"attempt":2}')])
    assert event._replace(content=b"0" * SALT_BYTES + b'{"attempt":2}').data == {"attempt": 1}


@pytest.mark.parametrize("column", ["frame", "content", "prev", "hash"])
def test_what_is_not_even_bytes_is_found(column: str) -> None:
    events = chain()
    events[1] = events[1]._replace(**{column: "text"})  # type: ignore[arg-type]  # as a hand at the database may leave it
    with pytest.raises(ChainError, match="Event 2 of project 'p' was altered: it cannot be read"):
        verify(events)


def test_links_continue_the_chain_and_read_as_the_events_they_stand_for() -> None:
    draft = ("tool.started", "c1", {"attempt": 1}, None)
    linked = link((draft, draft), "p", NOW, 0, genesis("p"))
    first = seal(draft, "p", 1, NOW, genesis("p"))
    assert [unlink("p", one) for one in linked] == [first, seal(draft, "p", 2, NOW, first.hash)]
    assert linked[0][4:] == (first.frame, None, first.prev, first.hash)


def test_each_reader_of_the_data_gets_its_own_copy() -> None:
    event = chain(1)[0]
    event.data["progress"] = "changed"
    assert event.data == {"attempt": 1, "progress": 1}


def test_a_name_without_a_meaning_cannot_be_sealed() -> None:
    with pytest.raises(ChainError, match=r"'tool\.invented' is not an event name; add it to EVENTS"):
        seal(("tool.invented", None, {}, None), "p", 1, NOW, genesis("p"))


def test_every_event_name_has_a_meaning() -> None:
    assert all(meaning.endswith(".") for meaning in EVENTS.values())
    assert issubclass(ChainError, ToolgateError)
    assert ChainError.code == "chain_broken"


def test_every_project_has_its_own_beginning() -> None:
    assert genesis("p") != genesis("q")
    assert genesis("p").hex() == "1334b667cb527a9a06f860078f98141cdbb66d52a462dd192b7a7f257b01d49e"


@given(positions, st.sampled_from(["frame", "content", "prev", "hash"]), st.integers(0, 2**16))
def test_any_changed_bit_of_the_hashed_bytes_is_found(index: int, column: str, bit: int) -> None:
    events = chain()
    event = events[index]
    change: dict[str, Any] = {column: flipped(getattr(event, column), bit)}
    events[index] = event._replace(**change)
    with pytest.raises(ChainError, match=f"Event {index + 1} of project"):
        verify(events)


@given(
    positions,
    st.sampled_from(
        [
            {"project": "q"},
            {"seq": 99},
            {"type": "tool.failed"},
            {"call_id": "c99"},
            {"call_id": None},
        ]
    ),
)
def test_any_changed_column_is_found(index: int, change: dict[str, Any]) -> None:
    events = chain()
    events[index] = events[index]._replace(**change)
    with pytest.raises(ChainError):
        verify(events)


def test_a_changed_column_is_named_as_a_contradiction() -> None:
    events = chain()
    events[2] = events[2]._replace(type="tool.failed")
    with pytest.raises(ChainError, match="Event 3 of project 'p' shows columns that its frame contradicts"):
        verify(events)


def test_a_changed_time_is_found() -> None:
    events = chain()
    events[2] = events[2]._replace(at=NOW)
    with pytest.raises(ChainError, match="Event 3"):
        verify(events)


@given(st.integers(0, SIZE - 2))
def test_a_removed_event_is_found(index: int) -> None:
    events = chain()
    del events[index]
    with pytest.raises(ChainError, match=f"Event {index + 1} of project 'p' is missing: found {index + 2}"):
        verify(events)


def test_a_missing_end_shows_in_the_count_only() -> None:
    assert verify(chain()[:-1]) == SIZE - 1


@given(st.permutations(range(SIZE)).filter(lambda order: order != list(range(SIZE))))
def test_any_other_order_is_found(order: list[int]) -> None:
    events = chain()
    with pytest.raises(ChainError):
        verify([events[index] for index in order])


@given(positions, st.integers(0, SIZE))
def test_a_repeated_event_is_found(copied: int, position: int) -> None:
    events = chain()
    events.insert(position, events[copied])
    with pytest.raises(ChainError):
        verify(events)


@given(st.integers(0, SIZE - 1))
def test_an_inserted_event_is_found_even_when_it_links_to_the_one_before(index: int) -> None:
    events = chain()
    prev = events[index - 1].hash if index else genesis("p")
    forged = seal(("tool.denied", "c0", {}, None), "p", index + 1, NOW, prev)
    events.insert(index, forged)
    with pytest.raises(ChainError, match=f"Event {index + 2}"):
        verify(events)


@given(st.integers(0, SIZE - 2))
def test_a_rewritten_event_breaks_the_link_after_it(index: int) -> None:
    events = chain()
    event = events[index]
    events[index] = seal((event.type, event.call_id, {}, {"progress": "forged"}), "p", event.seq, event.at, event.prev)
    with pytest.raises(ChainError, match=f"Event {index + 2} of project 'p' does not link to the one before it"):
        verify(events)


def test_a_chain_of_another_project_is_not_a_beginning_of_this_one() -> None:
    events = [event._replace(project="q") for event in chain()]
    with pytest.raises(ChainError, match="Event 1 of project 'q' does not link"):
        verify(events)


@given(st.integers(1, SIZE))
def test_a_chain_can_be_checked_from_any_known_event_on(known: int) -> None:
    events = chain()
    last = events[known - 1]
    assert verify(events[known:], after=(last.seq, last.hash)) == SIZE - known


def test_a_wrong_starting_point_is_found() -> None:
    events = chain()
    with pytest.raises(ChainError, match="Event 3 of project 'p' does not link"):
        verify(events[2:], after=(2, events[0].hash))
    with pytest.raises(ChainError, match="Event 2 of project 'p' is missing: found 3"):
        verify(events[2:], after=(1, events[1].hash))
    with pytest.raises(ChainError, match="Event 1 of project 'p' is missing: found 3"):
        verify(events[2:])


def test_no_events_are_a_chain() -> None:
    assert verify([]) == 0


def test_an_event_of_another_project_does_not_continue_a_chain() -> None:
    events = chain()
    stranger = seal(("tool.invoked", "c", {}, None), "q", events[-1].seq + 1, NOW, events[-1].hash)
    with pytest.raises(ChainError, match="belongs to project 'q', not to 'p'"):
        verify([*events, stranger])


@pytest.mark.parametrize("frame", [b"no json", b"[]", b"{}", b'{"project": "p"}', b'{"at": 5}'])
def test_a_frame_that_is_not_an_event_is_found(frame: bytes) -> None:
    prev = genesis("p")
    digest = hashlib.sha256(b"\x01" + prev + hashlib.sha256(b"\x00" + frame).digest()).digest()
    event = Event("p", 1, "tool.invoked", NOW, None, frame, None, prev, digest)
    with pytest.raises(ChainError, match="a frame that is not an event"):
        verify([event])


@given(st.none() | st.text(), json_values, json_values, st.integers(1, 2**62))
def test_a_frame_that_is_numbered_elsewhere_is_the_same_as_one_that_is_numbered_here(
    call_id: str | None, facts: Any, said: Any, seq: int
) -> None:
    draft: Draft = ("tool.progress", call_id, facts, said)
    ((name, told_of, before, after, content),) = open_frames((draft,), "p", NOW)
    frame = f"{before}{seq}{after}".encode()
    assert (name, told_of) == draft[:2]
    here = orjson.loads(seal(draft, "p", seq, NOW, genesis("p")).frame)
    there = orjson.loads(frame)
    assert (here.pop("content", None) is None) == (there.pop("content", None) is None) == (content is None)
    assert list(here.items()) == list(there.items())
    node = hashlib.sha256(b"\x01" + genesis("p") + hashlib.sha256(b"\x00" + frame).digest()).digest()
    verify([Event("p", seq, name, NOW, told_of, frame, content, genesis("p"), node)], after=(seq - 1, genesis("p")))


def test_a_frame_of_an_unknown_name_is_refused() -> None:
    with pytest.raises(ChainError, match="not an event name"):
        open_frames((("tool.invented", None, {}, None),), "p", NOW)
