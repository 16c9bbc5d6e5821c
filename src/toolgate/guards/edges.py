"""What the policy says of files, commands and hosts, in the form in which tools and runners apply it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from toolgate.guards.files import Access, PathFact, Workspace
from toolgate.guards.grammar import Command
from toolgate.guards.net import HostRules
from toolgate.guards.patterns import SENSITIVE, STEERING, PathPatterns

Backend = Literal["auto", "bubblewrap", "landlock", "none"]
PathJudge = Callable[[str, PathFact, Access], str | None]
"""From a tool's name, a fact and what is to be done to it: why not, or None."""

_SENSITIVE = PathPatterns(SENSITIVE, ignore_case=True, tree=True)
_STEERING = PathPatterns(STEERING, ignore_case=True, tree=True)


def judge_by_default(tool: str, fact: PathFact, access: Access) -> str | None:
    """Refuse what lies outside the roots, holds secrets, or, for writing, steers programs."""
    problem = unfit(fact, access)
    if problem is not None:
        return problem
    pattern = _SENSITIVE.match_fact(fact)
    if pattern is None and access == "write":
        pattern = _STEERING.match_fact(fact)
    return None if pattern is None else f"path '{fact.path}' is protected ('{pattern}')"


def unfit(fact: PathFact, access: Access) -> str | None:
    """Why no rule could allow this: outside every root, no plain file or directory, linked from elsewhere."""
    if fact.root is None:
        return f"path '{fact.given}' leads outside the workspace (to '{fact.path}')"
    if fact.kind not in ("file", "directory", "absent"):
        return f"path '{fact.given}' is a {fact.kind}, not a regular file"
    if fact.linked_outside and access == "read":
        return f"path '{fact.given}' has another name outside the workspace (a hard link)"
    return None


def no_limit(tool: str) -> int | None:
    """The policy sets no size for this tool."""
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Edges:
    """One policy's edges. `max_file_bytes` gives a tool's own size limit by its name."""

    workspace: Workspace
    commands: Mapping[str, Command] = field(default_factory=dict)
    hosts: HostRules = field(default_factory=HostRules)
    judge_path: PathJudge = judge_by_default
    max_file_bytes: Callable[[str], int | None] = no_limit
    sandbox: Backend = "auto"
