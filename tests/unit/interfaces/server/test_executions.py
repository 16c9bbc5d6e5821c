"""Calling tools, at the server and at the client, and looking at what became of them."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.interfaces.server.house import SECRET, House, P, execute, open_house

from toolgate.testing.patience import until


async def test_a_call_that_needs_nobody_is_answered_with_its_result(house: House) -> None:
    answer = await house.client("bot").post(f"{P}/tools/execute", json=execute("add", {"left": 2, "right": 3}))
    assert answer.status_code == 200
    told = answer.json()
    assert (told["success"], told["status"], told["result"]) == (True, "completed", 5)


@pytest.mark.parametrize(
    ("body", "error_type"),
    [(execute("gone"), "tool_not_found"), (execute("add", {"left": "x", "right": 1}), "invalid_arguments")],
)
async def test_a_call_that_cannot_run_is_a_failed_execution(house: House, body: Any, error_type: str) -> None:
    answer = await house.client("bot").post(f"{P}/tools/execute", json=body)
    assert (answer.status_code, answer.json()["status"], answer.json()["error_type"]) == (200, "failed", error_type)


async def test_who_does_not_wait_is_told_where_the_call_stands(house: House) -> None:
    bot = house.client("bot")
    for more in ({"wait": False}, {"wait_seconds": 0}):
        answer = await bot.post(f"{P}/tools/execute", json=execute("pay", {"amount": 1}, **more))
        assert (answer.status_code, answer.json()["status"]) == (202, "awaiting_approval")
        assert answer.json()["approval_id"]


async def test_the_wait_ends_at_its_limit_and_the_call_goes_on() -> None:
    async with open_house(wait_limit_s=0.05) as house:
        answer = await house.client("bot").post(f"{P}/tools/execute", json=execute("pay", {"amount": 1}))
        assert answer.status_code == 202
        approval = answer.json()["approval_id"]
        await house.client("ann").post(f"{P}/approvals/{approval}/approve")
        result = await house.gate.wait(answer.json()["tool_id"], project="demo")
        assert result.success


async def test_the_same_id_never_runs_twice(house: House) -> None:
    bot = house.client("bot")
    body = execute("keep", {"value": 1}, tool_id="mine")
    first, second = await bot.post(f"{P}/tools/execute", json=body), await bot.post(f"{P}/tools/execute", json=body)
    assert first.json() == second.json()
    other = await bot.post(f"{P}/tools/execute", json=execute("keep", {"value": 2}, tool_id="mine"))
    assert other.status_code == 409
    events = await house.gate.events(project="demo", call_id="mine")
    assert [event.type for event in events].count("tool.started") == 1


async def test_the_tools_are_listed_as_document_004_shows_them(house: House) -> None:
    told = (await house.client("ann").get(f"{P}/tools/available")).json()
    tools = {tool["name"]: tool for tool in told["tools"]}
    assert told["total_count"] == len(tools) == 6
    assert [tools["look"][key] for key in ("requires_approval", "risk_level", "timeout_seconds")] == [False, "LOW", 0]
    assert [tools["pay"][key] for key in ("requires_approval", "risk_level", "timeout_seconds")] == [
        True,
        "MEDIUM",
        300,
    ]
    assert tools["drop"]["timeout_seconds"] == 600
    assert tools["add"]["parameters"] == {"left": {"type": "integer"}, "right": {"type": "integer"}}


async def test_whether_a_tool_asks_is_what_the_policy_says(tmp_path: Path) -> None:
    policy = tmp_path / "toolgate.yaml"
    policy.write_text("version: 1\ntools: {add: {decision: ask}, pay: {decision: allow}}\n")
    async with open_house(policy=policy) as house:
        told = (await house.client("ann").get(f"{P}/tools/available")).json()["tools"]
        asks = {tool["name"]: (tool["requires_approval"], tool["timeout_seconds"]) for tool in told}
        assert (asks["add"], asks["pay"], asks["drop"]) == ((True, 300), (False, 0), (True, 600))


@pytest.mark.parametrize("error", [{}, {"error": None}, {"error": ""}, {"error": "  "}])
async def test_a_failed_result_says_what_went_wrong(house: House, error: dict[str, Any]) -> None:
    ann = house.client("ann")
    async with house.listen("ann") as stream:
        await stream.ready()
        asked = (await ann.post(f"{P}/tools/execute", json=execute("far", wait=False))).json()
        await stream.next("tool.execution_signal")
        path = f"{P}/tools/{asked['tool_id']}/result"
        refused = await ann.post(path, json={"status": "failed"} | error)
        assert (refused.status_code, refused.json()["code"]) == (400, "invalid_request")
        assert "error" in str(refused.json()["errors"])
        assert (await ann.post(path, json={"status": "failed", "error": "no such file"})).status_code == 200


async def test_a_call_the_policy_approves_has_a_time_of_approval(house: House) -> None:
    ann = house.client("ann")
    done = (await ann.post(f"{P}/tools/execute", json=execute("add", {"left": 1, "right": 2}))).json()
    row = (await ann.get(f"{P}/tools/{done['tool_id']}")).json()
    assert row["approved_by"] == "policy:auto"
    assert row["created_at"] <= row["approved_at"] <= row["completed_at"]


async def test_a_client_runs_what_its_person_asked_for(house: House) -> None:
    ann = house.client("ann")
    async with house.listen("ann") as stream:
        await stream.ready()
        asking = asyncio.create_task(ann.post(f"{P}/tools/execute", json=execute("far", {"token": SECRET})))
        signal = await stream.next("tool.execution_signal")
        assert signal["tool_params"] == {"token": SECRET}
        body = {"status": "completed", "result": {"stdout": "x", "big": 2**60, "ratio": 1.0}}
        reported = await ann.post(f"{P}/tools/{signal['tool_id']}/result", json=body)
        assert reported.json() == {
            "success": True,
            "tool_id": signal["tool_id"],
            "status": "completed",
            "message": "Tool result processed",
        }
        assert (await asking).json()["result"] == body["result"]
        ack = await stream.next("tool.result_ack")
        assert (ack["tool_id"], ack["status"]) == (signal["tool_id"], "received")
        others = [one for one in stream.heard if one[0] != "tool.execution_signal"]
        assert SECRET not in repr(others)


async def test_a_client_reports_failure(house: House) -> None:
    ann = house.client("ann")
    async with house.listen("ann") as stream:
        await stream.ready()
        asking = asyncio.create_task(ann.post(f"{P}/tools/execute", json=execute("far")))
        signal = await stream.next("tool.execution_signal")
        body = {"status": "failed", "error": "Command not found: npm", "extra": "ignored"}
        reported = await ann.post(f"{P}/tools/{signal['tool_id']}/result", json=body)
        assert reported.json()["status"] == "failed"
        told = (await asking).json()
        assert (told["status"], told["error"]) == ("failed", "Command not found: npm")


async def test_the_first_result_counts_and_only_its_runner_is_heard(house: House) -> None:
    ann, bob = house.client("ann"), house.client("bob")
    async with house.listen("ann") as stream:
        await stream.ready()
        tool_id = (await ann.post(f"{P}/tools/execute", json=execute("far", wait=False))).json()["tool_id"]
        signal = await stream.next("tool.execution_signal")
        body = {"status": "completed", "result": 1}
        foreign = await bob.post(f"{P}/tools/{tool_id}/result", json=body)
        assert (foreign.status_code, foreign.json()["code"]) == (403, "not_allowed")
        wrong = await ann.post(f"{P}/tools/{tool_id}/result", json=body | {"fence": "guess"})
        assert wrong.status_code == 409
        fenced = body | {"fence": signal["fence"]}
        assert (await bob.post(f"{P}/tools/{tool_id}/result", json=fenced)).status_code == 403
        assert (await ann.post(f"{P}/tools/{tool_id}/result", json=fenced)).status_code == 200
        again = await ann.post(f"{P}/tools/{tool_id}/result", json={"status": "completed", "result": 2})
        assert (again.status_code, again.json()["tool_status"]) == (409, "completed")
        assert (await ann.get(f"{P}/tools/{tool_id}")).json()["result"] == 1


async def test_a_runner_can_report_that_it_does_not_know(house: House) -> None:
    ann = house.client("ann")
    async with house.listen("ann") as stream:
        await stream.ready()
        tool_id = (await ann.post(f"{P}/tools/execute", json=execute("far", wait=False))).json()["tool_id"]
        await stream.next("tool.execution_signal")
        answer = await ann.post(f"{P}/tools/{tool_id}/result", json={"status": "unknown", "error": "it was killed"})
        assert (answer.status_code, answer.json()["success"], answer.json()["status"]) == (200, True, "failed")
        told = (await ann.get(f"{P}/tools/{tool_id}")).json()
        assert (told["internal_status"], told["error_type"]) == ("UNKNOWN", "unknown")
        assert "it was killed" in told["error"]
        unsure = await ann.post(f"{P}/tools/{tool_id}/settle", json={"happened": None, "reason": "looked"})
        assert (unsure.json()["status"], unsure.json()["error_type"]) == ("failed", "unknown")
        assert "toolgate_calls_unknown 1.0" in (await ann.get("/metrics")).text
        assert (await ann.post(f"{P}/tools/{tool_id}/settle", json={"reason": "looked"})).status_code == 400
        settled = await ann.post(f"{P}/tools/{tool_id}/settle", json={"happened": True, "reason": "looked"})
        assert settled.json()["status"] == "completed"


async def test_a_result_for_an_execution_nobody_approved_is_refused(house: House) -> None:
    ann = house.client("ann")
    waiting = (await ann.post(f"{P}/tools/execute", json=execute("pay", {"amount": 1}, wait=False))).json()
    forged = await ann.post(f"{P}/tools/{waiting['tool_id']}/result", json={"status": "completed", "result": {}})
    assert (forged.status_code, forged.json()["tool_status"]) == (409, "awaiting_approval")


async def test_progress_renews_the_lease_and_is_told(house: House) -> None:
    ann = house.client("ann")
    async with house.listen("ann") as stream:
        await stream.ready()
        tool_id = (await ann.post(f"{P}/tools/execute", json=execute("far", wait=False))).json()["tool_id"]
        await stream.next("tool.execution_signal")
        before = (await house.gate.calls.get(tool_id, project="demo")).due_at
        beat = await ann.post(f"{P}/tools/{tool_id}/progress", json={"progress": 0.5, "message": "half"})
        assert beat.json()["status"] == "executing"
        after = (await house.gate.calls.get(tool_id, project="demo")).due_at
        assert before is not None
        assert after is not None
        assert after > before
        assert (await stream.next("tool.progress"))["message"] == "half"
        assert (await ann.post(f"{P}/tools/{tool_id}/progress")).status_code == 200
        await ann.post(f"{P}/tools/{tool_id}/result", json={"status": "completed"})
        assert (await ann.post(f"{P}/tools/{tool_id}/progress")).status_code == 409


async def test_a_registered_runner_gets_the_signal_and_a_stranger_never(house: House) -> None:
    async with (
        house.listen("ann") as own,
        house.listen("bob") as other,
        house.listen("runner:1", f"{P}/chat/stream?tools=far&undo=true") as runner,
    ):
        for stream in (own, other, runner):
            await stream.ready()
        await house.client("ann").post(f"{P}/tools/execute", json=execute("far", wait=False))
        await house.client("ann").post(f"{P}/tools/execute", json=execute("look", wait=False))
        assert (await runner.next("tool.execution_signal"))["tool_name"] == "far"
        assert (await own.next("tool.execution_signal"))["tool_name"] == "look"
        await other.next("tool.dispatched")
        await other.next("tool.dispatched")
        assert "tool.execution_signal" not in other.names


async def test_a_call_waits_for_a_client_that_comes_late(house: House) -> None:
    asked = (await house.client("ann").post(f"{P}/tools/execute", json=execute("far", wait=False))).json()
    assert asked["status"] == "executing"
    async with house.listen("ann") as stream:
        assert (await stream.next("tool.execution_signal"))["tool_id"] == asked["tool_id"]


async def test_a_signal_is_never_sent_again(house: House) -> None:
    await house.client("ann").post(f"{P}/tools/execute", json=execute("far", wait=False))
    async with house.listen("ann") as stream:
        await stream.next("tool.execution_signal")
    async with house.listen("ann", headers={"Last-Event-ID": "0"}) as again:
        await again.next("tool.dispatched")
        assert "tool.execution_signal" not in again.names


async def test_a_person_sees_their_result_and_others_its_mask(house: House) -> None:
    ann = house.client("ann")
    asked = (
        await ann.post(f"{P}/tools/execute", json=execute("pay", {"amount": 1, "password": SECRET}, wait=False))
    ).json()
    await house.client("bob").post(f"{P}/approvals/{asked['approval_id']}/approve")
    await house.gate.wait(asked["tool_id"], project="demo")
    own = (await ann.get(f"{P}/tools/{asked['tool_id']}")).json()
    shown = (await house.client("bob").get(f"{P}/tools/{asked['tool_id']}")).json()
    assert own["result"] == {"paid": 1, "password": SECRET}
    assert SECRET not in str(shown)
    assert SECRET not in str(own["tool_params"])
    assert (shown["user"], shown["requester"], shown["approved_by"]) == ("ann", "agent:ann", "bob")
    assert shown["execution_time_ms"] is not None
    assert all(shown[name].endswith("Z") for name in ("created_at", "approved_at", "completed_at"))


async def test_calls_are_listed_in_pages_and_by_status(house: House) -> None:
    bot = house.client("bot")
    ids = [
        (await bot.post(f"{P}/tools/execute", json=execute("add", {"left": number, "right": 0}))).json()["tool_id"]
        for number in range(5)
    ]
    await bot.post(f"{P}/tools/execute", json=execute("pay", {"amount": 1}, wait=False))
    first = (await bot.get(f"{P}/tools", params={"limit": 2, "status": "completed"})).json()
    second = (await bot.get(f"{P}/tools", params={"limit": 9, "status": "completed", "after": first["next"]})).json()
    assert [one["tool_id"] for one in first["tools"] + second["tools"]] == ids
    assert second["next"] is None
    waiting = (await bot.get(f"{P}/tools", params={"status": "awaiting_approval"})).json()
    assert [one["tool_name"] for one in waiting["tools"]] == ["pay"]
    assert (await bot.get(f"{P}/tools", params={"after": "gone"})).status_code == 404
    assert (await bot.get(f"{P}/tools", params={"limit": 0})).status_code == 400


async def test_a_call_is_cancelled_by_its_asker_or_who_decides(house: House) -> None:
    bot, bob = house.client("bot"), house.client("bob")
    await house.add("other", "agent")
    mine = [(await bot.post(f"{P}/tools/execute", json=execute("pay", {"amount": 1}, wait=False))).json() for _ in "ab"]
    foreign = await house.client("other").post(f"{P}/tools/{mine[0]['tool_id']}/cancel")
    assert foreign.status_code == 403
    for who, one in ((bot, mine[0]), (bob, mine[1])):
        answer = await who.post(f"{P}/tools/{one['tool_id']}/cancel", json={"reason": "changed my mind"})
        assert (answer.status_code, answer.json()["status"], answer.json()["error_type"]) == (
            200,
            "rejected",
            "cancelled",
        )


async def test_who_runs_a_call_is_asked_to_stop(house: House) -> None:
    ann = house.client("ann")
    async with house.listen("ann") as stream:
        await stream.ready()
        tool_id = (await ann.post(f"{P}/tools/execute", json=execute("far", wait=False))).json()["tool_id"]
        await stream.next("tool.execution_signal")
        answer = await ann.post(f"{P}/tools/{tool_id}/cancel", json={"reason": "enough"})
        assert (answer.status_code, answer.json()["status"]) == (202, "executing")
        told = await stream.next("tool.cancel_signal")
        assert (told["tool_id"], told["reason"]) == (tool_id, "enough")


async def test_a_call_is_undone_and_only_an_admin_uses_force(house: House) -> None:
    ann = house.client("ann")
    done = (await ann.post(f"{P}/tools/execute", json=execute("keep", {"value": 1}))).json()
    forced = await ann.post(f"{P}/tools/{done['tool_id']}/undo", json={"force": True})
    assert forced.status_code == 403
    undone = (await ann.post(f"{P}/tools/{done['tool_id']}/undo")).json()
    assert (undone["status"], undone["tool_id"] != done["tool_id"]) == ("completed", True)
    assert (undone["unchecked"], "unchecked" in done) == (True, False)
    again = (await ann.post(f"{P}/tools/{done['tool_id']}/undo")).json()
    assert (again["status"], again["error_type"]) == ("failed", "undo_failed")


async def test_a_client_undoes_what_it_said_it_can(house: House) -> None:
    undoable = house.gate.registry.find("far")
    assert undoable is not None
    house.gate.register(replace(undoable, undoable=True, undo_handler=lambda _undo: None))
    ann = house.client("ann")
    async with house.listen("ann", f"{P}/chat/stream?undo=true") as stream:
        await stream.ready()
        tool_id = (await ann.post(f"{P}/tools/execute", json=execute("far", wait=False))).json()["tool_id"]
        await stream.next("tool.execution_signal")
        body = {"status": "completed", "result": 1, "undo": {"old": SECRET}, "artifacts": [{"a": 1}]}
        await ann.post(f"{P}/tools/{tool_id}/result", json=body)
        undoing = asyncio.create_task(ann.post(f"{P}/tools/{tool_id}/undo"))
        signal = await stream.next("tool.undo_signal")
        assert (signal["undo_of"], signal["undo_data"]) == (tool_id, {"old": SECRET})
        await ann.post(f"{P}/tools/{signal['tool_id']}/result", json={"status": "completed"})
        assert (await undoing).json()["status"] == "completed"


async def test_a_run_is_listed_and_undone(house: House) -> None:
    ann = house.client("ann")
    for value in (1, 2):
        await ann.post(f"{P}/tools/execute", json=execute("keep", {"value": value}, run_id="r1"))
    listed = (await ann.get(f"{P}/runs/r1")).json()
    assert [one["tool_name"] for one in listed["tools"]] == ["keep", "keep"]
    preview = (await ann.post(f"{P}/runs/r1/undo", json={"preview": True})).json()
    assert [one["step"] for one in preview["steps"]] == ["undoable", "undoable"]
    undone = (await ann.post(f"{P}/runs/r1/undo")).json()
    assert [(one["step"], one["unchecked"]) for one in undone["steps"]] == [("undone", True)] * 2
    for path in (f"{P}/runs/r2", f"{P}/runs/r2/undo"):
        asked = ann.get(path) if path.endswith("r2") else ann.post(path)
        assert (await asked).status_code == 404
    assert (await ann.post(f"{P}/runs/r1/undo", json={"force": True})).status_code == 403


async def test_a_person_settles_an_unknown_outcome(house: House) -> None:
    ann = house.client("ann")
    call = (await ann.post(f"{P}/tools/execute", json=execute("far", wait=False))).json()["tool_id"]
    early = await ann.post(f"{P}/tools/{call}/settle", json={"happened": True, "reason": "looked"})
    assert early.status_code == 409


async def test_waiting_calls_do_not_block_the_server(house: House) -> None:
    bot = house.client("bot")
    waiting = [
        asyncio.create_task(bot.post(f"{P}/tools/execute", json=execute("pay", {"amount": 1}))) for _ in range(20)
    ]
    await until(lambda: _pending(house, 20))
    assert (await house.client("ann").get(f"{P}/tools/available")).status_code == 200
    for approval in await house.gate.pending(project="demo"):
        await house.client("ann").post(f"{P}/approvals/{approval.id}/reject", json={"reason": "no"})
    answers = [(await one).json() for one in waiting]
    assert {one["status"] for one in answers} == {"rejected"}


async def _pending(house: House, count: int) -> bool:
    return len(await house.gate.pending(project="demo")) == count
