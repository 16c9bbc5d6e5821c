"""The governance file: what it says as written, and the policy it makes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import orjson

from toolgate.kernel.call import Call
from toolgate.kernel.canonical import DEFAULT_LIMITS, Limits
from toolgate.kernel.policy import Facts, Policy, Rule, Stance, Verdict, Word
from toolgate.kernel.tool import ToolDefinition as Tool
from toolgate.policy import strict_yaml
from toolgate.policy.compile import FilePolicy
from toolgate.policy.edge import EdgeRule
from toolgate.policy.loader import find_policy, load_policy, read_policy, surroundings_of
from toolgate.policy.rules.sizes import SizesRule
from toolgate.policy.targets import declares_paths
from toolgate.policy.values import Surroundings

_PATHS = ("allowed_paths", "forbidden_paths")


_ESCAPED = 2
"""A line break or a quotation mark takes two bytes in JSON."""


class GovernanceConfig:
    """One governance file. `tools["write_file"]["allowed_paths"]` is what it says, with `$HOME` filled in."""

    def __init__(self, policy: FilePolicy, tools: Mapping[str, Mapping[str, Any]]) -> None:
        self.file = policy
        self.policy = GovernedPolicy(revision=policy.revision, file=policy)
        self.tools = tools

    @property
    def revision(self) -> str:
        """The hash of everything the file says."""
        return self.file.revision

    @property
    def limits(self) -> Limits:
        """How long arguments may be: as long as the largest file a tool may be given, written as JSON."""
        entries = (entry for one in self.file.documents for entry in (*one.tools.values(), *one.categories.values()))
        rules = (rule for entry in entries for share in entry.shares for rule in share.rules)
        sizes = (rule.file_bytes or 0 for rule in rules if isinstance(rule, SizesRule))
        return Limits(max_bytes=DEFAULT_LIMITS.max_bytes + _ESCAPED * max(sizes, default=0))


@dataclass(frozen=True, kw_only=True)
class GovernedPolicy(Policy):
    """The file's policy, under which a mode that a tool lists by name is a permission for that mode.

    Document 003 knows path lists and no workspace: an executor's own paths are judged by the lists alone.
    """

    file: FilePolicy

    def stance(self, tool: Tool) -> Stance:
        said = self.file.stance(tool)
        rules = said.rules if declares_paths(tool) else tuple(map(_anywhere, said.rules))
        return said.evolve(rules=rules if said.modes_settled else (*rules, _listed))


def _anywhere(rule: Rule) -> Rule:
    return replace(rule, asks_outside=False) if isinstance(rule, EdgeRule) else rule


class _Listed:
    """Allow in the modes a tool lists."""

    name = "allowed_modes"

    def __call__(self, _call: Call, tool: Tool, facts: Facts, /) -> Verdict | None:
        if facts.mode not in tool.allowed_modes:
            return None
        return Verdict(Word.ALLOW, f"the tool lists {facts.mode} mode", self.name)


_listed = _Listed()


def load_governance(
    source: str | bytes | Path | Mapping[str, Any] | None = None,
    *,
    workspace: str | Path | None = None,
    home: str | Path | None = None,
) -> GovernanceConfig:
    """Read a governance file, its text, or the same as a mapping; without any, the file at its usual place.

    Raises PolicyError naming line and column of everything that is wrong.
    """
    around = surroundings_of(workspace, home)
    if isinstance(source, Mapping):
        source = orjson.dumps(source)  # JSON is YAML
    if isinstance(source, bytes) or (isinstance(source, str) and _is_text(source)):
        policy = read_policy(source, workspace=workspace, home=home)
        return GovernanceConfig(policy, _entries([source], around))
    path = Path(source if source is not None else ".")
    paths = find_policy(path) if path.is_dir() else (path,)
    policy = load_policy(path, workspace=workspace, home=home)
    return GovernanceConfig(policy, _entries([one.read_bytes() for one in paths], around))


def _is_text(source: str) -> bool:
    """A path has no line break and does not end like a mapping's key."""
    return "\n" in source or source.lstrip().startswith("{") or source.rstrip().endswith(":") or not source.strip()


def _entries(texts: list[str | bytes], around: Surroundings) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for text in texts:
        content = strict_yaml.read(text, "governance").content
        for name, entry in ((content or {}).get("tools") or {}).items():
            found.setdefault(name, {}).update(_expanded(entry or {}, around))
    return found


def _expanded(entry: Mapping[str, Any], around: Surroundings) -> dict[str, Any]:
    return {
        key: [around.expand(pattern) for pattern in value] if key in _PATHS and isinstance(value, list) else value
        for key, value in entry.items()
    }
