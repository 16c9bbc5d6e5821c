"""Which files a tool may touch, matched on what a path really leads to, links followed.

`allowed` refuses every path that none of its patterns covers; `forbidden` refuses what it covers, allowed or
not, hard links and directory contents included. A pattern is absolute, or relative to the workspace; a bare name
matches at any depth; `**` crosses directories. Write $HOME and ${WORKSPACE} for these directories.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from pydantic import Field

from toolgate.errors import UsageError
from toolgate.guards.patterns import PathPatterns, check_pattern
from toolgate.kernel.call import Call
from toolgate.kernel.policy import Facts, Verdict, Word
from toolgate.kernel.tool import ToolDefinition
from toolgate.policy.targets import PathTarget, path_names
from toolgate.policy.values import Name, Share, Site, Spec, Surroundings

ALIASES = {"allowed_paths": "allowed", "forbidden_paths": "forbidden", "path_arguments": "arguments"}
_GLOB = re.compile(r"[*?\[{\\]")


class Paths(Spec):
    allowed: list[Name] | None = Field(default=None, description="Patterns; a path that none covers is refused.")
    forbidden: list[Name] = Field(default=[], description="Patterns; a path that one covers is refused.")
    arguments: list[Name] = Field(
        default=[], description="Arguments that hold paths, beside those whose name or schema format says so."
    )


SPEC = Paths


@dataclass(frozen=True, slots=True)
class PathsRule:
    """Deny by the paths in the arguments. Resolution happened before; this only compares."""

    allowed: PathPatterns | None
    forbidden: PathPatterns | None
    arguments: frozenset[str]
    site: Site
    name: str = "paths"

    def __call__(self, _call: Call, tool: ToolDefinition, facts: Facts, /) -> Verdict | None:
        targets = paths_in(facts)
        if not targets and not self.arguments and not path_names(tool) and "commands" not in facts.found:
            reason = "no argument is known to hold a path; name it under `paths: arguments:`"
            return Verdict(Word.DENY, reason, self.name, "no_path")
        for target in targets:
            verdict = self._judge(target, tool)
            if verdict is not None:
                return verdict
        return None

    def _judge(self, target: PathTarget, tool: ToolDefinition) -> Verdict | None:
        fact = target.fact
        if fact is None:
            return Verdict(Word.DENY, target.refused, self.name, "path_refused")
        if self.forbidden is not None and (pattern := self.forbidden.match_fact(fact)) is not None:
            remedy = f"Choose another, or take '{pattern}' out of `paths: {{forbidden: [...]}}` in the policy."
            reason = f"Path {target.given} is forbidden"
            return Verdict(Word.DENY, reason, self.name, "path_forbidden", remedy=remedy)
        if self.allowed is not None and self.allowed.match(fact.path) is None:
            line = f"tools: {{{tool.name}: {{paths: {{allowed: [..., '{quoted(fact.path)}']}}}}}}"
            remedy = f"Choose another, or allow it in the policy: `{line}`."
            reason = f"Path {target.given} not in allowed paths"
            return Verdict(Word.DENY, reason, self.name, "path_not_allowed", remedy=remedy)
        return None


def paths_in(facts: Facts) -> tuple[PathTarget, ...]:
    """Return every path the call touches, as argument or in its command line."""
    command = facts.found.get("commands")
    found: tuple[PathTarget, ...] = facts.found["paths"]
    return found if command is None else found + command.paths


def real(pattern: str, surroundings: Surroundings) -> str:
    """Return a pattern whose leading directories are what they really are, since paths are compared resolved.

    Raises ValueError where it is no pattern, so that its reader can say where it stands.
    """
    try:
        check_pattern(pattern)
    except UsageError as error:
        raise ValueError(str(error)) from None
    expanded = surroundings.expand(pattern.removeprefix("!"))
    mark = "!" if pattern.startswith("!") else ""
    if not expanded.startswith("/"):
        return mark + expanded
    names = expanded.split("/")
    literal = next((number for number, name in enumerate(names) if _GLOB.search(name)), len(names))
    rest = names[literal:]
    head = os.path.realpath("/".join(names[:literal]) or "/")
    return mark + "/".join([quoted(head).rstrip("/"), *rest]) if rest else mark + quoted(head)


def _within(pattern: str, base: str) -> str:
    """Return a permission that a pattern without a leading `/` gives: only beneath the workspace."""
    bare = pattern.removeprefix("!")
    if bare.startswith("/"):
        return pattern
    inner = bare if "/" in bare or bare == "**" else f"**/{bare}"
    mark = "!" if pattern.startswith("!") else ""
    return f"{mark}{quoted(base)}/{inner.removeprefix('./')}"


def quoted(path: str) -> str:
    """Return a path as a pattern that covers it alone."""
    return re.sub(r"([*?\[\]{}\\])", r"\\\1", path)


def build(spec: Paths, site: Site, surroundings: Surroundings) -> Share:
    base = os.path.realpath(surroundings.workspace)
    allowed = forbidden = None
    if spec.allowed is not None:
        allowed = PathPatterns([_within(real(pattern, surroundings), base) for pattern in spec.allowed], base=base)
    if spec.forbidden:
        forbidden = PathPatterns([real(pattern, surroundings) for pattern in spec.forbidden], base=base, tree=True)
    rule = PathsRule(allowed, forbidden, frozenset(spec.arguments), site)
    has_rule = allowed is not None or forbidden is not None
    return Share(rules=[rule] if has_rule else [], path_arguments=tuple(spec.arguments), judges_paths=True)
