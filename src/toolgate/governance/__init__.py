"""The governance door: document 003's names, thin over the gate."""

from toolgate.governance.builtin import builtin_registry, execute_shell_command_sandboxed
from toolgate.governance.config import GovernanceConfig, load_governance
from toolgate.governance.definitions import (
    PermissionResult,
    ToolDefinition,
    ToolParameter,
    ToolResult,
    ValidationResult,
)
from toolgate.governance.layer import ToolExecutionLayer
from toolgate.governance.modes import ModeManager
from toolgate.governance.permissions import check_permissions, validate_arguments
from toolgate.governance.registry import ToolRegistry
from toolgate.governance.trace import TraceContext
from toolgate.kernel.context import Mode

__all__ = [
    "GovernanceConfig",
    "Mode",
    "ModeManager",
    "PermissionResult",
    "ToolDefinition",
    "ToolExecutionLayer",
    "ToolParameter",
    "ToolRegistry",
    "ToolResult",
    "TraceContext",
    "ValidationResult",
    "builtin_registry",
    "check_permissions",
    "execute_shell_command_sandboxed",
    "load_governance",
    "validate_arguments",
]
