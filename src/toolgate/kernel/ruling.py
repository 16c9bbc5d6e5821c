"""From a call and what a policy says of its tool to one ruling: denied, or the approval level that is due.

The pipeline and everything that explains or replays a policy rule through this file, so they cannot differ.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from toolgate.kernel.assessment import ApprovalLevel, Assessment
from toolgate.kernel.assessment import assess as route_by
from toolgate.kernel.call import Call
from toolgate.kernel.confidence import score_call
from toolgate.kernel.context import Context, Mode
from toolgate.kernel.demands import demands
from toolgate.kernel.policy import SILENCE, Facts, Judgement, Rule, Score, Stance, Verdict, Word, judge
from toolgate.kernel.terms import NO_TERMS
from toolgate.kernel.tool import RiskLevel, ToolDefinition

log = logging.getLogger("toolgate.policy")

_FREE_UNDO = Assessment(ApprovalLevel.AUTO, RiskLevel.LOW, None, ("undo: no rule denies it",))


class Ruling(NamedTuple):
    """What was decided and why. Exactly one of `denial` and `assessment` is there."""

    judgement: Judgement
    denial: Verdict | None
    assessment: Assessment | None

    @property
    def word(self) -> Word:
        """The ruling in one word: deny, ask, or allow where nobody need be asked."""
        if self.assessment is None:
            return Word.DENY
        return Word.ALLOW if self.assessment.level is ApprovalLevel.AUTO else Word.ASK

    @property
    def reasons(self) -> tuple[str, ...]:
        """What every rule that spoke said, each after its name."""
        if self.assessment is not None:
            return self.assessment.reasons
        spoken = tuple(f"{verdict.rule}: {verdict.reason}" for verdict in self.judgement.verdicts)
        assert self.denial is not None
        return spoken or (f"{self.denial.rule}: {self.denial.reason}",)


def rules_over(tool: ToolDefinition, stance: Stance) -> tuple[Rule, ...]:
    """Return every rule a call of this tool must pass: its own demands and the policy's."""
    return demands(tool, modes_settled=stance.modes_settled) + stance.rules


def look(
    call: Call, tool: ToolDefinition, stance: Stance, arguments: Mapping[str, Any], *, mode: Mode, now: datetime
) -> Facts:
    """Let the inspectors find out what the arguments point at, and return all that rules may look at."""
    if not stance.inspectors:
        return Facts(mode, now, arguments)
    found: dict[str, Any] = {}
    for inspector in stance.inspectors:
        try:
            found[inspector.name] = inspector(call, tool, arguments)
        except Exception as error:  # noqa: BLE001  # its rules miss the finding, fail, and so deny
            log.warning("inspector %s failed with %s", inspector.name, type(error).__name__)
    return Facts(mode, now, arguments, found)


def show_facts(stance: Stance, facts: Facts, mask: Callable[[str], str] = str) -> dict[str, Any]:
    """Return what was found as JSON, every text in it masked."""
    found = facts.found
    return {each.name: each.shown(found[each.name], mask) for each in stance.inspectors if each.name in found}


UNCHECKED = "it is unchecked: nobody can see whether the state has changed since"
UNCHECKED_REFUSED = "the policy refuses unchecked undos: the tool has no fingerprint; look at the state, or force it"


def permit(call: Call, tool: ToolDefinition, stance: Stance, rules: tuple[Rule, ...], facts: Facts) -> Judgement:
    """Return what the rules say of this call under these facts.

    An undo answers to the same denials, but is asked about only where the policy says so: that a
    tool needs approval is no reason to wait for one before taking its effect back.
    """
    judgement = judge(rules, call, tool, facts)
    if call.undo_of is None or judgement.word is Word.DENY:
        return judgement
    if call.unchecked and stance.refuses_unchecked_undo and not call.forced:
        return Judgement(Word.DENY, (Verdict(Word.DENY, UNCHECKED_REFUSED, "undo", "undo_unchecked"),))
    if stance.undo_asks:
        # Taking back what two people had to approve is asked of two people as well.
        terms = judgement.terms(NO_TERMS)
        why = "the policy asks before an undo"
        why = f"{why}; {UNCHECKED}" if call.unchecked else why
        return Judgement(Word.ASK, (Verdict(Word.ASK, why, "undo", "undo_asks", terms=terms),))
    return Judgement(Word.ALLOW, (Verdict(Word.ALLOW, "an undo that no rule denies", "undo"),))


