"""Calls that whoever made them runs, over a real socket."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.unit.interfaces.client.cable import cable
from tests.unit.interfaces.client.test_calling import question
from tests.unit.interfaces.server.house import House, nothing, open_house

from toolgate import Policy, ToolDefinition, ToolOutput
from toolgate.client import Client, SyncClient
from toolgate.errors import ConflictError, NotAllowedError, UsageError
from toolgate.kernel.call import Status
from toolgate.testing.patience import until

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}}
TOOLS = [
    ToolDefinition("send", SCHEMA, placement="caller"),
    ToolDefinition("pay", SCHEMA, placement="caller", requires_approval=True),
    ToolDefinition("slow", SCHEMA, placement="caller", timeout_seconds=0.2),
    ToolDefinition("ask", {}, nothing, requires_approval=True),
    ToolDefinition("refund", SCHEMA | {"required": ["n"]}, placement="caller", effect_key="refund:{n}"),
]


@pytest.fixture
async def house() -> AsyncIterator[House]:
    async with open_house(tools=TOOLS) as house:
        yield house


async def test_it_runs_at_its_caller_and_once(house: House, ann: Client) -> None:
    given: list[Any] = []

    async def send(arguments: dict[str, Any]) -> Any:
        given.append(arguments)
        return {"sent": arguments["n"]}

    made = await ann.call("send", {"n": 1})
    assert (made.status, made.is_final) == (Status.APPROVED, False)
    results = await asyncio.gather(*(ann.run_here(made.call_id, send) for _ in range(4)))
    assert ([one.data for one in results], given) == ([{"sent": 1}] * 4, [{"n": 1}])
    row = await house.gate.calls.get(made.call_id, project="demo")
    assert (row.status, row.runner) == (Status.COMPLETED, "agent:ann")


async def test_its_effect_has_one_key_that_whoever_claims_it_is_told(ann: Client) -> None:
    made, again = await ann.call("refund", {"n": 1}), await ann.call("refund", {"n": 1})
    assert (again.call_id, again.joined) == (made.call_id, True)
    claimed = await ann.remote.claim(made.call_id, "c" * 24)
    assert claimed.effect_key == "refund:1"
    await ann.remote.report(made.call_id, "done", fence="c" * 24)
    assert (await ann.run_here(again.call_id, lambda _given: "twice")).data == "done"


async def test_without_waiting_it_says_that_a_person_has_yet_to_answer(ann: Client, bob: Client) -> None:
    made = await ann.call("pay", {"n": 1}, wait=False)
    standing = await ann.run_here(made.call_id, lambda given: given, wait=False)
    assert (standing.status, standing.call_id) == (Status.AWAITING_APPROVAL, made.call_id)
    await bob.approvals.approve(await question(bob))
    assert (await ann.run_here(made.call_id, lambda given: given, wait=False)).data == {"n": 1}


async def test_it_waits_for_a_person_and_runs_what_they_made_of_it(ann: Client, bob: Client) -> None:
    made = await ann.call("pay", {"n": 1}, wait=False)
    running = asyncio.create_task(ann.run_here(made.call_id, lambda given: {"paid": given["n"]}))
    await bob.approvals.edit(await question(bob), {"n": 3})
    assert (await running).data == {"paid": 3}


async def test_what_a_function_raises_or_cannot_say_fails(ann: Client) -> None:
    def refuse(_given: dict[str, Any]) -> None:
        raise ValueError("no such account")

    made = await ann.call("send", {"n": 1})
    assert (await ann.run_here(made.call_id, refuse)).error == "no such account"
    made = await ann.call("send", {"n": 1})
    ended = await ann.run_here(made.call_id, lambda _given: object())
    assert (ended.status, "object has no JSON form" in str(ended.error)) == (Status.FAILED, True)


async def test_what_a_function_returns_is_read_as_a_gate_reads_it(house: House, ann: Client) -> None:
    def leave(_given: dict[str, Any]) -> None:
        raise SystemExit(3)

    returned: list[Any] = [
        lambda _given: ToolOutput.fail("no paper"),
        lambda _given: ToolOutput.ok({"k": 1}, artifacts=["a"]),
        lambda _given: float("nan"),
        lambda _given: {1: "one"},
        leave,
    ]
    for function in returned:
        made, kept = await ann.call("send", {"n": 1}), await house.gate.call("send", {"n": 1})
        told, held = await ann.run_here(made.call_id, function), await house.gate.run_here(kept.call_id, function)
        assert (told.status, told.data, told.artifacts) == (held.status, held.data, held.artifacts)
        assert (told.error is None) == (held.error is None)


async def test_one_that_nobody_came_for_is_told_by_its_code(house: House, ann: Client) -> None:
    await house.gate.set_policy(Policy(revision="hasty", approved_for_s=0.05), by="bob")
    await ann.call("send", {"n": 1}, call_id="c1")

    async def is_over() -> bool:
        return (await ann.get("c1")).is_final

    await until(is_over)
    kept = await house.gate.get("c1", project="demo")
    for told in (await ann.get("c1"), await ann.call("send", {"n": 1}, call_id="c1")):
        assert (told.status, told.error_code, told.error) == (Status.TIMEOUT, "unclaimed", kept.error)


async def test_what_cannot_run_it_does_not_use_it_up(ann: Client) -> None:
    made = await ann.call("send", {"n": 1})
    with pytest.raises(UsageError, match="takes a function"):
        await ann.run_here(made.call_id, "send")  # type: ignore[arg-type]  # what somebody may do by mistake
    assert (await ann.get(made.call_id)).status is Status.APPROVED


async def test_a_call_that_runs_at_the_server_is_not_waited_for(ann: Client) -> None:
    made = await ann.call("ask", wait=False)
    assert made.status is Status.AWAITING_APPROVAL
    with pytest.raises(UsageError, match="placement 'inline'"):
        await ann.run_here(made.call_id, lambda _given: "twice")


async def test_a_server_without_its_tool_is_not_asked_for_ever(house: House, ann: Client) -> None:
    made = await ann.call("send", {"n": 1})
    house.gate.registry.discard("send")
    with pytest.raises(ConflictError, match="needs the tool `send`"):
        await ann.run_here(made.call_id, lambda _given: "never")
    assert (await ann.get(made.call_id)).status is Status.APPROVED


@pytest.mark.parametrize(("part", "verb"), [("remote", "claim"), ("", "complete")])
async def test_an_answer_that_was_lost_is_asked_for_again_and_it_runs_once(
    house: House, monkeypatch: pytest.MonkeyPatch, part: str, verb: str
) -> None:
    given: list[Any] = []
    asked: list[Any] = []
    owner = getattr(house.gate, part) if part else house.gate
    real = getattr(owner, verb)

    async def lose_the_first(*args: Any, **options: Any) -> Any:
        asked.append(args)
        done = await real(*args, **options)
        if len(asked) == 1:
            wire.cut()  # it stands, and nobody is told
        return done

    monkeypatch.setattr(owner, verb, lose_the_first)
    async with (
        cable() as wire,
        Client(f"http://127.0.0.1:{wire.port}", token=house.tokens["ann"], project="demo", retry_s=0) as ann,
    ):
        wire.plug(house.url)
        made = await ann.call("send", {"n": 1})
        ended = await ann.run_here(made.call_id, given.append)
    assert (ended.status, given, bool(asked)) == (Status.COMPLETED, [{"n": 1}], True)


async def test_nobody_else_runs_or_reports_it(house: House, ann: Client, bob: Client) -> None:
    made = await ann.call("send", {"n": 1})
    with pytest.raises(NotAllowedError):
        await bob.run_here(made.call_id, lambda _given: "stolen")
    claim = {"claim_id": secrets.token_urlsafe(24)}
    mine, path = house.client("ann"), f"/my/projects/demo/tools/{made.call_id}"
    first, again = [(await mine.post(f"{path}/claim", json=claim)).json() for _ in range(2)]
    assert (first, first["tool_params"]) == (again, {"n": 1})
    assert (await mine.post(f"{path}/claim", json={"claim_id": "x" * 24})).status_code == 409
    assert (await mine.post(f"{path}/claim", json={"claim_id": "x"})).status_code == 400
    for who, status in ((mine, 409), (house.client("bob"), 403)):
        guessed = await who.post(f"{path}/report", json={"status": "completed", "fence": "y" * 24})
        assert guessed.status_code == status
    assert (await mine.post(f"{path}/report", json={"status": "completed"})).status_code == 400
    done = {"status": "completed", "result": 7, "fence": claim["claim_id"]}
    assert (await mine.post(f"{path}/report", json=done)).json()["status"] == "completed"
    assert (await ann.calls.get(made.call_id)).result == 7


async def test_an_agent_that_is_called_like_somebodys_own_runs_nothing_of_theirs(house: House, ann: Client) -> None:
    made = await ann.call("send", {"n": 1})
    assert (await ann.calls.get(made.call_id)).requester == "agent:ann"
    await house.add("agent:ann", "agent")
    path = f"/my/projects/demo/tools/{made.call_id}/claim"
    stolen = await house.client("agent:ann").post(path, json={"claim_id": secrets.token_urlsafe(24)})
    assert stolen.status_code == 403
    assert (await ann.run_here(made.call_id, lambda given: given["n"])).data == 1


async def test_one_who_goes_away_leaves_it_unknown(ann: Client) -> None:
    go = asyncio.Event()

    async def hang(_given: dict[str, Any]) -> None:
        await go.wait()

    made = await ann.call("slow", {"n": 1})
    running = asyncio.create_task(ann.run_here(made.call_id, hang))

    async def is_over() -> bool:
        return (await ann.calls.get(made.call_id)).is_final

    await until(is_over)
    ended = await ann.calls.get(made.call_id)
    assert (ended.internal_status, ended.error_type) == ("UNKNOWN", "unknown")
    running.cancel()


async def test_plain_threads_can_too(house: House) -> None:
    def work() -> Any:
        with SyncClient(house.url, token=house.tokens["ann"], project="demo") as client:
            made = client.call("send", {"n": 4})
            return client.run_here(made.call_id, lambda given: given["n"]).data

    assert await asyncio.to_thread(work) == 4
