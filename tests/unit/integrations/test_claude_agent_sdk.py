"""The Claude Agent SDK adapter, given what Claude Code was seen to send its hooks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import pytest
import pytest_asyncio
from tests.unit.integrations.fakes import standing_in

import toolgate
from toolgate import Gate, Status
from toolgate.errors import UsageError
from toolgate.testing.patience import until

SENDS = {"send": "irreversible"}


@dataclass
class HookMatcher:
    matcher: Any
    hooks: list[Any]
    timeout: float
    on_failure: str


@pytest.fixture
def adapter() -> Iterator[ModuleType]:
    with standing_in("claude_agent_sdk", "0.2.184", claude_agent_sdk={"HookMatcher": HookMatcher}) as module:
        yield module


@pytest_asyncio.fixture
async def gate() -> AsyncIterator[Gate]:
    async with toolgate.open("memory://") as opened:
        yield opened


def given(**more: Any) -> dict[str, Any]:
    return {"session_id": "s1", "tool_name": "send", "tool_input": {"n": 1}, "tool_use_id": "toolu_1", **more}


def said(answer: Any) -> tuple[str, str]:
    told = answer["hookSpecificOutput"]
    return told["permissionDecision"], told["permissionDecisionReason"]


async def test_every_event_has_a_hook_that_blocks_where_it_fails(adapter: ModuleType, gate: Gate) -> None:
    hooks = adapter.Toolgate(gate).hooks()
    assert set(hooks) == {"PreToolUse", "PostToolUse", "PostToolUseFailure"}
    assert {one.on_failure for [one] in hooks.values()} == {"block"}


async def test_a_call_that_may_run_is_claimed_and_reported(adapter: ModuleType, gate: Gate) -> None:
    gated = adapter.Toolgate(gate)
    assert said(await gated.before(given(prompt_id="p1"), "toolu_1", None))[0] == "allow"
    assert await gated.after(given(tool_response="sent"), "toolu_1", None) == {}
    result = await gate.get("s1:toolu_1")
    assert (result.status, result.data) == (Status.COMPLETED, "sent")
    word, why = said(await gated.before(given(), "toolu_1", None))
    assert (word, "ran before and is not run again" in why, '"sent"' in why) == ("deny", True, True)
    assert await gated.after(given(tool_response="sent"), "toolu_1", None) == {}


async def test_a_question_pauses_and_runs_what_a_person_made_of_it(adapter: ModuleType, gate: Gate) -> None:
    gated = adapter.Toolgate(gate, effects=SENDS, pause=True)
    assert said(await gated.before(given(), None, None))[0] == "defer"
    await gate.approvals.edit((await gate.pending())[0].id, {"n": 2}, by="ann")
    told = (await gated.before(given(), None, None))["hookSpecificOutput"]
    assert (told["permissionDecision"], told["updatedInput"]) == ("allow", {"n": 2})
    assert "changed the arguments" in told["additionalContext"]


async def test_a_question_is_waited_for_and_a_no_is_told(adapter: ModuleType, gate: Gate) -> None:
    asking = asyncio.create_task(adapter.Toolgate(gate, effects=SENDS).before(given(), None, None))
    await until(gate.pending)
    await gate.decide((await gate.pending())[0].id, "deny", by="ann", reason="not today")
    word, why = said(await asking)
    assert (word, "not today" in why) == ("deny", True)


async def test_a_second_run_does_not_run_what_the_first_one_claimed(
    adapter: ModuleType, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adapter, "PATIENCE_S", 0.01)
    await adapter.Toolgate(gate).before(given(), None, None)
    word, why = said(await adapter.Toolgate(gate).before(given(), None, None))
    assert (word, "its outcome is unknown" in why) == ("deny", True)


@pytest.mark.parametrize(("interrupted", "status"), [(True, Status.UNKNOWN), (False, Status.FAILED)])
async def test_a_failure_is_reported(adapter: ModuleType, gate: Gate, interrupted: bool, status: Status) -> None:
    gated = adapter.Toolgate(gate)
    await gated.before(given(), None, None)
    assert await gated.failed(given(error="exit 1", is_interrupt=interrupted), None, None) == {}
    assert (await gate.get("s1:toolu_1")).status is status
    assert await gated.failed(given(error="exit 1"), None, None) == {}


async def test_the_model_reads_results_masked(adapter: ModuleType, gate: Gate) -> None:
    gate.host.masker.add("canary-4711")
    gated = adapter.Toolgate(gate)
    await gated.before(given(), None, None)
    answer = await gated.after(given(tool_response={"stdout": "canary-4711"}), None, None)
    assert "canary-4711" not in str(answer["hookSpecificOutput"]["updatedToolOutput"])


async def test_a_version_outside_the_tested_range_is_refused(
    adapter: ModuleType, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.metadata.version", lambda _name: "0.9")
    with pytest.raises(UsageError, match="Claude Agent SDK adapter was tested with claude-agent-sdk"):
        adapter.Toolgate(gate)
    adapter.Toolgate(gate, any_version=True)
