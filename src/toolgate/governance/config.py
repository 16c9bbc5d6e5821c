"""The governance file: what it says as written, and the policy it makes."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import orjson

from toolgate.errors import UsageError
from toolgate.kernel.call import Call
from toolgate.kernel.misuse import explained
from toolgate.kernel.policy import Facts, Policy, Rule, Stance, Verdict, Word
from toolgate.kernel.record import evolve
from toolgate.kernel.text.canonical import DEFAULT_LIMITS, Limits
from toolgate.kernel.tool import ToolDefinition as Tool
from toolgate.policy import strict_yaml
from toolgate.policy.compile import FilePolicy
from toolgate.policy.edge import EdgeRule
from toolgate.policy.loader import find_policy, load_policy, read_policy, revise_policy, surroundings_of
from toolgate.policy.rules.sizes import SizesRule
from toolgate.policy.targets import declares_paths
from toolgate.policy.values import Surroundings

_PATHS = ("allowed_paths", "forbidden_paths")


_ESCAPED = 2
"""A line break or a quotation mark takes two bytes in JSON."""


class GovernanceConfig:
    """One governance file. `tools["write_file"]["allowed_paths"]` is what it says, with `$HOME` filled in."""

    def __init__(
        self,
        policy: FilePolicy,
        tools: Mapping[str, Mapping[str, Any]],
        *,
        at: Callable[[str | Path], GovernanceConfig] | None = None,
    ) -> None:
        """`at` reads the same again for another workspace; None where the workspace was chosen already."""
        self.file = policy
        self.policy = GovernedPolicy(revision=policy.revision, file=policy)
        self.tools = tools
        self._at = at

    def at(self, workspace: str | Path) -> GovernanceConfig:
        """Return what the file says with paths that begin at `workspace`.

        Raises UsageError where it was loaded for another workspace.
        """
        own = self.file.surroundings.workspace
        if os.path.realpath(own) == os.path.realpath(workspace):
            return self
        if self._at is None:
            raise UsageError(
                f"The registry's workspace is {workspace}, and the governance file was loaded for {own}. "
                "Give both the same workspace, or give it to one of them only."
            )
        return self._at(workspace)

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
        return evolve(said, rules=rules if said.modes_settled else (*rules, _listed))


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


@explained
def load_governance(
    source: str | bytes | Path | Mapping[str, Any] | None = None,
    *,
    workspace: str | Path | None = None,
    home: str | Path | None = None,
) -> GovernanceConfig:
    """Read a governance file, its text, or the same as a mapping; without any, the file at its usual place.

    Raises PolicyError naming line and column of everything that is wrong.
    """
    if isinstance(source, Mapping):
        source = _as_text(source)
    if isinstance(source, bytes) or (isinstance(source, str) and _is_text(source)):
        texts: list[str | bytes] = [source]
        policy = read_policy(source, workspace=workspace, home=home)
    elif isinstance(source, str | Path | None):
        path = Path(source if source is not None else ".")
        policy = load_policy(path, workspace=workspace, home=home)
        texts = [one.read_bytes() for one in (find_policy(path) if path.is_dir() else (path,))]
    else:
        raise UsageError(
            f"Governance is a file, its text or a mapping, not {type(source).__name__}; "
            "write load_governance('config/governance/tools.yaml')."
        )
    return _config(policy, texts, is_placed=workspace is not None)


def _config(policy: FilePolicy, texts: list[str | bytes], *, is_placed: bool) -> GovernanceConfig:
    def at(workspace: str | Path) -> GovernanceConfig:
        around = surroundings_of(workspace, policy.surroundings.home)
        said = {document.name: document.text for document in policy.documents}
        moved = revise_policy(replace(policy, surroundings=around), said)  # what was read, not what the file is by now
        return _config(moved, texts, is_placed=True)

    return GovernanceConfig(policy, _entries(texts, policy.surroundings), at=None if is_placed else at)


def _as_text(source: Mapping[str, Any]) -> bytes:
    try:
        return orjson.dumps(source)  # JSON is YAML
    except TypeError as error:
        raise UsageError(f"Governance as a mapping holds only what YAML can say: {error}.") from None


def _is_text(source: str) -> bool:
    """Whether this is a file's content and not its name: a name has no line break and no `key: value` in it."""
    said = source.strip()
    return not said or "\n" in source or said.startswith("{") or said.endswith(":") or _ENTRY.search(said) is not None


_ENTRY = re.compile(r"^[^\s/\\]+\s*:\s")
"""How a text of one line begins: a key, which holds no separator of paths, a colon and a space."""


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
