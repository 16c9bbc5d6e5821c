"""What the rules say together. Deny beats ask, ask beats allow, order never matters, an error denies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

from toolgate.kernel.call import Call
from toolgate.kernel.change import Reservation
from toolgate.kernel.context import Mode
from toolgate.kernel.effect import EffectKey
from toolgate.kernel.terms import NO_TERMS, ApprovalTerms, SandboxTerms
from toolgate.kernel.tool import Placement, RiskLevel, Thresholds, ToolDefinition


class Word(StrEnum):
    """A rule's answer."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


class Verdict(NamedTuple):
    """What one rule said and why. `code` is the short reason events carry; `risk` what it raises the risk to.

    `terms` are how a person who is asked because of it must answer. `remedy` is, for a denial, a sentence that names
    what would allow it.
    """

    word: Word
    reason: str
    rule: str
    code: str = ""
    risk: RiskLevel | None = None
    terms: ApprovalTerms | None = None
    remedy: str = ""


NOTHING: Mapping[str, Any] = MappingProxyType({})


class Facts(NamedTuple):
    """What rules may look at besides the call and the tool.

    `arguments` are the call's, parsed, where a rule or an inspector of the stance wants them; nobody may
    change them. `found` is what the inspectors found out about them, by the inspector's name.
    """

    mode: Mode
    now: datetime
    arguments: Mapping[str, Any] = NOTHING
    found: Mapping[str, Any] = NOTHING


class Rule(Protocol):
    """A pure function: the same call, tool and facts give the same verdict, or None for no opinion.

    A rule that looks at nothing but the tool and the mode says so with a class attribute `is_static = True`:
    its verdicts are then worked out once. One that looks at the caller's context besides says
    `is_about_caller = True`: what it denies is not even offered to that caller's model.
    """

    @property
    def name(self) -> str: ...

    def __call__(self, call: Call, tool: ToolDefinition, facts: Facts, /) -> Verdict | None: ...


class Inspector(Protocol):
    """Finds out what arguments point at: a path, a command, a host. It changes nothing. It may open
    files, and is called off the event loop.

    What it raises leaves its name out of `Facts.found`, so the rules that need it fail, and deny.
    `shown` gives a finding as JSON, for the record, with every text of a caller's masked.
    """

    @property
    def name(self) -> str: ...

    def __call__(self, call: Call, tool: ToolDefinition, arguments: Mapping[str, Any], /) -> Any: ...

    def shown(self, finding: Any, mask: Callable[[str], str], /) -> Any: ...


class Meter(Protocol):
    """A rate or budget: what a call uses of it, reserved in the commit that claims the call."""

    def __call__(self, call: Call, arguments: Mapping[str, Any], /) -> Reservation: ...


class Score(NamedTuple):
    """Confidence 0 to 100 that a call is routine, with what moved it."""

    value: int
    factors: tuple[str, ...] = ()


class OnError(StrEnum):
    """How a call ends whose handler raised after it had started."""

    UNKNOWN = "unknown"
    FAILED = "failed"


class Default(StrEnum):
    """What happens where no rule speaks."""

    DENY = "deny"
    ASK = "ask"
    BY_RISK = "by_risk"


class Judgement(NamedTuple):
    """What the rules say together; `word` is None where none spoke."""

    word: Word | None
    verdicts: tuple[Verdict, ...]

    @property
    def denial(self) -> Verdict | None:
        if self.word is not _DENY:
            return None
        return next(verdict for verdict in self.verdicts if verdict.word is _DENY)

    def terms(self, stance: ApprovalTerms) -> ApprovalTerms:
        """Return terms that satisfy those of a stance and of every verdict."""
        for verdict in self.verdicts:
            if verdict.terms is not None:
                stance = stance.stricter(verdict.terms)
        return stance


SILENCE = Judgement(None, ())


@dataclass(frozen=True, kw_only=True)
class Stance:
    """What a policy says about one tool.

    `modes_settled`: the policy says in which modes the tool runs, so the definition's own modes are not asked.
    `reads_arguments`: a rule or meter looks at `Facts.arguments`. `may_retry`: whether a second attempt after a passing
    error is harmless; None leaves it to the definition. `on_error`: how a call ends whose handler raised; None leaves
    it to the definition. `nothing_happened`: names of errors that mean nothing did. `effect` makes the
    keys of effects instead of the definition's. `asks`: a person is asked about some ordinary arguments; what only
    leads out of the workspace does not count.
    """

    rules: tuple[Rule, ...] = ()
    default: Default = Default.BY_RISK
    thresholds: Thresholds | None = None
    score: Callable[[Call, ToolDefinition], Score] | None = None
    approval_timeout_s: float | None = None
    undo_asks: bool = False
    refuses_unchecked_undo: bool = False
    undo_ttl_s: float | None = None
    approved_for_s: float | None = None
    terms: ApprovalTerms = NO_TERMS
    inspectors: tuple[Inspector, ...] = ()
    meters: tuple[Meter, ...] = ()
    modes_settled: bool = False
    reads_arguments: bool = True
    asks: bool = False
    placement: Placement | None = None
    sandbox: SandboxTerms | None = None
    may_retry: bool | None = None
    on_error: OnError | None = None
    nothing_happened: frozenset[str] = frozenset()
    effect: EffectKey | None = None


@dataclass(frozen=True, kw_only=True)
class Policy(Stance):
    """An immutable set of rules, the same for every tool. `revision` names its exact content.

    `single_person`: at level full, the only person who can decide may decide their own calls. `projects` are the
    policies of the projects that have one of their own; all others go by this one.
    """

    revision: str = "built-in"
    single_person: bool = False
    projects: Mapping[str, Policy] = field(default_factory=dict, compare=False)

    def stance(self, _tool: ToolDefinition) -> Stance:
        """Return what this policy says about a tool; asked once per tool, not once per call."""
        return self

    def texts(self) -> Mapping[str, str]:
        """Return what its files say, by their absolute paths, those of projects too; nothing where it has none."""
        return {}

    def in_project(self, project: str) -> Policy:
        """Return the policy that calls of a project answer to."""
        return self.projects.get(project, self)


def judge(rules: tuple[Rule, ...], call: Call, tool: ToolDefinition, facts: Facts) -> Judgement:
    """Ask every rule and combine: any deny or error denies, else any ask asks, else any allow allows."""
    verdicts: list[Verdict] = []
    word: Word | None = None
    for rule in rules:
        try:
            verdict = rule(call, tool, facts)
        except Exception as error:  # noqa: BLE001  # a rule that errors denies, whatever the error is
            verdict = _broken(rule, f"failed with {type(error).__name__}")
        if verdict is None:
            continue
        # A word that only looks like one (plain text) compares as none of them, and could hide a denial.
        if not isinstance(verdict, Verdict) or type(verdict.word) is not Word:
            verdict = _broken(rule, "gave no verdict")
        verdicts.append(verdict)
        said = verdict.word
        if said is _DENY or word is None or (said is _ASK and word is not _DENY):
            word = said
    return Judgement(word, tuple(verdicts)) if verdicts else SILENCE


_DENY, _ASK = Word.DENY, Word.ASK


def _broken(rule: Rule, how: str) -> Verdict:
    return Verdict(Word.DENY, f"rule `{_name(rule)}` {how}", _name(rule), "rule_error")


def _name(rule: Rule) -> str:
    return str(getattr(rule, "name", type(rule).__name__))
