"""Claude Agent SDK: Claude Code itself, with a model server of our own."""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from claude_agent_sdk import ClaudeAgentOptions, ResultMessage, create_sdk_mcp_server, query, tool
from tests.real.frameworks import contract
from tests.real.frameworks.contract import Ended, Scene, Tools, Turn, main
from tests.real.frameworks.messages_server import MessagesServer

from toolgate import Gate
from toolgate.integrations.claude_agent_sdk import Toolgate

PREFIX = "mcp__bank__"
HOME = str(Path(tempfile.gettempdir()) / "toolgate-claude-code")
Path(HOME).mkdir(exist_ok=True)


def named(turn: Turn) -> list[Any]:
    return [(id, PREFIX + name, args) for id, name, args in turn]


class Driver:
    def __init__(self, gate: Gate, turns: Sequence[Turn], tools: Tools, *, pause: bool = True) -> None:
        self._turns = [named(turn) for turn in turns]
        effects = {PREFIX + name: effect for name, effect in contract.EFFECTS.items()}
        self._gated = Toolgate(gate, effects=effects, pause=pause)
        made = [self._tool(getattr(tools, name), schema) for name, schema in SCHEMAS.items()]
        self._server = create_sdk_mcp_server("bank", tools=made)

    def _tool(self, function: Any, schema: Any) -> Any:
        async def run(arguments: dict[str, Any]) -> Any:
            said = function(**arguments)
            said = await said if hasattr(said, "__await__") else said
            return {"content": [{"type": "text", "text": str(said)}]}

        return tool(function.__name__, function.__doc__, schema)(run)

    async def run(self, prompt: str, resume: str | None = None) -> Ended:
        async with MessagesServer(self._turns).serving() as server:
            options = ClaudeAgentOptions(
                hooks=self._gated.hooks(),
                mcp_servers={"bank": self._server},
                permission_mode="bypassPermissions" if os.geteuid() else "default",  # refused for root
                allowed_tools=[PREFIX + name for name in SCHEMAS],
                resume=resume,
                fork_session=False,
                setting_sources=[],
                cwd=HOME,
                env={
                    "ANTHROPIC_BASE_URL": server.url,
                    "ANTHROPIC_API_KEY": "none",
                    "HOME": HOME,
                    "CLAUDE_CONFIG_DIR": str(Path(HOME) / "claude"),
                    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
                    "DISABLE_TELEMETRY": "1",
                },
            )
            deferred, session = None, ""
            async for message in query(prompt=prompt, options=options):
                if isinstance(message, ResultMessage):
                    deferred, session = message.deferred_tool_use, message.session_id
            said = json.dumps([request.get("messages") for request in server.requests])
        return Ended(deferred is not None, session, said)

    async def resume(self, saved: str) -> Ended:
        return await self.run("go on", resume=saved)

    async def run_plain(self, prompt: str) -> Ended:
        return await self.run(prompt)

    async def run_streamed(self, prompt: str) -> Ended:
        return await self.run(prompt)

    def dump(self, saved: str) -> bytes:
        return saved.encode()

    def load(self, data: bytes) -> str:
        return data.decode()


SCHEMAS = {
    "pay": {"to": str, "amount": int},
    "look": {"what": str},
    "wipe": {"disk": str},
    "delegate": {"task": str},
}


async def its_own_resume_does_not_count(scene: Scene) -> None:
    """Resumed without an answer at the gate, nothing runs and the question stays; in every permission mode."""
    driver = scene.driver([("toolu_1", "pay", {"to": "bob", "amount": 10})])
    paused = await driver.run("pay")
    await driver.resume(paused.saved)
    assert (paused.is_paused, scene.paid, len(await scene.gate.pending())) == (True, [], 1), scene.paid


async def a_question_is_waited_for_inside_the_hook(scene: Scene) -> None:
    driver = Driver(scene.gate, [[("toolu_1", "pay", {"to": "bob", "amount": 10})]], scene.tools, pause=False)
    running = asyncio.create_task(driver.run("pay"))
    await scene.answer()
    ended = await running
    assert (ended.is_paused, scene.paid) == (False, [("pay", "bob", 10)]), scene.paid


async def secrets_in_results_are_masked_for_the_model(scene: Scene) -> None:
    scene.gate.host.masker.add("canary-4711")
    ended = await scene.driver([("toolu_1", "look", {"what": "canary-4711"})]).run("look")
    told = [one for one in json.loads(ended.transcript)[-1] if one["role"] == "user"][-1]
    assert "saw" in str(told), told
    assert "canary-4711" not in str(told), told


if __name__ == "__main__":
    main(
        Driver,
        its_own_resume_does_not_count,
        a_question_is_waited_for_inside_the_hook,
        secrets_in_results_are_masked_for_the_model,
        without=[
            "own_approval_does_not_count",  # said above: a second pause of one call ends the run
            "sub_agent",  # Claude Code's own sub-agents are seen by the same hooks
            "result_that_cannot_be_written",  # results come to the hooks as JSON
        ],
    )
