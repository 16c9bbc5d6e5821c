"""The rule over programs of the workspace and of tool directories: one that is not what it was is asked about.

It needs no entry in the policy file. What a program was is on record from its first use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from toolgate.guards.argv import Parsed
from toolgate.guards.files import Workspace
from toolgate.guards.grammar import Command
from toolgate.guards.pins import look, started
from toolgate.kernel.call import Call
from toolgate.kernel.pin import Changed, PinBook
from toolgate.kernel.policy import Facts, Verdict, Word
from toolgate.kernel.terms import ApprovalTerms
from toolgate.kernel.tool import ToolDefinition

Mask = Callable[[str], str]
IN_PERSON = ApprovalTerms(in_person=True)


@dataclass(frozen=True)
class Programs:
    """Finds out which programs are not what they were."""

    workspace: Callable[[], Workspace]
    commands: Callable[[], Mapping[str, Command]]
    book: PinBook

    def changed(self, names: Iterable[str]) -> tuple[Changed, ...]:
        """Return those of these files, and of what interprets them, that are not what they were."""
        if not self.book.pins:
            return ()
        roots = [root.path for root in self.workspace().roots]
        return self.book.all_changed(look(names, self.commands(), roots))

    def changed_in(self, parsed: Iterable[Parsed]) -> tuple[Changed, ...]:
        """Return those that a line starts."""
        return self.changed(started(parsed, self.commands())) if self.book.pins else ()


class Started(NamedTuple):
    """The programs a tool would start: those that are not what they were."""

    changed: tuple[Changed, ...]


@dataclass(frozen=True)
class ProgramInspector:
    """Looks at the programs that a tool says it would start. They are its own choice: no argument names them."""

    programs: Programs
    named: Callable[[Mapping[str, Any]], Iterable[str]]
    name: str = "programs"

    def __call__(self, _call: Call, _tool: ToolDefinition, arguments: Mapping[str, Any], /) -> Started:
        return Started(self.programs.changed(self.named(arguments)))

    def shown(self, finding: Started, mask: Mask, /) -> list[dict[str, Any]]:
        return [shown_change(one, mask) for one in finding.changed]


def shown_change(changed: Changed, mask: Mask) -> dict[str, Any]:
    """Return what a person is shown of a program that is another one now."""
    told = changed.as_json()
    return {"path": mask(told["path"]), "before": _masked(told["before"], mask), "now": _masked(told["now"], mask)}


def _masked(told: Mapping[str, Any], mask: Mask) -> dict[str, Any]:
    return {name: mask(value) if name in ("target", "interpreter") and value else value for name, value in told.items()}


@dataclass(frozen=True, slots=True)
class ProgramRule:
    """Ask about a program that is not what it was; somebody must answer: no remembered yes counts.

    source: the inspector that looked at the programs.
    """

    source: str
    name: str = "programs"

    def __call__(self, _call: Call, _tool: ToolDefinition, facts: Facts, /) -> Verdict | None:
        found: tuple[Changed, ...] = facts.found[self.source].changed
        if not found:
            return None
        reason = "; ".join(one.reason for one in found)
        return Verdict(Word.ASK, reason, self.name, "program_changed", terms=IN_PERSON)
