"""The client in plain threads: many at once, streams that are closed from outside, and closing while others wait."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.unit.interfaces.server.house import House

from toolgate import ApprovalTerms, Policy, Status
from toolgate.client import StreamEvent, SyncClient
from toolgate.errors import NotFoundError, UsageError
from toolgate.testing.patience import PATIENCE_S, until_sync


def made(house: House, who: str = "ann") -> SyncClient:
    return SyncClient(house.url, token=house.tokens[who], project="demo")


async def test_many_threads_share_one_client(house: House) -> None:
    def work() -> list[object]:
        with made(house) as client, ThreadPoolExecutor(8) as threads:
            calls = [threads.submit(client.call, "add", {"left": number, "right": 1}) for number in range(40)]
            assert client.url == house.url
            assert (client.project, "tg_" in repr(client)) == ("demo", False)
            results = [call.result().data for call in calls]
            assert len(list(client.history())) >= 80
            return results

    assert await asyncio.to_thread(work) == [number + 1 for number in range(40)]


async def test_a_thread_waits_for_a_person(house: House) -> None:
    def work() -> object:
        with made(house) as ann, made(house, "bob") as bob, ThreadPoolExecutor(1) as threads:
            waiting = threads.submit(ann.call, "pay", {"amount": 3})
            until_sync(lambda: bob.approvals.list(status="pending").approvals)
            bob.approvals.approve(bob.approvals.list(status="pending").approvals[0].approval_id)
            with pytest.raises(NotFoundError):
                ann.calls.get("nothing")
            return waiting.result().data

    assert await asyncio.to_thread(work) == {"paid": 3, "password": ""}


async def test_a_stream_in_a_thread_is_closed_by_another(house: House) -> None:
    def work() -> list[str]:
        heard: list[StreamEvent] = []
        with made(house) as ann:
            stream = ann.stream()
            reading = threading.Thread(target=lambda: heard.extend(stream))
            reading.start()
            until_sync(lambda: stream.last_id is not None)
            ann.call("add", {"left": 1, "right": 1})
            until_sync(lambda: (stream.last_id or 0) >= 3)
            with stream:
                pass
            reading.join(PATIENCE_S)
            assert not reading.is_alive()
        return [event.name for event in heard]

    names = await asyncio.to_thread(work)
    assert names[0] == "stream.ready"
    assert "tool.completed" in names


async def test_closing_tells_those_who_wait(house: House) -> None:
    def work() -> None:
        client = made(house)
        asked = client.call("pay", {"amount": 3}, wait=False)
        with ThreadPoolExecutor(1) as threads:
            waiting = threads.submit(client.wait, asked.call_id)
            until_sync(waiting.running)
            client.close()
            with pytest.raises(UsageError, match="closed"):
                waiting.result()
        client.close()
        with pytest.raises(UsageError, match="closed"):
            client.mode()

    await asyncio.to_thread(work)


async def test_a_browser_gets_a_session_of_its_own(house: House) -> None:
    def work() -> None:
        with made(house) as ann:
            session = ann.sign_in()
            assert (session.account, session.cookie in repr(session)) == ("ann", False)
            ann.sign_out(session)
            assert ann.session().account == "ann"
            assert ann.ticket().ticket
            assert (ann.health().status, ann.ready().status) == ("ok", "ready")
            assert "toolgate" in ann.metrics()
            assert {tool.name for tool in ann.tools()} >= {"add", "pay"}

    await asyncio.to_thread(work)


async def test_what_governs_is_seen_and_changed(house: House) -> None:
    def work() -> None:
        with made(house) as ann, made(house, "root") as root, made(house, "bob") as bob:
            assert (root.set_mode("ALERT", "drill"), ann.mode()) == ("ALERT", "ALERT")
            root.set_mode("NORMAL")
            assert ann.policy().default
            assert ann.explain("pay", {"amount": 1})["tool"] == "pay"
            asked = ann.call("pay", {"amount": 1}, wait=False)
            bob.approvals.approve(
                asked.approval_id or "", remember={"uses": 2, "pattern": {"amount": "any", "password": "any"}}
            )
            (grant,) = bob.grants.list(tool_name="pay")
            assert bob.grants.get(grant.grant_id) == grant
            assert not bob.grants.revoke(grant.grant_id, "enough").is_live
            lent = ann.delegations.give("bob", seconds=60, tools=["pay"])
            assert bob.delegations.list(giver="ann", delegate="bob") == [lent]
            assert ann.delegations.end(lent.delegation_id, "back").ended_by == "ann"
            kept = ann.call("keep", {"value": 1}, run_id="r1")
            assert [call.tool_id for call in ann.run("r1").tools] == [kept.call_id]
            assert [step.step for step in bob.undo_run("r1", preview=True).steps] != []
            undone = ann.undo(kept.call_id)
            assert (undone.success, undone.unchecked) == (True, True)
            terms = ApprovalTerms(escalate_to=frozenset({"owner"}))
            house.gate.sync.set_policy(Policy(terms=terms, revision="escalates"), by="root")
            late = ann.call("pay", {"amount": 2}, wait=False)
            assert bob.approvals.extend(late.approval_id or "", 60).status == "pending"
            assert bob.approvals.comment(late.approval_id or "", "why?").comments[0].text == "why?"
            assert bob.approvals.escalate(late.approval_id or "", "owner").status == "pending"
            assert bob.approvals.respond(late.approval_id or "", {"use": "less"}).status == "rejected"
            last = ann.call("pay", {"amount": 2}, wait=False)
            assert ann.cancel(last.call_id, "never mind").status is Status.CANCELLED

    await asyncio.to_thread(work)
