"""What the rules say together. Deny beats ask, ask beats allow, order never matters, an error denies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple, Protocol

from toolgate.kernel.call import Call
from toolgate.kernel.context import Mode
from toolgate.kernel.record import Record
from toolgate.kernel.tool import Thresholds, ToolDefinition


class Word(StrEnum):
    """A rule's answer."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


class Verdict(NamedTuple):
    """What one rule said and why. `code` is the short reason events carry."""

    word: Word
    reason: str
    rule: str
    code: str = ""


class Facts(NamedTuple):
    """What rules may look at besides the call and the tool."""

    mode: Mode
    now: datetime


class Rule(Protocol):
    """A pure function: the same call, tool and facts give the same verdict, or None for no opinion."""

    @property
    def name(self) -> str: ...

    def __call__(self, call: Call, tool: ToolDefinition, facts: Facts, /) -> Verdict | None: ...


class Score(NamedTuple):
    """Confidence 0 to 100 that a call is routine, with what moved it."""

    value: int
    factors: tuple[str, ...] = ()


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
        return next((verdict for verdict in self.verdicts if verdict.word is Word.DENY), None)


SILENCE = Judgement(None, ())


@dataclass(frozen=True, kw_only=True)
class Policy(Record):
    """An immutable set of rules. `revision` names its exact content."""

    rules: tuple[Rule, ...] = ()
    default: Default = Default.BY_RISK
    revision: str = "built-in"
    thresholds: Thresholds | None = None
    score: Callable[[Call, ToolDefinition], Score] | None = None
    approval_timeout_s: float | None = None
    undo_asks: bool = False
    undo_ttl_s: float | None = None


def judge(rules: tuple[Rule, ...], call: Call, tool: ToolDefinition, facts: Facts) -> Judgement:
    """Ask every rule and combine: any deny or error denies, else any ask asks, else any allow allows."""
    verdicts = tuple(verdict for rule in rules if (verdict := _ask(rule, call, tool, facts)) is not None)
    if not verdicts:
        return SILENCE
    words = {verdict.word for verdict in verdicts}
    word = next(word for word in (Word.DENY, Word.ASK, Word.ALLOW) if word in words)
    return Judgement(word, verdicts)


def _ask(rule: Rule, call: Call, tool: ToolDefinition, facts: Facts) -> Verdict | None:
    try:
        verdict = rule(call, tool, facts)
    except Exception as error:  # noqa: BLE001  # a rule that errors denies, whatever the error is
        return Verdict(Word.DENY, f"rule `{_name(rule)}` failed with {type(error).__name__}", _name(rule), "rule_error")
    # A word that only looks like one (plain text) compares as none of them, and could hide a denial.
    if verdict is None or (isinstance(verdict, Verdict) and isinstance(verdict.word, Word)):
        return verdict
    return Verdict(Word.DENY, f"rule `{_name(rule)}` gave no verdict", _name(rule), "rule_error")


def _name(rule: Rule) -> str:
    return str(getattr(rule, "name", type(rule).__name__))
