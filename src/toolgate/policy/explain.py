"""Why a policy decides a call as it does: every rule's word, where it stands, and who would be asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from toolgate.errors import UsageError
from toolgate.kernel.assessment import LEVEL_TIMEOUT_S
from toolgate.kernel.context import Context, Mode
from toolgate.kernel.policy import Policy, Rule, Stance
from toolgate.kernel.ruling import Ruling, look, rule_under, rules_over, show_facts
from toolgate.kernel.terms import ApprovalLevel, ApprovalTerms
from toolgate.kernel.tool import ToolDefinition
from toolgate.policy.examples import a_call, stand_in, unexpected

_KEYS = frozenset(
    "tool arguments mode behavior roles principal user project category risk effects expect level quorum".split()
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A call that is not made: which tool, with what, by whom, in which mode.

    `expect` is the word it should get; `level` and `quorum` how people should be asked, where it matters.
    `also` are further modes it answers to.
    """

    tool: ToolDefinition
    arguments: Mapping[str, Any]
    context: Context
    mode: Mode
    expect: str | None = None
    level: str | None = None
    quorum: int | None = None
    also: tuple[Mode, ...] = ()


def question_of(data: object, tools: Mapping[str, ToolDefinition]) -> Question:
    """Return the question a JSON object asks; UsageError names what is wrong with it.

    A tool that is not in `tools` is stood in for by `category`, `risk` and `effects`.
    """
    if not isinstance(data, dict) or not isinstance(data.get("tool"), str):
        raise UsageError('A call is an object such as {"tool": "write_file", "arguments": {"path": "a.txt"}}.')
    unknown = sorted(set(data) - _KEYS)
    if unknown:
        raise UsageError(f"A call has no key `{unknown[0]}`; it may have: {', '.join(sorted(_KEYS))}.")
    arguments = data.get("arguments", {})
    if not isinstance(arguments, dict):
        raise UsageError("`arguments` must be an object.")
    name = data["tool"]
    tool = tools.get(name) or stand_in(
        name, category=data.get("category"), risk=data.get("risk"), effects=data.get("effects")
    )
    who = {key: data[key] for key in ("principal", "user", "project", "behavior") if data.get(key) is not None}
    roles = data.get("roles", [])
    for key, value in who.items():
        if not isinstance(value, str):
            raise UsageError(f"`{key}` must be a string.")
    if not isinstance(roles, list) or not all(isinstance(role, str) for role in roles):
        raise UsageError('`roles` must be a list of strings, such as ["admin"].')
    try:
        mode = Mode(data.get("mode", "NORMAL"))
    except ValueError:
        raise UsageError(f"`mode` must be one of: {', '.join(Mode)}.") from None
    context = Context(roles=frozenset(roles), **who)
    return Question(
        tool=tool,
        arguments=arguments,
        context=context,
        mode=mode,
        expect=data.get("expect"),
        level=data.get("level"),
        quorum=data.get("quorum"),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """What a policy says of a call, and why."""

    question: Question
    ruling: Ruling
    stance: Stance
    rules: tuple[Rule, ...]
    facts: dict[str, Any]
    revision: str

    def as_json(self) -> dict[str, Any]:
        """Return the explanation for programs."""
        assessment = self.ruling.assessment
        spoken = {id(rule) for rule, _ in self.spoken()}
        return {
            "tool": self.question.tool.name,
            "verdict": self.ruling.word.value,
            "level": None if assessment is None else assessment.level.value,
            "risk": None if assessment is None else assessment.risk.value,
            "confidence": None if assessment is None else assessment.confidence,
            "rules": [
                {"rule": verdict.rule, "says": verdict.word.value, "reason": verdict.reason, "where": _where(rule)}
                for rule, verdict in self.spoken()
            ],
            "silent": [rule.name for rule in self.rules if id(rule) not in spoken],
            "decided_by": self.decided_by(),
            "approval": self.approval(),
            "facts": self.facts,
            "rates": [_limit(meter) for meter in self.stance.meters],
            "policy_revision": self.revision,
        }

    def spoken(self) -> list[tuple[Rule | None, Any]]:
        """Return every verdict with the rule that gave it; judging keeps their order."""
        verdicts = list(self.ruling.judgement.verdicts)
        named = [(rule, verdicts.pop(0)) for rule in self.rules if verdicts and verdicts[0].rule == rule.name]
        return [*named, *((None, verdict) for verdict in verdicts)]

    def unexpected(self) -> str | None:
        """Say what was decided, and why, where it is not what the question expects; None where it is."""
        asked = self.question
        assert asked.expect is not None
        got = unexpected(self.ruling, asked.expect, asked.level, asked.quorum)
        return None if got is None else f"{got} ({self.decided_by()})"

    def decided_by(self) -> str:
        """Say in one line what decided."""
        if self.ruling.denial is not None:
            return f"{self.ruling.denial.rule}: {self.ruling.denial.reason}"
        word = self.ruling.judgement.word
        if word is None:
            return f"no rule speaks; the default is {self.stance.default}"
        return f"the strictest word is {word}"

    def approval(self) -> dict[str, Any] | None:
        """Return who would be asked and how, or None where nobody is."""
        assessment = self.ruling.assessment
        if assessment is None or assessment.level is ApprovalLevel.AUTO:
            return None
        terms = assessment.terms
        timeout = self.question.tool.approval_timeout_seconds or terms.timeout_s or LEVEL_TIMEOUT_S[assessment.level]
        return {
            **terms.as_json(),
            "level": assessment.level.value,
            "timeout_s": timeout,
            "who": _who(terms, assessment.level),
        }


def _who(terms: ApprovalTerms, level: ApprovalLevel) -> str:
    place = "in the session" if level is ApprovalLevel.QUICK else "in the review queue"
    return f"{terms.who()}, {place}" + (", not the person it acts for" if terms.separation else "")


def _where(rule: Rule | None) -> str:
    site = getattr(rule, "site", None)
    return "the tool's definition" if site is None else str(site)


def _limit(meter: Any) -> dict[str, Any]:
    return {name: getattr(meter, name) for name in ("section", "limit", "window_s", "per")}


def explain(policy: Policy, question: Question) -> Explanation:
    """Return what the policy says of a call and why. Nothing is reserved, asked or run."""
    tool, arguments = question.tool, question.arguments
    stance = policy.stance(tool)
    rules = rules_over(tool, stance)
    call = a_call(tool, arguments, question.context)
    facts = look(call, tool, stance, arguments, mode=question.mode, now=call.created_at)
    ruling = rule_under((question.mode, *question.also), call, tool, stance, rules, facts)
    return Explanation(
        question=question,
        ruling=ruling,
        stance=stance,
        rules=rules,
        facts=show_facts(stance, facts),
        revision=policy.revision,
    )
