"""Tools an agent asks for in the console's tests: of every risk, with previews, undo and hostile words."""

from __future__ import annotations

from typing import Any

import toolgate
from toolgate.kernel.text.diff import diff_text
from toolgate.kernel.tool import Prepared

BEFORE = """import json

RETRIES = 3


def load(path):
    with open(path) as file:
        return json.load(file)


def save(path, value):
    with open(path, "w") as file:
        json.dump(value, file)
"""


def _prepare(given: toolgate.ToolInput) -> Prepared:
    payload = given.payload
    found = diff_text(BEFORE, payload["content"], fromfile=f"a/{payload['path']}", tofile=f"b/{payload['path']}")
    return Prepared(
        preview={"path": payload["path"], "diff": found.diff_output, "change": found.change_summary},
        undo_data={"path": payload["path"]},
    )


def _edit(given: toolgate.ToolInput) -> toolgate.ToolOutput:
    return toolgate.ToolOutput.ok({"wrote": given.payload["path"]})


def _undo(_metadata: Any) -> None:
    return None


_TEXT = {"type": "string"}
edit = toolgate.ToolDefinition(
    "edit_file",
    {
        "type": "object",
        "properties": {"path": _TEXT, "content": _TEXT},
        "required": ["path", "content"],
        "additionalProperties": False,
    },
    _edit,
    undoable=True,
    undo_handler=_undo,
    prepare=_prepare,
    risk_level="medium",
    approval_message="Change a file in the workspace?",
)


@toolgate.tool(risk_level="low", requires_approval=True)
async def note(text: str) -> str:
    """Keep a note."""
    return text


@toolgate.tool(risk_level="medium", effects="irreversible")
async def notify(to: str, subject: str, count: int = 1, password: str = "") -> dict[str, Any]:
    """Send a message to customers."""
    return {"sent": count, "to": to, "subject": subject, "secret": bool(password)}


@toolgate.tool(risk_level="high", requires_reason=True, effects="irreversible")
async def drop_table(name: str, cascade: bool = False) -> str:
    """Drop a table of the production database."""
    return f"{name} {cascade}"


def _migration(given: toolgate.ToolInput) -> Prepared:
    return Prepared(preview={"diff": "\n".join(f"+row {number}" for number in range(given.payload["rows"]))})


@toolgate.tool(risk_level="high", effects="irreversible", prepare=_migration)
async def migrate(rows: int) -> int:
    """Rewrite the rows of a table."""
    return rows


@toolgate.tool(risk_level="medium", effects="irreversible")
async def publish(name: str) -> str:
    """Publish a page."""
    return name


@toolgate.tool(risk_level="low", effects="read")
async def look_up(key: str) -> dict[str, str]:
    """Look something up in the handbook."""
    return {"key": key, "found": "yes"}


@toolgate.tool(undoable=True, undo_handler=_undo)
async def keep(key: str, value: str) -> toolgate.ToolOutput:
    """Keep a setting."""
    return toolgate.ToolOutput.ok({"kept": key}, undo_metadata={"key": key, "was": value})


@toolgate.tool(risk_level="low", effects="irreversible", effect_key="wire:{to}")
async def wire_money(to: str) -> str:
    """Wire money; the bank's answer is lost."""
    raise toolgate.errors.ToolUnknownOutcomeError(f"no answer about {to}")


run_line = toolgate.ToolDefinition(
    "run_line",
    {
        "type": "object",
        "properties": {"command": {"type": "string", "format": "shell-line"}, "network": {"type": "boolean"}},
        "required": ["command"],
        "additionalProperties": False,
    },
    _edit,
    placement="client",
    risk_level="medium",
)
"""Runs on the machine of who asks; the server prepares nothing of it."""

TOOLS = [edit, note, notify, drop_table, migrate, publish, look_up, keep, wire_money, run_line]

AFTER = BEFORE.replace("RETRIES = 3", "RETRIES = 5").replace(
    'with open(path, "w") as file:\n        json.dump(value, file)',
    'with open(path, "w", encoding="utf-8") as file:\n        json.dump(value, file, indent=2)',
)
