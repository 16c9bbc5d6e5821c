"""Nothing with an effect begins that the server does not certainly wait for now."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from toolgate import ToolDefinition, ToolOutput
from toolgate.interfaces.runner.holding import Holding, SignalledRule
from toolgate.interfaces.runner.signals import Signal
from toolgate.kernel.context import Context, Mode
from toolgate.kernel.policy import Facts, Word
from toolgate.testing.conformance.rows import a_call

SIGNAL = Signal(tool_id="t1", tool_name="write", fence="f", attempt=1, lease_s=10.0)
FACTS = Facts(Mode.NORMAL, datetime.now(UTC))


def a_tool(effects: str) -> ToolDefinition:
    return ToolDefinition("write", {}, lambda _given: ToolOutput.ok(), effects=effects)


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def verdict(holding: Holding, effects: str = "irreversible") -> Word | None:
    call = a_call(context=Context(run_id="t1"))
    said = SignalledRule(holding)(call, a_tool(effects), FACTS)
    return None if said is None else said.word


def test_what_is_signalled_now_is_left_to_the_policy(clock: Clock) -> None:
    holding = Holding(clock)
    holding.take(SIGNAL)
    assert "t1" in holding
    assert verdict(holding) is None


def test_what_is_not_signalled_is_denied_if_it_may_have_an_effect(clock: Clock) -> None:
    assert verdict(Holding(clock)) is Word.DENY
    assert verdict(Holding(clock), "read") is None


def test_a_lease_that_ended_denies_until_the_server_renews_it(clock: Clock) -> None:
    holding = Holding(clock)
    hold = holding.take(SIGNAL)
    clock.now += 10
    assert verdict(holding) is Word.DENY
    holding.renew(hold, since=clock.now - 1)
    assert verdict(holding) is None
    clock.now += 9
    assert verdict(holding) is Word.DENY


def test_what_the_server_gave_up_or_got_its_answer_to_is_denied(clock: Clock) -> None:
    holding = Holding(clock)
    holding.take(SIGNAL).is_lost = True
    assert verdict(holding) is Word.DENY
    holding.take(SIGNAL)
    assert verdict(holding) is None
    holding.release("t1")
    assert (verdict(holding), len(holding)) == (Word.DENY, 0)
