"""The layer: what a caller of document 003 sees for every way a call can end."""

from __future__ import annotations

import asyncio
import gc
import logging
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import toolgate
from toolgate import governance
from toolgate.governance import Mode, ModeManager, ToolDefinition, ToolExecutionLayer, ToolParameter, TraceContext
from toolgate.testing.patience import PATIENCE_S

WRITE = """
tools:
  write_file:
    category: "system_write"
    allowed_in_modes: ["NORMAL"]
    requires_approval_in_modes: ["ALERT", "DEGRADED", "RECOVERY"]
    forbidden_in_modes: ["LOCKDOWN"]
    allowed_paths:
      - "${WORKSPACE}/free/**"
    forbidden_paths:
      - "${WORKSPACE}/free/closed/**"
    max_file_size_mb: 1
"""


class World:
    """A workspace, a registry with one writing tool, and layers over it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "free" / "closed").mkdir(parents=True)
        self.registry = governance.ToolRegistry()
        self.modes = ModeManager()
        self.registry.register(definition("write_file", "path", "content", risk_level="high"), self.write)
        self.layers: list[ToolExecutionLayer] = []

    def write(self, path: str, content: str) -> dict[str, Any]:
        Path(path).write_text(content)
        return {"written": len(content)}

    def layer(self, text: str = WRITE, **options: Any) -> ToolExecutionLayer:
        config = governance.load_governance(text, workspace=self.folder)
        made = ToolExecutionLayer(self.registry, config, self.modes, **options)
        self.layers.append(made)
        return made

    def arguments(self, name: str = "free/a.txt", content: str = "hello") -> dict[str, str]:
        return {"path": str(self.folder / name), "content": content}


def definition(name: str, *parameters: str, **options: Any) -> ToolDefinition:
    fields: dict[str, Any] = {
        "description": f"Does {name}",
        "category": "system_write",
        "parameters": [ToolParameter(name=one, type="string", description=one) for one in parameters],
        "risk_level": "low",
        "allowed_modes": ["NORMAL"],
    }
    return ToolDefinition(name=name, **{**fields, **options})


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    for layer in made.layers:
        layer.close()


def test_an_allowed_call_runs_and_says_what_it_took(world: World) -> None:
    result = world.layer().execute_tool("write_file", world.arguments(), TraceContext.new_trace())
    assert (result.success, result.output, result.error) == (True, {"written": 5}, None)
    assert result.latency_ms > 0
    assert (world.folder / "free/a.txt").read_text() == "hello"


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("other.txt", "not in allowed paths"),
        ("free/closed/a.txt", "is forbidden"),
        ("free/../other.txt", "not in allowed paths"),
    ],
)
def test_paths_are_judged_by_where_they_lead(world: World, name: str, error: str) -> None:
    given = world.arguments(name)
    result = world.layer().execute_tool("write_file", given, TraceContext())
    assert result.error == f"Permission denied: Path {given['path']} {error}"
    assert result.metadata["category"] == "permission"
    assert not (world.folder / "other.txt").exists()


def test_a_mode_that_forbids_denies_and_one_that_asks_asks(world: World) -> None:
    asked: list[tuple[str, Any]] = []

    def approver(tool_name: str, arguments: Any) -> bool:
        asked.append((tool_name, arguments))
        return False

    layer = world.layer(approver=approver)
    world.modes.set_mode("LOCKDOWN")
    denied = layer.execute_tool("write_file", world.arguments(), TraceContext())
    assert denied.error == "Permission denied: Tool not allowed in LOCKDOWN mode"
    assert asked == []
    world.modes.set_mode(Mode.ALERT)
    refused = layer.execute_tool("write_file", world.arguments(), TraceContext())
    assert (refused.error or "").startswith("Permission denied: Approval denied by user")
    assert asked == [("write_file", world.arguments())]
    assert not (world.folder / "free/a.txt").exists()


class Granted:
    granted = True


@pytest.mark.parametrize(
    "approver",
    [lambda _tool, _arguments: Granted(), lambda _approval: True, lambda *_asked: True],
    ids=["object", "approval", "any"],
)
def test_a_yes_in_any_of_its_forms_runs_the_call(world: World, approver: Any) -> None:
    world.modes.set_mode("ALERT")
    assert world.layer(approver=approver).execute_tool("write_file", world.arguments(), TraceContext()).success


def failing(_tool: str, _arguments: Any) -> bool:
    raise RuntimeError("no line to anybody")


@pytest.mark.parametrize(
    ("approver", "why"),
    [
        (failing, "the approver failed with RuntimeError"),
        (lambda _tool, _arguments: None, "the approver gave no answer"),
        (lambda _tool, _arguments: "yes", "the approver failed with UsageError"),
    ],
    ids=["raises", "none", "text"],
)
def test_an_approver_that_says_neither_yes_nor_no_has_said_no(world: World, approver: Any, why: str) -> None:
    world.modes.set_mode("ALERT")
    refused = world.layer(approver=approver).execute_tool("write_file", world.arguments(), TraceContext())
    assert refused.error == f"Permission denied: Approval denied by user: {why}"
    assert not (world.folder / "free/a.txt").exists()


async def test_an_async_approver_and_the_async_face(world: World) -> None:
    async def approver(_tool: str, _arguments: Any) -> bool:
        await asyncio.sleep(0)
        return True

    async def approver_of_one(_approval: Any) -> bool:
        return True

    world.modes.set_mode("ALERT")
    for one in (approver, approver_of_one):
        layer = world.layer(approver=one)
        assert (await layer.aexecute_tool("write_file", world.arguments(), TraceContext())).success
        await asyncio.to_thread(layer.close)
    world.layers.clear()


def test_without_an_approver_a_call_that_needs_one_is_refused(world: World) -> None:
    world.modes.set_mode("ALERT")
    result = world.layer().execute_tool("write_file", world.arguments(), TraceContext())
    assert "nobody can be asked" in (result.error or "")
    assert (result.success, result.metadata["category"]) == (False, "permission")


def test_a_mode_that_changes_while_a_person_thinks_counts(world: World) -> None:
    class Foreign:
        mode = "ALERT"

        def get_current_mode(self) -> str:
            return self.mode

    foreign = Foreign()

    def approver(_tool: str, _arguments: Any) -> bool:
        foreign.mode = "LOCKDOWN"
        return True

    world.modes = foreign  # type: ignore[assignment]
    result = world.layer(approver=approver).execute_tool("write_file", world.arguments(), TraceContext())
    assert not result.success
    assert not (world.folder / "free/a.txt").exists()


def test_an_unknown_tool_is_said_not_to_be_found(world: World) -> None:
    result = world.layer().execute_tool("no_such", {}, TraceContext())
    assert (result.error, result.latency_ms) == ("Tool no_such not found", 0.0)
    assert result.metadata["category"] == "not_found"


@pytest.mark.parametrize("given", [{}, {"path": 1, "content": "x"}, {"path": "a", "content": "b", "extra": 1}])
def test_arguments_that_do_not_fit_are_refused_with_what_to_do(world: World, given: dict[str, Any]) -> None:
    result = world.layer().execute_tool("write_file", given, TraceContext())
    assert (result.error or "").startswith("Permission denied: Arguments of `write_file`")
    assert result.metadata["category"] == "validation"
    assert "suggestion" in result.metadata


def test_a_size_limit_counts_bytes(world: World) -> None:
    result = world.layer().execute_tool("write_file", world.arguments(content="é" * 600_000), TraceContext())
    assert "bytes" in (result.error or "")


def test_content_may_be_as_long_as_the_file_says(world: World) -> None:
    layer = world.layer()
    most = 1024 * 1024
    assert layer.execute_tool("write_file", world.arguments(content="\n" * most)).success
    refused = layer.execute_tool("write_file", world.arguments(content="\n" * (most + 1)))
    assert "argument 'content' has 1,048,577 bytes" in (refused.error or "")


@pytest.mark.parametrize("limit", ["max_file_size_mb: 1", "forbidden_paths: [/System/**]"])
def test_a_file_without_a_list_of_allowed_paths_leaves_an_executor_its_paths(world: World, limit: str) -> None:
    text = f"tools:\n  write_file:\n    allowed_in_modes: [NORMAL]\n    {limit}\n"
    config = governance.load_governance(text, workspace=world.folder / "free")
    with ToolExecutionLayer(world.registry, config, world.modes) as layer:
        assert layer.execute_tool("write_file", world.arguments("elsewhere.txt")).error is None
        assert "protected" in (layer.execute_tool("write_file", world.arguments(".env")).error or "")


@pytest.mark.parametrize("given", ["text", ["path"], 5])
def test_arguments_that_are_no_mapping_are_refused_not_raised(world: World, given: Any) -> None:
    layer = world.layer()
    result = layer.execute_tool("write_file", given)
    assert (result.success, result.metadata["category"]) == (False, "validation")
    assert not governance.check_permissions(
        "write_file", given, "NORMAL", layer.governance, registry=world.registry
    ).allowed
    assert not governance.validate_arguments("write_file", given, layer.governance, registry=world.registry).valid


def test_an_executor_that_raises_gives_its_text(world: World) -> None:
    def explode() -> None:
        raise ValueError("the disk is on fire")

    world.registry.register(definition("explode"), explode)
    result = world.layer().execute_tool("explode", {}, TraceContext())
    assert (result.success, result.error, result.metadata["category"]) == (False, "the disk is on fire", "exception")
    assert result.latency_ms > 0


def test_an_executor_that_takes_too_long_is_a_timeout(world: World) -> None:
    stop = threading.Event()
    world.registry.register(definition("sleep", timeout_seconds=1), lambda: stop.wait(PATIENCE_S) and None)
    result = world.layer().execute_tool("sleep", {}, TraceContext())
    stop.set()
    assert not result.success
    assert (result.metadata["category"], result.metadata["status"]) == ("timeout", "UNKNOWN")
    assert "timed out after 1 s" in str(result.error)


def test_a_rate_is_really_kept(world: World) -> None:
    world.registry.register(definition("ping", rate_limit_per_hour=2), lambda: {"pong": True})
    layer = world.layer()
    results = [layer.execute_tool("ping", {}, TraceContext()) for _ in range(3)]
    assert [result.success for result in results] == [True, True, False]
    assert "Rate limit exceeded" in (results[2].error or "")


def test_defaults_are_given_to_the_executor_and_shown(world: World) -> None:
    seen: list[Any] = []
    read = ToolDefinition(
        name="read",
        description="Reads",
        category="read_only",
        parameters=[
            ToolParameter(name="path", type="string", description="Where"),
            ToolParameter(name="max_size_mb", type="number", description="Most", default=10),
        ],
        risk_level="low",
        allowed_modes=list(Mode),
    )
    world.registry.register(read, lambda path, max_size_mb: seen.append((path, max_size_mb)))
    result = world.layer().execute_tool("read", {"path": "a"}, TraceContext())
    assert (result.success, result.output, seen) == (True, {}, [("a", 10)])


def test_every_call_is_logged_with_its_trace(world: World, caplog: pytest.LogCaptureFixture) -> None:
    def explode() -> None:
        raise ValueError("boom")

    world.registry.register(definition("explode"), explode)
    layer, trace = world.layer(), TraceContext.new_trace()
    with caplog.at_level(logging.INFO, logger="toolgate.calls"):
        layer.execute_tool("write_file", {**world.arguments(), "content": "hunter2"}, trace)
        layer.execute_tool("explode", {}, trace)
        layer.execute_tool("write_file", world.arguments("no.txt"), trace)
    records = [record for record in caplog.records if record.name == "toolgate.calls"]
    assert [record.getMessage() for record in records] == [
        "tool_call_started",
        "tool_call_completed",
        "tool_call_started",
        "tool_call_failed",
        "tool_call_blocked",
    ]
    told = [record.__dict__ for record in records]
    assert {one["trace_id"] for one in told} == {trace.trace_id}
    assert told[0]["span_id"] == told[1]["span_id"] != told[2]["span_id"]
    assert told[0]["arguments"]["path"].endswith("a.txt")
    assert (told[1]["success"], told[3]["error"]) == (True, "boom")
    assert told[1]["latency_ms"] > 0
    assert told[3]["latency_ms"] > 0
    assert "not in allowed paths" in told[4]["reason"]


def test_secrets_do_not_reach_the_log(world: World, caplog: pytest.LogCaptureFixture) -> None:
    world.registry.register(definition("login", "password"), lambda password: {"ok": bool(password)})
    with caplog.at_level(logging.INFO, logger="toolgate.calls"):
        assert world.layer().execute_tool("login", {"password": "correct-horse-9"}, TraceContext()).success
    assert "correct-horse-9" not in "".join(str(record.__dict__) for record in caplog.records)


async def test_a_layer_on_a_gate_keeps_its_calls_there_and_leaves_it_open(world: World, tmp_path: Path) -> None:
    async with toolgate.open(f"sqlite:///{tmp_path / 'calls.db'}") as gate:
        layer = world.layer(gate=gate)
        result = await layer.aexecute_tool("write_file", world.arguments(), TraceContext())
        layer.close()
        world.layers.clear()
        assert (await gate.get(result.metadata["call_id"], project=layer.project)).success


def test_a_forgotten_layer_closes_its_gate(world: World) -> None:
    layer = world.layer()
    gate = layer.gate
    assert layer.execute_tool("write_file", world.arguments(), TraceContext()).success
    world.layers.clear()
    del layer
    gc.collect()
    with pytest.raises(toolgate.errors.GateClosedError):
        gate.sync.call("write_file", {})


def test_a_layer_is_closed_by_with(world: World) -> None:
    with world.layer() as layer:
        assert layer.execute_tool("write_file", world.arguments()).success
    layer.close()  # once more does no harm
    result = layer.execute_tool("write_file", world.arguments())
    assert (result.success, result.metadata["category"]) == (False, "unavailable")
    assert "closed" in str(result.error)


async def test_cancelling_the_wait_cancels_the_call(world: World) -> None:
    asked = asyncio.Event()

    async def approver(_approval: Any) -> bool:
        asked.set()
        await asyncio.Event().wait()
        return True

    world.modes.set_mode("ALERT")
    layer = world.layer(approver=approver)
    waiting = asyncio.create_task(layer.aexecute_tool("write_file", world.arguments(), TraceContext()))
    await asked.wait()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert await layer.gate.pending(project=layer.project) == []
    await asyncio.to_thread(layer.close)
    world.layers.clear()
