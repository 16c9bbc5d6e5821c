"""The rule that guards files beneath every other: protected names, odd files, and what leads out of the workspace.

It needs no entry in the policy file. A tool is a file tool where the policy has a path rule for it or its schema
says by its formats that it takes paths.
"""

from __future__ import annotations

from dataclasses import dataclass

from toolgate.guards.edges import unfit
from toolgate.guards.files import Access, PathFact
from toolgate.guards.patterns import SENSITIVE, STEERING, PathPatterns
from toolgate.kernel.call import Call
from toolgate.kernel.policy import Facts, Verdict, Word
from toolgate.kernel.tool import RiskLevel, ToolDefinition
from toolgate.policy.rules.paths import paths_in, quoted
from toolgate.policy.targets import PathTarget


@dataclass(frozen=True, slots=True)
class Protection:
    """Names that stay denied: `always` for any access, `writing` for writing."""

    always: PathPatterns
    writing: PathPatterns | None

    def refusal(self, fact: PathFact, access: Access) -> str | None:
        """Return why a file may not be touched so, or None."""
        pattern = self.pattern(fact, access)
        return None if pattern is None else f"Path {fact.given} is protected ('{pattern}')"

    def pattern(self, fact: PathFact, access: Access) -> str | None:
        """Return the pattern that keeps a file from being touched so, or None."""
        pattern = self.always.match_fact(fact)
        if pattern is None and self.writing is not None and access == "write":
            pattern = self.writing.match_fact(fact)
        return pattern


def protection(patterns: tuple[str, ...], base: str, *, built_in: bool) -> Protection:
    """Return the built-in names, if wanted, together with the policy's own; its exceptions hold for both."""
    exceptions = tuple(pattern for pattern in patterns if pattern.startswith("!"))
    always = PathPatterns((*(SENSITIVE if built_in else ()), *patterns), base=base, ignore_case=True, tree=True)
    steering = PathPatterns((*STEERING, *exceptions), base=base, ignore_case=True, tree=True) if built_in else None
    return Protection(always, steering)


@dataclass(frozen=True, slots=True)
class EdgeRule:
    """Deny what is protected or no plain file; ask, at high risk, about what leads out where no list allows it."""

    protection: Protection
    is_file_tool: bool
    asks_outside: bool
    name: str = "protected"

    def __call__(self, _call: Call, _tool: ToolDefinition, facts: Facts, /) -> Verdict | None:
        outside = None
        for target in paths_in(facts):
            denial = self._denial(target)
            if denial is not None:
                return Verdict(Word.DENY, denial, self.name, "path_protected", remedy=self._remedy(target))
            if self.asks_outside and target.fact is not None and target.fact.root is None:
                outside = outside or target
        if outside is None:
            return None
        reason = f"Path {outside.given} leads outside the workspace"
        return Verdict(Word.ASK, reason, self.name, "path_outside", RiskLevel.HIGH)

    def _remedy(self, target: PathTarget) -> str:
        """Return what would allow a protected path; nothing where it is refused for what it is."""
        fact = target.fact
        if fact is None or self.protection.pattern(fact, target.access) is None:
            return ""
        return f"Do it yourself, or make an exception in the policy: `protected: ['!{quoted(fact.path)}']`."

    def _denial(self, target: PathTarget) -> str | None:
        fact = target.fact
        if fact is None:
            return target.refused if self.is_file_tool else None
        if self.is_file_tool and fact.root is not None and (problem := unfit(fact)) is not None:
            return problem
        return self.protection.refusal(fact, target.access)
