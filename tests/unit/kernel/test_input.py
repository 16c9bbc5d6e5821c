"""What a handler receives, in every form the documents build it."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType, SimpleNamespace
from typing import Any
from uuid import UUID, uuid4

import pytest

from toolgate.errors import UsageError
from toolgate.kernel.context import Context
from toolgate.kernel.input import Action, ToolInput

AN_ID = UUID(int=7)


@dataclass(frozen=True)
class HostAction:
    """An action of somebody else's framework."""

    id: UUID = AN_ID
    type: str = "EDIT_DOCUMENT"
    payload: dict[str, Any] = field(default_factory=lambda: {"lines": [1, 2]})


def test_an_input_is_built_from_fields() -> None:
    ctx = object()
    given = ToolInput(action_id=AN_ID, tool_name="edit", payload={"a": 1}, ctx=ctx)
    assert (given.action_id, given.tool_name, given.payload) == (AN_ID, "edit", {"a": 1})
    assert given.ctx is ctx
    assert given.action == Action(id=AN_ID, type="edit", payload={"a": 1})


def test_the_gates_context_stands_beside_the_hosts_own() -> None:
    context = Context(principal="agent:x")
    given = ToolInput(ctx={"mine": 1}, context=context)
    assert (given.ctx, given.context) == ({"mine": 1}, context)
    assert ToolInput().context == Context()


def test_the_gates_context_says_in_which_behavior_and_run_a_handler_works() -> None:
    context = Context(behavior="edit", run_id=str(AN_ID), request_id="r-1")
    for given in (ToolInput(context=context), ToolInput.from_action(HostAction(), ctx=context)):
        assert (given.behavior, given.pipeline_run_id, given.request_id) == ("edit", AN_ID, "r-1")


def test_outside_a_gate_the_hosts_context_says_it_and_inside_one_it_is_not_asked() -> None:
    host = {"execution_mode": "edit", "pipeline_run_id": str(AN_ID)}
    outside, inside = ToolInput(ctx=host), ToolInput(ctx=host, context=Context(principal="agent:x"))
    assert (outside.behavior, outside.pipeline_run_id, outside.request_id) == ("edit", AN_ID, None)
    assert (inside.behavior, inside.pipeline_run_id) == (None, None)


def test_what_is_given_beside_a_context_is_put_into_it() -> None:
    given = ToolInput(context=Context(behavior="edit", run_id="r"), request_id=AN_ID)
    assert given.context == Context(behavior="edit", run_id="r", request_id=str(AN_ID))
    assert ToolInput(behavior="chat", pipeline_run_id="p").context == Context(behavior="chat", run_id="p")


def test_fields_may_be_given_by_position() -> None:
    given = ToolInput(AN_ID, "edit", {"a": 1}, "ctx")
    assert (given.action_id, given.tool_name, given.payload, given.ctx) == (AN_ID, "edit", {"a": 1}, "ctx")


def test_an_input_of_nothing_still_has_an_action_with_a_payload() -> None:
    given = ToolInput()
    assert (given.action_id, given.tool_name, given.payload, given.ctx) == (None, None, {}, None)
    assert given.action == Action(id="", type="", payload={})


def test_an_input_is_built_from_an_action() -> None:
    given = ToolInput(action=HostAction())
    assert (given.action_id, given.tool_name, given.payload) == (AN_ID, "EDIT_DOCUMENT", {"lines": [1, 2]})
    assert given.action.payload is given.payload


@pytest.mark.parametrize("arguments", [{"path": "/x"}, MappingProxyType({"path": "/x"})])
def test_a_plain_mapping_is_a_payload(arguments: Any) -> None:
    given = ToolInput(action=arguments)
    assert given.payload == given.action.payload == {"path": "/x"}
    assert given.tool_name is None
    assert isinstance(given.action_id, UUID)


def test_a_mapping_with_the_words_of_an_action_is_still_a_payload() -> None:
    arguments = {"id": "1", "type": "x", "payload": {"a": 1}}
    assert ToolInput(action=arguments).payload == arguments


