"""Whatever is added to a policy, what it takes to approve a call never gets less."""

from __future__ import annotations

from functools import reduce
from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.policy.asking import ask

from toolgate.kernel.terms import NO_TERMS, ApprovalLevel, ApprovalTerms

ROLES = st.frozensets(st.sampled_from("abcd"), min_size=1)
SETS = st.lists(ROLES, max_size=2, unique=True).map(tuple)


@st.composite
def terms(draw: st.DrawFn) -> ApprovalTerms:
    after = draw(st.none() | st.sampled_from([10.0, 20.0]))
    return ApprovalTerms(
        level=draw(st.sampled_from([None, ApprovalLevel.QUICK, ApprovalLevel.FULL])),
        approvers=draw(SETS),
        quorum=draw(st.integers(1, 3)),
        separation=draw(st.booleans()),
        timeout_s=draw(st.none() | st.sampled_from([30.0, 60.0])),
        escalate_after_s=after,
        escalate_to=frozenset() if after is None else draw(ROLES),
        including=draw(SETS),
    )


@given(terms(), terms(), st.frozensets(st.sampled_from("abcd")))
def test_who_may_approve_under_both_may_under_each(one: ApprovalTerms, other: ApprovalTerms, roles: set[str]) -> None:
    both = one.stricter(other)
    if both.accepts(roles):
        assert one.accepts(roles)
        assert other.accepts(roles)
    if both.accepts(roles, escalated=True):
        for each in (one, other):
            is_due = each.escalate_after_s is not None and each.escalate_after_s == both.escalate_after_s
            assert each.accepts(roles, escalated=is_due)


@given(terms(), terms(), st.lists(st.frozensets(st.sampled_from("abcd")), max_size=3))
def test_what_is_enough_for_both_is_enough_for_each(
    one: ApprovalTerms, other: ApprovalTerms, voters: list[frozenset[str]]
) -> None:
    both = one.stricter(other)
    assert both.quorum == max(one.quorum, other.quorum)
    assert both.covers(one)
    assert both.covers(other)
    assert set(both.lacking(voters)) == {*one.lacking(voters), *other.lacking(voters)}


@given(st.lists(terms(), min_size=2, max_size=3))
def test_order_never_matters(several: list[ApprovalTerms]) -> None:
    made = [reduce(ApprovalTerms.stricter, order, NO_TERMS) for order in permutations(several)]
    assert len({_normal(one) for one in made}) == 1
    assert ApprovalTerms.of_json(made[0].as_json()) == made[0]


def _normal(one: ApprovalTerms) -> tuple[object, ...]:
    sets = (frozenset(one.approvers), frozenset(one.including), frozenset(one.firm))
    rest = (one.level, one.quorum, one.separation, one.timeout_s, one.escalate_after_s, one.escalate_to)
    return sets + rest


CONDITION = st.builds(
    lambda test, limit, level, quorum, who: (
        f"{{field: x, {test}: {limit}, then: ask, "
        f"approval: {{quorum: {quorum}, {who}: [lead]{'' if level is None else f', level: {level}'}}}}}"
    ),
    st.sampled_from(["above", "at_most", "equals", "not_in"]),
    st.integers(-2, 2),
    st.sampled_from([None, "quick", "full"]),
    st.integers(1, 3),
    st.sampled_from(["approvers", "including"]),
).map(lambda text: text.replace("not_in: ", "not_in: [").replace(", then", "], then") if "not_in" in text else text)
VALUES = st.one_of(st.integers(-3, 3), st.floats(-3, 3), st.none(), st.text(max_size=2), st.lists(st.integers()))


@given(
    st.sampled_from(["decision: allow", "decision: ask", "approval: {level: quick, quorum: 2}"]),
    st.lists(CONDITION, max_size=2),
    CONDITION,
    st.dictionaries(st.sampled_from(["x", "y"]), VALUES),
)
def test_another_condition_never_weakens_a_ruling(
    entry: str, conditions: list[str], another: str, arguments: dict[str, object]
) -> None:
    def ruling(listed: list[str]) -> tuple[int, ApprovalLevel, ApprovalTerms]:
        found = ask(f"tools:\n  act:\n    {entry}\n    arguments: [{', '.join(listed)}]\n", arguments)
        strictness = ("allow", "ask", "deny").index(found.word)
        if found.assessment is None:
            return strictness, ApprovalLevel.FULL, NO_TERMS
        return strictness, found.assessment.level, found.assessment.terms

    before, after = ruling(conditions), ruling([*conditions, another])
    assert after[0] >= before[0]
    if after[0] == before[0] == 1:
        assert after[1].rank >= before[1].rank
        assert after[2].covers(before[2])
