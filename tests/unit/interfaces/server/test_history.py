"""Looking back: timelines, whole records, and the chain checked piece by piece."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from tests.unit.interfaces.server.house import SECRET, House, P, execute, open_house

from toolgate.adapters.sqlite.upkeep import prune
from toolgate.interfaces.server import chains, timelines
from toolgate.kernel.event import EVENTS
from toolgate.testing.patience import PATIENCE_S


async def asked(house: House, tool: str, params: dict[str, Any], id: str) -> str:
    body = execute(tool, params, tool_id=id, wait=False, claim="the agent says so")
    answer = (await house.client("bot").post(f"{P}/tools/execute", json=body)).json()
    approval_id: str = answer["approval_id"]
    return approval_id


async def steps(house: House, id: str) -> list[dict[str, Any]]:
    answer = await house.client("ann").get(f"{P}/tools/{id}/timeline")
    assert answer.status_code == 200, answer.text
    told: list[dict[str, Any]] = answer.json()["steps"]
    return told


async def test_a_timeline_tells_every_stage_with_who_and_why(house: House) -> None:
    approval = await asked(house, "pay", {"amount": 5, "password": SECRET}, "p1")
    ann = house.client("ann")
    await ann.post(f"{P}/approvals/{approval}/comment", json={"text": "looks right"})
    await ann.post(f"{P}/approvals/{approval}/approve", json={"reason": "agreed by phone"})
    await house.gate.wait("p1", project="demo")
    told = await steps(house, "p1")
    stages = [step["stage"] for step in told]
    assert stages == ["validate", "permit", "assess", "approve", "approve", "approve", "execute", "record"]
    assert (told[0]["by"], told[0]["event"]) == ("bot", "tool.invoked")
    assert (told[2]["said"], told[2]["seq"]) == ("Risk medium: level quick", None)
    assert (told[4]["by"], told[4]["reason"]) == ("ann", "looks right")
    assert (told[5]["said"], told[5]["by"], told[5]["reason"]) == ("Approved", "ann", "agreed by phone")
    assert told[6]["said"] == "Started, allowed by ann"
    assert all(step["after_ms"] >= 0 for step in told)
    assert SECRET not in json.dumps(told)


async def test_a_timeline_says_where_a_call_was_refused(house: House) -> None:
    bot = house.client("bot")
    await bot.post(f"{P}/tools/execute", json=execute("nobody", {}, tool_id="n1"))
    await bot.post(f"{P}/tools/execute", json=execute("add", {"left": "x"}, tool_id="n2"))
    assert [step["stage"] for step in await steps(house, "n1")] == ["resolve"]
    assert [step["stage"] for step in await steps(house, "n2")] == ["validate", "validate"]
    approval = await asked(house, "pay", {"amount": 5}, "n3")
    await house.client("ann").post(f"{P}/approvals/{approval}/reject", json={"reason": "no"})
    told = await steps(house, "n3")
    assert [(step["stage"], step["said"]) for step in told[-2:]] == [
        ("approve", "Rejected"),
        ("approve", "Refused (approval_denied)"),
    ]
    await house.gate.set_mode("LOCKDOWN", by="root")
    await bot.post(f"{P}/tools/execute", json=execute("add", {"left": 1, "right": 1}, tool_id="n4"))
    told = await steps(house, "n4")
    assert [step["stage"] for step in told] == ["validate", "permit", "permit"]
    assert "LOCKDOWN" in told[-1]["reason"]


async def test_a_timeline_knows_whether_a_call_can_be_undone(house: House) -> None:
    bot, ann = house.client("bot"), house.client("ann")
    await bot.post(f"{P}/tools/execute", json=execute("keep", {"value": 1}, tool_id="k1"))
    assert (await ann.get(f"{P}/tools/k1/timeline")).json()["can_undo"] is True
    undone = (await ann.post(f"{P}/tools/k1/undo", json={})).json()
    assert (await ann.get(f"{P}/tools/k1/timeline")).json()["can_undo"] is False
    told = await steps(house, undone["tool_id"])
    assert [step["said"] for step in told] == ["Started, allowed by the policy", "Undone, unchecked"]


def test_every_event_about_a_call_can_be_told() -> None:
    about_calls = {name for name in EVENTS if name.startswith(("tool.", "approval.", "grant."))}
    assert set(timelines._TELLINGS) == about_calls


@pytest.mark.parametrize(
    ("event", "data", "said"),
    [
        ("tool.progress", {"progress": 0.5, "message": "half"}, "Progress 50%"),
        ("tool.progress", {}, "Progress"),
        ("tool.started", {"approved_by": "grant:1", "attempt": 2}, "Started, allowed by grant:1, attempt 2"),
        ("tool.invoked", {"repeat_of": "c1"}, "Received and checked against the tool's schema; it repeats call c1"),
        ("tool.joined", {"joined_as": "c2"}, "Made again as c2, which joined this one"),
        ("tool.still_unknown", {"said_by": "bob"}, "Not known yet"),
        ("tool.settled", {"outcome": "COMPLETED"}, "Settled as COMPLETED"),
        ("tool.dispatched", {"runner": "r"}, "Given to a runner"),
        ("tool.cancelled", {"reason": "why"}, "Cancelled"),
        ("tool.late_result", {}, "A late result came; it changed nothing"),
        ("tool.adopted", {}, "Brought in with the undo data kept of it"),
        ("tool.undo_failed", {"error": "why"}, "Not undone"),
        ("approval.requested", {"quorum": 2, "level": "full"}, "2 people were asked, at level full"),
        ("approval.decided", {"decision": "denied", "response": "ask later"}, "Answered instead of run"),
        ("approval.voted", {"votes": 1, "quorum": 2}, "One yes, 1 of 2"),
        ("approval.escalated", {"roles": ["lead", "owner"]}, "Also asked: lead, owner"),
        ("approval.expiring", {}, "About to expire"),
        ("approval.extended", {}, "Given more time"),
        ("approval.edited", {}, "Arguments edited"),
        ("approval.undelivered", {}, "A channel gave up"),
        ("approval.expired", {}, "Closed without an answer"),
        ("grant.created", {}, "The yes was remembered as a grant"),
        ("grant.revoked", {}, "The grant was revoked"),
    ],
)
def test_each_event_is_told_in_a_sentence(event: str, data: dict[str, Any], said: str) -> None:
    assert timelines._TELLINGS[event](data).said == said


async def test_a_record_can_be_checked_by_whoever_holds_it(house: House) -> None:
    approval = await asked(house, "pay", {"amount": 5, "password": SECRET}, "p1")
    await house.client("ann").post(f"{P}/approvals/{approval}/approve", json={})
    await house.gate.wait("p1", project="demo")
    own = await house.client("ann").get(f"{P}/tools/p1/record")
    answer = await house.client("bob").get(f"{P}/tools/p1/record")
    kept = answer.json()
    assert SECRET not in answer.text + own.text
    assert kept["call"]["result"] == {"paid": 5, "password": "***"}
    assert kept["call"]["tool_id"] == "p1"
    assert kept["decided"]["claim"] == "the agent says so"
    assert [one["approval_id"] for one in kept["approvals"]] == [approval]
    for event in kept["events"]:
        leaf = hashlib.sha256(b"\x00" + event["frame"].encode()).digest()
        digest = hashlib.sha256(b"\x01" + bytes.fromhex(event["prev"]) + leaf).hexdigest()
        assert (digest, event["is_sound"]) == (event["hash"], True)
        content = bytes.fromhex(event["salt"]) + event["content"].encode()
        committed = json.loads(event["frame"]).get("content")
        assert committed == (hashlib.sha256(content).hexdigest() if content else None)
    assert (await house.client("eve").get(f"{P}/tools/p1/record")).status_code == 404
    assert (await house.client("ann").get(f"{P}/tools/other/record")).status_code == 404


async def test_the_chain_is_checked_piece_by_piece(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chains, "PIECE", 4)
    monkeypatch.setattr(chains, "READ", 2)
    ann = house.client("ann")
    assert (await ann.get(f"{P}/audit")).json()["is_whole"] is False
    for number in range(3):
        await ann.post(f"{P}/tools/execute", json=execute("add", {"left": number, "right": 1}))
    first = (await ann.post(f"{P}/audit/verify")).json()
    assert (first["events"], first["verified"], first["is_whole"]) == (9, 4, False)
    await ann.post(f"{P}/audit/verify")
    last = (await ann.post(f"{P}/audit/verify")).json()
    assert (last["verified"], last["is_whole"], last["problem"]) == (9, True, None)
    assert last["head_hash"] == (await house.gate.events(project="demo", after=8))[0].hash.hex()
    again = (await ann.post(f"{P}/audit/verify", json={"restart": True})).json()
    assert (again["verified"], again["is_whole"]) == (4, False)


async def test_a_chain_whose_old_events_were_removed_is_whole_from_there_on(tmp_path: Path) -> None:
    file = tmp_path / "kept.db"
    async with open_house(f"sqlite:///{file}") as house:
        ann = house.client("ann")
        await ann.post(f"{P}/tools/execute", json=execute("add", {"left": 1, "right": 1}))
        assert (await ann.post(f"{P}/audit/verify")).json()["verified"] == 3
        await ann.post(f"{P}/tools/execute", json=execute("add", {"left": 2, "right": 1}))
        cut = (await house.gate.events(project="demo", after=3, limit=1))[0].at
        assert prune(file, cut, events=True)[1] == 3
        for restart in (False, True):
            checked = (await ann.post(f"{P}/audit/verify", json={"restart": restart})).json()
            assert (checked["verified"], checked["is_whole"], checked["problem"]) == (6, True, None)
        head = await house.gate.host.head("demo")
        assert (head.seq, head.base_seq) == (6, 3)


async def test_a_chain_that_was_tampered_with_is_noticed(tmp_path: Path) -> None:
    file = tmp_path / "kept.db"
    async with open_house(f"sqlite:///{file}") as house:
        ann = house.client("ann")
        for number in range(3):
            await ann.post(f"{P}/tools/execute", json=execute("add", {"left": number, "right": 1}))
        assert (await ann.post(f"{P}/audit/verify")).json()["is_whole"] is True
        tamper(file, "UPDATE events SET frame=replace(frame, 'tool.started', 'tool.stopped') WHERE seq=5")
        assert (await ann.post(f"{P}/audit/verify")).json()["problem"] is None  # behind the mark
        whole = (await ann.post(f"{P}/audit/verify", json={"restart": True})).json()
        assert (whole["verified"], whole["is_whole"]) == (4, False)
        assert "Event 5" in whole["problem"]
        altered = (await house.gate.events(project="demo", after=4, limit=1))[0].call_id
        kept = (await ann.get(f"{P}/tools/{altered}/record")).json()
        assert [event["is_sound"] for event in kept["events"]] == [True, False, True]
        tamper(file, "UPDATE events SET frame=CAST(frame AS BLOB) WHERE seq=5")
        typed = (await ann.post(f"{P}/audit/verify")).json()
        assert "Event 5 of project 'demo' was altered" in typed["problem"]
        tamper(file, "UPDATE events SET at='yesterday' WHERE seq=5")
        unreadable = (await ann.post(f"{P}/audit/verify")).json()
        assert unreadable["problem"] == "The events after 4 were altered: they cannot be read."
        tamper(file, "UPDATE events SET hash=randomblob(32) WHERE seq=4")
        other = (await ann.post(f"{P}/audit/verify")).json()
        assert other["problem"] == "Event 4 is another one than was checked here before."
        tamper(file, "DELETE FROM events WHERE seq>2")
        cut = (await ann.post(f"{P}/audit/verify")).json()
        assert cut["problem"] == "Event 4 was checked here before and is no longer there."
        assert (await ann.get(f"{P}/audit")).json()["is_whole"] is False


def tamper(file: Path, sql: str) -> None:
    connection = sqlite3.connect(file, timeout=PATIENCE_S)
    with connection:
        assert connection.execute(sql).rowcount
    connection.close()