@pytest.mark.parametrize("action", [{}, HostAction(payload={})])
def test_an_empty_action_is_one(action: Any) -> None:
    assert ToolInput(action=action).payload == {}
    assert ToolInput(action=action).action_id is not None


def test_fields_outrank_the_action() -> None:
    given = ToolInput("other", "tool", {"b": 2}, action=HostAction())
    assert (given.action_id, given.tool_name, given.payload) == ("other", "tool", {"b": 2})


def test_every_form_reads_the_same() -> None:
    forms = [
        ToolInput(action_id=AN_ID, tool_name="t", payload={"a": 1}),
        ToolInput(action=Action(id=AN_ID, type="t", payload={"a": 1})),
        ToolInput(action={"a": 1}, action_id=AN_ID, tool_name="t"),
        ToolInput.from_action(Action(id=AN_ID, type="t", payload={"a": 1})),
        ToolInput.from_action(HostAction(payload={"a": 1}), tool_name="t"),
    ]
    assert {(form.action_id, form.tool_name, form.payload["a"], form.action.payload["a"]) for form in forms} == {
        (AN_ID, "t", 1, 1)
    }


def test_from_action_needs_one_argument_and_copies_deeply() -> None:
    action = HostAction()
    given = ToolInput.from_action(action)
    given.payload["lines"].append(3)
    assert action.payload == {"lines": [1, 2]}
    assert (given.action_id, given.tool_name, given.ctx) == (AN_ID, "EDIT_DOCUMENT", None)
    assert given.action.payload is given.payload


def test_from_action_takes_the_tools_name_and_the_context() -> None:
    ctx = object()
    given = ToolInput.from_action(HostAction(), "edit", ctx)
    assert given.tool_name == "edit"
    assert given.ctx is ctx


def test_an_input_of_an_action_has_its_own_top_level() -> None:
    action = HostAction()
    ToolInput(action=action).payload["more"] = 1
    assert "more" not in action.payload


@pytest.mark.parametrize("action", [SimpleNamespace(), SimpleNamespace(id=None, type=None, payload=None)])
def test_an_action_without_id_type_or_payload_gets_them(action: Any) -> None:
    given = ToolInput.from_action(action)
    assert isinstance(given.action_id, UUID)
    assert (given.tool_name, given.payload) == (None, {})


@pytest.mark.parametrize("payload", [[1], "text", 5])
def test_a_payload_that_is_no_mapping_is_refused(payload: Any) -> None:
    with pytest.raises(UsageError, match=f"must be a mapping, not {type(payload).__name__}"):
        ToolInput(action=SimpleNamespace(id=1, type="t", payload=payload))


def test_actions_made_without_an_id_differ() -> None:
    assert Action().id != Action().id
    assert Action().payload is not Action().payload


def test_an_input_outside_a_run_reports_nothing_and_is_not_cancelled() -> None:
    given = ToolInput()
    assert given.is_cancelled is False
    with pytest.raises(UsageError, match="only while the gate runs the handler"):
        given.progress(0.5)


def test_an_attached_input_reports_to_its_run_and_hears_of_its_end() -> None:
    given = ToolInput()
    told: list[tuple[Any, ...]] = []
    stopped: list[bool] = []

    def report(*progress: Any) -> str:
        told.append(progress)
        return "receipt"

    given.attach(report, lambda: bool(stopped))
    assert given.progress(0.5, "half", {"rows": 3}) == "receipt"
    given.progress(message="still here")
    assert told == [(0.5, "half", {"rows": 3}), (None, "still here", None)]
    assert not given.is_cancelled
    stopped.append(True)
    assert given.is_cancelled


def test_the_shown_form_has_no_payload_in_it() -> None:
    given = ToolInput(uuid4(), "edit", {"password": "s3cret-canary"}, {"token": "s3cret-canary"})
    assert "s3cret-canary" not in repr(given)
    assert "edit" in repr(given)
