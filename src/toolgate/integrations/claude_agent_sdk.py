"""Claude Agent SDK: hooks that see every tool call in every permission mode, and take it through the gate.

The tool runs in Claude Code's own process. So `PreToolUse` asks and claims, with the arguments that were approved, and
`PostToolUse` reports what it did; the model reads it masked. A hook that fails blocks the call.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final

import orjson
from claude_agent_sdk import HookMatcher

from toolgate.errors import ConflictError
from toolgate.gate import Gate
from toolgate.gate.bridge import Bridge, Outcome, check_version
from toolgate.kernel.call import Status
from toolgate.kernel.context import Context
from toolgate.kernel.output import Result, ToolOutput
from toolgate.kernel.payload import encode

NAME = "Claude Agent SDK"
TESTED = ((0, 2), (0, 3))
WAIT_S: Final = 3600.0
"""How long Claude Code waits for a hook, and so for a person."""
PATIENCE_S: Final = 10.0
"""How long a second run from the same session waits for the result of the first."""
_ANY: Final = {"type": "object"}
"""Hooks are not told a tool's schema; Claude Code checks arguments by it before it asks."""


class Toolgate:
    """`ClaudeAgentOptions(hooks=Toolgate(gate).hooks())`: every tool call, also of sub-agents, goes through the gate.

    `effects` says what tools do, such as `{"Read": "read", "Bash": "irreversible"}`; `context` who the agent is. A
    question is waited for inside the hook; with `pause` the run stops instead, to be resumed
    (`ResultMessage.deferred_tool_use`).
    """

    def __init__(
        self,
        gate: Gate,
        *,
        effects: Mapping[str, str] | None = None,
        context: Context | None = None,
        pause: bool = False,
        any_version: bool = False,
    ) -> None:
        if not any_version:
            check_version(NAME, "claude-agent-sdk", *TESTED)
        self.bridge = Bridge(gate, NAME, effects=effects, context=context)
        self._pauses = pause
        self._claimed: dict[str, str] = {}
        """The fence of each call that Claude Code runs now."""

    def hooks(self) -> dict[Any, list[HookMatcher]]:
        """Return what `ClaudeAgentOptions` takes as its hooks."""
        told = {"PreToolUse": self.before, "PostToolUse": self.after, "PostToolUseFailure": self.failed}
        return {
            event: [HookMatcher(matcher=None, hooks=[hook], timeout=WAIT_S, on_failure="block")]
            for event, hook in told.items()
        }

    async def before(self, given: Any, tool_use_id: str | None, _context: Any) -> Any:
        """Ask the gate, and claim what may run."""
        bridge, name = self.bridge, given["tool_name"]
        bridge.define(name, _ANY)
        id, context = self._place(given, tool_use_id)
        asked = await bridge.ask(name, given["tool_input"], call_id=id, context=context)
        if asked.result.status is Status.AWAITING_APPROVAL:
            if self._pauses:
                return _decided("defer", asked.text)
            result = await bridge.gate.wait(asked.result.call_id, project=context.project)
            asked = Outcome(result=result, value=result.data)
        if asked.result.is_final:
            return _decided("deny", _told(asked))
        fence = bridge.gate.host.new_id()
        try:
            call = await bridge.gate.remote.claim(
                asked.result.call_id, by=context.principal, fence=fence, project=context.project
            )
        except ConflictError:
            return _decided("deny", _told(await self._standing(asked.result.call_id, context)))
        self._claimed[asked.result.call_id] = fence
        answer = _decided("allow", f"{name} was approved by {call.approved_by}.")
        if call.first_asked is not None:
            note = Outcome(result=asked.result, edited=call.shown).note
            answer["hookSpecificOutput"] |= {
                "updatedInput": orjson.loads(call.arguments),
                "additionalContext": note,
            }
        return answer

    async def after(self, given: Any, tool_use_id: str | None, _context: Any) -> Any:
        """Report what a call did, and have the model read it masked."""
        output = given["tool_response"]
        told = self.bridge.gate.host.masker(output)
        await self._report(given, tool_use_id, ToolOutput.ok(output))
        if told == output:
            return {}
        return {"hookSpecificOutput": {"hookEventName": "PostToolUse", "updatedToolOutput": told}}

    async def failed(self, given: Any, tool_use_id: str | None, _context: Any) -> Any:
        """Report that a call failed, or was interrupted: then nobody knows what it did."""
        id, context = self._place(given, tool_use_id)
        fence = self._claimed.pop(id, None)
        if fence is not None:
            raised = () if given.get("is_interrupt") else ("Exception",)
            await self.bridge.gate.remote.doubt(
                id, given["error"], raised=raised, fence=fence, by=context.principal, project=context.project
            )
        return {}

    async def _report(self, given: Any, tool_use_id: str | None, output: ToolOutput) -> None:
        id, context = self._place(given, tool_use_id)
        fence = self._claimed.pop(id, None)
        if fence is not None:
            await self.bridge.gate.complete(id, output, fence=fence, by=context.principal, project=context.project)

    def _place(self, given: Any, tool_use_id: str | None) -> tuple[str, Context]:
        """The id of a call at the gate, and its context: the session is the run, and is the same when it is resumed."""
        session = str(given["session_id"])
        step = str(given.get("prompt_id") or session)
        id = self.bridge.id_of(session, str(tool_use_id or given["tool_use_id"]))
        return id, self.bridge.context_of(run=session, step=step)

    async def _standing(self, call_id: str, context: Context) -> Outcome:
        """Where a call stands that somebody else claimed: how it ended, if it ends soon."""
        gate = self.bridge.gate
        try:
            async with asyncio.timeout(PATIENCE_S):
                result = await gate.wait(call_id, project=context.project)
        except TimeoutError:
            result = await gate.get(call_id, project=context.project)
        return Outcome(result=result, value=result.data)


def _decided(what: str, why: str) -> dict[str, Any]:
    return {
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": what,
            "permissionDecisionReason": why,
        }
    }


def _told(outcome: Outcome) -> str:
    """What the model reads where the tool does not run now."""
    result: Result = outcome.result
    if outcome.is_success:
        return f"`{result.tool_name}` ran before and is not run again; its result was: {encode(result.data).decode()}"
    if not result.is_final:
        return (
            f"`{result.tool_name}` was started by another run of this session; its outcome is unknown. Not run again."
        )
    return outcome.text
