"""What a yes takes besides the right to give it, on every surface: another person, a reason, having seen the change."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest
from tests.signed_in import sign_in
from tests.unit.interfaces.server.house import TOOLS, House, P, execute, open_house
from websockets.asyncio.client import connect

import toolgate
from toolgate.interfaces.server.served import ServedHere
from toolgate.policy import read_policy
from toolgate.testing.patience import PATIENCE_S

ALONE = P.replace("demo", "alone")
LONG = "\n".join(f"+line {number}" for number in range(3000))


async def prepared(given: toolgate.ToolInput) -> toolgate.Prepared:
    size = given.action.payload["lines"]
    return toolgate.Prepared(preview={"diff": LONG if size > 1 else "+one line", "file": "a.txt"})


@toolgate.tool(risk_level="high", prepare=prepared)
async def rewrite(lines: int) -> int:
    """Rewrite a file."""
    return lines


@toolgate.tool(risk_level="medium", effects="irreversible")
async def publish(name: str) -> str:
    """Publish something."""
    return name


POLICY = "tools: {publish: {approval: {level: full}}}"


@pytest.fixture
async def house() -> AsyncIterator[House]:
    async with open_house(tools=[*TOOLS, rewrite, publish], policy=read_policy(POLICY)) as house:
        yield house


@pytest.fixture
async def single() -> AsyncIterator[House]:
    """A project with one person, whose policy says that this is enough."""
    async with open_house(tools=[*TOOLS, rewrite], policy=read_policy("single_person: true")) as house:
        await house.add("lone", "person", ("alone",))
        yield house


async def ask(house: House, tool: str, params: dict[str, Any], *, who: str = "bot", base: str = P) -> str:
    answer = await house.client(who).post(f"{base}/tools/execute", json=execute(tool, params, wait=False))
    asked: str = answer.json()["approval_id"]
    return asked


async def decided(house: House, project: str = "demo") -> dict[str, Any]:
    events = await house.gate.events(project=project)
    return dict(next(event.data for event in events if event.type == "approval.decided"))


async def by_rest(house: House, who: str, approval_id: str, **body: Any) -> httpx2.Response:
    return await house.client(who).post(f"{P}/approvals/{approval_id}/approve", json=body)


async def by_socket(house: House, who: str, approval_id: str, **more: Any) -> dict[str, Any]:
    url = house.url.replace("http", "ws") + "/ws"
    async with connect(url, additional_headers={"Authorization": f"Bearer {house.tokens[who]}"}) as socket:
        said = {"type": "approval.decide", "request_id": approval_id, "decision": "approve", **more}
        await socket.send(json.dumps(said))
        async with asyncio.timeout(PATIENCE_S):
            told: dict[str, Any] = json.loads(await socket.recv())
            return told


async def test_high_of_somebody_else_takes_a_reason_over_rest_and_socket(house: House) -> None:
    asked = await ask(house, "drop", {"name": "users"})
    refused = await by_rest(house, "bob", asked)
    assert (refused.status_code, refused.json()["code"]) == (400, "reason_needed")
    assert "needs a `reason`" in refused.json()["detail"]
    assert (await by_rest(house, "bob", asked, reason="  ")).status_code == 400
    told = await by_socket(house, "bob", asked)
    assert (told["type"], told["code"], told["request_id"]) == ("error", "reason_needed", asked)
    assert len(await house.gate.pending(project="demo")) == 1
    assert (await by_socket(house, "bob", asked, reason="planned"))["type"] == "decided"
    assert "allowances" not in await decided(house)


async def test_level_full_takes_a_reason_whatever_the_risk(house: House) -> None:
    asked = await ask(house, "publish", {"name": "a"})
    refused = await by_rest(house, "bob", asked)
    assert (refused.status_code, "level full" in refused.json()["detail"]) == (400, True)
    assert (await by_rest(house, "bob", asked, reason="ready")).status_code == 200


async def test_an_edit_takes_what_a_yes_takes(house: House) -> None:
    asked = await ask(house, "drop", {"name": "users"})
    path = f"{P}/approvals/{asked}/edit"
    bob = house.client("bob")
    assert (await bob.post(path, json={"tool_params": {"name": "x"}})).json()["code"] == "reason_needed"
    assert (await bob.post(path, json={"tool_params": {"name": "x"}, "reason": "that one"})).status_code == 200


async def test_who_may_not_decide_or_comes_late_hears_that_first(house: House) -> None:
    asked = await ask(house, "drop", {"name": "users"})
    wrong = await by_rest(house, "bob", asked, digest="0" * 64)
    assert (wrong.status_code, wrong.json()["code"]) == (409, "decision_conflict")
    await by_rest(house, "bob", asked, reason="planned")
    late = await by_rest(house, "bob", asked)
    assert (late.status_code, late.json()["decided"]["decided_by"]) == (409, "bob")


async def test_high_with_a_preview_takes_having_been_served_all_of_it(house: House) -> None:
    asked = await ask(house, "rewrite", {"lines": 3000})
    bob, at = house.client("bob"), f"{P}/approvals/{asked}"
    refused = await by_rest(house, "bob", asked, reason="fine")
    assert (refused.status_code, refused.json()["code"]) == (409, "not_shown")
    assert "artifact?full=true" in refused.json()["detail"]
    assert (await by_socket(house, "bob", asked, reason="fine"))["code"] == "not_shown"
    clipped = (await bob.get(f"{at}/artifact")).json()
    assert clipped["card"]["must_expand"]
    assert (await by_rest(house, "bob", asked, reason="fine")).json()["code"] == "not_shown"
    await house.client("ann").get(f"{at}/artifact", params={"full": True})  # somebody else
    assert (await by_rest(house, "bob", asked, reason="fine")).json()["code"] == "not_shown"
    await bob.get(f"{at}/artifact", params={"full": True})
    assert (await by_rest(house, "bob", asked, reason="fine")).status_code == 200


async def test_a_preview_that_was_not_cut_is_served_with_the_plain_artifact(house: House) -> None:
    asked = await ask(house, "rewrite", {"lines": 1})
    assert (await by_rest(house, "bob", asked, reason="fine")).json()["code"] == "not_shown"
    await house.client("bob").get(f"{P}/approvals/{asked}/artifact")
    assert (await by_socket(house, "bob", asked, reason="fine"))["type"] == "decided"


@pytest.mark.parametrize("path", ["/approvals/{}", "/approvals?status=pending"])
async def test_the_record_of_a_question_has_its_whole_preview(house: House, path: str) -> None:
    asked = await ask(house, "rewrite", {"lines": 3000})
    answer = await house.client("bob").get(P + path.format(asked))
    assert "line 2999" in answer.text
    assert (await by_rest(house, "bob", asked, reason="fine")).status_code == 200


async def test_pieces_count_once_all_of_them_were_served(house: House) -> None:
    asked = await ask(house, "rewrite", {"lines": 3000})
    bob, at = house.client("bob"), f"{P}/approvals/{asked}/artifact"
    await bob.get(f"{at}/about")
    last = (await bob.get(f"{at}/change", params={"offset": 20_000, "size": 100_000})).json()
    assert last["next"] is None
    assert (await by_rest(house, "bob", asked, reason="fine")).json()["code"] == "not_shown"
    offset: int | None = 0
    while offset is not None:
        assert (await by_rest(house, "bob", asked, reason="fine")).json()["code"] == "not_shown"
        offset = (await bob.get(f"{at}/change", params={"offset": offset, "size": 20_000})).json()["next"]
    assert (await by_rest(house, "bob", asked, reason="fine")).status_code == 200


async def test_what_an_edit_would_change_is_shown_before_it_is_approved(house: House) -> None:
    asked = await ask(house, "rewrite", {"lines": 3000})
    bob = house.client("bob")
    await bob.get(f"{P}/approvals/{asked}")
    edited = (
        await bob.post(f"{P}/approvals/{asked}/edit", json={"tool_params": {"lines": 1}, "reason": "less"})
    ).json()
    assert edited["status"] == "pending"
    anew = edited["approval_id"]
    assert anew != asked
    assert (await by_rest(house, "bob", anew, reason="less")).json()["code"] == "not_shown"
    shown = await bob.get(f"{P}/approvals/{anew}/artifact")
    assert "+one line" in shown.text
    assert (await by_rest(house, "bob", anew, reason="less")).json()["status"] == "approved"
    done = await house.gate.wait(edited["tool_id"], project="demo")
    assert done.data == 1


async def test_the_documents_clients_owe_neither_for_their_own_persons_calls_and_the_record_says_so(
    single: House,
) -> None:
    asked = await ask(single, "rewrite", {"lines": 3000}, who="lone", base=ALONE)
    lone = single.client("lone")
    answer = await lone.post(f"{ALONE}/approvals/{asked}/approve", json={"decision": "approved"})
    assert (answer.status_code, answer.json()["status"]) == (200, "approved")
    told = await decided(single, "alone")
    assert (told["allowances"], told["reason"]) == (["single_person", "own_client"], None)
    call = (await lone.get(f"{ALONE}/approvals/{asked}")).json()["approval"]["tool_id"]
    steps = (await lone.get(f"{ALONE}/tools/{call}/timeline")).json()["steps"]
    assert any("the only person" in one["said"] and "own client" in one["said"] for one in steps)


async def test_document_000_decides_its_own_persons_call_without_a_reason(single: House) -> None:
    asked = await ask(single, "drop", {"name": "x"}, who="lone", base=ALONE)
    assert (await by_socket(single, "lone", asked))["type"] == "decided"
    assert (await decided(single, "alone"))["allowances"] == ["single_person", "own_client"]


async def test_more_than_the_documents_words_owes_both_for_ones_own_calls_too(single: House) -> None:
    asked = await ask(single, "rewrite", {"lines": 3000}, who="lone", base=ALONE)
    lone, at = single.client("lone"), f"{ALONE}/approvals/{asked}"
    remembered = await lone.post(f"{at}/approve", json={"remember": {"uses": 2}})
    assert remembered.json()["code"] == "reason_needed"
    edited = await lone.post(f"{at}/edit", json={"tool_params": {"lines": 1}, "reason": "less"})
    assert edited.json()["code"] == "not_shown"
    session = await lone.post("/session")
    digest = (await lone.get("/my/projects/alone/approvals/" + asked)).json()["approval"]["digest"]
    async with httpx2.AsyncClient(base_url=single.url, timeout=PATIENCE_S) as console:
        console.cookies.update(session.cookies)
        headers = {"X-Toolgate-Key": session.json()["key"]}
        from_page = await console.post(f"{at}/approve", json={"digest": digest}, headers=headers)
        assert from_page.json()["code"] == "reason_needed"
        said = await console.post(f"{at}/approve", json={"digest": digest, "reason": "mine"}, headers=headers)
    assert said.status_code == 200
    told = await decided(single, "alone")
    assert (told["allowances"], told["reason"]) == (["single_person"], "mine")


async def test_the_pages_without_script_ask_for_the_same(house: House) -> None:
    asked = await ask(house, "rewrite", {"lines": 3000})
    async with httpx2.AsyncClient(base_url=house.url, timeout=PATIENCE_S) as page:
        where = f"{(await sign_in(page, house.tokens['bob'])).pages}/approvals/{asked}"
        form = {"answer": "approve", "full": "1"}
        unseen = await page.post(where, data={**form, "full": "1", "reason": "fine"})
        assert (unseen.status_code, "has not shown bob" in unseen.text) == (409, True)
        # The page that says so shows all of it.
        unexplained = await page.post(where, data=form)
        assert (unexplained.status_code, "needs a `reason`" in unexplained.text) == (400, True)
        assert (await page.post(where, data={**form, "reason": "fine"})).status_code == 303
    assert "allowances" not in await decided(house)


async def test_without_the_setting_the_only_person_does_not_decide_their_own_call(house: House) -> None:
    await house.add("lone", "person", ("alone",))
    asked = await ask(house, "drop", {"name": "x"}, who="lone", base=ALONE)
    for body in ({}, {"reason": "mine"}):
        refused = await house.client("lone").post(f"{ALONE}/approvals/{asked}/approve", json=body)
        assert (refused.status_code, "`single_person: true`" in refused.json()["detail"]) == (403, True)
    assert "single_person" in (await by_socket(house, "lone", asked))["detail"]
    assert len(await house.gate.pending(project="alone")) == 1


async def test_with_the_setting_another_person_still_decides_where_there_is_one(single: House) -> None:
    asked = await ask(single, "drop", {"name": "x"}, who="ann")
    refused = await by_rest(single, "ann", asked, reason="mine")
    assert (refused.status_code, "another person decides" in refused.json()["detail"]) == (403, True)


async def test_what_was_served_is_remembered_for_so_many() -> None:
    served = ServedHere(questions=2, accounts=2)
    for question in ("1", "2", "3"):
        await served.note("ann", question, ["change"])
    assert [await served.has("ann", one, ["change"]) for one in "123"] == [False, True, True]
    assert not await served.has("ann", "3", ["change", "about"])
    for account in ("bob", "cay"):
        await served.note(account, "3", ["change"])
    assert not await served.has("ann", "3", ["change"])
    assert await served.has("bob", "3", ["change"])
