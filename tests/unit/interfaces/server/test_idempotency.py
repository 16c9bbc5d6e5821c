"""The same request with the same key is carried out once and answered alike; without one, the first decision stands."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from starlette.responses import Response
from tests.unit.interfaces.server.house import TOOLS, House, P, execute, open_house

import toolgate
from toolgate.interfaces.server.idempotency import Repeats
from toolgate.interfaces.server.problems import ProblemError
from toolgate.testing.patience import PATIENCE_S

KEY = {"Idempotency-Key": "0b7c-1"}


async def ask(house: House, amount: int = 1) -> str:
    body = execute("pay", {"amount": amount}, wait=False)
    asked: str = (await house.client("bot").post(f"{P}/tools/execute", json=body)).json()["approval_id"]
    return asked


async def test_a_decision_sent_again_with_its_key_gets_the_first_answer(house: House) -> None:
    path, ann = f"{P}/approvals/{await ask(house)}/approve", house.client("ann")
    first = await ann.post(path, json={"reason": "fine"}, headers=KEY)
    again = await ann.post(path, json={"reason": "fine"}, headers=KEY)
    assert (first.status_code, again.status_code, again.content) == (200, 200, first.content)
    assert (first.headers.get("idempotency-replayed"), again.headers["idempotency-replayed"]) == (None, "true")
    events = await house.gate.events(project="demo")
    assert sum(event.type == "approval.decided" for event in events) == 1


async def test_without_a_key_a_second_decision_is_told_which_one_stands(house: House) -> None:
    path, ann = f"{P}/approvals/{await ask(house)}", house.client("ann")
    await ann.post(f"{path}/approve", json={"reason": "fine"})
    for who in ("ann", "bob"):
        late = await house.client(who).post(f"{path}/reject")
        told = late.json()["decided"]
        assert (late.status_code, told["status"], told["decided_by"]) == (409, "approved", "ann")
        assert (told["reason"], told["votes"]) == ("fine", ["ann"])
        assert datetime.fromisoformat(told["decided_at"]) <= datetime.now(UTC)


async def test_a_refusal_is_given_again_too(house: House) -> None:
    path = f"{P}/approvals/{await ask(house)}/approve"
    await house.client("ann").post(path)
    bob = house.client("bob")
    answers = [await bob.post(path, headers=KEY) for _ in range(2)]
    assert [one.status_code for one in answers] == [409, 409]
    assert answers[0].json() == answers[1].json()


@pytest.mark.parametrize("change", ["body", "path", "query"])
async def test_a_key_stands_for_one_request(house: House, change: str) -> None:
    path, ann = f"{P}/approvals/{await ask(house)}/approve", house.client("ann")
    other = f"{P}/approvals/{await ask(house, 2)}/approve" if change == "path" else path
    await ann.post(path, json={}, headers=KEY)
    body = {"reason": "x"} if change == "body" else {}
    reused = await ann.post(other + ("?a=1" if change == "query" else ""), json=body, headers=KEY)
    assert (reused.status_code, reused.json()["code"]) == (422, "key_reused")
    assert "another request" in reused.json()["detail"]


async def test_keys_of_different_accounts_have_nothing_to_do_with_each_other(house: House) -> None:
    path = f"{P}/approvals/{await ask(house)}/comment"
    for who in ("ann", "bob"):
        assert (await house.client(who).post(path, json={"text": who}, headers=KEY)).status_code == 200
    shown = (await house.client("ann").get(path.removesuffix("/comment"))).json()["approval"]
    assert [note["by"] for note in shown["comments"]] == ["ann", "bob"]


@pytest.mark.parametrize("key", ["", "a" * 201, "caf\u00e9", "a\tb"])
async def test_a_key_that_cannot_be_one_is_refused_and_nothing_is_done(house: House, key: str) -> None:
    path = f"{P}/approvals/{await ask(house)}/approve"
    headers = {b"Idempotency-Key": key.encode("latin-1")}
    refused = await house.client("ann").post(path, headers=headers)
    assert (refused.status_code, refused.json()["code"]) == (400, "invalid_key")
    assert len(await house.gate.pending(project="demo")) == 1


async def test_every_post_takes_a_key() -> None:
    ran: list[int] = []

    @toolgate.tool(effects="irreversible", risk_level="low")
    async def count(step: int) -> int:
        """Count."""
        ran.append(step)
        return len(ran)

    async with open_house(tools=[*TOOLS, count]) as house:
        bot = house.client("bot")
        answers = [await bot.post(f"{P}/tools/execute", json=execute("count", {"step": 1}), headers=KEY) for _ in "ab"]
        assert (ran, answers[0].content) == ([1], answers[1].content)
        ann = house.client("ann")
        sent = [await ann.post(f"{P}/tickets", json={}, headers=KEY) for _ in "ab"]
        assert (sent[0].status_code, sent[0].json()) == (201, sent[1].json())
        document = (await ann.get("/openapi.json")).json()
        for path, methods in document["paths"].items():
            if "post" in methods and methods["post"].get("security") != []:
                names = [one["name"] for one in methods["post"]["parameters"]]
                assert "Idempotency-Key" in names, path


async def test_a_call_is_asked_for_once_though_the_server_was_started_again(tmp_path: Path) -> None:
    ran: list[int] = []

    @toolgate.tool(effects="irreversible", risk_level="low")
    async def count(step: int) -> int:
        """Count."""
        ran.append(step)
        return len(ran)

    answers = []
    for _ in range(2):
        async with open_house(f"sqlite:///{tmp_path / 'toolgate.db'}", tools=[count]) as house:
            body = execute("count", {"step": 1})
            answers.append(await house.client("bot").post(f"{P}/tools/execute", json=body, headers=KEY))
            other = await house.client("ann").post(f"{P}/tools/execute", json=body, headers={"Idempotency-Key": "own"})
            assert other.status_code == 200
    assert (ran, [one.json()["result"] for one in answers]) == ([1, 1], [1, 1])
    assert answers[0].json()["tool_id"] == answers[1].json()["tool_id"]
    async with open_house(f"sqlite:///{tmp_path / 'toolgate.db'}", tools=[count]) as house:
        reused = await house.client("bot").post(f"{P}/tools/execute", json=execute("count", {"step": 2}), headers=KEY)
        assert reused.status_code == 409
    assert ran == [1, 1]


async def test_a_ticket_is_given_again_only_to_the_token_it_was_made_with(house: House) -> None:
    first = await house.client("ann").post(f"{P}/tickets", json={}, headers=KEY)
    await house.add("ann", "person", abilities=frozenset({toolgate.ports.directory.Ability.READ}))
    other = await house.client("ann").post(f"{P}/tickets", json={}, headers=KEY)
    assert (first.status_code, other.status_code) == (201, 422)


async def test_a_request_under_way_is_waited_for() -> None:
    began, go = asyncio.Event(), asyncio.Event()

    @toolgate.tool(effects="irreversible", risk_level="low")
    async def slow() -> str:
        """Take a while."""
        began.set()
        await go.wait()
        return "done"

    async with open_house(tools=[slow]) as house:
        bot, body = house.client("bot"), execute("slow")
        first = asyncio.create_task(bot.post(f"{P}/tools/execute", json=body, headers=KEY))
        await asyncio.wait_for(began.wait(), PATIENCE_S)
        second = asyncio.create_task(house.client("bot").post(f"{P}/tools/execute", json=body, headers=KEY))
        third = await bot.post(f"{P}/tools/execute", json=execute("slow", wait=False), headers=KEY)
        assert third.status_code == 422
        go.set()
        assert (await first).content == (await second).content
        assert len((await bot.get(f"{P}/tools")).json()["tools"]) == 1


class Counting:
    """Answers with how often it was asked."""

    def __init__(self, status: int = 200, body: bytes = b"") -> None:
        self.times, self.status, self.body = 0, status, body

    async def __call__(self) -> Response:
        self.times += 1
        return Response(self.body or str(self.times).encode(), self.status)


class Clock:
    def __init__(self) -> None:
        self.at = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.at


def repeats(**more: Any) -> Repeats:
    return Repeats(**{"now": Clock(), "wait_s": PATIENCE_S, **more})


async def test_keys_are_forgotten_after_a_time() -> None:
    clock, run = Clock(), Counting()
    kept = repeats(now=clock, kept_s=60)
    assert (await kept.once("ann", "k", b"1", run)).body == b"1"
    clock.at += timedelta(seconds=59)
    assert (await kept.once("ann", "k", b"1", run)).body == b"1"
    clock.at += timedelta(seconds=2)
    assert (await kept.once("ann", "k", b"2", run)).body == b"2"


async def test_only_so_many_keys_of_an_account_are_kept_and_others_keep_theirs() -> None:
    kept, run = repeats(most_keys=2), Counting()
    await kept.once("bob", "k", b"1", run)
    for key in "abc":
        await kept.once("ann", key, b"1", run)
    assert (await kept.once("bob", "k", b"1", run)).body == b"1"
    assert (await kept.once("ann", "c", b"1", run)).body == b"4"
    assert (await kept.once("ann", "a", b"1", run)).body == b"5"


async def test_answers_are_kept_up_to_a_size() -> None:
    kept, large = repeats(most_bytes=10, most_bytes_in_all=15), Counting(body=b"x" * 11)
    await kept.once("ann", "large", b"1", large)
    with pytest.raises(ProblemError, match="too large to be kept"):
        await kept.once("ann", "large", b"1", large)
    runs = {name: Counting(body=b"x" * 6) for name in ("first", "second", "third")}
    for name in ("first", "second"):
        await kept.once("ann", name, b"1", runs[name])
    await kept.once("ann", "second", b"1", runs["second"])
    await kept.once("ann", "first", b"1", runs["first"])
    assert (large.times, runs["first"].times, runs["second"].times) == (1, 2, 1)
    for account in ("bob", "cay"):
        await kept.once(account, "k", b"1", runs["third"])
    await kept.once("bob", "k", b"1", runs["third"])
    await kept.once("ann", "first", b"1", runs["first"])
    assert (runs["first"].times, runs["third"].times) == (3, 2)


@pytest.mark.parametrize("status", [500, 503, 429])
async def test_what_passes_is_not_kept(status: int) -> None:
    kept, run = repeats(), Counting(status)
    for _ in range(2):
        await kept.once("ann", "k", b"1", run)
    assert run.times == 2


async def test_one_under_way_for_too_long_is_a_conflict_and_one_that_was_cut_off_is_carried_out_again() -> None:
    kept, go, begun = repeats(wait_s=0.01, most_keys=1), asyncio.Event(), asyncio.Event()

    async def never() -> Response:
        begun.set()
        await go.wait()
        return Response(b"late")

    first = asyncio.create_task(kept.once("ann", "k", b"1", never))
    await begun.wait()
    with pytest.raises(ProblemError, match="still being carried out") as caught:
        await kept.once("ann", "k", b"1", Counting())
    assert (caught.value.status, caught.value.code) == (409, "in_progress")
    with pytest.raises(ProblemError, match="under way"):
        await kept.once("ann", "other", b"1", Counting())
    first.cancel()
    await asyncio.wait({first})
    assert (await kept.once("ann", "k", b"1", Counting())).body == b"1"
