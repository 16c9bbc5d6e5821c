"""What happens in a project before somebody looks at it: calls of every kind, with words that try to deceive."""

from __future__ import annotations

import uuid
from typing import Any

from tests.console.scene import Scene
from tests.console.workplace import AFTER

HOSTILE = "<img src=x onerror=alert(1)><script>alert(2)</script>\u202egnp.exe\u200b {{7*7}}"
"""Markup, a script, a right-to-left override and a character nobody sees."""


def run_id() -> str:
    return str(uuid.uuid4())


async def execute(scene: Scene, tool: str, params: dict[str, Any], *, who: str = "bot", **more: Any) -> Any:
    """Have a tool called; returns where the call stands."""
    return await scene.send(
        who, "POST", "tools/execute", {"tool_name": tool, "tool_params": params, "wait": False, **more}
    )


async def decide(scene: Scene, approval_id: str, verb: str = "approve", **body: Any) -> Any:
    """Have a person answer, and wait until the call is over."""
    await scene.send("ann", "POST", f"approvals/{approval_id}/{verb}", body)
    return await scene.call(approval_id, until=("completed", "rejected", "failed", "timeout"))


async def a_days_work(scene: Scene, run: str) -> dict[str, str]:
    """A run with effects, a rejection, a denial and a question that waits; returns the ids of its calls."""
    await execute(scene, "look_up", {"key": "release notes"}, run_id=run)
    edited = await scene.ask(
        "edit_file", {"path": "src/storage.py", "content": AFTER}, run_id=run, claim="Retries make it safer"
    )
    first = await decide(scene, edited, reason="Looks right, tests are green")
    kept = await execute(scene, "keep", {"key": "retries", "value": "5"}, run_id=run)
    told = await scene.ask(
        "notify",
        {"to": "everyone@example.com", "subject": "New release", "count": 1200, "password": "hunter2-hunter2"},
        run_id=run,
    )
    second = await decide(scene, told, "reject", reason="Not on a Friday")
    waiting = await scene.ask("drop_table", {"name": "orders_old", "cascade": True}, run_id=run)
    await execute(scene, "look_up", {"key": 7}, run_id=run)
    third = await scene.call(waiting)
    return {"edit": first["tool_id"], "keep": kept["tool_id"], "notify": second["tool_id"], "drop": third["tool_id"]}
