"""Document 003's checks by themselves: may this call run, and are its arguments within bounds? Nothing runs here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolgate.errors import ToolInputError
from toolgate.governance.builtin import builtin_registry
from toolgate.governance.config import GovernanceConfig
from toolgate.governance.definitions import PermissionResult, ValidationResult
from toolgate.governance.modes import read_mode
from toolgate.governance.registry import ToolRegistry
from toolgate.kernel.context import Context, Mode
from toolgate.kernel.misuse import explained
from toolgate.kernel.policy import Word
from toolgate.kernel.tool import ToolDefinition as Tool
from toolgate.pipeline.validate import validate
from toolgate.policy.explain import Explanation, Question, explain

_BOUNDS = ("paths", "commands", "sizes", "hosts", "arguments", "protected")
"""The rules that speak of arguments."""


@explained
def check_permissions(
    tool_name: str,
    arguments: Mapping[str, Any],
    mode: Mode | str,
    governance_config: GovernanceConfig,
    *,
    registry: ToolRegistry | None = None,
    approver: Any = None,
) -> PermissionResult:
    """Say whether a call may run now. A call that needs a person is allowed only if the `approver` says so.

    Without a `registry`, the built-in tools are meant. Rates are not looked at: they are reserved when a call is
    claimed, and only then.
    """
    registry = registry if registry is not None else builtin_registry()
    governance_config = registry.placed(governance_config)
    found = registry.get_tool(tool_name)
    tool = registry.find(tool_name)
    if found is None or tool is None:
        return PermissionResult(allowed=False, reason=f"Tool {tool_name} not found")
    try:
        given = validate(tool, found[0].with_defaults(arguments), governance_config.limits).value
    except ToolInputError as error:
        return PermissionResult(allowed=False, reason=str(error))
    said = _explain(tool, given, mode, governance_config)
    if said.ruling.denial is not None:
        return PermissionResult(allowed=False, reason=said.ruling.denial.reason)
    if said.ruling.word is Word.ALLOW:
        return PermissionResult(allowed=True)
    if approver is None:
        return PermissionResult(allowed=False, reason="Approval is needed, and nobody can be asked")
    answer = approver(tool_name, given)
    if getattr(answer, "granted", answer) is True:
        return PermissionResult(allowed=True)
    return PermissionResult(allowed=False, reason="Approval denied by user")


@explained
def validate_arguments(
    tool_name: str,
    arguments: Mapping[str, Any],
    governance_config: GovernanceConfig,
    *,
    registry: ToolRegistry | None = None,
) -> ValidationResult:
    """Say whether arguments fit the tool's parameters and the bounds the governance file sets."""
    registry = registry if registry is not None else builtin_registry()
    governance_config = registry.placed(governance_config)
    found = registry.get_tool(tool_name)
    tool = registry.find(tool_name)
    if found is None or tool is None:
        return ValidationResult(valid=False, error=f"Tool {tool_name} not found")
    try:
        given = validate(tool, found[0].with_defaults(arguments), governance_config.limits).value
    except ToolInputError as error:
        return ValidationResult(valid=False, error=str(error))
    said = _explain(tool, given, Mode.NORMAL, governance_config)
    for verdict in said.ruling.judgement.verdicts:
        if verdict.word is Word.DENY and verdict.rule in _BOUNDS:
            return ValidationResult(valid=False, error=verdict.reason)
    return ValidationResult(valid=True)


def _explain(tool: Tool, arguments: dict[str, Any], mode: Mode | str, governance: GovernanceConfig) -> Explanation:
    question = Question(tool=tool, arguments=arguments, context=Context(), mode=read_mode(mode), expect=None)
    return explain(governance.policy, question)
