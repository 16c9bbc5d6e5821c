"""How the verdicts of several rules become one word."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import FrozenInstanceError, dataclass
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.kernel.samples import NOW, a_call, a_tool

from toolgate.kernel.call import Call
from toolgate.kernel.context import Mode
from toolgate.kernel.policy import SILENCE, Default, Facts, Judgement, Policy, Rule, Verdict, Word, judge
from toolgate.kernel.tool import ToolDefinition

FACTS = Facts(Mode.NORMAL, NOW)
CALL, TOOL = a_call(), a_tool()


@dataclass(frozen=True)
class Says:
    """A rule with a fixed answer: a word, nothing, an error, or something that is no verdict."""

    answer: Any
    name: str = "says"

    def __call__(self, _call: Call, _tool: ToolDefinition, _facts: Facts, /) -> Verdict | None:
        if isinstance(self.answer, type) and issubclass(self.answer, Exception):
            raise self.answer("s3cret-canary")
        if isinstance(self.answer, Word):
            return Verdict(self.answer, "because", self.name)
        return cast("Verdict | None", self.answer)


DENIES = [
    Word.DENY,
    RuntimeError,
    RecursionError,
    AssertionError,
    True,
    "allow",
    ("allow", "because", "says"),
    Verdict(cast(Word, "deny"), "because", "says"),
    Verdict(cast(Word, "allow"), "because", "says"),
    Verdict(cast(Word, "maybe"), "because", "says"),
    Verdict(cast(Word, None), "because", "says"),
]
denying = st.sampled_from(DENIES).map(Says)
asking = st.builds(Says, st.just(Word.ASK), st.sampled_from("abc"))
allowing = st.builds(Says, st.just(Word.ALLOW), st.sampled_from("abc"))
silent = st.just(Says(None))


def ask(*rules: Rule) -> Judgement:
    return judge(rules, CALL, TOOL, FACTS)


@given(st.lists(st.one_of(denying, asking, allowing, silent), max_size=8), st.randoms())
def test_the_order_of_rules_never_matters(rules: list[Says], random: Any) -> None:
    shuffled = random.sample(rules, len(rules))
    one, other = ask(*rules), ask(*shuffled)
    assert one.word == other.word
    assert Counter(one.verdicts) == Counter(other.verdicts)
    assert (one.denial is None) == (other.denial is None)


@given(st.lists(st.one_of(asking, allowing, silent), max_size=4), denying, st.integers(0, 4))
def test_any_deny_or_error_denies(rules: list[Says], no: Says, position: int) -> None:
    rules.insert(position, no)
    judgement = ask(*rules)
    assert judgement.word is Word.DENY
    assert judgement.denial is not None
    assert judgement.denial.word is Word.DENY


@given(st.lists(st.one_of(allowing, silent), max_size=4), asking, st.integers(0, 4))
def test_ask_beats_allow(rules: list[Says], question: Says, position: int) -> None:
    rules.insert(position, question)
    judgement = ask(*rules)
    assert judgement.word is Word.ASK
    assert judgement.denial is None


@given(st.lists(silent, max_size=3), allowing)
def test_one_allow_among_the_silent_allows(rules: list[Says], yes: Says) -> None:
    judgement = ask(*rules, yes)
    assert judgement == Judgement(Word.ALLOW, (Verdict(Word.ALLOW, "because", yes.name),))


@pytest.mark.parametrize("rules", [(), (Says(None),), (Says(None), Says(None))])
def test_no_opinion_is_silence(rules: tuple[Says, ...]) -> None:
    assert ask(*rules) == SILENCE == Judgement(None, ())
    assert SILENCE.denial is None


def test_every_verdict_is_kept_in_the_order_of_the_rules() -> None:
    judgement = ask(Says(Word.ALLOW, "a"), Says(None), Says(Word.DENY, "b"), Says(Word.DENY, "c"))
    assert [verdict.rule for verdict in judgement.verdicts] == ["a", "b", "c"]
    assert judgement.denial == Verdict(Word.DENY, "because", "b")


def test_a_rule_that_errors_is_named_without_its_message() -> None:
    assert ask(Says(RuntimeError, "paths")).denial == Verdict(
        Word.DENY, "rule `paths` failed with RuntimeError", "paths", "rule_error"
    )


def test_a_rule_that_gives_no_verdict_is_named() -> None:
    assert ask(Says("allow", "paths")).denial == Verdict(
        Word.DENY, "rule `paths` gave no verdict", "paths", "rule_error"
    )


def test_a_denial_in_plain_text_is_not_hidden_by_an_allow() -> None:
    no = Verdict(cast(Word, "deny"), "because", "loose")
    assert ask(Says(no), Says(Word.ALLOW)).word is Word.DENY


def test_a_rule_without_a_name_is_called_by_its_class() -> None:
    def nameless(_call: Call, _tool: ToolDefinition, _facts: Facts, /) -> Verdict | None:
        raise ValueError

    denial = ask(cast(Rule, nameless)).denial
    assert denial is not None
    assert denial.rule == "function"


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_what_ends_the_process_is_not_taken_for_a_denial(stop: type[BaseException]) -> None:
    def rule(_call: Call, _tool: ToolDefinition, _facts: Facts, /) -> Verdict | None:
        raise stop

    with pytest.raises(stop):
        ask(cast(Rule, rule))


def test_a_rule_sees_the_call_the_tool_and_the_facts() -> None:
    seen: list[object] = []
    rule: Callable[..., None] = lambda *given: seen.extend(given)  # noqa: E731  # a rule is any callable
    ask(cast(Rule, rule))
    assert seen == [CALL, TOOL, FACTS]


def test_a_policy_without_a_file_decides_by_risk_and_is_frozen() -> None:
    policy = Policy()
    assert (policy.rules, policy.default, policy.revision) == ((), Default.BY_RISK, "built-in")
    assert (policy.thresholds, policy.score, policy.undo_asks) == (None, None, False)
    with pytest.raises(FrozenInstanceError):
        policy.default = Default.DENY  # type: ignore[misc]  # what is tested
