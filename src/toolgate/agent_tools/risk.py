"""How risky a call is before anybody is asked: by the tool, and for files and commands by what they touch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolgate.agent_tools.commands import CommandValidator
from toolgate.agent_tools.paths import PathValidator
from toolgate.guards.argv import Parsed
from toolgate.guards.files import PathRefused
from toolgate.guards.patterns import SENSITIVE, PathPatterns
from toolgate.guards.words import ArgvRefused
from toolgate.kernel.assessment import LEVEL_TIMEOUT_S
from toolgate.kernel.misuse import explained_class
from toolgate.kernel.policy import Word
from toolgate.kernel.terms import ApprovalLevel
from toolgate.kernel.tool import RiskLevel

RISKS = {
    "read_file": RiskLevel.LOW,
    "list_directory": RiskLevel.LOW,
    "write_file": RiskLevel.HIGH,
    "edit_file": RiskLevel.HIGH,
    "delete_file": RiskLevel.HIGH,
    "execute_command": RiskLevel.MEDIUM,
}
RUNS_CODE = frozenset("python python3 pytest unittest node npm npx pnpm yarn make cargo go pip".split())
"""Commands that run what the workspace holds: never low."""

_SECRETS = PathPatterns(SENSITIVE, ignore_case=True, tree=True)


@explained_class
class RiskAssessor:
    """Says LOW, MEDIUM or HIGH. What is unknown, refused, leads out or touches secrets is HIGH."""

    def __init__(
        self,
        *,
        root: str | None = None,
        commands: CommandValidator | None = None,
        risks: Mapping[str, RiskLevel] = RISKS,
    ) -> None:
        self._paths = None if root is None else PathValidator(root)
        self._commands = commands or CommandValidator(root=root)
        self._risks = risks

    def assess_tool_risk(self, tool_name: str, tool_params: Mapping[str, Any] | None = None) -> RiskLevel:
        """Return how risky this call is."""
        risk = self._risks.get(tool_name, RiskLevel.HIGH)
        params = tool_params or {}
        if tool_name == "execute_command":
            return self._command_risk(params)
        path = params.get("path")
        if path is not None and self._is_suspect(tool_name, path):
            return RiskLevel.HIGH
        return risk

    def get_timeout_for_risk_level(self, risk_level: RiskLevel | str) -> int:
        """Return the seconds a person has to answer; 0 where nobody is asked."""
        level = RiskLevel(risk_level)
        if level is RiskLevel.LOW:
            return 0
        asked = ApprovalLevel.QUICK if level is RiskLevel.MEDIUM else ApprovalLevel.FULL
        return int(LEVEL_TIMEOUT_S[asked])

    def _is_suspect(self, tool: str, path: object) -> bool:
        if not isinstance(path, str) or not path:
            return True
        if self._paths is not None:
            check = {"list_directory": self._paths.validate_directory_path, "read_file": self._paths.validate_read_path}
            return not check.get(tool, self._paths.validate_write_path)(path)
        # Without a root there is only the text to go by.
        return path.startswith("/") or ".." in path.split("/") or _SECRETS.match(f"/{path}") is not None

    def _command_risk(self, params: Mapping[str, Any]) -> RiskLevel:
        command, args = params.get("command"), params.get("args", [])
        if not isinstance(command, str) or not isinstance(args, list):
            return RiskLevel.HIGH
        try:
            parsed = self._commands.read(command, args)
        except (ArgvRefused, PathRefused):
            return RiskLevel.HIGH
        if parsed.word is Word.DENY or any(self._is_suspect_use(use.path) for use in parsed.paths):
            return RiskLevel.HIGH
        return RiskLevel.LOW if _only_looks(parsed) else RiskLevel.MEDIUM

    def _is_suspect_use(self, path: str) -> bool:
        if self._paths is not None:
            return False  # looked at already, where it really leads
        return path.startswith("/") or ".." in path.split("/") or _SECRETS.match(f"/{path}") is not None


def _only_looks(parsed: Parsed) -> bool:
    is_plain = parsed.word is Word.ALLOW and not parsed.writes and not parsed.network
    return is_plain and RUNS_CODE.isdisjoint((parsed.command, *parsed.subcommands))
