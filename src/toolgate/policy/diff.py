"""What differs between two policies: what their files say, and what each tool gets in each mode."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from toolgate.kernel.assessment import assess
from toolgate.kernel.context import DEFAULT_CONTEXT, Mode
from toolgate.kernel.policy import Facts, Policy, Word, judge
from toolgate.kernel.ruling import rules_over
from toolgate.kernel.terms import ApprovalLevel
from toolgate.kernel.tool import ToolDefinition
from toolgate.policy.compile import FilePolicy
from toolgate.policy.examples import a_call, stand_in

_STRICTNESS = (Word.ALLOW, Word.ASK, Word.DENY)


class Difference(NamedTuple):
    """A key that is there in one policy only, or says something else; None stands for absence."""

    path: str
    old: Any
    new: Any


class Shift(NamedTuple):
    """A tool that gets another word in a mode, as far as its mode and entry alone decide."""

    tool: str
    mode: str
    old: Word
    new: Word

    @property
    def is_stricter(self) -> bool:
        return _STRICTNESS.index(self.new) > _STRICTNESS.index(self.old)


class PolicyDiff(NamedTuple):
    """Everything that differs."""

    old: str
    new: str
    differences: tuple[Difference, ...]
    shifts: tuple[Shift, ...]

    def as_json(self) -> dict[str, Any]:
        """Return the differences for programs."""
        return {
            "old_revision": self.old,
            "new_revision": self.new,
            "differences": [difference._asdict() for difference in self.differences],
            "shifts": [shift._asdict() | {"is_stricter": shift.is_stricter} for shift in self.shifts],
        }


def diff(old: FilePolicy, new: FilePolicy) -> PolicyDiff:
    """Return what differs; two policies of one revision do not."""
    before, after = dict(_said(old)), dict(_said(new))
    differences = tuple(
        Difference(path, before.get(path), after.get(path))
        for path in sorted(before.keys() | after.keys())
        if before.get(path) != after.get(path)
    )
    return PolicyDiff(old.revision, new.revision, differences, tuple(_shifts(old, new)))


def _said(policy: FilePolicy) -> Iterator[tuple[str, Any]]:
    for document in policy.documents:
        prefix = "" if document.layer == "project" else f"{document.layer}: "
        for path, value in _flat("", document.content):
            yield prefix + path, value


def _flat(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and value:
        for name, inner in value.items():
            yield from _flat(f"{path}.{name}" if path else name, inner)
    else:
        yield path, value


def _shifts(old: FilePolicy, new: FilePolicy) -> Iterator[Shift]:
    names = {name for policy in (old, new) for one in policy.documents for name in one.tools if "*" not in name}
    for name in sorted(names):
        tool = stand_in(name)
        for mode in Mode:
            before, after = word_in(old, tool, mode), word_in(new, tool, mode)
            if before is not after:
                yield Shift(name, mode.value, before, after)


def word_in(policy: Policy, tool: ToolDefinition, mode: Mode) -> Word:
    """Return what a tool gets in a mode from the rules that look at nothing else."""
    stance = policy.stance(tool)
    rules = tuple(rule for rule in rules_over(tool, stance) if getattr(rule, "is_static", False))
    call = a_call(tool, {}, DEFAULT_CONTEXT)
    judgement = judge(rules, call, tool, Facts(mode, call.created_at))
    if judgement.word is Word.DENY:
        return Word.DENY
    assessment = assess(tool, judgement, stance, None)
    if assessment.denied is not None:
        return Word.DENY
    return Word.ALLOW if assessment.level is ApprovalLevel.AUTO else Word.ASK
