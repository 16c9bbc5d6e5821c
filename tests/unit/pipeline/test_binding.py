"""What a handler's input says of who allowed the call."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from toolgate.kernel.call import Call
from toolgate.kernel.context import Context
from toolgate.pipeline.binding import input_of


@pytest.mark.parametrize(
    ("approved_by", "approver"), [(None, None), ("policy:auto", None), ("grant:7", None), ("ann, ben", "ann, ben")]
)
def test_only_people_who_said_yes_to_this_very_call_are_its_approvers(
    approved_by: str | None, approver: str | None
) -> None:
    call = Call(
        id="1",
        project="demo",
        tool_name="act",
        context=Context(),
        created_at=datetime.now(UTC),
        arguments=b"{}",
        approved_by=approved_by,
    )
    assert input_of(call).approver == approver
