"""The names document 004 uses: validators and risk before a call, an executor for the agent, approvals, the row.

Names are loaded at first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolgate.agent_tools.approval import ApprovalManager
    from toolgate.agent_tools.commands import CommandValidator
    from toolgate.agent_tools.execution import ToolExecution, ToolExecutionState
    from toolgate.agent_tools.executor import ToolExecutor
    from toolgate.agent_tools.paths import PathValidator
    from toolgate.agent_tools.risk import RiskAssessor
    from toolgate.agent_tools.sizes import SizeLimiter
    from toolgate.agent_tools.validation import Validation
    from toolgate.kernel.response import ToolResponse
    from toolgate.kernel.tool import RiskLevel

_HOMES = {
    "ApprovalManager": "toolgate.agent_tools.approval",
    "CommandValidator": "toolgate.agent_tools.commands",
    "PathValidator": "toolgate.agent_tools.paths",
    "RiskAssessor": "toolgate.agent_tools.risk",
    "RiskLevel": "toolgate.kernel.tool",
    "SizeLimiter": "toolgate.agent_tools.sizes",
    "ToolExecution": "toolgate.agent_tools.execution",
    "ToolExecutionState": "toolgate.agent_tools.execution",
    "ToolExecutor": "toolgate.agent_tools.executor",
    "ToolResponse": "toolgate.kernel.response",
    "Validation": "toolgate.agent_tools.validation",
}

__all__ = [
    "ApprovalManager",
    "CommandValidator",
    "PathValidator",
    "RiskAssessor",
    "RiskLevel",
    "SizeLimiter",
    "ToolExecution",
    "ToolExecutionState",
    "ToolExecutor",
    "ToolResponse",
    "Validation",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'toolgate.agent_tools' has no attribute {name!r}")
    return getattr(import_module(home), name)
