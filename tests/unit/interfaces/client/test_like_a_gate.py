"""A client's verbs are those of a gate: the same names, the same parameters, the same results."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator
from datetime import date
from typing import Any
from uuid import UUID

import pytest
from tests.unit.interfaces.server.house import House, open_house

import toolgate
from toolgate import Result, Status, ToolInput, ToolOutput
from toolgate.client import Client
from toolgate.errors import BadAnswerError, NotFoundError, UsageError
from toolgate.gate import Gate
from toolgate.gate import approvals as gate_approvals
from toolgate.gate import delegations as gate_delegations
from toolgate.gate import grants as gate_grants
from toolgate.gate import rows as gate_rows
from toolgate.interfaces.client.approvals import Approvals
from toolgate.interfaces.client.calls import Calls
from toolgate.interfaces.client.delegations import Delegations
from toolgate.interfaces.client.grants import Grants
from toolgate.interfaces.client.results import result_of

OF_THE_HOST = {"context", "message", "own", "by", "project", "self", "held_key"}
"""What the server knows of whoever signed in, or does not take over the wire."""


async def work(given: ToolInput) -> ToolOutput:
    how = given.payload.get("how")
    if how == "fail":
        return ToolOutput.fail("no paper")
    if how == "hang":
        await asyncio.sleep(60)
    return ToolOutput.ok("done")


TOOLS = [
    toolgate.ToolDefinition("plain", {}, work, risk_level="low", effects="read"),
    toolgate.ToolDefinition("hasty", {}, work, risk_level="low", effects="read", timeout_seconds=0.05),
    toolgate.ToolDefinition("far", {}, work, risk_level="low", effects="irreversible", placement="client"),
    toolgate.ToolDefinition("rare", {}, work, risk_level="low", effects="read", rate_limit_per_hour=1),
    toolgate.ToolDefinition("late", {}, work, risk_level="low", effects="read", allowed_modes=("ALERT",)),
    toolgate.ToolDefinition("pay", {}, work, risk_level="medium"),
]


@pytest.fixture
async def house() -> AsyncIterator[House]:
    async with open_house(tools=TOOLS) as house:
        yield house


def same(told: Result, kept: Result) -> bool:
    """Whether who asked over the network knows what they would know here."""
    fields = (
        "call_id", "tool_name", "status", "data", "error", "error_code", "approval_id", "success", "is_final",
        "category", "rule", "reason", "timed_out",
    )  # fmt: skip
    return [getattr(told, name) for name in fields] == [getattr(kept, name) for name in fields]


@pytest.mark.parametrize(
    ("tool", "how", "status"),
    [
        ("plain", "well", Status.COMPLETED), ("plain", "fail", Status.FAILED), ("hasty", "hang", Status.FAILED),
        ("nothing", "well", Status.FAILED), ("late", "well", Status.DENIED),
    ],
)  # fmt: skip
async def test_a_call_gives_the_result_a_gate_gives(
    house: House, ann: Client, tool: str, how: str, status: Status
) -> None:
    told = await ann.call(tool, {"how": how}, call_id="c1")
    kept = await house.gate.get("c1", project="demo")
    assert kept.status is status
    assert same(told, kept)
    assert same(await ann.get("c1"), kept)
    assert type(told.to_error()) is type(kept.to_error()) if not told.success else told.unwrap() == kept.unwrap()


@pytest.mark.parametrize(
    "arguments",
    [
        {"how": float("nan")},
        {"how": date(2026, 1, 1)},
        {"how": UUID(int=1)},
        {"how": 2**70},
        {1: 2},
        [1],
        '{"a":1,"a":2}',
    ],
)
async def test_arguments_that_would_change_on_their_way_are_refused(house: House, ann: Client, arguments: Any) -> None:
    here = await house.gate.call("plain", arguments)
    assert here.error_code == "invalid_arguments"
    with pytest.raises(UsageError):
        await ann.call("plain", arguments, call_id="c1")
    with pytest.raises(NotFoundError):
        await ann.get("c1")


async def test_arguments_may_be_given_as_json_text(ann: Client) -> None:
    assert (await ann.call("plain", '{"how": "fail"}')).error == "no paper"


async def test_an_unknown_outcome_is_told_as_one(house: House, ann: Client) -> None:
    made = await ann.call("far", wait=False)
    taken = await house.gate.remote.dispatch(made.call_id, to="runner:1", project="demo")
    await house.gate.remote.doubt(made.call_id, "the cable", fence=taken.fence, project="demo")
    told = await ann.call("far", call_id=made.call_id)
    assert told.status is Status.UNKNOWN
    assert same(told, await house.gate.get(made.call_id, project="demo"))


async def test_a_rate_that_is_used_up_denies(house: House, ann: Client) -> None:
    assert (await ann.call("rare")).success
    told = await ann.call("rare")
    assert told.status is Status.DENIED
    assert same(told, await house.gate.get(told.call_id, project="demo"))


async def test_ends_of_a_question_are_told_apart(house: House, ann: Client, bob: Client) -> None:
    refused, ended, expired = [await ann.call("pay", wait=False, approval_timeout_s=s) for s in (60, 60, 0.05)]
    await bob.approvals.reject(str(refused.approval_id), "no")
    assert (await ann.cancel(ended.call_id)).status is Status.CANCELLED
    rejected = await ann.call("pay", call_id=refused.call_id)
    assert (rejected.status, rejected.reason) == (Status.REJECTED, "no")
    assert same(rejected, await house.gate.get(refused.call_id, project="demo"))
    assert (await ann.call("pay", call_id=ended.call_id)).status is Status.CANCELLED
    assert (await ann.wait(expired.call_id)).status is Status.TIMEOUT
    told = await ann.call("pay", call_id=expired.call_id)
    assert told.error == (await house.gate.get(expired.call_id, project="demo")).error
    assert same(told, await house.gate.get(expired.call_id, project="demo"))


async def test_a_status_nobody_knows_is_a_bad_answer(ann: Client) -> None:
    record = await ann.calls.get((await ann.call("plain")).call_id)
    with pytest.raises(BadAnswerError, match="unknown status"):
        result_of(record.model_copy(update={"internal_status": "SLEEPING"}))


def _parameters(method: Any) -> list[str]:
    return [name for name in inspect.signature(method).parameters if name not in OF_THE_HOST]


@pytest.mark.parametrize("verb", ["call", "get", "wait", "run_here", "cancel", "undo", "undo_run", "settle", "events"])
def test_the_verbs_of_a_gate_take_the_same_over_the_network(verb: str) -> None:
    wanted = set(_parameters(getattr(Gate, verb)))
    if verb == "cancel":
        wanted -= {"wait"}  # the server answers at once, and whoever wants to waits
    assert wanted <= set(_parameters(getattr(Client, verb)))


@pytest.mark.parametrize(
    ("here", "there", "verbs"),
    [
        (gate_rows.Calls, Calls, {"get", "list"}),
        (
            gate_approvals.Approvals,
            Approvals,
            {"get", "list", "artifact", "edit", "respond", "extend", "escalate", "comment"},
        ),
        (gate_grants.Grants, Grants, {"list", "preview", "revoke"}),
        (gate_delegations.Delegations, Delegations, {"list", "give", "end"}),
    ],
)
def test_the_parts_of_a_gate_have_their_verbs_over_the_network(here: Any, there: Any, verbs: set[str]) -> None:
    for verb in verbs:
        of_the_host = {"query", "remember", "allowances", "look"}  # what a host excuses or insists on, nobody asks for
        wanted = set(_parameters(getattr(here, verb))) - of_the_host
        assert wanted <= set(_parameters(getattr(there, verb))), verb
