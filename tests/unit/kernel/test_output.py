"""What tools return, what callers get, and which error each end stands for."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from tests.unit.kernel.samples import a_call

from toolgate import errors
from toolgate.kernel.call import Status
from toolgate.kernel.output import Result, ToolOutput, result_of


@dataclass
class Report:
    at: datetime
    pages: tuple[int, ...]


def a_result(**fields: Any) -> Result:
    return Result(**{"call_id": "c1", "tool_name": "edit", "status": Status.COMPLETED, **fields})


def test_an_output_has_the_documented_fields_in_order() -> None:
    output = ToolOutput(True, {"a": 1}, None, {"old": 2}, ["artifact"])
    assert (output.success, output.data, output.error) == (True, {"a": 1}, None)
    assert (output.undo_metadata, output.artifacts) == ({"old": 2}, ["artifact"])


def test_ok_and_fail_are_short_for_the_constructor() -> None:
    assert ToolOutput.ok() == ToolOutput(success=True)
    assert ToolOutput.ok(1, undo_metadata={"a": 1}, artifacts=[2]) == ToolOutput(True, 1, None, {"a": 1}, [2])
    assert ToolOutput.fail("no", data=1) == ToolOutput(success=False, data=1, error="no")


def test_two_outputs_do_not_share_their_artifacts() -> None:
    ToolOutput(True).artifacts.append("x")
    ToolOutput.ok().artifacts.append("x")
    assert ToolOutput(True).artifacts == ToolOutput.ok().artifacts == []


def test_an_output_as_a_mapping_is_json() -> None:
    data = {"id": UUID(int=1), "report": Report(datetime(2026, 1, 2, tzinfo=UTC), (1, 2))}
    output = ToolOutput.ok(data, undo_metadata={"when": datetime(2026, 1, 2, tzinfo=UTC)}, artifacts=[UUID(int=2)])
    assert json.loads(json.dumps(output.to_dict())) == {
        "success": True,
        "data": {
            "id": "00000000-0000-0000-0000-000000000001",
            "report": {"at": "2026-01-02T00:00:00+00:00", "pages": [1, 2]},
        },
        "error": None,
        "undo_metadata": {"when": "2026-01-02T00:00:00+00:00"},
        "artifacts": ["00000000-0000-0000-0000-000000000002"],
    }


@pytest.mark.parametrize("field", ["data", "undo_metadata", "artifacts"])
def test_an_output_that_is_not_json_says_so(field: str) -> None:
    output = ToolOutput(success=True)
    setattr(output, field, [math.nan])
    with pytest.raises(errors.ToolOutputError):
        output.to_dict()


def test_a_completed_result_gives_its_data() -> None:
    result = a_result(data={"a": 1})
    assert result.success
    assert result.is_final
    assert not result.is_pending
    assert result.unwrap() == {"a": 1}


@pytest.mark.parametrize("status", [status for status in Status if not status.is_final])
def test_a_pending_result_has_no_data_yet_and_says_how_to_wait(status: Status) -> None:
    result = a_result(status=status, data="early")
    assert (result.success, result.is_final, result.is_pending) == (False, False, True)
    with pytest.raises(errors.UsageError, match=f"Call c1 is {status}; wait for it"):
        result.unwrap()


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (Status.FAILED, None, errors.ToolExecutionError),
        (Status.FAILED, "execution_failed", errors.ToolExecutionError),
        (Status.FAILED, "a code nobody knows", errors.ToolExecutionError),
        (Status.FAILED, "tool_not_found", errors.ToolNotFoundError),
        (Status.FAILED, "invalid_arguments", errors.ToolInputError),
        (Status.FAILED, "timeout", errors.ToolTimeoutError),
        (Status.FAILED, "invalid_output", errors.ToolOutputError),
        (Status.FAILED, "undo_failed", errors.ToolUndoError),
        (Status.FAILED, "undo_conflict", errors.ToolUndoError),
        (Status.DENIED, "behavior_not_allowed", errors.ToolDeniedError),
        (Status.DENIED, None, errors.ToolDeniedError),
        (Status.REJECTED, "approval_denied", errors.ToolApprovalDeniedError),
        (Status.TIMEOUT, "approval_timeout", errors.ToolApprovalTimeoutError),
        (Status.CANCELLED, "cancelled", errors.ToolCancelledError),
        (Status.UNKNOWN, "unknown", errors.ToolUnknownOutcomeError),
        (Status.UNKNOWN, None, errors.ToolUnknownOutcomeError),
    ],
)
def test_every_other_end_raises_its_documented_error(
    status: Status, code: str | None, kind: type[errors.ToolError]
) -> None:
    cause = ValueError("original")
    result = a_result(status=status, error="what happened", error_code=code, cause=cause)
    assert not result.success
    with pytest.raises(errors.ToolError, match=r"^what happened$") as caught:
        result.unwrap()
    assert type(caught.value) is kind
    assert caught.value.tool == "edit"
    assert caught.value.__cause__ is cause


def test_an_end_without_words_has_the_words_of_its_error() -> None:
    assert str(a_result(status=Status.TIMEOUT).to_error()) == "approval timed out"


def test_the_cause_is_neither_compared_nor_shown() -> None:
    assert a_result(cause=ValueError("s3cret-canary")) == a_result()
    assert "s3cret-canary" not in repr(a_result(cause=ValueError("s3cret-canary")))


def test_the_result_of_a_plain_success_shows_the_call() -> None:
    call = a_call(status=Status.COMPLETED, approved_by="policy:auto", approval_id="a1", duration_ms=2.5)
    assert result_of(call, data=[1]) == a_result(data=[1], approved_by="policy:auto", approval_id="a1", duration_ms=2.5)


@pytest.mark.parametrize("fields", [{"error": "no", "error_code": "timeout"}, {"artifacts": ("x",)}, {"undo_of": "c0"}])
def test_the_result_carries_errors_artifacts_and_what_was_undone(fields: dict[str, Any]) -> None:
    cause = ValueError()
    result = result_of(a_call(status=Status.FAILED, **fields), cause=cause)
    assert result == a_result(status=Status.FAILED, **fields)
    assert result.cause is cause


def test_changing_a_results_artifacts_does_not_change_the_call() -> None:
    call = a_call(status=Status.COMPLETED, artifacts=({"id": 1},))
    result_of(call).artifacts[0]["id"] = 2
    assert call.artifacts == ({"id": 1},)


def test_the_masked_view_of_a_call_is_not_what_the_caller_gets() -> None:
    call = a_call(status=Status.COMPLETED, result=b'"real"', shown_result="***")
    assert result_of(call, data="real").data == "real"
    assert result_of(call).data is None
