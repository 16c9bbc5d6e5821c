from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from toolgate.errors import ToolOutputError
from toolgate.kernel.call import Call
from toolgate.kernel.context import Context
from toolgate.pipeline.reporting import BURST, MOST_CALLS, Reports, checked_fraction, shortened

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def a_call(id: str = "c") -> Call:
    return Call(id=id, project="p", tool_name="t", context=Context(), created_at=NOW)


def test_a_call_has_a_burst_and_then_two_a_second() -> None:
    reports = Reports()
    assert [reports.take(a_call(), NOW) for _ in range(BURST + 1)] == [True] * BURST + [False]
    later = NOW + timedelta(seconds=1)
    assert [reports.take(a_call(), later) for _ in range(3)] == [True, True, False]
    assert reports.take(a_call("d"), NOW)


def test_calls_of_long_ago_are_forgotten() -> None:
    reports = Reports()
    for number in range(MOST_CALLS + 1):
        reports.take(a_call(str(number)), NOW)
    assert len(reports._levels) == MOST_CALLS


@pytest.mark.parametrize("fraction", [None, 0, 0.5, 1, 50])
def test_a_fraction_is_a_number(fraction: float | None) -> None:
    assert checked_fraction(fraction) == fraction


@pytest.mark.parametrize("fraction", ["half", [1], 10**400, float("inf"), float("nan")])
def test_anything_else_is_none(fraction: object) -> None:
    with pytest.raises(ToolOutputError, match="is a number"):
        checked_fraction(fraction)


def test_a_long_message_ends_with_a_sign_that_it_was_cut() -> None:
    assert (shortened("a"), len(shortened("a" * 3000)), shortened("a" * 3000)[-1]) == ("a", 2000, "\u2026")
