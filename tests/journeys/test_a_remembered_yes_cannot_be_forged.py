"""Grants carry a mark: who can write to the database, but has no key, gets nothing covered by one."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.journeys.scene import Open, park

from toolgate import Context, Gate, Policy, Principal, ToolDefinition, ToolInput, ToolOutput
from toolgate.errors import GrantChangedError
from toolgate.kernel.call import Status
from toolgate.kernel.change import Change
from toolgate.kernel.grant import Grant, Remember, Use
from toolgate.kernel.record import evolve
from toolgate.kernel.terms import ApprovalTerms
from toolgate.pipeline import evidence
from toolgate.ports.store import GrantQuery

RAN: list[Any] = []
ASKED: dict[str, object] = {"amount": 5}
LEADS = ApprovalTerms(approvers=(frozenset({"lead"}),))
LATER = datetime(2999, 1, 1, tzinfo=UTC)


@pytest.fixture(autouse=True)
def nothing_ran() -> None:
    RAN.clear()


async def handler(given: ToolInput) -> ToolOutput:
    RAN.append(given.payload)
    return ToolOutput.ok()


def tool() -> ToolDefinition:
    return ToolDefinition("pay", {}, handler, risk_level="medium")


async def granted(gate: Gate, **remember: Any) -> Grant:
    approval = await park(gate, "pay", ASKED)
    who = Principal(name="ann", roles=frozenset({"lead"}))
    await gate.decide(approval.id, "approve", by=who, remember=Remember(**remember))
    await gate.wait(approval.call_id)
    RAN.clear()
    return await kept(gate)


async def kept(gate: Gate) -> Grant:
    (grant,) = await gate.grants.list(GrantQuery())
    return grant


async def forge(gate: Gate, grant: Grant, **fields: Any) -> None:
    """What somebody does who can write to the database, and has no key."""
    altered = evolve(grant, invalid_because=None, **fields)
    stored = (await kept(gate)).version
    change = Change(project=grant.project, at=grant.created_at, grant=altered, grant_expect=stored)
    writing = gate._driver.store.commit(change)
    if writing is not None:
        await writing


async def test_the_mark_of_a_grant_is_renewed_with_every_use_and_when_it_is_taken_back(open_gate: Open) -> None:
    async with open_gate(tools=[tool()]) as gate:
        grants = [await granted(gate, uses=2)]
        for _ in range(2):
            assert (await gate.call("pay", ASKED)).success
            grants.append(await kept(gate))
        grants.append(await gate.grants.revoke(grants[0].id, by="ann"))
        assert len({grant.mark for grant in grants}) == 4
        assert all(grant.is_valid for grant in (*grants, await kept(gate)))


async def test_a_grant_for_long_arguments_is_checked_like_any_other(open_gate: Open) -> None:
    long: dict[str, object] = {"text": "word " * 40_000}
    async with open_gate(tools=[tool()]) as gate:
        approval = await park(gate, "pay", long)
        await gate.decide(approval.id, "approve", by="ann", remember=Remember())
        await gate.wait(approval.call_id)
        assert (await gate.call("pay", long)).approved_by == (await kept(gate)).name
        await forge(gate, await kept(gate), max_uses=999)
        assert (await gate.call("pay", long, wait=False)).is_pending


FORGERIES: dict[str, dict[str, Any]] = {
    "widened": {"pattern": {"amount": "any"}},
    "shown as something else": {"shown": {"amount": {"is": 1}}},
    "another requester": {"requester": "agent:eve"},
    "another person": {"user": "eve"},
    "more uses": {"max_uses": 1000},
    "fewer used": {"used": ()},
    "later": {"expires_at": LATER},
    "a higher level": {"level": "full"},
    "other terms": {"terms": ApprovalTerms()},
    "escalated": {"escalated": True},
    "another giver": {"granted_by": "root"},
    "another definition": {"definition_hash": "x"},
    "another version": {"version": 7},
    "no mark": {"mark": None},
    "a mark that is none": {"mark": "é"},
    "a mark of an unknown key": {"mark": "0000:00"},
    "what is no grant at all": {"level": "whatever", "pattern": {"amount": {}}},
}


@pytest.mark.parametrize("forged", FORGERIES.values(), ids=FORGERIES)
async def test_a_grant_that_was_changed_in_the_database_covers_nothing(open_gate: Open, forged: dict[str, Any]) -> None:
    async with open_gate(tools=[tool()], policy=Policy(terms=LEADS, revision="leads")) as gate:
        await granted(gate, uses=5)
        assert (await gate.call("pay", ASKED)).success
        await forge(gate, await kept(gate), **forged)
        RAN.clear()
        for context in (Context(), Context(principal="agent:eve"), Context(user="eve")):
            for arguments in (ASKED, {"amount": 10**9}):
                assert (await gate.call("pay", arguments, context=context, wait=False)).is_pending
        assert RAN == []
        grant = await kept(gate)
        assert not grant.is_valid
        assert "does not carry the mark" in str(grant.invalid_because)


async def test_a_grant_that_was_taken_back_is_not_given_again_by_its_row(open_gate: Open) -> None:
    async with open_gate(tools=[tool()]) as gate:
        grant = await granted(gate)
        revoked = await gate.grants.revoke(grant.id, by="ann")
        await forge(gate, revoked, revoked_at=None, revoked_by=None)
        assert (await gate.call("pay", ASKED, wait=False)).is_pending


async def test_a_grant_that_was_taken_back_is_not_given_again_by_an_earlier_row_with_its_mark(open_gate: Open) -> None:
    async with open_gate(tools=[tool()]) as gate:
        grant = await granted(gate)
        assert (await gate.call("pay", ASKED)).success
        before = await kept(gate)
        await gate.grants.revoke(grant.id, by="ann")
        await forge(gate, before)
        if not gate._driver.store.is_shared:
            return  # nobody else can write to it
        assert (await gate.call("pay", ASKED, wait=False)).is_pending
        assert "tell that it was revoked" in str((await kept(gate)).invalid_because)


async def test_calls_at_once_share_the_uses_of_a_grant_and_ask_nobody(open_gate: Open) -> None:
    async with open_gate(tools=[tool()]) as gate:
        await granted(gate, uses=6)
        results = await asyncio.gather(*(gate.call("pay", ASKED) for _ in range(6)))
        assert all(result.success for result in results)
        assert (await kept(gate)).uses_left == 0


async def test_a_grant_that_is_used_while_it_is_looked_at_is_looked_at_again(open_gate: Open) -> None:
    async with open_gate(tools=[tool()]) as gate:
        await granted(gate, uses=6)
        before = await kept(gate)
        assert (await gate.call("pay", ASKED)).success
        if gate._driver.store.is_shared:
            with pytest.raises(GrantChangedError):
                await evidence.lapse_told(gate._driver.store, before)
        assert (await gate.grants._looked_at(before)).is_valid


async def test_an_earlier_row_of_a_grant_does_not_give_its_uses_back(open_gate: Open) -> None:
    async with open_gate(tools=[tool()]) as gate:
        await granted(gate, uses=2)
        assert (await gate.call("pay", ASKED)).success
        before = await kept(gate)
        assert (await gate.call("pay", ASKED)).success
        RAN.clear()
        await forge(gate, before)
        if not gate._driver.store.is_shared:
            return  # nobody else can write to it
        assert (await gate.call("pay", ASKED, wait=False)).is_pending
        assert RAN == []
        assert "used more often" in str((await kept(gate)).invalid_because)


async def test_another_grant_of_the_same_call_does_not_end_with_it(open_gate: Open) -> None:
    async with open_gate(tools=[tool()]) as gate:
        grant = await granted(gate)
        other = evolve(grant, id="01890000-0000-7000-8000-000000000001", nonce=grant.nonce)
        other = gate._driver.store.marks.put(other)
        change = Change(project=other.project, at=other.created_at, grant=other)
        writing = gate._driver.store.commit(change)
        if writing is not None:
            await writing
        await gate.grants.revoke(grant.id, by="ann")
        assert (await gate.call("pay", ASKED)).approved_by == other.name


async def test_a_grant_that_is_used_up_has_no_more_uses_because_its_row_says_so(open_gate: Open) -> None:
    async with open_gate(tools=[tool()]) as gate:
        await granted(gate, uses=1)
        assert (await gate.call("pay", ASKED)).success
        used = await kept(gate)
        for more in ({"max_uses": 9}, {"used": ()}, {"used": (Use("c1", LATER),), "max_uses": 2}):
            await forge(gate, used, **more)
            assert (await gate.call("pay", ASKED, wait=False)).is_pending


async def test_taking_back_what_was_forged_does_not_make_it_good(open_gate: Open) -> None:
    async with open_gate(tools=[tool()]) as gate:
        grant = await granted(gate)
        await forge(gate, grant, pattern={"amount": "any"})
        revoked = await gate.grants.revoke(grant.id, by="ann")
        assert (revoked.revoked_by, revoked.is_valid, revoked.mark) == ("ann", False, None)
        assert (await gate.call("pay", {"amount": 7}, wait=False)).status is Status.AWAITING_APPROVAL