def assess(call: Call, tool: ToolDefinition, judgement: Judgement, stance: Stance) -> Assessment:
    """Return the assessment of a call that no rule denies. A score that fails counts as no confidence."""
    if call.undo_of is not None and not stance.undo_asks:
        return _FREE_UNDO
    is_scored = tool.thresholds is not None or stance.thresholds is not None
    return route_by(tool, judgement, stance, _score(call, tool, stance) if is_scored else None)


def rule_on(call: Call, tool: ToolDefinition, stance: Stance, rules: tuple[Rule, ...], facts: Facts) -> Ruling:
    """Permit and assess: the whole decision about one call under these facts."""
    judgement = permit(call, tool, stance, rules, facts)
    denial = judgement.denial
    if denial is not None:
        return Ruling(judgement, denial, None)
    assessment = assess(call, tool, judgement, stance)
    if assessment.denied is not None:
        return Ruling(judgement, Verdict(Word.DENY, assessment.denied, "default", "default_deny"), None)
    return Ruling(judgement, None, assessment)


def rule_under(
    modes: tuple[Mode, ...], call: Call, tool: ToolDefinition, stance: Stance, rules: tuple[Rule, ...], facts: Facts
) -> Ruling:
    """Return the strictest ruling under these modes, of which `facts` has the first: a call must pass under each."""
    ruling = rule_on(call, tool, stance, rules, facts)
    for mode in modes[1:]:
        if ruling.denial is not None:
            break
        ruling = _stricter(ruling, rule_on(call, tool, stance, rules, facts._replace(mode=mode)))
    return ruling


def _stricter(one: Ruling, other: Ruling) -> Ruling:
    if one.assessment is None or other.assessment is None:
        return other if other.assessment is None else one
    ranks = [(each.level.rank, each.risk.rank) for each in (one.assessment, other.assessment)]
    return other if ranks[1] > ranks[0] else one


def is_hopeless(tool: ToolDefinition, stance: Stance, context: Context, modes: tuple[Mode, ...], now: datetime) -> bool:
    """Whether every call of this tool in this context is denied now, whatever its arguments are."""
    return any(_is_hopeless(tool, stance, context, mode, now) for mode in modes)


def _is_hopeless(tool: ToolDefinition, stance: Stance, context: Context, mode: Mode, now: datetime) -> bool:
    rules = rules_over(tool, stance)
    known = tuple(rule for rule in rules if _is_known(rule))
    call = Call(id="", project=context.project, tool_name=tool.name, context=context, created_at=now)
    if len(known) == len(rules):
        return rule_on(call, tool, stance, rules, Facts(mode, now)).denial is not None
    return judge(known, call, tool, Facts(mode, now)).denial is not None


def level_of(
    tool: ToolDefinition, stance: Stance, context: Context, modes: tuple[Mode, ...], now: datetime
) -> ApprovalLevel:
    """Return at which level a person may be asked about an ordinary call of this tool in this context; AUTO: at none.

    Risk alone answers where every call is denied, so that a tool is described in every mode.
    """
    return max((_level_of(tool, stance, context, mode, now) for mode in modes), key=lambda level: level.rank)


def _level_of(tool: ToolDefinition, stance: Stance, context: Context, mode: Mode, now: datetime) -> ApprovalLevel:
    known = tuple(rule for rule in rules_over(tool, stance) if _is_known(rule))
    call = Call(id="", project=context.project, tool_name=tool.name, context=context, created_at=now)
    judgement = judge(known, call, tool, Facts(mode, now))
    if judgement.word is Word.DENY:
        judgement = SILENCE
    if stance.asks and judgement.word is not Word.ASK:
        judgement = Judgement(Word.ASK, judgement.verdicts)
    return route_by(tool, judgement, stance, None).level


def _is_known(rule: Rule) -> bool:
    """Whether a rule's word does not depend on the arguments."""
    return getattr(rule, "is_static", False) or getattr(rule, "is_about_caller", False)


def _score(call: Call, tool: ToolDefinition, stance: Stance) -> Score:
    try:
        return (stance.score or score_call)(call, tool)
    except Exception as error:  # noqa: BLE001  # fail closed: whatever broke the score, somebody is asked
        return Score(0, (f"scoring failed with {type(error).__name__}",))
