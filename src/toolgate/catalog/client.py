"""The four tools of document 004, which run on the user's machine: the server governs them and never runs them."""

from __future__ import annotations

from toolgate.errors import ToolExecutionError
from toolgate.kernel.input import ToolInput
from toolgate.kernel.output import ToolOutput
from toolgate.kernel.tool import Effects, Placement, RiskLevel, ToolDefinition
from toolgate.kernel.undo import UndoMetadata

MAX_COMMAND_S = 300
_PATH = {"type": "string", "minLength": 1, "maxLength": 4096}


def _run_at_client(given: ToolInput) -> ToolOutput:
    """Never called by the client runner; a wrong setup must not run anything on the server instead."""
    raise ToolExecutionError(f"`{given.tool_name}` runs at the client, not on the server.")


def _undone_at_client(undo: UndoMetadata) -> None:
    """Never called either: whoever ran the call undoes it."""
    raise ToolExecutionError(f"A call of `{undo.tool_name}` is undone at the client, not on the server.")


def _client_tool(
    name: str,
    description: str,
    parameters: dict[str, object],
    required: list[str],
    *,
    risk: RiskLevel,
    effects: Effects,
    timeout_s: float = 60.0,
    undoable: bool = False,
) -> ToolDefinition:
    return ToolDefinition(
        name,
        {"type": "object", "properties": parameters, "required": required, "additionalProperties": False},
        _run_at_client,
        description=description,
        placement=Placement.CLIENT,
        risk_level=risk,
        effects=effects,
        timeout_seconds=timeout_s,
        undoable=undoable,
        undo_handler=_undone_at_client if undoable else None,
    )


def client_tools() -> list[ToolDefinition]:
    """Return the tools a connected client runs."""
    return [
        _client_tool(
            "read_file", "Read file contents", {"path": _PATH}, ["path"], risk=RiskLevel.LOW, effects=Effects.READ
        ),
        _client_tool(
            "write_file",
            "Write file contents",
            {"path": _PATH, "content": {"type": "string"}},
            ["path", "content"],
            risk=RiskLevel.HIGH,
            effects=Effects.REVERSIBLE,
            undoable=True,
        ),
        _client_tool(
            "list_directory",
            "List a directory",
            {"path": _PATH, "recursive": {"type": "boolean"}},
            ["path"],
            risk=RiskLevel.LOW,
            effects=Effects.READ,
        ),
        _client_tool(
            "execute_command",
            "Execute a command, or a line of commands joined by `&&`, `||`, `;` and `|`, without a shell",
            {
                "command": {"type": "string", "minLength": 1, "maxLength": 4096, "format": "shell-line"},
                "args": {"type": "array", "items": {"type": "string", "maxLength": 65536}, "maxItems": 256},
                "timeout": {"type": "integer", "minimum": 1, "maximum": MAX_COMMAND_S},
                "network": {
                    "type": "boolean",
                    "description": "Ask for a network, to hosts that the policy of the client's machine allows, for "
                    "commands that have none. A person decides.",
                },
            },
            ["command"],
            risk=RiskLevel.MEDIUM,
            effects=Effects.IRREVERSIBLE,
            timeout_s=MAX_COMMAND_S + 30.0,
        ),
    ]
