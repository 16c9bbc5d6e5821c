"""A mapping in the shape of a context object."""

from __future__ import annotations

import logging
from uuid import uuid4

import pytest
from tests.unit.tools.scene import Shelf, act

from toolgate import StageContext
from toolgate.errors import UsageError
from toolgate.tools import DictContextAdapter, ToolDefinition, ToolDeniedError, ToolExecutor, ToolInput, adapt_context


def test_a_mapping_gets_the_attributes_of_a_context() -> None:
    run = uuid4()
    ctx = DictContextAdapter({"pipeline_run_id": str(run), "request_id": "no id", "execution_mode": "edit", "user": 1})
    assert (ctx.pipeline_run_id, ctx.request_id, ctx.execution_mode, ctx.user) == (run, None, "edit", 1)
    assert ctx.to_dict()["request_id"] == "no id"
    assert not hasattr(ctx, "session_id")
    given = ToolInput.from_action(act("PUT"), "put", ctx)
    assert (given.behavior, given.pipeline_run_id, given.request_id) == ("edit", run, None)


def test_the_adapter_keeps_a_copy() -> None:
    data = {"execution_mode": "edit"}
    ctx = DictContextAdapter(data)
    data["execution_mode"] = "chat"
    ctx.to_dict()["execution_mode"] = "chat"
    assert ctx.execution_mode == "edit"


def test_an_event_of_a_mapping_is_logged_without_its_data(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, logger="toolgate.tools"):
        DictContextAdapter({}).try_emit_event("tools.unresolved", {"password": "canary-hunter22"})
    assert "tools.unresolved" in caplog.text
    assert "canary-hunter22" not in caplog.text


def test_only_mappings_are_adapted() -> None:
    stage = StageContext(input_text="x")
    assert adapt_context(stage) is stage
    assert isinstance(adapt_context({}), DictContextAdapter)
    with pytest.raises(UsageError, match="int is neither"):
        adapt_context(7)


async def test_an_adapted_context_is_gated_like_any_other() -> None:
    shelf = Shelf()
    executor = ToolExecutor([ToolDefinition("put", {}, shelf.put, ("edit",))])
    with pytest.raises(ToolDeniedError):
        await executor.execute(act("put"), DictContextAdapter({"execution_mode": "chat"}))
    await executor.execute(act("put"), DictContextAdapter({"execution_mode": "edit"}))
    assert shelf.runs == 1
