"""In which behavior a tool may run, and what a refusal says."""

from __future__ import annotations

from enum import Enum
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from tests.unit.tools.scene import Shelf, Sink, act

from toolgate.kernel.context import Context, behavior_of
from toolgate.tools import ToolDefinition, ToolDeniedError, ToolExecutor, ToolRegistry
from toolgate.tools.context import context_of
from toolgate.tools.definitions import Action
from toolgate.tools.examples import EDIT_DOCUMENT, STORE_MEMORY


def shelf_tool(shelf: Shelf, *behaviors: str) -> ToolDefinition:
    return ToolDefinition("put", {}, shelf.put, allowed_behaviors=behaviors, action_type="PUT")


class Colour(Enum):
    RED = "doc_edit"


@pytest.mark.parametrize(
    "ctx",
    [
        SimpleNamespace(behavior="doc_edit"),
        SimpleNamespace(execution_mode="doc_edit"),
        SimpleNamespace(behavior=None, execution_mode="doc_edit"),
        SimpleNamespace(behavior="doc_edit", execution_mode="chat"),
        SimpleNamespace(behavior=Colour.RED),
        {"behavior": "doc_edit"},
        {"execution_mode": "doc_edit"},
        Context(behavior="doc_edit"),
        Mock(behavior="doc_edit"),
    ],
)
async def test_a_tool_runs_where_its_behavior_is_allowed(ctx: Any) -> None:
    shelf = Shelf()
    await ToolExecutor([shelf_tool(shelf, "doc_edit", "practice")]).execute(act("PUT"), ctx)
    assert shelf.runs == 1


@pytest.mark.parametrize("ctx", [None, {}, SimpleNamespace(), {"behavior": "anything"}])
async def test_a_tool_that_lists_no_behavior_runs_in_all(ctx: Any) -> None:
    shelf = Shelf()
    await ToolExecutor([shelf_tool(shelf)]).execute(act("PUT"), ctx)
    assert shelf.runs == 1


@pytest.mark.parametrize("ctx", [None, {}, {"behavior": "chat"}, {"behavior": "DOC_EDIT"}, {"behavior": ["doc_edit"]}])
async def test_a_tool_does_not_run_elsewhere(ctx: Any) -> None:
    shelf, sink = Shelf(), Sink()
    action = act("PUT")
    with pytest.raises(ToolDeniedError) as refused:
        await ToolExecutor([shelf_tool(shelf, "doc_edit")], event_sink=sink).execute(action, ctx)
    assert shelf.runs == 0
    assert sink.types == ["tool.invoked", "tool.denied"]
    told = sink.of("tool.denied")
    assert (told["tool_name"], told["action_id"], told["reason"]) == ("put", str(action.id), "behavior_not_allowed")
    assert (refused.value.tool, refused.value.allowed_behaviors) == ("put", ("doc_edit",))
    assert refused.value.behavior == behavior_of(ctx)
    assert "put" in str(refused.value)
    assert "doc_edit" in str(refused.value)


async def test_the_registry_is_no_way_around_it() -> None:
    shelf = Shelf()
    registry = ToolRegistry([shelf_tool(shelf, "doc_edit")])
    with pytest.raises(ToolDeniedError):
        await registry.execute(act("PUT"), {})
    with pytest.raises(ToolDeniedError):
        await registry.governed("put").execute({"state": 1}, {})
    assert shelf.runs == 0


def test_the_check_by_itself() -> None:
    tool = shelf_tool(Shelf(), "doc_edit")
    executor = ToolExecutor([tool])
    assert executor._check_behavior_gating(tool, {"behavior": "doc_edit"})
    with pytest.raises(ToolDeniedError, match="not allowed in behavior 'chat'"):
        executor._check_behavior_gating(tool, {"behavior": "chat"})


async def test_a_refusal_for_another_reason_says_which() -> None:
    shelf = Shelf()
    executor = ToolExecutor([ToolDefinition("put", {}, shelf.put, allowed_modes=("ALERT",))])
    with pytest.raises(ToolDeniedError, match="not allowed in NORMAL mode"):
        await executor.execute(act("put"), {})


def test_the_example_tools_have_their_behaviors() -> None:
    assert EDIT_DOCUMENT.allowed_behaviors == ("doc_edit", "practice")
    assert STORE_MEMORY.allowed_behaviors == ()


def test_a_context_tells_who_asks_and_keeps_the_callers_own() -> None:
    ctx = {"pipeline_run_id": 7, "user_id": "ann", "request_id": None, "session_id": True, "trace_id": 1.5}
    found = context_of(ctx, "p", Action(type="T"))
    assert (found.run_id, found.user, found.request_id, found.session_id, found.trace_id) == (
        "7",
        "ann",
        None,
        None,
        None,
    )
    assert found.host.ctx is ctx
    own = context_of(Context(user="bob", project="other"), "p", Action(type="T"))
    assert (own.user, own.project) == ("bob", "p")
