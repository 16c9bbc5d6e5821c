"""Every public function of the doors says what is wrong, why and what to do, whatever it is given by mistake."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

import toolgate
from toolgate import agent_tools, governance, hitl, stages, tools
from toolgate.errors import ToolgateError, UnknownKeywordError

WRONG: tuple[Any, ...] = (None, 5, "", "zzz", [], {}, b"x", object())


@toolgate.tool
def ping() -> str:
    return "pong"


@hitl.hitl_tool()
async def ask(amount: int) -> int:
    return amount


@pytest.fixture(autouse=True)
def apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    yield
    tools.clear_approval_service()
    tools.clear_undo_store()
    tools.clear_tool_registry()


def definition(**fields: Any) -> governance.ToolDefinition:
    told: dict[str, Any] = {"name": "f", "description": "", "category": "x", "parameters": [], "risk_level": "low"}
    return governance.ToolDefinition(**{**told, "allowed_modes": ["NORMAL"], **fields})


def governed() -> governance.ToolRegistry:
    registry = governance.ToolRegistry()
    registry.register(definition(), lambda: 1)
    return registry


def resolved() -> Any:
    return tools.ToolRegistry([ping]).parse_and_resolve({"name": "ping"})[0][0]


def layer(*given: Any, **options: Any) -> Any:
    governance.ToolExecutionLayer(*given, **options).close()


async def request(**given: Any) -> None:
    manager = agent_tools.ApprovalManager()
    try:
        await manager.request_tool_approval("f", **given)
    finally:
        await manager.gate.aclose()


async def closed(opened: Any) -> None:
    """Let go of what was opened after all: `zzz` may be the name of a file."""
    await (opened.aclose() if hasattr(opened, "aclose") else opened.close())


RULES = "tools: {}"
ENTRIES: dict[str, Callable[[Any], Any]] = {
    "open": lambda v: closed(toolgate.open(v)),
    "open tools": lambda v: closed(toolgate.open(tools=v)),
    "open policy": lambda v: closed(toolgate.open(policy=v)),
    "open secrets": lambda v: closed(toolgate.open(secrets=v)),
    "open runners": lambda v: closed(toolgate.open(runners=v)),
    "tool": lambda v: toolgate.tool(v),
    "tool name": lambda v: toolgate.tool(name=v)(lambda: 1),
    "ToolDefinition name": lambda v: tools.ToolDefinition(v, {}, print),
    "ToolDefinition schema": lambda v: tools.ToolDefinition("a", v, print),
    "ToolDefinition handler": lambda v: tools.ToolDefinition("a", {}, v),
    "ToolRegistry": lambda v: tools.ToolRegistry(v),
    "registry.register": lambda v: tools.ToolRegistry().register(v),
    "registry.get": lambda v: tools.ToolRegistry().get(v),
    "registry.list_tools": lambda v: tools.ToolRegistry([ping]).list_tools(v),
    "registry.parse": lambda v: tools.ToolRegistry([ping]).parse_and_resolve(v),
    "registry.parse limits": lambda v: tools.ToolRegistry([ping]).parse_and_resolve({"name": "ping"}, limits=v),
    "registry.export": lambda v: tools.ToolRegistry([ping]).export(v),
    "registry.execute": lambda v: tools.ToolRegistry([ping]).execute(v),
    "set_tool_registry": lambda v: tools.set_tool_registry(v),
    "ToolExecutor": lambda v: tools.ToolExecutor(v),
    "ToolExecutor config": lambda v: tools.ToolExecutor([ping], config=v),
    "ToolExecutor gate": lambda v: tools.ToolExecutor([ping], gate=v),
    "ToolExecutor sink": lambda v: tools.ToolExecutor([ping], event_sink=v),
    "ToolExecutor project": lambda v: tools.ToolExecutor([ping], project=v),
    "ToolExecutorConfig": lambda v: tools.ToolExecutorConfig(undo_ttl_seconds=v),
    "execute": lambda v: tools.ToolExecutor([ping]).execute(v),
    "execute_tool": lambda v: tools.ToolExecutor([ping]).execute_tool(v),
    "execute_tool params": lambda v: tools.ToolExecutor([ping]).execute_tool("ping", v),
    "UndoStore": lambda v: tools.UndoStore(v).store("a", {}),
    "UndoStore.open": lambda v: closed(tools.UndoStore.open(v)),
    "undo.store": lambda v: tools.UndoStore().store("a", v),
    "undo.store ttl": lambda v: tools.UndoStore().store("a", {}, ttl_seconds=v),
    "set_undo_store": lambda v: tools.set_undo_store(v),
    "ApprovalService": lambda v: tools.ApprovalService(v),
    "ApprovalService.open": lambda v: closed(tools.ApprovalService.open(v)),
    "request": lambda v: tools.get_approval_service().request(v),
    "request message": lambda v: tools.get_approval_service().request(tools.ApprovalRequest("a", "t", v, {})),
    "get_status": lambda v: tools.get_approval_service().get_status(v),
    "export_tools": lambda v: tools.export_tools(v, "openai"),
    "render_result": lambda v: tools.render_result(v),
    "render_result result": lambda v: tools.render_result(resolved(), v),
    "render_result format": lambda v: tools.render_result(resolved(), format=v),
    "render_message": lambda v: tools.render_message(v, "openai"),
    "diff_text": lambda v: tools.diff_text(v, "a"),
    "diff_structured": lambda v: tools.diff_structured(v, {}),
    "hitl_tool": lambda v: hitl.hitl_tool()(v),
    "hitl_tool risk": lambda v: hitl.hitl_tool(risk_level=v),
    "calculate_confidence": lambda v: hitl.calculate_confidence("a", v),
    "determine_approval_level": lambda v: hitl.determine_approval_level(v),
    "determine_approval_level config": lambda v: hitl.determine_approval_level(5, v),
    "invoke": lambda v: hitl.invoke(v, {}),
    "invoke arguments": lambda v: hitl.invoke(ask, v),
    "invoke context": lambda v: hitl.invoke(ask, {"amount": 1}, context=v),
    "_hitl_context": lambda v: ask(1, _hitl_context=v),
    "resume": lambda v: hitl.resume(v),
    "as_tool": lambda v: hitl.as_tool(v),
    "set_hitl_gate": lambda v: hitl.set_hitl_gate(v),
    "load_governance": lambda v: governance.load_governance(v),
    "load_governance workspace": lambda v: governance.load_governance(RULES, workspace=v),
    "layer registry": lambda v: layer(v, RULES, governance.ModeManager()),
    "layer governance": lambda v: layer(governed(), v, governance.ModeManager()),
    "layer modes": lambda v: layer(governed(), RULES, v),
    "layer approver": lambda v: layer(governed(), RULES, governance.ModeManager(), v),
    "layer gate": lambda v: layer(governed(), RULES, governance.ModeManager(), gate=v),
    "governed.register": lambda v: governed().register(v),
    "governed.get_tool": lambda v: governed().get_tool(v),
    "governed.list_tools": lambda v: governed().list_tools(v),
    "ModeManager": lambda v: governance.ModeManager(v),
    "unlisten": lambda v: governance.ModeManager().unlisten(v),
    "check_permissions": lambda v: governance.check_permissions(v, {}, "NORMAL", governance.load_governance(RULES)),
    "check_permissions file": lambda v: governance.check_permissions("read_file", {}, "NORMAL", v),
    "check_permissions registry": lambda v: governance.check_permissions(
        "read_file", {}, "NORMAL", governance.load_governance(RULES), registry=v
    ),
    "validate_arguments": lambda v: governance.validate_arguments("read_file", {}, v),
    "builtin_registry": lambda v: governance.builtin_registry(v),
    "shell timeout": lambda v: governance.execute_shell_command_sandboxed(["no-such-program"], v),
    "shell": lambda v: governance.execute_shell_command_sandboxed(v),
    "PathValidator": lambda v: agent_tools.PathValidator(v),
    "validate_read_path": lambda v: agent_tools.PathValidator().validate_read_path(v),
    "CommandValidator": lambda v: agent_tools.CommandValidator(v),
    "validate_command": lambda v: agent_tools.CommandValidator().validate_command(v),
    "SizeLimiter": lambda v: agent_tools.SizeLimiter(max_timeout=v),
    "assess_tool_risk": lambda v: agent_tools.RiskAssessor().assess_tool_risk("read_file", v),
    "get_timeout_for_risk_level": lambda v: agent_tools.RiskAssessor().get_timeout_for_risk_level(v),
    "ApprovalManager": lambda v: agent_tools.ApprovalManager(v),
    "request_tool_approval": lambda v: request(tool_params=v),
    "request_tool_approval risk": lambda v: request(risk_level=v),
    "agent's ToolExecutor": lambda v: agent_tools.ToolExecutor(v),
    "agent's execute_tool": lambda v: agent_tools.ToolExecutor().execute_tool("no_such_tool", v),
    "StageContext": lambda v: stages.StageContext(v).to_dict(),
    "StageOutput.ok": lambda v: stages.StageOutput.ok(v),
}


@pytest.mark.parametrize("name", ENTRIES)
async def test_a_wrong_argument_is_told_in_words(name: str) -> None:
    told = []
    for value in WRONG:
        try:
            given = ENTRIES[name](value)
            if inspect.isawaitable(given):
                await given
        except (ToolgateError, ValidationError) as error:
            told.append(str(error))
    gate = hitl.clear_hitl_gate()
    if gate is not None:
        await gate.aclose()
    assert all(len(text) > 20 for text in told)


MISSPELT: dict[str, tuple[Callable[..., Any], str, str]] = {
    "ToolExecutor": (tools.ToolExecutor, "event_snk", "event_sink"),
    "ToolExecutorConfig": (tools.ToolExecutorConfig, "emit_event", "emit_events"),
    "ApprovalRequest": (tools.ApprovalRequest, "tool", "tool_name"),
    "UndoStore": (tools.UndoStore, "ttl_seconds", "default_ttl_seconds"),
    "UndoStore.open": (tools.UndoStore.open, "ttl", "ttl_seconds"),
    "render_result": (tools.render_result, "fmt", "format"),
    "hitl_tool": (hitl.hitl_tool, "risk", "risk_level"),
    "HITLConfig": (hitl.HITLConfig, "auto", "auto_threshold"),
    "load_governance": (governance.load_governance, "work_space", "workspace"),
    "ToolExecutionLayer": (governance.ToolExecutionLayer, "approver_", "approver"),
    "governance.ToolDefinition": (governance.ToolDefinition, "risk", "risk_level"),
    "governance.ToolResult": (governance.ToolResult, "eror", "error"),
    "builtin_registry": (governance.builtin_registry, "worksapce", "workspace"),
    "check_permissions": (governance.check_permissions, "aprover", "approver"),
    "PathValidator": (agent_tools.PathValidator, "jugde", "judge"),
    "SizeLimiter": (agent_tools.SizeLimiter, "max_write", "max_write_bytes"),
    "StageContext": (stages.StageContext, "user", "user_id"),
}


@pytest.mark.parametrize("name", MISSPELT)
def test_a_misspelt_keyword_is_told_with_the_one_that_was_meant(name: str) -> None:
    function, written, meant = MISSPELT[name]
    with pytest.raises((UnknownKeywordError, ValidationError), match=f"Did you mean `{meant}`"):
        function(**{written: "x"})
