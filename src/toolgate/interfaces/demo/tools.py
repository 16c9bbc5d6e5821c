"""The tools of the demo's server: the built-in ones, run by the runner, and the shop's own: notices and refunds.

The server stands in the workspace, so that it can show what a change would do; it changes nothing itself.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2

from toolgate.catalog import built_in_tools
from toolgate.errors import ToolExecutionError
from toolgate.guards.edges import Edges
from toolgate.guards.files import Workspace
from toolgate.interfaces.demo.story import ADDED, CATCHER
from toolgate.kernel.input import ToolInput
from toolgate.kernel.output import ToolOutput
from toolgate.kernel.tool import Placement, Prepared, ToolDefinition

NOTICE = {
    "type": "object",
    "properties": {
        "subject": {"type": "string", "minLength": 1, "maxLength": 200},
        "text": {"type": "string", "maxLength": 4000},
        "recipients": {"type": "array", "items": {"type": "string", "format": "email"}, "minItems": 1},
    },
    "required": ["subject", "text", "recipients"],
    "additionalProperties": False,
}


REFUND = {
    "type": "object",
    "properties": {"order": {"type": "string", "maxLength": 40}, "amount": {"type": "integer", "minimum": 1}},
    "required": ["order", "amount"],
    "additionalProperties": False,
}


def announce(given: ToolInput) -> Prepared:
    """Show what would go to whom."""
    to: list[str] = given.payload["recipients"]
    return Prepared(preview={"letters": len(to), "recipients": to, "subject": given.payload["subject"]})


def deliver(given: ToolInput) -> ToolOutput:
    """Send one letter to each recipient."""
    asked: dict[str, Any] = given.payload
    with httpx2.Client(base_url=os.environ[CATCHER], timeout=10, trust_env=False) as post:
        for to in asked["recipients"]:
            answer = post.post("/letters", json={"to": to, "subject": asked["subject"], "text": asked["text"]})
            if answer.status_code != 204:
                raise ToolExecutionError(f"The mail server answered {answer.status_code}.")
    return ToolOutput.ok({"sent": len(asked["recipients"])})


def give_back(given: ToolInput) -> ToolOutput:
    """Have the bank refund an order."""
    with httpx2.Client(base_url=os.environ[CATCHER], timeout=10, trust_env=False) as bank:
        bank.post("/refunds", json={**given.payload, "key": given.effect_key})
    return ToolOutput.ok({"refunded": given.payload["amount"]})


def _tools() -> list[ToolDefinition]:
    edges = Edges(workspace=Workspace(Path.cwd()))
    # Who ran a call knows whether the world has changed since, so the runner looks before it undoes.
    there = [
        replace(one, placement=Placement.CLIENT, fingerprint=None) for one in built_in_tools(edges) if one.name in ADDED
    ]
    sender = ToolDefinition(
        "send_notices",
        NOTICE,
        deliver,
        description="Send a letter to customers.",
        approval_message="Send a letter to customers. It cannot be called back.",
        risk_level="high",
        effects="irreversible",
        prepare=announce,
    )
    refunder = ToolDefinition(
        "refund",
        REFUND,
        give_back,
        description="Refund an order.",
        risk_level="medium",
        effects="irreversible",
        effect_key="refund:{order}",
    )
    return [*there, sender, refunder]


TOOLS = _tools()
