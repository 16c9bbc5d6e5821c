"""Hooks for the Claude Agent SDK, as Claude Code calls them around one tool call; no model is asked."""

import asyncio
from typing import Any

from claude_agent_sdk import ClaudeAgentOptions

import toolgate
from toolgate.integrations.claude_agent_sdk import Toolgate


async def main() -> None:
    async with toolgate.open("memory://") as gate:
        gated = Toolgate(gate, effects={"Bash": "irreversible"}, pause=True)
        options = ClaudeAgentOptions(hooks=gated.hooks())
        print("hooks:", *sorted(options.hooks or {}))

        # What Claude Code sends before it runs a tool; `query(prompt=..., options=options)` does this for you.
        call: Any = {"session_id": "s1", "tool_name": "Bash", "tool_input": {"command": "make"}, "tool_use_id": "t1"}
        print((await gated.before(call, "t1", None))["hookSpecificOutput"]["permissionDecision"])
        [question] = await gate.pending()
        await gate.decide(question.id, "approve", by="ann")
        print((await gated.before(call, "t1", None))["hookSpecificOutput"]["permissionDecision"])
        await gated.after({**call, "tool_response": {"stdout": "ok"}}, "t1", None)
        print((await gate.get("s1:t1")).status)


if __name__ == "__main__":
    asyncio.run(main())
