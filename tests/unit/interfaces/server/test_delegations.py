"""A vote lent over the wire is its giver's, for as long as both may decide."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.unit.interfaces.server.house import House, P, execute, open_house

import toolgate
from toolgate.kernel.context import PrincipalKind
from toolgate.policy.loader import read_policy
from toolgate.ports.directory import Ability, Account

LEADS = "tools: {pay: {decision: ask, approval: {approvers: [lead]}}}"
LEAD = {"demo": frozenset({"lead"})}
MEMBER = {"demo": frozenset[str]()}


async def change(house: House, name: str, roles: dict[str, frozenset[str]], kind: str = "person") -> None:
    await house.directory.put_account(Account(name=name, kind=PrincipalKind(kind), roles=roles))


@pytest.fixture
async def leads() -> AsyncIterator[House]:
    """A house where leads approve: ann is one, bob is not."""
    async with open_house(policy=read_policy(LEADS)) as house:
        await change(house, "ann", LEAD)
        await change(house, "bob", MEMBER)
        await house.add("lone", "agent")
        yield house


async def lend(house: House, who: str = "ann", to: str = "bob", **more: Any) -> Any:
    return await house.client(who).post(f"{P}/delegations", json={"to": to, "seconds": 600, **more})


async def asked(house: House, who: str = "lone") -> str:
    answer = await house.client(who).post(f"{P}/tools/execute", json=execute("pay", {"amount": 3}, wait=False))
    approval_id: str = answer.json()["approval_id"]
    return approval_id


async def vote(house: House, approval_id: str, verb: str = "approve", who: str = "bob", **more: Any) -> Any:
    body = {"on_behalf_of": "ann", **more}
    return await house.client(who).post(f"{P}/approvals/{approval_id}/{verb}", json=body)


async def test_a_lent_vote_decides_and_every_reader_sees_whose_it_was(leads: House) -> None:
    given = (await lend(leads, tools=["pay"], reason="away")).json()["delegation"]
    assert (given["giver"], given["delegate"], given["tools"], given["is_live"]) == ("ann", "bob", ["pay"], True)
    question = await asked(leads)
    own = await leads.client("bob").post(f"{P}/approvals/{question}/approve", json={})
    assert own.status_code == 403
    assert (await vote(leads, question)).status_code == 200
    shown = (await leads.client("lone").get(f"{P}/approvals/{question}")).json()["approval"]
    votes = [(note["by"], note["on_behalf_of"]) for note in shown["votes"]]
    assert (shown["decided_by"], votes) == ("bob for ann", [("bob for ann", "ann")])
    await leads.gate.wait(shown["tool_id"], project="demo")
    call = (await leads.client("lone").get(f"{P}/tools/{shown['tool_id']}")).json()
    assert call["approved_by"] == "bob for ann"
    timeline = (await leads.client("bob").get(f"{P}/tools/{shown['tool_id']}/timeline")).json()
    assert "bob for ann" in str(timeline)
    again = await vote(leads, question)
    assert (again.status_code, again.json()["decided"]["decided_by"]) == (409, "bob for ann")


async def test_who_opens_a_question_sees_whose_votes_they_could_give(leads: House) -> None:
    question = await asked(leads)
    path = f"{P}/approvals/{question}/artifact"
    assert (await leads.client("bob").get(path)).json()["on_behalf_of"] == []
    await lend(leads)
    shown = (await leads.client("bob").get(path)).json()
    assert (shown["on_behalf_of"], shown["has_no_own_vote"]) == (["ann"], True)
    await change(leads, "bob", LEAD)
    shown = (await leads.client("bob").get(path)).json()
    assert (shown["on_behalf_of"], shown["has_no_own_vote"]) == (["ann"], False)
    await leads.gate.set_mode("LOCKDOWN", by="root", reason="drill")
    assert (await leads.client("bob").get(path)).json()["on_behalf_of"] == []
    await leads.gate.set_mode("NORMAL", by="root", reason="drill")
    await vote(leads, question)
    assert (await leads.client("bob").get(path)).json()["on_behalf_of"] == []


LOST: dict[str, tuple[str, dict[str, frozenset[str]], str]] = {
    "the giver is a viewer": ("ann", {"demo": frozenset({"lead", "viewer"})}, "person"),
    "the giver left": ("ann", {"elsewhere": frozenset({"lead"})}, "person"),
    "the giver is an agent": ("ann", LEAD, "agent"),
    "the giver lost the role": ("ann", MEMBER, "person"),
    "the delegate is a viewer": ("bob", {"demo": frozenset({"viewer"})}, "person"),
    "the delegate is a runner": ("bob", MEMBER, "runner"),
}


@pytest.mark.parametrize(("name", "roles", "kind"), LOST.values(), ids=LOST)
async def test_it_ends_at_once_with_the_right_of_either(
    leads: House, name: str, roles: dict[str, frozenset[str]], kind: str
) -> None:
    await lend(leads)
    question = await asked(leads)
    await change(leads, name, roles, kind)
    assert (await vote(leads, question)).status_code == 403
    found = (await leads.client("ann" if name == "bob" else "bob").get(f"{P}/approvals/{question}")).json()
    assert found["approval"]["status"] == "pending"
    await change(leads, "ann", LEAD)
    await change(leads, "bob", MEMBER)
    assert (await vote(leads, question)).status_code == 200, "the right is read at every use, not once"


@pytest.mark.parametrize("to", ["ann", "lone", "stranger", "nobody"])
async def test_nobody_lends_to_themselves_an_agent_or_a_stranger(leads: House, to: str) -> None:
    await leads.add("stranger", "person", {"elsewhere": frozenset()})
    answer = await lend(leads, to=to)
    assert (answer.status_code, answer.json()["code"]) == (403, "not_allowed")
    assert (await leads.client("ann").get(f"{P}/delegations?live=false")).json()["delegations"] == []


@pytest.mark.parametrize("seconds", [0, -5, 14 * 86400 + 1, "1", None])
async def test_a_vote_is_lent_for_a_limited_time(leads: House, seconds: Any) -> None:
    assert (await lend(leads, seconds=seconds)).status_code == 400


async def test_it_is_ended_by_who_gave_it_or_an_admin(leads: House) -> None:
    await leads.add("alma", "admin", {})
    first, second = [(await lend(leads)).json()["delegation"]["delegation_id"] for _ in range(2)]
    assert (await leads.client("bob").post(f"{P}/delegations/{first}/end", json={})).status_code == 403
    for who, id in (("ann", first), ("alma", second)):
        ended = (await leads.client(who).post(f"{P}/delegations/{id}/end", json={"reason": "back"})).json()
        assert (ended["delegation"]["ended_by"], ended["delegation"]["is_live"]) == (who, False)
    assert (await leads.client("ann").post(f"{P}/delegations/{first}/end", json={})).status_code == 409
    assert (await vote(leads, await asked(leads))).status_code == 403
    kept = (await leads.client("bob").get(f"{P}/delegations?live=false")).json()["delegations"]
    assert [one["ended_by"] for one in kept] == ["ann", "alma"]


@pytest.mark.parametrize("who", ["ann", "bob"])
async def test_separation_holds_for_both(leads: House, who: str) -> None:
    await change(leads, "bob", LEAD)
    await lend(leads)
    answer = await vote(leads, await asked(leads, who))
    assert (answer.status_code, answer.json()["detail"]) == (
        403,
        f"{who} is who this call is for, and no delegated vote decides it.",
    )


@toolgate.tool(risk_level="high", prepare=lambda _given: toolgate.Prepared(preview={"diff": "+one line"}))
async def drop() -> None:
    raise AssertionError


async def test_a_lent_yes_owes_what_one_of_their_own_would(leads: House) -> None:
    leads.gate.register(drop)
    await lend(leads)
    started = await leads.client("lone").post(f"{P}/tools/execute", json=execute("drop", wait=False))
    question = started.json()["approval_id"]
    assert (await vote(leads, question)).json()["code"] == "reason_needed"
    await leads.client("ann").get(f"{P}/approvals/{question}/artifact?full=true")
    assert (await vote(leads, question, reason="ok")).json()["code"] == "not_shown"
    assert (await vote(leads, question, reason="ok", digest="0" * 64)).status_code == 409
    assert (await vote(leads, question, remember={"uses": 2}, reason="ok")).status_code in (400, 409)


async def test_a_lent_no_is_taken(leads: House) -> None:
    await lend(leads)
    question = await asked(leads)
    assert (await vote(leads, question, "reject", reason="no")).json()["status"] == "rejected"
    shown = (await leads.client("ann").get(f"{P}/approvals/{question}")).json()["approval"]
    assert shown["decided_by"] == "bob for ann"


async def test_an_admins_token_without_that_ability_ends_no_delegation_of_others(leads: House) -> None:
    given = (await lend(leads)).json()["delegation"]["delegation_id"]
    for abilities, status in (({Ability.READ, Ability.DECIDE}, 403), (None, 200)):
        await leads.add("root", "admin", abilities=None if abilities is None else frozenset(abilities))
        answer = await leads.client("root").post(f"{P}/delegations/{given}/end", json={})
        assert answer.status_code == status, answer.text
