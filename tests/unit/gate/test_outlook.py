"""What the gate tells a host beside it."""

from __future__ import annotations

from pathlib import Path

import pytest

import toolgate
from toolgate.kernel.call import Status
from toolgate.ports.bus import Hint

POLICY = """
version: 1
default: {default}
tools:
  free: {{decision: allow}}
  banned: {{decision: deny}}
  nightly: {{modes: {{allowed: [LOCKDOWN]}}}}
  finance: {{decision: allow, roles: {{allowed: [finance]}}}}
  planned: {{decision: allow, behaviors: {{allowed: [planning]}}}}
  written: {{arguments: [{{field: name, in: [a], then: allow}}]}}
"""


def tools() -> list[toolgate.ToolDefinition]:
    names = "free banned nightly finance planned written silent far".split()
    made = [toolgate.ToolDefinition(name, {}, lambda _given: None, risk_level="low") for name in names[:-1]]
    return [*made, toolgate.ToolDefinition("far", {}, lambda _given: None, placement="client")]


async def offered(folder: Path, default: str = "by_risk", **who: object) -> set[str]:
    (folder / "toolgate.yaml").write_text(POLICY.format(default=default))
    async with toolgate.open("memory://", tools=tools(), policy=folder) as gate:
        return {tool.name for tool in gate.offers(toolgate.Context(**who))}  # type: ignore[arg-type]


async def test_only_what_could_run_is_offered(tmp_path: Path) -> None:
    assert await offered(tmp_path) == {"free", "written", "silent"}
    assert await offered(tmp_path, roles=frozenset({"finance"})) == {"free", "written", "silent", "finance"}
    assert await offered(tmp_path, behavior="planning") == {"free", "written", "silent", "planned"}


async def test_what_no_rule_speaks_of_is_not_offered_where_that_denies(tmp_path: Path) -> None:
    assert await offered(tmp_path, "deny") == {"free", "written"}


async def test_a_tool_with_behaviors_of_its_own_is_offered_in_them() -> None:
    tool = toolgate.ToolDefinition("t", {}, lambda _given: None, allowed_behaviors=("x",))
    async with toolgate.open("memory://", tools=[tool]) as gate:
        assert gate.offers() == []
        assert gate.offers(toolgate.Context(behavior="x")) == [tool]


async def test_whoever_hears_is_told_of_calls_until_they_stop() -> None:
    @toolgate.tool
    async def double(number: int) -> int:
        return 2 * number

    heard: list[Hint] = []
    async with toolgate.open("memory://", tools=[double]) as gate:
        assert gate.owner
        stop = gate.hear(heard.append)
        await gate.call("double", {"number": 1}, call_id="c1")
        stop()
        await gate.call("double", {"number": 2}, call_id="c2")
    assert [(hint.call_id, hint.status) for hint in heard] == [("c1", Status.COMPLETED)]


@pytest.mark.parametrize("mode", ["LOCKDOWN", "NORMAL"])
async def test_the_mode_decides_what_is_offered(mode: str) -> None:
    tool = toolgate.ToolDefinition("t", {}, lambda _given: None)
    async with toolgate.open("memory://", tools=[tool]) as gate:
        await gate.set_mode(mode, by="root")
        assert [one.name for one in gate.offers()] == (["t"] if mode == "NORMAL" else [])
