"""Many runs in one process and after it: cancelled, taken up again, never twice."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.unit.agent.office import Ears, Office, Puppet, call, open_office

import toolgate
from toolgate import bootstrap
from toolgate.agent import resident
from toolgate.agent.history import ToolsSaid
from toolgate.agent.model import Question, Reply
from toolgate.errors import NotFoundError, StoreError, UsageError
from toolgate.kernel.call import Status
from toolgate.kernel.context import Context
from toolgate.ports.agent import ResidentAgent, Turn
from toolgate.ports.threads import Run, RunStatus
from toolgate.testing.patience import until

RAN: list[int] = []


@toolgate.tool(risk_level="medium")
async def pay(amount: int) -> str:
    RAN.append(amount)
    return f"paid {amount}"


@pytest.fixture(autouse=True)
def nothing_ran() -> None:
    RAN.clear()


def outcome(question: Question) -> Any:
    said = question.said[-1]
    assert isinstance(said, ToolsSaid)
    return said.outcomes[0].value


PAYS = Reply(calls=(call("pay", amount=5),))


def finish(question: Question) -> Reply:
    return Reply(text=f"It said: {outcome(question)}")


async def waiting(office: Office) -> Run:
    run = await office.send("pay")
    await office.ears.next("chat.run", status="waiting")
    return run


async def test_a_waiting_run_is_taken_up_by_the_next_process_exactly_once(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/t.db"
    async with open_office(Puppet(PAYS), [pay], url=url, threads=bootstrap.threads(url)) as first:
        run = await waiting(first)
    async with open_office(Puppet(finish), [pay], url=url, threads=bootstrap.threads(url)) as second:
        assert await second.status(run) is RunStatus.WAITING
        await second.approve()
        assert (await second.ears.next("chat.message", final=True))["answer"] == "It said: paid 5"
    assert RAN == [5]


async def test_two_servers_on_one_file_take_it_up_once(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/t.db"
    ears, models = Ears(), (Puppet(PAYS, finish), Puppet(finish))
    async with (
        open_office(models[0], [pay], url=url, threads=bootstrap.threads(url), ears=ears) as one,
        open_office(models[1], [pay], url=url, threads=bootstrap.threads(url), ears=ears),
    ):
        await waiting(one)
        await one.approve()
        await ears.next("chat.message", final=True)
        assert [name for name, data in ears.heard if name == "chat.message" and data["final"]] == []
    assert RAN == [5]
    assert len(models[0].asked) + len(models[1].asked) == 2


async def test_a_decision_made_while_nobody_was_there_is_found_at_the_start(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/t.db"
    async with open_office(Puppet(PAYS), [pay], url=url, threads=bootstrap.threads(url)) as first:
        await waiting(first)
    async with toolgate.open(url) as other:
        [approval] = await other.pending()
        await other.decide(approval.id, "deny", by="bob", reason="no")
    async with open_office(Puppet(finish), [pay], url=url, threads=bootstrap.threads(url)) as second:
        assert "rejected" in (await second.ears.next("chat.message", final=True))["answer"]
    assert RAN == []


async def test_a_run_whose_process_went_away_while_it_asked_the_model_is_taken_up(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/t.db"
    never = asyncio.Event()

    class Silent(Puppet):
        async def answer(self, question: Question, hear: Any) -> Reply:
            self.asked.append(question)
            await never.wait()
            raise AssertionError

    silent = Silent(Reply())
    async with open_office(silent, [pay], url=url, threads=bootstrap.threads(url)) as first:
        run = await first.send("hello")
        await until(lambda: bool(silent.asked))
        assert await first.status(run) is RunStatus.RUNNING
    async with open_office(Puppet(Reply(text="hi")), [pay], url=url, threads=bootstrap.threads(url)) as second:
        assert (await second.ears.next("chat.message", final=True))["answer"] == "hi"


async def test_an_account_that_may_not_ask_any_more_ends_its_run() -> None:
    ears = Ears()
    async with open_office(Puppet(PAYS, finish), [pay], ears=ears) as office:
        run = await waiting(office)
        ears.strangers.add("ann")
        await office.approve()
        assert "may not ask" in (await ears.next("chat.message", final=True))["content"]
        assert await office.status(run) is RunStatus.STOPPED


async def test_a_cancelled_run_ends_with_the_calls_it_waits_for() -> None:
    async with open_office(Puppet(PAYS, Reply(text="new")), [pay]) as office:
        run = await waiting(office)
        ended = await office.agent.cancel("p", run.id, by="ann")
        assert (ended.status, ended.error) == (RunStatus.CANCELLED, "cancelled by ann")
        assert await office.gate.pending() == []
        assert (await office.gate.get(f"{run.id}.1.0", project="p")).status is Status.CANCELLED
        assert (await office.agent.cancel("p", run.id, by="ann")).status is RunStatus.CANCELLED
        assert (await office.answer("go on"))["answer"] == "new"
        told = office.model.asked[-1].said
        assert isinstance(told[2], ToolsSaid)
        assert told[2].outcomes[0].status == "cancelled"
        with pytest.raises(NotFoundError):
            await office.agent.cancel("p", "nothing", by="ann")


async def test_a_run_that_is_being_worked_on_can_be_cancelled() -> None:
    began, never = asyncio.Event(), asyncio.Event()

    @toolgate.tool(effects="read")
    async def stall() -> None:
        began.set()
        await never.wait()

    async with open_office(Puppet(Reply(calls=(call("stall"),))), [stall]) as office:
        run = await office.send("stall")
        await began.wait()
        assert (await office.agent.cancel("p", run.id, by="ann")).status is RunStatus.CANCELLED
        result = await office.gate.wait(f"{run.id}.1.0", project="p")
        assert result.status is Status.CANCELLED
        await until(lambda: not office.agent.at_work)
        assert await office.status(run) is RunStatus.CANCELLED


async def test_a_run_cancelled_at_another_server_makes_no_further_calls(tmp_path: Path) -> None:
    begun, let_go, wrote = asyncio.Event(), asyncio.Event(), list[str]()

    @toolgate.tool(risk_level="low")
    async def put(path: str, text: str) -> str:
        begun.set()
        await let_go.wait()
        wrote.append(text)
        return text

    url = f"sqlite:///{tmp_path}/t.db"
    model = Puppet(Reply(calls=(call("put", path="a.txt", text="one"), call("put", path="a.txt", text="two"))))
    async with (
        open_office(model, [put], url=url, threads=bootstrap.threads(url)) as one,
        open_office(Puppet(Reply(text="none")), [put], url=url, threads=bootstrap.threads(url)) as other,
    ):
        run = await one.send("write")
        await begun.wait()
        await other.agent.cancel("p", run.id, by="ann")
        let_go.set()
        await until(lambda: one.agent.at_work == 0)
        assert await one.status(run) is RunStatus.CANCELLED
        with pytest.raises(NotFoundError):
            await one.gate.calls.get(f"{run.id}.1.1", project="p")
    assert "two" not in wrote


async def test_a_call_id_somebody_else_took_is_not_used() -> None:
    taken: list[str] = []

    async def take(office: Office, run: Run) -> None:
        for step in (1, 2):
            context = Context(principal="agent:eve", project="p")
            amount = 5 if step == 1 else 6
            result = await office.gate.call(
                "pay", {"amount": amount}, context=context, call_id=f"{run.id}.{step}.0", wait=False
            )
            taken.append(result.call_id)

    gate_open = asyncio.Event()

    class Slow(Puppet):
        async def answer(self, question: Question, hear: Any) -> Reply:
            await gate_open.wait()
            return await super().answer(question, hear)

    async with open_office(Slow(PAYS, PAYS, Reply(text="ok")), [pay]) as office:
        run = await office.send("pay")
        await take(office, run)
        gate_open.set()
        told = await office.ears.next("chat.message", final=True)
        assert ["somebody else" in str(one["result"]).lower() for one in told["tool_results"]] == [True, True]
    assert RAN == []


async def test_a_model_that_breaks_ends_its_run_without_its_text() -> None:
    async with open_office(Puppet(RuntimeError("password=hunter22")), [pay]) as office:
        run = await office.send("go")
        told = await office.ears.next("chat.error")
        assert (told["code"], "hunter22" in str(told)) == ("agent_failed", False)
        assert await office.status(run) is RunStatus.FAILED


async def test_a_store_that_fails_leaves_the_run_for_later(monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_office(Puppet(Reply(text="x")), [pay]) as office:
        save, count = office.threads.save, 0

        async def fail(*args: Any, **options: Any) -> Any:
            nonlocal count
            count += 1
            if count > 1:
                raise StoreError("full")
            return await save(*args, **options)

        monkeypatch.setattr(resident, "SWEEP_S", 0.02)
        monkeypatch.setattr(office.threads, "save", fail)
        run = await office.send("go")
        assert (await office.ears.next("chat.error"))["code"] == "store_unavailable"
        assert await office.status(run) is RunStatus.RUNNING
        monkeypatch.setattr(office.threads, "save", save)
        await office.agent._look_after()
        assert (await office.ears.next("chat.message", final=True))["answer"] == "x"


async def test_a_lost_wake_up_is_found_by_looking(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resident, "SWEEP_S", 0.05)
    async with open_office(Puppet(PAYS, finish), [pay]) as office:
        assert office.agent._leave is not None
        office.agent._leave()
        office.agent._leave = None
        await waiting(office)
        await office.approve()
        assert (await office.ears.next("chat.message", final=True))["answer"] == "It said: paid 5"
    assert RAN == [5]


async def test_looking_goes_on_when_it_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resident, "SWEEP_S", 0.01)
    async with open_office(Puppet(PAYS, finish), [pay]) as office:
        tries = 0
        look = office.threads.orphans

        async def fail(**options: Any) -> Any:
            nonlocal tries
            tries += 1
            if tries < 3:
                raise StoreError("busy")
            return await look(**options)

        monkeypatch.setattr(office.threads, "orphans", fail)
        await until(lambda: tries >= 3)


async def test_an_agent_that_did_not_begin_takes_nothing() -> None:
    async with toolgate.open("memory://") as gate:
        agent = resident.Resident(gate, bootstrap.threads("memory://"), Puppet(Reply()))
        assert isinstance(agent, ResidentAgent)
        with pytest.raises(UsageError):
            await agent.accept(Turn(message_id="m", session_id="s", content="x", context=Context()))
        await agent.close()


async def test_two_hundred_waiting_runs_have_no_tasks() -> None:
    async with open_office(Puppet(PAYS), [pay]) as office:
        before = len(asyncio.all_tasks())
        for number in range(200):
            await office.send("pay", session=f"s{number}")
        await until(lambda: not office.agent.at_work)
        assert len(asyncio.all_tasks()) <= before
        assert len(await office.gate.pending()) == 200
