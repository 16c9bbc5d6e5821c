"""The rules a definition makes by itself."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from tests.unit.kernel.samples import NOW, a_call, a_tool

from toolgate.kernel.context import Context, Mode
from toolgate.kernel.demands import ApprovalDemand, BehaviorDemand, ModeDemand, demands
from toolgate.kernel.policy import SILENCE, Facts, Verdict, Word, judge

FACTS = Facts(Mode.NORMAL, NOW)


def test_a_plain_tool_demands_nothing_in_normal_mode() -> None:
    tool = a_tool()
    assert judge(demands(tool), a_call(), tool, FACTS) == SILENCE


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({}, ["modes"]),
        ({"allowed_behaviors": ("practice",)}, ["modes", "behaviors"]),
        ({"requires_approval": True}, ["modes", "requires_approval"]),
        (
            {"requires_approval": True, "allowed_behaviors": ("practice",)},
            ["modes", "behaviors", "requires_approval"],
        ),
    ],
)
def test_a_definition_makes_the_rules_it_needs(options: dict[str, Any], names: list[str]) -> None:
    assert [rule.name for rule in demands(a_tool(**options))] == names


@pytest.mark.parametrize("behavior", ["doc_edit", "practice"])
def test_a_listed_behavior_is_no_reason_to_deny(behavior: str) -> None:
    tool = a_tool(allowed_behaviors=("doc_edit", "practice"))
    assert BehaviorDemand()(a_call(context=Context(behavior=behavior)), tool, FACTS) is None


@pytest.mark.parametrize("behavior", ["chat", "", None, "DOC_EDIT"])
def test_another_behavior_or_none_is_denied(behavior: str | None) -> None:
    tool = a_tool(allowed_behaviors=("doc_edit", "practice"))
    assert BehaviorDemand()(a_call(context=Context(behavior=behavior)), tool, FACTS) == Verdict(
        Word.DENY,
        f"behavior '{behavior}' is not one of the allowed: doc_edit, practice",
        "behaviors",
        "behavior_not_allowed",
    )


@pytest.mark.parametrize("behavior", ["chat", None])
def test_a_tool_that_lists_no_behavior_runs_in_all(behavior: str | None) -> None:
    assert BehaviorDemand()(a_call(context=Context(behavior=behavior)), a_tool(), FACTS) is None


@pytest.mark.parametrize(
    ("listed", "mode"), list(itertools.product([(), ("NORMAL",), ("ALERT", "LOCKDOWN"), tuple(Mode)], Mode))
)
def test_a_mode_is_denied_unless_listed_and_lockdown_must_be_named(listed: tuple[str, ...], mode: Mode) -> None:
    verdict = ModeDemand()(a_call(), a_tool(allowed_modes=listed), Facts(mode, NOW))
    if mode in listed or (not listed and mode != "LOCKDOWN"):
        assert verdict is None
    else:
        assert verdict == Verdict(Word.DENY, f"Tool not allowed in {mode} mode", "modes", "mode_not_allowed")


def test_a_tool_that_requires_approval_asks_for_every_call() -> None:
    tool = a_tool(requires_approval=True)
    judgement = judge(demands(tool), a_call(), tool, FACTS)
    assert judgement.word is Word.ASK
    assert judgement.verdicts == (ApprovalDemand()(a_call(), tool, FACTS),)
    assert judgement.verdicts[0].code == "requires_approval"


def test_behavior_and_mode_are_independent_and_both_must_allow() -> None:
    tool = a_tool(allowed_behaviors=("practice",), allowed_modes=("NORMAL",), requires_approval=True)
    words = {}
    for behavior, mode in itertools.product(["practice", "chat"], [Mode.NORMAL, Mode.ALERT]):
        call = a_call(context=Context(behavior=behavior))
        words[behavior, mode] = judge(demands(tool), call, tool, Facts(mode, NOW)).word
    assert words.pop(("practice", Mode.NORMAL)) is Word.ASK
    assert set(words.values()) == {Word.DENY}
