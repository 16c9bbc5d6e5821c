"""Grants: a bounded yes, used in the claim, named in the audit, gone when revoked."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.journeys.scene import Open, park, saying

from toolgate import Context, Policy, ToolDefinition, ToolInput, ToolOutput
from toolgate.errors import DecisionConflictError, NotAllowedError, NotFoundError, UsageError
from toolgate.kernel.call import Status
from toolgate.kernel.grant import Grant, Remember
from toolgate.kernel.terms import ApprovalTerms
from toolgate.ports.store import GrantQuery

RAN: list[Any] = []


@pytest.fixture(autouse=True)
def nothing_ran() -> None:
    RAN.clear()


async def handler(given: ToolInput) -> ToolOutput:
    RAN.append(given.payload)
    return ToolOutput.ok()


def tool(**options: Any) -> ToolDefinition:
    return ToolDefinition("write", {}, handler, **{"risk_level": "medium", **options})


async def granted(gate: Any, arguments: dict[str, object], **remember: Any) -> Grant:
    approval = await park(gate, "write", arguments)
    await gate.decide(approval.id, "approve", by="ann", remember=Remember(**remember))
    await gate.wait(approval.call_id)
    RAN.clear()
    found: list[Grant] = await gate.grants.list(GrantQuery())
    return found[-1]


async def test_the_same_call_runs_again_without_asking_and_the_audit_names_the_grant(open_gate: Open) -> None:
    async with open_gate(tools=[tool()]) as gate:
        grant = await granted(gate, {"path": "a"}, uses=2)
        done = await gate.call("write", {"path": "a"})
        assert (done.status, done.approved_by) == (Status.COMPLETED, grant.name)
        (started,) = [e for e in await gate.events(call_id=done.call_id) if e.type == "tool.started"]
        assert started.data["approved_by"] == grant.name
        (kept,) = await gate.grants.list(GrantQuery())
        assert [use.call_id for use in kept.used] == [done.call_id]
        (told,) = [e for e in await gate.events() if e.type == "grant.created"]
        assert (told.data["granted_by"], told.data["uses"]) == ("ann", 2)
        assert (told.data["approval_id"], "request_id" in told.data) == (grant.approval_id, False)
        assert (await park(gate, "write", {"path": "b"})).is_pending


async def test_uses_run_out_even_for_many_at_once(open_gate: Open) -> None:
    async with open_gate(tools=[tool()]) as gate:
        await granted(gate, {"path": "a"}, uses=5)
        results = await asyncio.gather(*(gate.call("write", {"path": "a"}, wait=False) for _ in range(20)))
        assert sum(result.status is Status.COMPLETED for result in results) == 5
        assert len(RAN) == 5
        assert len(await gate.pending()) == 15


async def test_a_wider_pattern_is_a_choice(open_gate: Open) -> None:
    async with open_gate(tools=[tool()]) as gate:
        await granted(gate, {"path": "notes/a"}, pattern={"path": {"like": "notes/*"}})
        assert (await gate.call("write", {"path": "notes/b"})).success
        assert (await gate.call("write", {"path": "other/b"}, wait=False)).is_pending


async def test_an_upper_bound_lets_nothing_through_below_zero(open_gate: Open) -> None:
    async with open_gate(tools=[tool()]) as gate:
        grant = await granted(gate, {"amount": 5}, pattern={"amount": {"at_most": 100}})
        assert grant.shown == {"amount": {"at_least": 0, "at_most": 100}}
        for amount in (-1, -1e9, 101):
            assert (await gate.call("write", {"amount": amount}, wait=False)).is_pending
        assert (await gate.call("write", {"amount": 0})).success
        approval = await park(gate, "write", {"amount": -5})
        with pytest.raises(UsageError, match="no upper end"):
            await gate.decide(approval.id, "approve", by="ann", remember=Remember(pattern={"amount": {"at_least": -9}}))


async def test_a_grant_is_pinned_to_the_definition(open_gate: Open) -> None:
    async with open_gate(tools=[tool()]) as gate:
        await granted(gate, {"path": "a"})
        gate.register(tool(description="does more now"))
        assert (await gate.call("write", {"path": "a"}, wait=False)).is_pending


async def test_a_grant_is_for_one_requester(open_gate: Open) -> None:
    async with open_gate(tools=[tool()]) as gate:
        await granted(gate, {"path": "a"})
        other = Context(principal="agent:other")
        assert (await gate.call("write", {"path": "a"}, context=other, wait=False)).is_pending


async def test_a_grant_never_beats_a_denial_or_stricter_terms(open_gate: Open) -> None:
    async with open_gate(tools=[tool()]) as gate:
        await granted(gate, {"path": "a"})
        await gate.set_policy(saying("deny"), by="ann")
        assert (await gate.call("write", {"path": "a"})).status is Status.DENIED
        await gate.set_policy(Policy(terms=ApprovalTerms(quorum=2), revision="two"), by="ann")
        assert (await gate.call("write", {"path": "a"}, wait=False)).is_pending


async def test_a_revoked_grant_lets_nothing_start(open_gate: Open) -> None:
    async with open_gate(tools=[tool()]) as gate:
        grant = await granted(gate, {"path": "a"})
        with pytest.raises(NotAllowedError):
            await gate.grants.revoke(grant.id, by="agent:local")
        with pytest.raises(NotFoundError):
            await gate.grants.revoke("no-such-grant", by="bob")
        revoked = await gate.grants.revoke(grant.id, by="bob", reason="enough")
        assert (revoked.revoked_by, revoked.reason) == ("bob", "enough")
        with pytest.raises(DecisionConflictError):
            await gate.grants.revoke(grant.id, by="cid")
        assert (await gate.call("write", {"path": "a"}, wait=False)).is_pending
        assert [e.data["reason"] for e in await gate.events() if e.type == "grant.revoked"] == ["enough"]


async def test_an_expired_grant_lets_nothing_start(open_gate: Open) -> None:
    async with open_gate(tools=[tool()]) as gate:
        await granted(gate, {"path": "a"}, seconds=0.000001)
        assert (await gate.call("write", {"path": "a"}, wait=False)).is_pending


async def test_what_cannot_be_remembered_is_refused(open_gate: Open) -> None:
    async with open_gate(tools=[tool()], policy=Policy(terms=ApprovalTerms(quorum=2), revision="two")) as gate:
        approval = await park(gate, "write", {"path": "a"})
        with pytest.raises(UsageError, match="one person"):
            await gate.decide(approval.id, "approve", by="ann", remember=Remember())
        with pytest.raises(UsageError, match="Only an approval"):
            await gate.decide(approval.id, "deny", by="ann", remember=Remember())
        assert (await gate.approvals.get(approval.id)).votes == ()


async def test_an_edit_can_be_remembered_for_what_it_became(open_gate: Open) -> None:
    async with open_gate(tools=[tool()]) as gate:
        approval = await park(gate, "write", {"path": "a"})
        await gate.approvals.edit(approval.id, {"path": "b"}, by="ann", remember=Remember())
        await gate.wait(approval.call_id)
        assert (await gate.call("write", {"path": "b"})).success
        assert (await gate.call("write", {"path": "a"}, wait=False)).is_pending


async def test_secrets_are_in_no_grant_anybody_reads(open_gate: Open) -> None:
    async with open_gate(tools=[tool()]) as gate:
        await granted(gate, {"password": "correct-horse-9"})
        (grant,) = await gate.grants.list(GrantQuery())
        assert "correct-horse" not in str(grant) + str([event.data for event in await gate.events()])
        assert (await gate.call("write", {"password": "correct-horse-9"})).success
