"""What the gate tells a host beside it."""

from __future__ import annotations

from pathlib import Path

import pytest

import toolgate
from toolgate.catalog.client import client_tools
from toolgate.kernel.call import Status
from toolgate.kernel.context import SYSTEM_PROJECT
from toolgate.kernel.event import Event
from toolgate.policy.profiles import render
from toolgate.ports.bus import Hint
from toolgate.testing.patience import until

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
        return {tool.name for tool in gate.host.offers(toolgate.Context(**who))}  # type: ignore[arg-type]


async def test_only_what_could_run_is_offered(tmp_path: Path) -> None:
    assert await offered(tmp_path) == {"free", "written", "silent"}
    assert await offered(tmp_path, roles=frozenset({"finance"})) == {"free", "written", "silent", "finance"}
    assert await offered(tmp_path, behavior="planning") == {"free", "written", "silent", "planned"}


async def test_what_no_rule_speaks_of_is_not_offered_where_that_denies(tmp_path: Path) -> None:
    assert await offered(tmp_path, "deny") == {"free", "written"}


async def test_a_tool_with_behaviors_of_its_own_is_offered_in_them() -> None:
    tool = toolgate.ToolDefinition("t", {}, lambda _given: None, allowed_behaviors=("x",))
    async with toolgate.open("memory://", tools=[tool]) as gate:
        assert gate.host.offers() == []
        assert gate.host.offers(toolgate.Context(behavior="x")) == [tool]


async def test_whoever_hears_is_told_of_calls_until_they_stop() -> None:
    @toolgate.tool
    async def double(number: int) -> int:
        return 2 * number

    heard: list[Hint] = []
    async with toolgate.open("memory://", tools=[double]) as gate:
        assert gate.host.owner
        stop = gate.host.on_hint(heard.append)
        await gate.call("double", {"number": 1}, call_id="c1")
        stop()
        await gate.call("double", {"number": 2}, call_id="c2")
    assert [(hint.call_id, hint.status) for hint in heard] == [("c1", Status.COMPLETED)]


@pytest.mark.parametrize("mode", ["LOCKDOWN", "NORMAL"])
async def test_the_mode_decides_what_is_offered(mode: str) -> None:
    tool = toolgate.ToolDefinition("t", {}, lambda _given: None)
    async with toolgate.open("memory://", tools=[tool]) as gate:
        await gate.set_mode(mode, by="root")
        assert [one.name for one in gate.host.offers()] == (["t"] if mode == "NORMAL" else [])


ASKING = """
version: 1
commands:
  ls: {}
  git: {subcommands: {status: , push: {decision: ask}}}
  rm: {flags: {-r: {decision: ask}}}
tools:
  allowed: {decision: allow}
  asked: {decision: ask}
  slow: {approval: {level: full, timeout: 40s}}
  denied: {decision: deny}
  some: {decision: allow, arguments: [{field: name, in: [a], then: ask}]}
  none: {decision: allow, arguments: [{field: name, in: [a], then: deny}]}
  hosts: {hosts: {ask: ["*.example.com"], arguments: [url]}, decision: allow}
  open: {hosts: {arguments: [url]}, decision: allow}
  lists: {decision: allow, commands: {allowed: [ls]}}
  pushes: {decision: allow, commands: {allowed: [git]}}
  removes: {decision: allow, commands: {allowed: all}}
  sure: {decision: allow, confidence: {auto: 85, quick: 60}}
"""


async def asked_about(folder: Path, risk: str, *, mode: str = "NORMAL") -> dict[str, float]:
    (folder / "toolgate.yaml").write_text(ASKING)
    names = "allowed asked slow denied some none hosts open lists pushes removes sure silent".split()
    made = [toolgate.ToolDefinition(name, {}, lambda _given: None, risk_level=risk) for name in names]
    async with toolgate.open("memory://", tools=made, policy=folder) as gate:
        await gate.set_mode(mode, by="root")
        return {name: gate.host.asks(tool) for name, tool in zip(names, made, strict=True)}


@pytest.mark.parametrize(("risk", "by_risk"), [("low", 0), ("medium", 300), ("high", 600)])
async def test_a_tool_asks_where_its_entry_or_else_its_risk_can(tmp_path: Path, risk: str, by_risk: float) -> None:
    told = await asked_about(tmp_path, risk)
    quick = by_risk or 300
    assert told == {
        "allowed": 0, "asked": quick, "slow": 40, "denied": by_risk, "some": quick, "none": 0, "hosts": quick,
        "open": 0, "lists": 0, "pushes": quick, "removes": quick, "sure": 600, "silent": by_risk,
    }  # fmt: skip


async def test_a_tool_is_described_in_lockdown_as_ever(tmp_path: Path) -> None:
    told = await asked_about(tmp_path, "medium", mode="LOCKDOWN")
    assert (told["silent"], told["pushes"], told["denied"]) == (300, 300, 300)


async def test_under_the_policy_init_writes_the_tools_of_document_004_are_as_it_shows_them(tmp_path: Path) -> None:
    for name, text in render("developer").items():
        (tmp_path / name).write_text(text)
    async with toolgate.open("memory://", tools=client_tools(), policy=tmp_path, workspace=tmp_path) as gate:
        told = {tool.name: gate.host.asks(tool) for tool in gate.registry}
    assert told == {"read_file": 0, "list_directory": 0, "write_file": 600, "execute_command": 300}


async def test_why_a_sandbox_cannot_be_used_is_content_and_no_fact() -> None:
    async with toolgate.open("memory://") as gate:
        gate.host.note_sandbox(
            {"backend": "b", "holds": False, "passed": [], "failed": [], "problem": "no /opt/secret"}
        )

        async def told() -> list[Event]:
            return await gate.events(project=SYSTEM_PROJECT)

        await until(told)
        [event] = await told()
        assert (event.data["problem"], b"secret" in event.frame) == ("no /opt/secret", False)
