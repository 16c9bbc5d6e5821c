"""A remembered yes lives no longer than its giver's right to give it."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.interfaces.server.house import House, P, execute, open_house

from toolgate.kernel.context import PrincipalKind
from toolgate.policy.loader import read_policy
from toolgate.ports.directory import Account
from toolgate.ports.store import GrantQuery

LEADS = "tools: {pay: {decision: ask, approval: {approvers: [lead]}}}"


async def call(house: House, **more: Any) -> dict[str, Any]:
    answer = await house.client("bot").post(f"{P}/tools/execute", json=execute("pay", {"amount": 3}, **more))
    told: dict[str, Any] = answer.json()
    return told


async def remember(house: House, who: str) -> dict[str, Any]:
    """Have this person remember a yes to the agent's call, and use it once."""
    asked = await call(house, wait=False)
    path = f"{P}/approvals/{asked['approval_id']}/approve"
    answer = await house.client(who).post(path, json={"remember": {"uses": 5}})
    assert answer.status_code == 200, answer.text
    await house.gate.wait(asked["tool_id"], project="demo")
    assert (await call(house))["status"] == "completed"
    listed = await grants(house)
    assert (listed[0]["is_live"], listed[0]["is_valid"], listed[0]["uses"]) == (True, True, 1)
    return listed[0]


async def grants(house: House) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await house.client("bob").get(f"{P}/grants")).json()["grants"]
    return found


async def change(house: House, name: str, roles: dict[str, frozenset[str]], kind: str = "person") -> None:
    await house.directory.put_account(Account(name=name, kind=PrincipalKind(kind), roles=roles))


LOST: dict[str, tuple[dict[str, frozenset[str]], str]] = {
    "a viewer": ({"demo": frozenset({"viewer", "lead"})}, "person"),
    "of another project": ({"elsewhere": frozenset({"lead"})}, "person"),
    "an agent": ({"demo": frozenset({"lead"})}, "agent"),
}


@pytest.mark.parametrize(("roles", "kind"), LOST.values(), ids=LOST)
async def test_the_grants_of_somebody_who_may_not_decide_any_more_cover_nothing(
    house: House, roles: dict[str, frozenset[str]], kind: str
) -> None:
    await remember(house, "ann")
    await change(house, "ann", roles, kind)
    assert (await call(house, wait=False))["status"] == "awaiting_approval"
    (listed,) = await grants(house)
    assert (listed["is_live"], listed["is_valid"], listed["uses"]) == (False, False, 1)
    assert listed["invalid_because"] == "ann, who gave it, may not decide in this project any more"
    await change(house, "ann", {"demo": frozenset()})
    assert (await call(house))["status"] == "completed", "the right is read at every use, not once"


async def test_the_grants_of_somebody_who_is_gone_cover_nothing(house: House) -> None:
    grant = await remember(house, "ann")
    house.directory._accounts.pop("ann")  # type: ignore[attr-defined]  # nothing deletes accounts but whoever keeps them
    assert (await call(house, wait=False))["status"] == "awaiting_approval"
    shown = (await house.client("bob").get(f"{P}/grants/{grant['grant_id']}")).json()["grant"]
    assert (shown["is_live"], shown["is_valid"]) == (False, False)
    revoked = await house.client("bob").post(f"{P}/grants/{grant['grant_id']}/revoke")
    assert (revoked.status_code, revoked.json()["grant"]["is_valid"]) == (200, False)


async def test_who_gave_a_grant_must_still_have_the_role_it_takes() -> None:
    async with open_house(policy=read_policy(LEADS)) as house:
        await change(house, "ann", {"demo": frozenset({"lead"})})
        await remember(house, "ann")
        await change(house, "ann", {"demo": frozenset({"intern"})})
        assert (await call(house, wait=False))["status"] == "awaiting_approval"
        (listed,) = await grants(house)
        assert listed["invalid_because"] == "ann, who gave it, does not have the roles any more that it takes"


async def test_who_was_asked_by_an_escalation_may_remember_a_yes() -> None:
    policy = read_policy(LEADS.replace("[lead]", "[lead], escalate: {after: 60s, to: [director]}"))
    async with open_house(policy=policy) as house:
        await change(house, "bob", {"demo": frozenset({"lead"})})
        await change(house, "ann", {"demo": frozenset({"director"})})
        asked = await call(house, wait=False)
        path = f"{P}/approvals/{asked['approval_id']}"
        assert (await house.client("ann").post(f"{path}/approve", json={"remember": {}})).status_code == 403
        assert (await house.client("bob").post(f"{path}/escalate", json={})).status_code == 200
        assert (await house.client("ann").post(f"{path}/approve", json={"remember": {}})).status_code == 200
        await house.gate.wait(asked["tool_id"], project="demo")
        assert (await call(house))["status"] == "completed"
        await change(house, "ann", {"demo": frozenset()})
        assert (await call(house, wait=False))["status"] == "awaiting_approval"


async def test_nobody_is_looked_up_where_there_is_no_grant(house: House) -> None:
    asked: list[str] = []
    who_decides = house.gate._driver.who_decides
    assert who_decides is not None

    async def counted(project: str, name: str) -> Any:
        asked.append(name)
        return await who_decides(project, name)

    house.gate.host.check_givers(counted)
    assert (await call(house, wait=False))["status"] == "awaiting_approval"
    assert asked == []
    await remember(house, "ann")
    assert set(asked) == {"ann"}
    assert (await house.gate.grants.list(GrantQuery()))[0].is_valid
