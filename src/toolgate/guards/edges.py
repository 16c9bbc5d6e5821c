"""What the policy says of files, commands and hosts, in the form in which tools and runners apply it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from toolgate.guards.files import Access, PathFact, PathRefused, Workspace
from toolgate.guards.grammar import Command
from toolgate.guards.net import HostRules
from toolgate.guards.patterns import SENSITIVE, STEERING, PathPatterns

Backend = Literal["auto", "bubblewrap", "landlock", "none"]
PathJudge = Callable[[str, PathFact, Access], str | None]
"""From a tool's name, a fact and what is to be done to it: why not, or None."""

SECRETS = PathPatterns(SENSITIVE, ignore_case=True, tree=True)
"""What holds secrets, in any letter case, with everything beneath it."""
STEERED = PathPatterns(STEERING, ignore_case=True, tree=True)
"""What steers programs, or Toolgate itself."""


def judge_by_default(tool: str, fact: PathFact, access: Access) -> str | None:
    """Refuse what lies outside the roots, holds secrets, or, for writing, steers programs."""
    problem = unfit(fact)
    if problem is not None:
        return problem
    pattern = SECRETS.match_fact(fact)
    if pattern is None and access == "write":
        pattern = STEERED.match_fact(fact)
    return None if pattern is None else f"path '{fact.path}' is protected ('{pattern}')"


def unfit(fact: PathFact) -> str | None:
    """Why no rule could allow this: outside every root, no plain file or directory, linked from elsewhere."""
    if fact.root is None:
        return f"path '{fact.given}' leads outside the workspace (to '{fact.path}')"
    if fact.kind not in ("file", "directory", "link", "absent"):
        return f"path '{fact.given}' is a {fact.kind}, not a regular file"
    if fact.linked_outside:  # a change shows and keeps what was there, so it is refused as well
        return f"path '{fact.given}' has another name outside the workspace (a hard link)"
    return None


def no_limit(tool: str) -> int | None:
    """The policy sets no size for this tool."""
    return None


def no_rule(tool: str) -> bool:
    """Without a policy, no rule looks at a tool's commands."""
    return False


RunLater = Literal["report", "ask", "deny"]
"""What it leads to that a command changed a file that runs later."""


def no_overlay(tool: str) -> RunLater | None:
    """Without a policy, commands write where they run."""
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Edges:
    """One policy's edges.

    max_file_bytes: a tool's own size limit, by its name. hidden, locked: what commands do not see, or see and
    cannot change, of the workspace. policy_files, private_files: what this very gate is steered by, whatever it is
    called: commands cannot change the former, nor see the latter. asks_unknown: whether a tool's commands without
    grammar are asked about. judges_commands: whether any rule looks at a tool's commands. overlay: for a tool whose
    commands that write run in an overlay, what a changed file that runs later leads to; None for others.
    """

    workspace: Workspace
    commands: Mapping[str, Command] = field(default_factory=dict)
    hosts: HostRules = field(default_factory=HostRules)
    judge_path: PathJudge = judge_by_default
    max_file_bytes: Callable[[str], int | None] = no_limit
    sandbox: Backend = "auto"
    hidden: PathPatterns = SECRETS
    locked: PathPatterns = STEERED
    asks_unknown: Callable[[str], bool] = no_rule
    judges_commands: Callable[[str], bool] = no_rule
    overlay: Callable[[str], RunLater | None] = no_overlay
    policy_files: tuple[str, ...] = ()
    private_files: tuple[str, ...] = ()

    def look(self, tool: str, path: str, access: Access, *, base: str | None = None, follow: bool = True) -> PathFact:
        """Return what a path points at, if the tool may touch it so; PathRefused otherwise."""
        fact = self.workspace.look(path, base=base, follow=follow)
        refusal = self.judge_path(tool, fact, access)
        if refusal is not None:
            raise PathRefused("denied", f"{refusal}. Choose another path, or add it to the policy.")
        return fact

    def limit(self, tool: str, own: int) -> int:
        """Return how many bytes of a file a tool may take: its own limit or the policy's, whichever is less."""
        limit = self.max_file_bytes(tool)
        return own if limit is None else min(own, limit)


EdgeSource = Edges | Callable[[], Edges]
"""The edges, or where to find those that hold now: a policy may be read again."""


def edges_of(source: EdgeSource) -> Edges:
    """Return the edges that hold now."""
    return source if isinstance(source, Edges) else source()
