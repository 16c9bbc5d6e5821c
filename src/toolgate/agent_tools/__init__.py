"""The names document 004 uses: an executor for the agent, its approvals, and the row of an execution.

Names are loaded at first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolgate.agent_tools.approval import ApprovalManager
    from toolgate.agent_tools.execution import ToolExecution, ToolExecutionState
    from toolgate.agent_tools.executor import ToolExecutor
    from toolgate.kernel.response import ToolResponse
    from toolgate.kernel.tool import RiskLevel

_HOMES = {
    "ApprovalManager": "toolgate.agent_tools.approval",
    "RiskLevel": "toolgate.kernel.tool",
    "ToolExecution": "toolgate.agent_tools.execution",
    "ToolExecutionState": "toolgate.agent_tools.execution",
    "ToolExecutor": "toolgate.agent_tools.executor",
    "ToolResponse": "toolgate.kernel.response",
}

__all__ = ["ApprovalManager", "RiskLevel", "ToolExecution", "ToolExecutionState", "ToolExecutor", "ToolResponse"]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'toolgate.agent_tools' has no attribute {name!r}")
    return getattr(import_module(home), name)
