"""Replay recorded calls under another policy: which verdicts would change, from what to what, and why.

What paths led to is taken from the record, since the world has moved on. Rates and budgets are not replayed:
they depend on when, not on what. Nothing is asked, reserved or run.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

import orjson

from toolgate.kernel.brake import Brake, Brakes, Scope
from toolgate.kernel.call import Call, Status
from toolgate.kernel.context import Mode
from toolgate.kernel.event import Event
from toolgate.kernel.policy import Facts, Policy, Rule, Stance, Word
from toolgate.kernel.ruling import Ruling, look, rule_under, rules_over
from toolgate.kernel.terms import ApprovalLevel
from toolgate.kernel.tool import Effects, ToolDefinition
from toolgate.policy.examples import stand_in

EXAMPLES = 5
_STRICTNESS = (Word.ALLOW, Word.ASK, Word.DENY)
_UNJUDGED = frozenset({"tool_not_found", "invalid_arguments", "rate_limited"})


class Timeline:
    """Which brakes held when, from the events that changed them."""

    def __init__(self, changes: Iterable[Event]) -> None:
        self._at: list[datetime] = []
        self._brakes = [Brakes()]
        for event in changes:
            if event.type == "mode.changed":
                data = event.data
                scope, holds = Scope(**data.get("scope", {})), tuple(data.get("holds", ()))
                self._at.append(event.at)
                self._brakes.append(self._brakes[-1].put(Brake(scope=scope, mode=Mode(data["to"]), holds=holds)))

    def modes(self, call: Call) -> tuple[Mode, ...]:
        """Return the modes a call answered to when it was made."""
        return self._brakes[bisect_right(self._at, call.created_at)].over(call.context)


class Prepared(NamedTuple):
    """A tool under a policy, worked out once."""

    tool: ToolDefinition
    stance: Stance
    rules: tuple[Rule, ...]


@dataclass(slots=True)
class Group:
    """Calls of one tool whose verdict changes in the same way."""

    tool: str
    before: Word
    after: Word
    is_stricter: bool
    count: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    examples: list[str] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """Return the group for programs."""
        return {
            "tool": self.tool,
            "from": self.before.value,
            "to": self.after.value,
            "count": self.count,
            "is_stricter": self.is_stricter,
            "reasons": [{"reason": reason, "count": count} for reason, count in self.reasons.most_common(EXAMPLES)],
            "examples": self.examples,
        }


class Simulation:
    """Replays calls one by one and keeps the sums. `old` stands in for what was recorded, where it is given.

    `mask` hides in a reason what the call's arguments hide, for readers who may not see them.
    """

    def __init__(
        self,
        new: Policy,
        timeline: Timeline,
        *,
        tools: Mapping[str, ToolDefinition] | None = None,
        old: Policy | None = None,
        mask: Callable[[Call, str], str] = lambda _call, text: text,
    ) -> None:
        self._new = new
        self._old = old
        self._timeline = timeline
        self._tools = tools or {}
        self._mask = mask
        self._known: dict[tuple[int, str, str, bool], Prepared] = {}
        self.calls = 0
        self.skipped: Counter[str] = Counter()
        self.stood_in: set[str] = set()
        self.groups: dict[tuple[str, Word, Word, bool], Group] = {}

    @property
    def changed(self) -> int:
        return sum(group.count for group in self.groups.values())

    def replay(self, calls: Iterable[Call]) -> None:
        """Judge these calls again."""
        for call in calls:
            self._one(call)

    def _one(self, call: Call) -> None:
        why = _unfit(call)
        if why is not None:
            self.skipped[why] += 1
            return
        self.calls += 1
        arguments = orjson.loads(call.arguments)
        modes = self._timeline.modes(call)
        ruling = self._rule(self._new, call, arguments, modes)
        old = None if self._old is None else self._rule(self._old, call, arguments, modes)
        before, after = recorded_word(call) if old is None else old.word, ruling.word
        is_stricter, reason = _STRICTNESS.index(after) > _STRICTNESS.index(before), _why(ruling)
        if before is after:
            more = _asked_otherwise(old, call, ruling)
            if more is None:
                return
            is_stricter, reason = more
        key = (call.tool_name, before, after, is_stricter)
        group = self.groups.get(key)
        if group is None:
            group = self.groups[key] = Group(*key)
        group.count += 1
        group.reasons[self._mask(call, reason)] += 1
        if len(group.examples) < EXAMPLES:
            group.examples.append(call.id)

    def _rule(self, policy: Policy, call: Call, arguments: Mapping[str, Any], modes: tuple[Mode, ...]) -> Ruling:
        tool, stance, rules = self._prepared(policy.in_project(call.project), call)
        if stance.inspectors:
            facts = recalled(call, tool, stance, arguments, modes[0])
        else:
            facts = Facts(modes[0], call.created_at, arguments)
        return rule_under(modes, call, tool, stance, rules, facts)

    def _prepared(self, policy: Policy, call: Call) -> Prepared:
        key = (id(policy), call.tool_name, call.risk, call.has_effects)
        found = self._known.get(key)
        if found is None:
            tool = self._tools.get(call.tool_name)
            if tool is None:
                self.stood_in.add(call.tool_name)
                effects = None if call.has_effects else Effects.READ
                tool = stand_in(call.tool_name, risk=call.risk, effects=effects)
            stance = policy.stance(tool)
            found = self._known[key] = Prepared(tool, stance, rules_over(tool, stance))
        return found

    def as_json(self) -> dict[str, Any]:
        """Return the whole result for programs, the largest group first."""
        groups = sorted(self.groups.values(), key=lambda group: (-group.count, group.tool, group.before))
        return {
            "policy_revision": self._new.revision,
            "calls": self.calls,
            "changed": self.changed,
            "skipped": dict(self.skipped),
            "groups": [group.as_json() for group in groups],
            "tools_not_registered_here": sorted(self.stood_in),
        }


def recalled(call: Call, tool: ToolDefinition, stance: Stance, arguments: Mapping[str, Any], mode: Mode) -> Facts:
    """Return the facts of a recorded call; what was not recorded is looked at now."""
    kept = call.facts or {}
    found: dict[str, Any] = {}
    for inspector in stance.inspectors:
        recall = getattr(inspector, "recall", None)
        if recall is None or inspector.name not in kept:
            return look(call, tool, stance, arguments, mode=mode, now=call.created_at)
        found[inspector.name] = recall(arguments, kept[inspector.name])
    return Facts(mode, call.created_at, arguments, found)


def recorded_word(call: Call) -> Word:
    """Return what was decided about a call when it was made."""
    if call.status is Status.DENIED:
        return Word.DENY
    return Word.ALLOW if call.level == "auto" else Word.ASK


def _asked_otherwise(old: Ruling | None, call: Call, new: Ruling) -> tuple[bool, str] | None:
    """Whether more is asked of people than before, and in what it differs; None where it does not.

    Of a recorded call only the level is known, and of one that a person edited not the first one.
    """
    due, was = new.assessment, None if old is None else old.assessment
    if due is None or new.word is not Word.ASK or (was is None and call.first_asked is not None):
        return None
    level, terms = (ApprovalLevel(call.level), due.terms) if was is None else (was.level, was.terms)
    if level is due.level and terms == due.terms:
        return None
    is_more = level.rank < due.level.rank or not terms.covers(due.terms)
    before = f"level {level}" if was is None else f"level {level}, {terms.who()}"
    return is_more, f"asks at level {due.level}, {due.terms.who()}; before at {before}"


def _unfit(call: Call) -> str | None:
    """Why a call cannot be judged again, or None."""
    if call.undo_of is not None:
        return "undo"
    if call.error_code in _UNJUDGED:
        return call.error_code
    if call.shown is None or call.arguments == b"null":
        return "arguments forgotten"
    return None


def _why(ruling: Ruling) -> str:
    if ruling.denial is not None:
        return f"{ruling.denial.rule}: {ruling.denial.reason}"
    decisive = [verdict for verdict in ruling.judgement.verdicts if verdict.word is ruling.word]
    return f"{decisive[0].rule}: {decisive[0].reason}" if decisive else "no rule speaks"
