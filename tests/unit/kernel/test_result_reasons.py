"""A result says in fields what doors tell: which kind of failure it is, the rule that refused, and why."""

from __future__ import annotations

from typing import Any

import pytest

import toolgate
from toolgate import ToolDefinition, ToolInput, ToolOutput
from toolgate.kernel.call import Call
from toolgate.kernel.policy import Facts, Policy, Verdict, Word


async def fine(given: ToolInput) -> ToolOutput:
    if given.payload.get("fail"):
        raise ValueError("no")
    return ToolOutput.ok()


class Never:
    name = "sundays"

    def __call__(self, _call: Call, _tool: ToolDefinition, _facts: Facts, /) -> Verdict:
        return Verdict(Word.DENY, "not on Sundays (rule of the house)", self.name)


async def test_a_denial_names_its_rule_and_reason() -> None:
    policy = Policy(rules=(Never(),), revision="r")
    async with toolgate.open("memory://", tools=[ToolDefinition("do", {}, fine)], policy=policy) as gate:
        result = await gate.call("do")
        assert (result.category, result.rule) == ("permission", "sundays")
        assert result.reason == "not on Sundays (rule of the house)"
        again = await gate.get(result.call_id)
        assert (again.category, again.rule, again.reason) == (result.category, result.rule, result.reason)


async def test_a_person_who_says_no_is_quoted() -> None:
    async with toolgate.open("memory://", tools=[ToolDefinition("do", {}, fine, requires_approval=True)]) as gate:
        asked = await gate.call("do", wait=False)
        await gate.decide(str(asked.approval_id), "deny", by="ann", reason="wrong: customer")
        result = await gate.wait(asked.call_id)
        assert (asked.category, result.category, result.rule) == (None, "permission", None)
        assert result.reason == "wrong: customer"


@pytest.mark.parametrize(
    ("tool", "arguments", "category"),
    [("do", {}, None), ("do", {"fail": 1}, "exception"), ("nothing", {}, "not_found"), ("do", "[", "validation")],
)
async def test_every_failure_has_a_category(tool: str, arguments: Any, category: str | None) -> None:
    async with toolgate.open("memory://", tools=[ToolDefinition("do", {}, fine)]) as gate:
        assert (await gate.call(tool, arguments)).category == category
