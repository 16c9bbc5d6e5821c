from __future__ import annotations

import pytest

from toolgate.kernel.call import Status
from toolgate.kernel.output import Result
from toolgate.kernel.response import ToolResponse


@pytest.mark.parametrize(
    ("status", "shown", "error"),
    [
        (Status.COMPLETED, "completed", "e"),
        (Status.FAILED, "failed", "e"),
        (Status.DENIED, "failed", "e"),
        (Status.UNKNOWN, "failed", "e"),
        (Status.REJECTED, "rejected", "e"),
        (Status.CANCELLED, "rejected", "e"),
        (Status.TIMEOUT, "rejected", "timeout"),
        (Status.AWAITING_APPROVAL, "awaiting_approval", "e"),
    ],
)
def test_a_response_knows_fewer_states(status: Status, shown: str, error: str) -> None:
    result = Result(
        call_id="c", tool_name="t", status=status, data={"d": 1}, error="e", error_code="x", approval_id="a"
    )
    response = ToolResponse.of(result)
    assert (response.tool_id, response.tool_name, response.result) == ("c", "t", {"d": 1})
    assert (response.status, response.error, response.error_type, response.approval_id) == (shown, error, "x", "a")
    assert response.success is (status is Status.COMPLETED)
