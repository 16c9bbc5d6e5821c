"""A demo in which a step went wrong says which, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from toolgate.interfaces.demo import story
from toolgate.interfaces.demo.checking import Ended, Failure, Record, broken, unkept

PAGE = "http://127.0.0.1:1/"


def good(*, sandbox: bool = True) -> Record:
    """A performance in which all went as told."""
    calls = [
        Ended(step=step, status=status, outcome="fine")
        for step, statuses in story.ends(PAGE, sandbox=sandbox).items()
        for status in statuses
        if step != story.TESTS
    ]
    tests = [Ended(step=story.TESTS, status="completed", outcome=f"exit code {code}: ...") for code in (1, 0)]
    return Record(
        calls=calls + tests if sandbox else calls,
        answers=dict(story.ANSWERS),
        undone=dict(story.UNDONE),
        verified=3,
    )


def missed(
    record: Record,
    *,
    sandbox: bool = True,
    files: dict[str, str] = story.FILES,
    refunds: Sequence[str] = (story.ORDER,),
) -> list[Failure]:
    return unkept(record, sandbox=sandbox, page=PAGE, letters=story.PILOT, refunds=refunds, files=files)


@pytest.mark.parametrize("sandbox", [True, False])
def test_a_good_performance_has_no_failure(sandbox: bool) -> None:
    record = good(sandbox=sandbox)
    assert missed(record, sandbox=sandbox) == []
    assert broken(record) == []


def test_a_call_that_failed_is_named_with_its_error_whoever_decided() -> None:
    record = good()
    place = next(place for place, one in enumerate(record.calls) if one.step.startswith("fetch_url"))
    record.calls[place] = replace(record.calls[place], status="failed", outcome="Permission denied")
    (said,) = broken(record)
    assert said == Failure(step=f"fetch_url {PAGE}", why="failed: Permission denied")
    assert missed(record) == [said]


def test_a_call_that_the_policy_denied_is_a_failure_unless_the_story_has_it() -> None:
    record = Record(calls=[Ended(step=step, status="denied", outcome="rule") for step in (story.PROTECTED, story.EDIT)])
    assert [one.step for one in broken(record)] == [story.EDIT]


def test_a_refund_that_was_paid_twice_is_named() -> None:
    assert [one.step for one in missed(good(), refunds=[story.ORDER] * 2)] == ["refunds"]


def test_steps_that_never_came_and_wrong_ends_are_named() -> None:
    record = good()
    record.calls = [one for one in record.calls if one.step != story.JUNK]
    record.answers[story.EDIT] = "rejected"
    record.undone = {}
    record.verified = 0
    assert {one.step for one in missed(record, files={})} == {
        story.JUNK, story.EDIT, f"undo of {story.EDIT}", f"undo of {story.JUNK}", "undo", "audit",
    }  # fmt: skip


def test_tests_that_pass_before_the_repair_are_a_failure() -> None:
    record = good()
    record.calls = [replace(one, outcome="exit code 0: OK") if one.step == story.TESTS else one for one in record.calls]
    (said,) = missed(record)
    assert said.why == "gave exit code 0, exit code 0, not exit code 1, exit code 0"
