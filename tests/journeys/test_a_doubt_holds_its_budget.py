"""While nobody knows whether a payment happened, its amount counts against the budget, however old it is."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.journeys.scene import Open

from toolgate import Gate, Result, ToolDefinition, ToolInput, ToolOutput
from toolgate.kernel.call import Status
from toolgate.policy import read_policy

POLICY = read_policy("tools: {pay: {decision: allow, budgets: [{field: amount, limit: 10, window: 1h}]}}")


class Bank:
    def __init__(self) -> None:
        self.error: Exception | None = None

    async def pay(self, _given: ToolInput) -> ToolOutput:
        if self.error is not None:
            raise self.error
        return ToolOutput.ok()


def paying(bank: Bank) -> ToolDefinition:
    return ToolDefinition("pay", {}, bank.pay, effects="irreversible")


async def pay(gate: Gate, amount: int, to: str) -> Result:
    return await gate.call("pay", {"amount": amount, "to": to}, wait=False)


def pass_time(gate: Gate, much: timedelta) -> None:
    now = gate._driver.now
    gate._driver.now = lambda: now() + much


async def in_doubt(gate: Gate, bank: Bank) -> str:
    bank.error = ConnectionResetError("the line is dead")
    unknown = await pay(gate, 8, "ann")
    assert unknown.status is Status.UNKNOWN
    bank.error = None
    return unknown.call_id


async def test_what_is_in_doubt_counts_once_and_does_not_age(open_gate: Open) -> None:
    bank = Bank()
    async with open_gate(tools=[paying(bank)], policy=POLICY) as gate:
        await in_doubt(gate, bank)
        assert (await pay(gate, 2, "bob")).success, "it counts once"
        for _ in range(2):
            assert (await pay(gate, 1, "cid")).error_code == "rate_limited"
            pass_time(gate, timedelta(hours=2))
            assert (await pay(gate, 3, "cid")).error_code == "rate_limited"
            assert (await pay(gate, 2, f"after {gate._driver.now()}")).success, "what was not in doubt has aged"


@pytest.mark.parametrize("happened", [True, False])
async def test_once_somebody_says_what_happened_it_counts_as_if_it_had_been_known(
    open_gate: Open, happened: bool
) -> None:
    bank = Bank()
    async with open_gate(tools=[paying(bank)], policy=POLICY) as gate:
        first = await in_doubt(gate, bank)
        await gate.settle(first, happened=happened, by="ann", reason="she looked")
        assert (await pay(gate, 3, "bob")).success is not happened
        assert (await pay(gate, 2, "cid")).success
        pass_time(gate, timedelta(hours=2))
        assert (await pay(gate, 10, "dan")).success


async def test_a_use_that_is_settled_late_is_over(open_gate: Open) -> None:
    bank = Bank()
    async with open_gate(tools=[paying(bank)], policy=POLICY) as gate:
        first = await in_doubt(gate, bank)
        pass_time(gate, timedelta(hours=2))
        await gate.settle(first, happened=True, by="ann", reason="she looked")
        assert (await pay(gate, 10, "bob")).success
