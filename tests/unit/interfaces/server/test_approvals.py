"""People decide over the wire: once, by who may, and with what was decided for who comes late."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.unit.interfaces.server.house import SECRET, House, P, execute, open_house

from toolgate import ApprovalTerms, Policy
from toolgate.policy import read_policy


async def ask(house: House, tool: str = "pay", who: str = "bot", **params: Any) -> dict[str, Any]:
    params = params or {"amount": 1}
    answer = await house.client(who).post(f"{P}/tools/execute", json=execute(tool, params, wait=False))
    asked: dict[str, Any] = answer.json()
    assert asked["status"] == "awaiting_approval", asked
    return asked


async def test_approving_as_document_004_does(house: House) -> None:
    asked = await ask(house)
    content = b'{"decision": "approved"}'
    answer = await house.client("ann").post(
        f"{P}/approvals/{asked['approval_id']}/approve", content=content, headers={"Content-Type": "text/plain"}
    )
    told = answer.json()
    assert (answer.status_code, told["success"], told["status"]) == (200, True, "approved")
    assert told["approval_id"] == asked["approval_id"]
    assert (await house.gate.wait(asked["tool_id"], project="demo")).success


async def test_rejecting_as_document_004_does(house: House) -> None:
    asked = await ask(house)
    answer = await house.client("ann").post(
        f"{P}/approvals/{asked['approval_id']}/reject", json={"reason": "User declined execution"}
    )
    assert (answer.status_code, answer.json()["status"]) == (200, "rejected")
    row = (await house.client("bot").get(f"{P}/tools/{asked['tool_id']}")).json()
    assert (row["status"], "User declined" in row["error"]) == ("rejected", True)


async def test_a_second_decision_is_told_what_was_decided(house: House) -> None:
    asked = await ask(house)
    path = f"{P}/approvals/{asked['approval_id']}"
    answers = await asyncio.gather(
        *(house.client(who).post(f"{path}/{verb}") for who in ("ann", "bob") for verb in ("approve", "reject"))
    )
    codes = sorted(answer.status_code for answer in answers)
    assert codes == [200, 409, 409, 409]
    won = next(answer.json() for answer in answers if answer.status_code == 200)
    for lost in (answer.json() for answer in answers if answer.status_code == 409):
        assert lost["decided"]["status"] == won["status"]
        assert lost["decided"]["decided_by"] in ("ann", "bob")


async def test_an_agent_and_a_stranger_never_decide_and_leave_no_trace(house: House) -> None:
    asked = await ask(house)
    before = await house.gate.events(project="demo")
    path = f"{P}/approvals/{asked['approval_id']}/approve"
    assert (await house.client("bot").post(path)).status_code == 403
    stranger = await house.client("eve").post(path)
    unknown = await house.client("ann").post(f"{P}/approvals/01a1e1cb-1329-757f-b701-f14838692fd2/approve")
    foreign = await house.client("eve").post(path.replace("demo", "elsewhere"))
    assert stranger.status_code == unknown.status_code == foreign.status_code == 404
    assert stranger.json() == unknown.json() == foreign.json()
    assert await house.gate.events(project="demo") == before


async def test_a_digest_that_was_not_shown_is_refused(house: House) -> None:
    asked = await ask(house)
    path = f"{P}/approvals/{asked['approval_id']}"
    ann = house.client("ann")
    shown = (await ann.get(path)).json()["approval"]
    wrong = await ann.post(f"{path}/approve", json={"digest": "0" * 64})
    assert (wrong.status_code, wrong.json()["decided"]["status"]) == (409, "pending")
    assert (await ann.post(f"{path}/approve", json={"digest": shown["digest"]})).status_code == 200


@pytest.mark.parametrize(
    "body",
    [b"{", b"[]", b'{"decision": "rejected"}', b'{"reson": "x"}', b'{"reason": 5}', b'{"digest": "x"}', b'{"a":NaN}'],
)
async def test_a_body_that_does_not_fit_is_a_400_and_decides_nothing(house: House, body: bytes) -> None:
    asked = await ask(house)
    answer = await house.client("ann").post(f"{P}/approvals/{asked['approval_id']}/approve", content=body)
    assert answer.status_code == 400
    assert answer.headers["content-type"] == "application/problem+json"
    assert len(await house.gate.pending(project="demo")) == 1


async def test_what_an_agent_says_about_its_call_is_shown_as_its_claim_only(house: House) -> None:
    bot = house.client("bot")
    refused = await bot.post(
        f"{P}/tools/execute", json=execute("pay", {"amount": 1}, message="Nothing to see, approve")
    )
    assert refused.status_code == 400
    body = execute("pay", {"amount": 1}, claim="A routine payment", wait=False)
    asked = (await bot.post(f"{P}/tools/execute", json=body)).json()
    shown = (await house.client("ann").get(f"{P}/approvals/{asked['approval_id']}")).json()["approval"]
    assert (shown["description"], shown["claim"]) == ("Run pay(amount=1)", "A routine payment")


async def test_a_question_shows_everything_but_secrets(house: House) -> None:
    asked = await ask(house, amount=7, password=SECRET)
    ann = house.client("ann")
    shown = (await ann.get(f"{P}/approvals/{asked['approval_id']}")).json()["approval"]
    assert (shown["tool_name"], shown["risk_level"], shown["timeout_seconds"]) == ("pay", "MEDIUM", 300)
    assert shown["arguments"]["amount"] == 7
    assert SECRET not in str(shown)
    assert (shown["user"], shown["requester"]) == ("ann", "bot")


async def test_questions_are_listed_in_pages_and_by_status(house: House) -> None:
    asked = [await ask(house, amount=number + 1) for number in range(4)]
    ann = house.client("ann")
    await ann.post(f"{P}/approvals/{asked[0]['approval_id']}/reject")
    first = (await ann.get(f"{P}/approvals", params={"status": "pending", "limit": 2})).json()
    rest = (await ann.get(f"{P}/approvals", params={"status": "pending", "after": first["next"]})).json()
    listed = [one["approval_id"] for one in first["approvals"] + rest["approvals"]]
    assert listed == [one["approval_id"] for one in asked[1:]]
    rejected = (await ann.get(f"{P}/approvals", params={"status": "rejected"})).json()["approvals"]
    assert [one["decided_by"] for one in rejected] == ["ann"]
    by_call = (await ann.get(f"{P}/approvals", params={"tool_id": asked[2]["tool_id"]})).json()["approvals"]
    assert len(by_call) == 1
    assert (await ann.get(f"{P}/approvals", params={"status": "maybe"})).status_code == 400


async def test_editing_runs_the_other_arguments(house: House) -> None:
    asked = await ask(house, amount=100)
    answer = await house.client("ann").post(
        f"{P}/approvals/{asked['approval_id']}/edit", json={"tool_params": {"amount": 5}, "reason": "too much"}
    )
    assert (answer.status_code, answer.json()["status"]) == (200, "approved")
    result = await house.gate.wait(asked["tool_id"], project="demo")
    assert result.data["paid"] == 5


async def test_arguments_that_do_not_fit_leave_the_question_open(house: House) -> None:
    asked = await ask(house)
    answer = await house.client("ann").post(
        f"{P}/approvals/{asked['approval_id']}/edit", json={"tool_params": {"amount": "x"}}
    )
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_arguments")
    assert len(await house.gate.pending(project="demo")) == 1


async def test_a_response_reaches_the_agent_instead_of_a_result(house: House) -> None:
    asked = await ask(house)
    answer = await house.client("ann").post(
        f"{P}/approvals/{asked['approval_id']}/respond", json={"response": {"say": "use the other account"}}
    )
    assert answer.json()["status"] == "rejected"
    row = (await house.client("bot").get(f"{P}/tools/{asked['tool_id']}")).json()
    assert row["result"] == {"say": "use the other account"}


async def test_extending_escalating_and_commenting(house: House) -> None:
    asked = await ask(house)
    path, ann = f"{P}/approvals/{asked['approval_id']}", house.client("ann")
    refused = await ann.post(f"{path}/escalate", json={"roles": ["lead"]})
    assert (refused.status_code, "names nobody" in refused.json()["detail"]) == (400, True)
    named = ApprovalTerms(escalate_to=frozenset({"lead"}))
    await house.gate.set_policy(Policy(terms=named, revision="escalates"), by="root")
    asked = await ask(house, amount=2)
    path = f"{P}/approvals/{asked['approval_id']}"
    before = (await ann.get(path)).json()["approval"]
    longer = (await ann.post(f"{path}/extend", json={"seconds": 5000})).json()["approval"]
    assert longer["expires_at"] > before["expires_at"]
    assert (await ann.post(f"{path}/extend", json={"seconds": -1})).status_code == 400
    said = (await ann.post(f"{path}/comment", json={"text": "looks odd"})).json()["approval"]
    assert said["comments"][0]["text"] == "looks odd"
    assert (await ann.post(f"{path}/escalate", json={"roles": ["intern"]})).status_code == 403
    assert (await ann.post(f"{path}/escalate", json={"roles": ["lead"]})).status_code == 200
    await ann.post(f"{path}/reject")
    assert (await ann.post(f"{path}/extend", json={"seconds": 10})).status_code == 409


async def test_a_yes_is_remembered_listed_and_revoked(house: House) -> None:
    asked = await ask(house, amount=3)
    ann, bot = house.client("ann"), house.client("bot")
    body = {"remember": {"uses": 5, "pattern": {"amount": {"at_most": 10}}}}
    assert (await ann.post(f"{P}/approvals/{asked['approval_id']}/approve", json=body)).status_code == 200
    await house.gate.wait(asked["tool_id"], project="demo")
    again = await bot.post(f"{P}/tools/execute", json=execute("pay", {"amount": 9}))
    assert (again.status_code, again.json()["status"]) == (200, "completed")
    grants = (await ann.get(f"{P}/grants")).json()["grants"]
    assert [(one["tool_name"], one["uses"], one["is_live"]) for one in grants] == [("pay", 1, True)]
    grant_id = grants[0]["grant_id"]
    assert (await ann.get(f"{P}/grants/{grant_id}")).json()["grant"]["granted_by"] == "ann"
    assert (await bot.post(f"{P}/grants/{grant_id}/revoke")).status_code == 403
    assert (await ann.post(f"{P}/grants/{grant_id}/revoke", json={"reason": "over"})).status_code == 200
    assert (await ann.post(f"{P}/grants/{grant_id}/revoke")).status_code == 409
    assert (await ann.get(f"{P}/grants")).json()["grants"] == []
    assert len((await ann.get(f"{P}/grants", params={"live": "false"})).json()["grants"]) == 1
    assert (await ann.get(f"{P}/grants/gone")).status_code == 404


async def test_a_rejection_that_needs_a_reason_is_refused_without_one(house: House) -> None:
    asked = await ask(house, "drop", name="users")
    path, bob = f"{P}/approvals/{asked['approval_id']}/reject", house.client("bob")
    assert (await bob.post(path)).status_code == 400
    assert (await bob.post(path, json={"reason": "never"})).status_code == 200


async def test_at_level_full_another_person_decides_where_there_is_one(house: House) -> None:
    asked = await ask(house, "drop", who="ann", name="users")
    path = f"{P}/approvals/{asked['approval_id']}/approve"
    for body in ({}, {"reason": "mine"}):
        assert (await house.client("ann").post(path, json=body)).status_code == 403
    assert (await house.client("bob").post(path, json={"reason": "known"})).status_code == 200


async def test_several_people_must_approve_where_the_policy_says_so() -> None:
    policy = read_policy("tools: {pay: {decision: ask, approval: {quorum: 2}}}")
    async with open_house(policy=policy) as house:
        asked = await ask(house)
        path = f"{P}/approvals/{asked['approval_id']}/approve"
        assert (await house.client("ann").post(path)).json()["status"] == "pending"
        assert (await house.client("ann").post(path)).status_code == 409
        assert (await house.client("bob").post(path)).json()["status"] == "approved"


async def test_nothing_is_decided_in_lockdown(house: House) -> None:
    asked = await ask(house)
    root = house.client("root")
    assert (await root.put(f"{P}/mode", json={"mode": "LOCKDOWN", "reason": "drill"})).json()["mode"] == "LOCKDOWN"
    frozen = await house.client("ann").post(f"{P}/approvals/{asked['approval_id']}/approve")
    assert (frozen.status_code, frozen.json()["decided"]["status"]) == (409, "pending")
    assert (await house.client("ann").put(f"{P}/mode", json={"mode": "NORMAL"})).status_code == 403
    assert (await house.client("ann").get(f"{P}/mode")).json()["mode"] == "LOCKDOWN"


async def test_an_expired_question_is_a_timeout(house: House) -> None:
    body = execute("pay", {"amount": 1}, approval_timeout_seconds=0.05)
    answer = await house.client("bot").post(f"{P}/tools/execute", json=body)
    told = answer.json()
    assert (told["status"], told["error_type"], "timeout" in told["error"]) == ("rejected", "timeout", True)
    row = (await house.client("bot").get(f"{P}/tools/{told['tool_id']}")).json()
    assert row["status"] == "timeout"
    late = await house.client("ann").post(f"{P}/approvals/{told['approval_id']}/approve")
    assert (late.status_code, late.json()["decided"]["status"]) == (409, "timeout")


async def test_the_policy_is_shown_and_explained() -> None:
    policy = read_policy("tools: {pay: {decision: deny}}")
    async with open_house(policy=policy) as house:
        ann = house.client("ann")
        assert (await ann.get(f"{P}/policy")).json()["revision"] == policy.revision
        told = (await ann.post(f"{P}/policy/explain", json={"tool_name": "pay", "tool_params": {"amount": 1}})).json()
        assert told["explanation"]["verdict"] == "deny"
        assert (await ann.post(f"{P}/policy/explain", json={"tool_name": "gone"})).status_code == 404
        denied = await house.client("bot").post(f"{P}/tools/execute", json=execute("pay", {"amount": 1}))
        assert (denied.json()["status"], denied.json()["error_type"]) == ("failed", "denied")
