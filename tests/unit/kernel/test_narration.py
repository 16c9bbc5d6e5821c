"""Which fields the events of calls and approvals carry."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from tests.unit.kernel.samples import a_call, an_approval

from toolgate.kernel.context import Context
from toolgate.kernel.event import EVENTS
from toolgate.kernel.narration import fail_event, invoked, tell, tell_approval
from toolgate.kernel.payload import SUMMARY_BYTES

CONTEXT = Context(run_id="run", request_id="req")


def written(content: dict[str, Any] | None) -> Any:
    """What a store makes of an event's content, and readers get."""
    return orjson.loads(orjson.dumps(content))


def test_an_event_of_a_call_names_tool_action_run_and_request() -> None:
    name, call_id, data, _ = tell(a_call(context=CONTEXT), "tool.started", {"attempt": 1})
    assert (name, call_id) == ("tool.started", "c1")
    assert data == {
        "attempt": 1,
        "tool_name": "edit",
        "action_id": "c1",
        "pipeline_run_id": "run",
        "request_id": "req",
    }


def test_an_event_of_an_undo_speaks_of_the_call_it_undoes() -> None:
    _, call_id, data, _ = tell(a_call(id="u1", undo_of="c1", context=CONTEXT), "tool.undone", {})
    assert call_id == "u1"
    assert (data["action_id"], data["undo_call_id"]) == ("c1", "u1")


def test_an_event_of_an_approval_has_the_approvals_id_as_its_request() -> None:
    approval = an_approval(run_id="run", correlation_id="req")
    assert tell_approval(approval, "approval.requested", {"level": "quick"}) == (
        "approval.requested",
        "c1",
        {
            "level": "quick",
            "request_id": "a1",
            "correlation_request_id": "req",
            "pipeline_run_id": "run",
            "action_id": "c1",
            "tool_name": "edit",
        },
        None,
    )


def test_what_an_event_is_about_cannot_be_overwritten_by_its_data() -> None:
    forged = {"tool_name": "x", "action_id": "x", "pipeline_run_id": "x", "request_id": "x"}
    assert "x" not in tell(a_call(), "tool.progress", dict(forged))[2].values()
    assert "x" not in tell_approval(an_approval(), "approval.decided", dict(forged))[2].values()


def test_a_failed_call_says_its_code_and_message() -> None:
    name, _, data, said = fail_event(a_call(), "timeout", "too long")
    assert name == "tool.failed"
    assert (data["error_code"], said) == ("timeout", {"error_message": "too long"})


def test_a_failed_undo_has_its_own_event() -> None:
    name, _, data, said = fail_event(a_call(id="u1", undo_of="c1"), "undo_failed", "gone")
    assert name == "tool.undo_failed"
    assert (said, data["error_code"], data["action_id"]) == ({"error": "gone"}, "undo_failed", "c1")
    assert name in EVENTS


@pytest.mark.parametrize("size", [10, SUMMARY_BYTES + 1])
def test_a_call_is_told_with_what_it_was_given_as_content(size: int) -> None:
    arguments = b'{"a":%b}' % (b"1" * (size - 6))
    call = a_call(context=Context(behavior="b", parent_call_id="c0"), arguments=arguments, shown={"a": 1111})
    _, _, facts, content = invoked(call)
    assert (facts["behavior"], facts["parent_call_id"]) == ("b", "c0")
    outline = {"truncated": True, "bytes": size, "keys": ["a"]}
    assert written(content) == {"payload_summary": {"a": 1111} if size == 10 else outline}


@pytest.mark.parametrize("said", [{"hides": True}, {"version": 1}, {"undo_of": "c0"}])
def test_what_a_call_shows_is_quoted_wherever_its_arguments_may_be_something_else(said: dict[str, Any]) -> None:
    call = a_call(arguments=b'{"key":"canary"}', shown={"key": "***"}, **said)
    assert written(invoked(call)[3]) == {"payload_summary": {"key": "***"}}
