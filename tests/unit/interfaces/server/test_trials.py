"""Trying things out over HTTP: the policy's text, a changed policy on recorded calls, a grant nobody gave yet."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.unit.interfaces.server.house import SECRET, House, P, execute, open_house

from toolgate import Context

POLICY = """\
default: ask  # whoever is not named is asked about
tools:
  add: {decision: allow}
  pay:
    decision: allow
    arguments: [{field: amount, above: 100, then: deny}]
    rates: [{limit: 50, per: principal, window: 1h}]
"""


@pytest.fixture
async def ruled(tmp_path: Path) -> AsyncIterator[House]:
    file = tmp_path / "toolgate.yaml"
    file.write_text(POLICY)
    async with open_house(policy=file) as house:
        yield house


async def source(house: House, who: str = "ann") -> Any:
    answer = await house.client(who).get(f"{P}/policy/source")
    assert answer.status_code == 200, answer.text
    return answer.json()


async def try_out(house: House, text: str, **more: Any) -> Any:
    name = (await source(house))["files"][0]["name"]
    answer = await house.client("ann").post(f"{P}/policy/simulate", json={"files": {name: text}, **more})
    assert answer.status_code == 200, answer.text
    return answer.json()


async def pay(house: House, *amounts: int, **more: Any) -> None:
    for number, amount in enumerate(amounts):
        body = execute("pay", {"amount": amount, **more}, tool_id=f"p{number}")
        await house.client("bot").post(f"{P}/tools/execute", json=body)


async def test_the_policy_is_shown_as_it_is_written_and_as_each_tool_meets_it(ruled: House) -> None:
    told = await source(ruled)
    assert (told["revision"], told["default"]) == (ruled.gate.policy.revision, "ask")
    (file,) = told["files"]
    assert (file["text"], file["is_masked"], file["layer"]) == (POLICY, False, "project")
    tools = {tool["tool_name"]: tool for tool in told["tools"]}
    assert tools["add"]["modes"]["NORMAL"] == "allow"
    assert tools["drop"]["modes"]["NORMAL"] == "ask"
    assert tools["pay"]["modes"]["LOCKDOWN"] == "deny"
    assert any("toolgate.yaml:6" in rule["where"] for rule in tools["pay"]["rules"])
    assert tools["pay"]["rates"][0]["limit"] == 50


async def test_a_secret_in_the_policy_is_not_shown(tmp_path: Path) -> None:
    file = tmp_path / "toolgate.yaml"
    file.write_text(f"default: ask\n# the token is {SECRET}\n")
    async with open_house(policy=file) as house:
        house.gate.host.masker.add(SECRET)
        (shown,) = (await source(house))["files"]
        assert SECRET not in shown["text"]
        assert shown["is_masked"] is True


async def test_only_people_who_decide_see_the_text_or_try_another(ruled: House) -> None:
    for who, status in (("bot", 403), ("runner:1", 403), ("eve", 404)):
        client = ruled.client(who)
        assert (await client.get(f"{P}/policy/source")).status_code == status
        assert (await client.post(f"{P}/policy/simulate", json={"files": {"a": ""}})).status_code == status


async def test_a_changed_policy_is_tried_on_recorded_calls(ruled: House) -> None:
    await pay(ruled, 5, 60, 70)
    told = await try_out(ruled, POLICY.replace("above: 100", "above: 50"))
    assert (told["calls"], told["changed"], told["next"]) == (3, 2, None)
    (group,) = told["groups"]
    assert (group["tool"], group["from"], group["to"], group["is_stricter"]) == ("pay", "allow", "deny", True)
    assert sorted(group["examples"]) == ["p1", "p2"]
    assert any("arguments" in change["path"] for change in told["changes"])
    assert ruled.gate.policy.revision != told["revision"]


async def test_a_trial_goes_piece_by_piece_and_compares_with_the_record_if_asked(ruled: House) -> None:
    await pay(ruled, 5, 60, 70)
    text = POLICY.replace("above: 100", "above: 50")
    first = await try_out(ruled, text, limit=2, against="recorded")
    assert (first["calls"], first["changed"]) == (2, 2)
    rest = await try_out(ruled, text, limit=2, against="recorded", after=first["next"])
    assert (rest["calls"], rest["changed"], rest["changes"], rest["next"]) == (1, 0, [], None)
    none = await try_out(ruled, text, since_seconds=0.0001)
    assert none["calls"] == 0


async def test_the_mode_of_then_counts(ruled: House) -> None:
    await ruled.gate.set_mode("LOCKDOWN", by="root")
    await pay(ruled, 5)
    await ruled.gate.set_mode("NORMAL", by="root")
    told = await try_out(ruled, POLICY)
    assert (told["calls"], told["changed"]) == (1, 0)


async def test_what_is_wrong_with_a_text_is_told_with_its_line(ruled: House) -> None:
    told = await try_out(ruled, POLICY + "  drop: {decison: deny}\n")
    assert (told["success"], told["calls"]) == (False, 0)
    (problem,) = told["problems"]
    assert (problem["line"], problem["path"]) == (8, "tools.drop.decison")
    assert "decision" in problem["message"]
    other = await ruled.client("ann").post(f"{P}/policy/simulate", json={"files": {"/etc/passwd": "a: 1"}})
    assert other.status_code == 400
    reading = await try_out(ruled, "include: [/etc/passwd]\ndefault: deny")
    assert "reads no other files" in reading["problems"][0]["message"]


async def test_a_reason_hides_what_the_arguments_hid(ruled: House) -> None:
    await pay(ruled, 5, password=SECRET)
    told = await try_out(ruled, POLICY + '    paths: {arguments: [password], allowed: ["src/**"]}\n')
    assert told["changed"] == 1
    assert "***" in told["groups"][0]["reasons"][0]["reason"]
    assert SECRET not in str(told)


def open_folders() -> int:
    found = (os.path.join("/proc/self/fd", name) for name in os.listdir("/proc/self/fd"))
    return sum(os.path.isdir(os.path.realpath(path)) for path in found)


async def test_trials_leave_the_policy_in_force_and_no_open_file(ruled: House) -> None:
    await pay(ruled, 5)
    text = POLICY + "  keep: {decision: allow, paths: {allowed: [src/**]}}\n"
    await try_out(ruled, text)
    before = open_folders()
    for _ in range(3):
        await try_out(ruled, text)
    assert open_folders() == before


async def test_without_a_policy_file_a_text_can_still_be_tried(house: House) -> None:
    await house.client("bot").post(f"{P}/tools/execute", json=execute("add", {"left": 1, "right": 1}))
    assert (await source(house))["files"] == []
    body = {"files": {"new": "default: deny"}}
    told = (await house.client("ann").post(f"{P}/policy/simulate", json=body)).json()
    assert (told["calls"], told["changed"], told["changes"]) == (1, 1, [])


async def test_a_grant_is_tried_before_it_is_given(house: House) -> None:
    bot, ann = house.client("bot"), house.client("ann")
    approval = ""
    for amount in (1, 2, 30):
        body = execute("pay", {"amount": amount, "password": SECRET}, wait=False)
        approval = (await bot.post(f"{P}/tools/execute", json=body)).json()["approval_id"]
    wanted = {"pattern": {"amount": {"at_most": 100}}}
    answer = await ann.post(f"{P}/approvals/{approval}/grant-preview", json=wanted)
    seen = answer.json()
    assert (seen["matched"], seen["asked"], seen["looked_at"]) == (2, 2, 2)
    assert seen["pattern"]["amount"] == {"at_least": 0, "at_most": 100}
    assert SECRET not in answer.text
    assert (await ann.post(f"{P}/approvals/{approval}/grant-preview", json={})).json()["matched"] == 0
    assert (await bot.post(f"{P}/approvals/{approval}/grant-preview", json={})).status_code == 403
    bad = await ann.post(f"{P}/approvals/{approval}/grant-preview", json={"pattern": {"amount": {"at_most": 1}}})
    assert bad.status_code == 400
    assert (await ann.get(f"{P}/grants")).json()["grants"] == []


async def test_every_surface_shows_the_policy_of_its_project(tmp_path: Path) -> None:
    (tmp_path / "toolgate.yaml").write_text("single_person: true")
    own = tmp_path / "projects"
    own.mkdir()
    text = "tools: {pay: {arguments: [{field: amount, above: 5, then: ask, approval: {quorum: 2, including: [lead]}}]}}"
    (own / "demo.yaml").write_text(text)
    async with open_house(policy=tmp_path, project_policies=own) as house:
        here, there = (P, house.client("ann")), ("/my/projects/elsewhere", house.client("eve"))
        revisions, files, asked = [], [], []
        for base, client in (here, there):
            revisions.append((await client.get(f"{base}/policy")).json()["revision"])
            told = (await client.get(f"{base}/policy/source")).json()
            files.append(sorted(Path(one["name"]).name for one in told["files"]))
            asked.append([rule["asks"] for tool in told["tools"] for rule in tool["rules"] if "asks" in rule])
            body = {"tool_name": "pay", "tool_params": {"amount": 9}}
            found = (await client.post(f"{base}/policy/explain", json=body)).json()["explanation"]
            assert found["policy_revision"] == revisions[-1]
            assert found["approval"]["quorum"] == (2 if base == P else 1)
        assert revisions == [house.gate.host.policy("demo").revision, house.gate.policy.revision]
        assert files == [["demo.yaml", "toolgate.yaml"], ["toolgate.yaml"]]
        assert asked == [["2 people other than the requester, at least 1 of them with role lead"], []]
        name = str(own / "demo.yaml")
        tried = await house.client("ann").post(f"{P}/policy/simulate", json={"files": {name: "default: deny"}})
        assert tried.json()["success"], tried.text
        strange = await house.client("eve").post(f"{there[0]}/policy/simulate", json={"files": {name: text}})
        assert strange.status_code == 400, strange.text


async def test_a_question_says_over_the_wire_who_must_approve_and_who_is_missing(tmp_path: Path) -> None:
    text = "tools: {pay: {arguments: [{field: amount, above: 5, then: ask, approval: {including: [lead]}}]}}"
    (tmp_path / "toolgate.yaml").write_text(text)
    async with open_house(policy=tmp_path) as house:
        context = Context(project="demo", principal="agent:bot")
        await house.gate.call("pay", {"amount": 50}, context=context, wait=False)
        (asked,) = await house.gate.pending()
        record = (await house.client("ann").get(f"{P}/approvals/{asked.id}")).json()["approval"]
        assert (record["including"], record["approvers"]) == ([["lead"]], [])
        body = {"reason": "fine"}
        counted = await house.client("bob").post(f"{P}/approvals/{asked.id}/approve", json=body)
        assert counted.json()["status"] == "pending", counted.text
        async with house.listen("ann", f"{P}/inbox") as heard:
            card = await heard.next("inbox.card")
        assert (card["including"], card["lacks"], len(card["votes"])) == ([["lead"]], [["lead"]], 1)
        await house.add("lea", "person", {"demo": frozenset({"lead"})})
        done = await house.client("lea").post(f"{P}/approvals/{asked.id}/approve", json=body)
        assert done.json()["status"] == "approved"
