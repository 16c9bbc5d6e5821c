"""An agent that makes a call again: it waits for and reports the call that it is, and pays once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.unit.agent.office import Office, Puppet, call, open_office

import toolgate
from toolgate import bootstrap
from toolgate.agent.history import ToolsSaid
from toolgate.agent.model import Question, Reply
from toolgate.kernel.context import Context
from toolgate.ports.store import CallQuery
from toolgate.ports.threads import Run, RunStatus
from toolgate.testing.patience import until

RAN: list[int] = []
ANN = Context(principal="agent:ann", user="ann", project="p", session_id="other")


@toolgate.tool(effects="irreversible", risk_level="medium", effect_key="pay:{bill}")
async def pay(bill: str, amount: int = 5) -> str:
    """Pay a bill."""
    RAN.append(amount)
    return f"paid {amount}"


@toolgate.tool(effects="irreversible", risk_level="medium")
async def send(to: str) -> str:
    """Send a parcel."""
    RAN.append(1)
    return f"sent to {to}"


TOOLS = [pay, send]
PAYS, SENDS = Reply(calls=(call("pay", bill="b1"),)), Reply(calls=(call("send", to="cid"),))


@pytest.fixture(autouse=True)
def nothing_ran() -> None:
    RAN.clear()


def outcomes(question: Question) -> list[Any]:
    said = question.said[-1]
    assert isinstance(said, ToolsSaid)
    return [one.told for one in said.outcomes]


def finish(question: Question) -> Reply:
    return Reply(text=f"It said: {outcomes(question)}")


async def run_of(office: Office, run: Run) -> Run:
    found = await office.threads.run("p", run.id)
    assert found is not None
    return found


async def test_a_run_waits_for_the_call_it_joined_and_reports_it() -> None:
    async with open_office(Puppet(PAYS, finish), TOOLS) as office:
        first = await office.gate.call("pay", {"bill": "b1"}, context=ANN, wait=False)
        run = await office.send("pay")
        waits = await office.ears.next("chat.run", status="waiting")
        assert waits["waiting_for"] == [first.call_id] == list((await run_of(office, run)).waiting)
        assert (await office.ears.next("chat.tool"))["joined"] == first.call_id
        await office.approve()
        told = await office.ears.next("chat.message", final=True)
        assert "paid 5" in told["answer"]
        assert "nothing ran a second time" in told["answer"]
        assert [one["joined"] for one in told["tool_results"]] == [first.call_id]
        assert (RAN, len(await office.gate.calls.list(CallQuery(project="p")))) == ([5], 1)


async def test_a_run_that_is_taken_up_again_joins_the_same_call_again(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/t.db"
    async with open_office(Puppet(PAYS), TOOLS, url=url, threads=bootstrap.threads(url)) as office:
        await office.gate.call("pay", {"bill": "b1"}, context=ANN, wait=False, call_id="first")
        run = await office.send("pay")
        await office.ears.next("chat.run", status="waiting")
    async with open_office(Puppet(finish), TOOLS, url=url, threads=bootstrap.threads(url)) as office:
        await office.approve("deny", reason="too dear")  # frees the key: only the id still says which call it was
        await until(lambda: _is_over(office, run))
        [said] = [one for one in office.model.asked[-1].said if isinstance(one, ToolsSaid)]
        assert (said.outcomes[0].joined, said.outcomes[0].status) == ("first", "rejected")
        assert RAN == []


async def _is_over(office: Office, run: Run) -> bool:
    return await office.status(run) is RunStatus.COMPLETED


async def test_another_effect_under_the_same_key_is_told_to_the_model() -> None:
    model = Puppet(Reply(calls=(call("pay", bill="b1", amount=6),)), finish)
    async with open_office(model, TOOLS) as office:
        first = await office.gate.call("pay", {"bill": "b1"}, context=ANN, wait=False)
        await office.answer("pay")
        [value] = outcomes(model.asked[-1])
        assert (value["status"], value["code"], first.call_id in value["error"]) == ("denied", "effect_held", True)
        assert "another way" in value["advice"]


async def test_two_alike_calls_of_one_turn_are_two_and_the_turn_is_their_step() -> None:
    model = Puppet(Reply(calls=(call("send", to="cid"), call("send", to="cid"))), finish)
    async with open_office(model, TOOLS) as office:
        run = await office.send("send two")
        await office.ears.next("chat.run", status="waiting")
        await office.approve()
        await office.ears.next("chat.message", final=True)
        rows = await office.gate.calls.list(CallQuery(project="p"))
        assert ([row.context.step_id for row in rows], RAN) == ([f"{run.id}.1"] * 2, [1, 1])


async def test_the_same_call_after_a_no_gets_the_same_no() -> None:
    async with open_office(Puppet(SENDS, SENDS, finish), TOOLS) as office:
        run = await office.send("send")
        await office.ears.next("chat.run", status="waiting")
        await office.approve("deny", reason="not now")
        told = await office.ears.next("chat.message", final=True)
        assert ([one["status"] for one in told["tool_results"]], RAN) == (["rejected"] * 2, [])
        assert told["tool_results"][1]["joined"] == f"{run.id}.1.0"
