"""Which brakes are pulled over a call, and what they are called."""

from __future__ import annotations

import pytest

from toolgate.errors import UsageError
from toolgate.kernel.brake import EVERYBODY, FAULTY, Brake, Brakes, Scope, is_pull, scope_of
from toolgate.kernel.context import Context, Mode

PROJECT, AGENT, RUN = Scope("p"), Scope("p", agent="bot"), Scope("p", run="r1")


def pulled(*brakes: Brake) -> Brakes:
    found = Brakes()
    for brake in brakes:
        found = found.put(brake)
    return found


def test_without_brakes_everybody_answers_to_one_mode() -> None:
    assert Brakes().over(Context()) == (Mode.NORMAL,)
    assert (Brakes().active, Brakes().has_lockdown, Brakes().told(Context())) == ((), False, "")
    assert pulled(Brake(mode=Mode.ALERT)).over(Context()) == (Mode.ALERT,)


def test_a_call_answers_to_each_mode_once_with_lockdown_first() -> None:
    brakes = pulled(
        Brake(scope=PROJECT, mode=Mode.ALERT),
        Brake(scope=AGENT, mode=Mode.ALERT),
        Brake(scope=RUN, mode=Mode.LOCKDOWN),
    )
    assert brakes.over(Context(project="p", principal="bot", run_id="r1")) == (
        Mode.LOCKDOWN,
        Mode.NORMAL,
        Mode.ALERT,
    )
    assert brakes.over(Context(project="q", principal="bot", run_id="r1")) == (Mode.NORMAL,)
    assert brakes.has_lockdown


def test_an_agent_is_braked_as_who_asks_and_as_who_it_is_for() -> None:
    brakes = pulled(Brake(scope=AGENT, mode=Mode.ALERT))
    found = [brakes.on(Context(project="p", principal=who, user=user)) for who, user in
             (("bot", None), ("bot", "bot"), ("x", "bot"), ("x", "y"))]  # fmt: skip
    assert [len(brakes) for brakes in found] == [1, 1, 1, 0]


def test_who_named_a_braked_run_is_held_by_their_word_and_once() -> None:
    brakes = pulled(Brake(scope=RUN, mode=Mode.LOCKDOWN, holds=("bot",)))
    there, elsewhere = [Context(project="p", principal="bot", run_id=run, claimed=True) for run in ("r1", "r2")]
    assert [len(brakes.on(context)) for context in (there, elsewhere)] == [1, 1]
    assert brakes.on(Context(project="p", principal="bot", run_id="r2")) == []  # its host named this run


def test_normal_releases_a_scope_and_leaves_the_others() -> None:
    brakes = pulled(Brake(scope=PROJECT, mode=Mode.ALERT), Brake(scope=RUN, mode=Mode.LOCKDOWN), Brake(mode=Mode.ALERT))
    left = brakes.put(Brake(scope=RUN))
    assert [brake.scope for brake in left.active] == [EVERYBODY, PROJECT]
    assert left.at(RUN).mode is Mode.NORMAL
    assert (left.at(PROJECT).mode, left.at(EVERYBODY).mode) == (Mode.ALERT, Mode.ALERT)
    assert left.numbered(7).serial == 7


def test_what_is_not_trusted_locks_everybody_until_their_mode_is_set() -> None:
    brakes = Brakes.distrusted("The row was altered.")
    assert (brakes.mode, brakes.serial, brakes.over(Context())) == (Mode.LOCKDOWN, FAULTY, (Mode.LOCKDOWN,))
    assert brakes.told(Context(), mode=Mode.LOCKDOWN) == "The row was altered."
    with pytest.raises(UsageError, match="altered"):
        brakes.put(Brake(scope=RUN, mode=Mode.ALERT))
    assert brakes.put(Brake(mode=Mode.NORMAL)).fault is None


@pytest.mark.parametrize(
    ("scope", "words"),
    [
        (EVERYBODY, "everybody"),
        (PROJECT, "project 'p'"),
        (AGENT, "agent 'bot' in project 'p'"),
        (RUN, "run 'r1' in project 'p'"),
    ],
)
def test_a_brake_says_over_whom_by_whom_and_why(scope: Scope, words: str) -> None:
    assert str(Brake(scope=scope, mode=Mode.ALERT, by="ann", reason="odd")) == f"ALERT over {words}, by ann: odd"
    assert str(Brake(scope=scope, mode=Mode.ALERT)) == f"ALERT over {words}, by nobody"


def test_only_the_brakes_of_a_mode_are_named_where_one_is_asked_for() -> None:
    brakes = pulled(Brake(scope=PROJECT, mode=Mode.ALERT, by="a"), Brake(scope=RUN, mode=Mode.LOCKDOWN, by="b"))
    context = Context(project="p", run_id="r1")
    assert brakes.told(context, mode=Mode.LOCKDOWN) == "LOCKDOWN over run 'r1' in project 'p', by b"
    assert brakes.told(context).count("over") == 2


def test_a_scope_is_everybody_or_in_a_project() -> None:
    assert scope_of(None, None, None) == EVERYBODY
    assert scope_of("p", None, "r1") == RUN
    assert RUN.told() == {"project": "p", "run": "r1"}
    for wrong in ((None, "a", None), (None, None, "r"), ("p", "a", "r")):
        with pytest.raises(UsageError):
            scope_of(*wrong)


def test_pulling_leads_out_of_normal_or_into_lockdown() -> None:
    assert is_pull(Mode.NORMAL, Mode.ALERT)
    assert is_pull(Mode.ALERT, Mode.LOCKDOWN)
    assert not is_pull(Mode.LOCKDOWN, Mode.ALERT)
    assert not is_pull(Mode.NORMAL, Mode.NORMAL)
