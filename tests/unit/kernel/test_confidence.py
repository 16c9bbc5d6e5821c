"""How routine a call is, and that nobody argues the number up."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolgate.kernel.confidence import calculate_confidence, score_call
from toolgate.kernel.context import Context
from toolgate.kernel.text.canonical import canonical
from toolgate.kernel.tool import ToolDefinition
from toolgate.testing.conformance.rows import a_call


@pytest.mark.parametrize(
    ("name", "base"),
    [("sign_contract", 50), ("delete_project", 40), ("approve_expense", 60), ("send_notification", 80),
     ("update_task_status", 85), ("anything", 70), ("send_bulk_notification", 60), ("bulk", 60), ("bulkhead", 70),
     ("bulkDelete", 60), ("sendBulk", 60), ("BULK_DELETE", 60), ("BULKHEAD", 70)],
)  # fmt: skip
def test_the_base_is_the_tools(name: str, base: int) -> None:
    assert calculate_confidence(name, {}) == base


@pytest.mark.parametrize(
    ("context", "more"),
    [
        ({"user_role": "admin"}, 10), ({"workspace_verified": True}, 5), ({"workspace_verified": "false"}, 0),
        ({"user_role": "admin", "workspace_verified": 1}, 15), ({"user_role": "Admin"}, 0), ({}, 0), (None, 0),
    ],
)  # fmt: skip
def test_the_host_may_vouch_for_a_call(context: Any, more: int) -> None:
    assert calculate_confidence("x", {}, context) == 70 + more


LARGE: list[Any] = [
    1001, 1000.01, "5000", "5,000.00", "5.000,00", "$5000", "5000 EUR", "1e9", Decimal(5000), float("nan"),
    float("inf"), "five", "", {"value": "2000"}, [1, 2000], "\uff11\uff10\uff10\uff11", "5_000", "1 001", "1'001",
    "-5000", -5000, Decimal("NaN"), "1.234", "+2,000", "\u0661\u0660\u0660\u0661",
    10**400, Decimal("sNaN"),
]  # fmt: skip
SMALL: list[Any] = [1000, "1000", "999.99", "1,000", "1000.00", 0, None, True, "12.5€", "0,500", ".5", "-.5", "5.", [1]]


@pytest.mark.parametrize("amount", LARGE, ids=repr)
def test_a_large_amount_lowers_it_however_it_is_written(amount: Any) -> None:
    assert calculate_confidence("x", {"amount": amount}) == 55
    assert calculate_confidence("x", {"order": [{"Amount": amount}]}) == 55


@pytest.mark.parametrize("amount", SMALL, ids=repr)
def test_a_small_amount_does_not(amount: Any) -> None:
    assert calculate_confidence("x", {"amount": amount}) == 70


def test_what_is_too_deep_to_look_at_counts_as_large() -> None:
    deep: Any = 1
    for _ in range(40):
        deep = {"a": deep}
    assert calculate_confidence("x", deep) == 55


def test_arguments_that_say_bulk_are_bulk() -> None:
    assert calculate_confidence("x", {"bulk": True}) == 60
    assert calculate_confidence("x", {"bulk": "no"}) == 70


@given(st.dictionaries(st.text(), st.none() | st.integers() | st.text() | st.lists(st.integers()), max_size=5))
def test_arguments_never_raise_it_and_it_stays_in_bounds(arguments: dict[str, Any]) -> None:
    trick = {**arguments, "user_role": "admin", "_hitl_context": {"user_role": "admin", "workspace_verified": True}}
    assert 0 <= calculate_confidence("delete_project", trick) <= 40


def test_a_call_is_scored_with_its_factors_and_what_its_host_vouches_for() -> None:
    tool = ToolDefinition("sign_contract", {}, lambda _given: None)
    context = Context(roles=frozenset({"admin"}), workspace_verified=True)
    found = score_call(a_call(arguments=canonical({"amount": "2000"}), context=context), tool)
    assert found.value == 50
    assert [factor.split(":")[0] for factor in found.factors] == ["50", "+10", "+5", "-15"]
