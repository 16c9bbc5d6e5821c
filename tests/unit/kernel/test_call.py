"""The statuses of a call and which may follow which."""

from __future__ import annotations

import copy
import itertools
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.kernel.samples import NOW, a_call

from toolgate.errors import ConflictError
from toolgate.kernel.call import TRANSITIONS, Call, Status
from toolgate.kernel.record import evolve

# Written out a second time, as the architecture page has it, so that a slip in the table is seen.
FOLLOWS = {
    "PENDING": "AWAITING_APPROVAL APPROVED EXECUTING DENIED FAILED CANCELLED",
    "AWAITING_APPROVAL": "APPROVED REJECTED TIMEOUT DENIED CANCELLED",
    "APPROVED": "EXECUTING AWAITING_APPROVAL DENIED FAILED CANCELLED TIMEOUT",
    "EXECUTING": "COMPLETED FAILED CANCELLED UNKNOWN",
    "UNKNOWN": "COMPLETED FAILED",
}
ENDS = {"COMPLETED", "FAILED", "DENIED", "REJECTED", "TIMEOUT", "CANCELLED"}
statuses = st.sampled_from(list(Status))


@pytest.mark.parametrize(("here", "there"), list(itertools.product(Status, Status)))
def test_a_step_is_taken_exactly_when_the_table_has_it(here: Status, there: Status) -> None:
    call = a_call(status=here, version=3)
    if there in FOLLOWS.get(here, "").split():
        moved = call.to(there)
        assert (moved.status, moved.version) == (there, 4)
    else:
        with pytest.raises(ConflictError, match=f"^Call c1 is {here} and cannot become {there}\\.$"):
            call.to(there)


def test_final_are_the_ends_and_unknown() -> None:
    assert {status for status in Status if status.is_final} == ENDS | {"UNKNOWN"}
    assert {status for status in Status if not TRANSITIONS[status]} == ENDS
    assert set(TRANSITIONS) == set(Status)


@given(st.lists(statuses, max_size=12))
def test_no_path_leaves_an_end(path: list[Status]) -> None:
    call = a_call()
    for status in path:
        before = call
        try:
            call = call.to(status)
        except ConflictError:
            call = before
        assert call.version == before.version + (call is not before)
        if before.status in ENDS:
            assert call is before
        if before.is_final and call is not before:
            assert (before.status, call.status) in {
                (Status.UNKNOWN, Status.COMPLETED),
                (Status.UNKNOWN, Status.FAILED),
            }


def test_every_status_can_be_reached_from_pending() -> None:
    reached = {Status.PENDING}
    while more := {following for status in reached for following in TRANSITIONS[status]} - reached:
        reached |= more
    assert reached == set(Status)


def test_nothing_executes_twice_without_passing_an_end() -> None:
    after_execution = {Status.EXECUTING}
    while more := {following for status in after_execution for following in TRANSITIONS[status]} - after_execution:
        after_execution |= more
    assert Status.EXECUTING not in {following for status in after_execution for following in TRANSITIONS[status]}
    assert Status.APPROVED not in after_execution


def test_a_step_carries_its_changes_and_keeps_the_rest() -> None:
    call = a_call(arguments=b'{"a":1}', version=1)
    moved = evolve(call.to(Status.EXECUTING), owner="me", started_at=NOW)
    assert moved == a_call(arguments=b'{"a":1}', version=2, status=Status.EXECUTING, owner="me", started_at=NOW)
    assert call == a_call(arguments=b'{"a":1}', version=1)


def test_staying_counts_a_version_and_keeps_the_status() -> None:
    call = a_call(status=Status.AWAITING_APPROVAL, version=1)
    assert evolve(call.stay(), due_at=NOW) == a_call(status=Status.AWAITING_APPROVAL, version=2, due_at=NOW)


@pytest.mark.parametrize("status", Status)
def test_a_call_is_final_when_its_status_is(status: Status) -> None:
    assert a_call(status=status).is_final is status.is_final


@pytest.mark.parametrize("status", Status)
def test_a_status_is_found_by_its_text_and_survives_pickling(status: Status) -> None:
    assert hash(status) == hash(status.value)
    assert {status.value: 1}[status] == 1
    assert pickle.loads(pickle.dumps(status)) is status
    assert copy.deepcopy(status) is status
    assert isinstance(status.is_final, bool)


def test_a_new_call_is_pending_at_version_zero_and_counts_as_having_effects() -> None:
    call = Call(id="c", project="p", tool_name="t", context=a_call().context, created_at=NOW)
    assert (call.status, call.version, call.has_effects, call.arguments) == (Status.PENDING, 0, True, b"{}")
