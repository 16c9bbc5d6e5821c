"""One run from message to answer: calls, outcomes, limits, and what people are told."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.unit.agent.office import Puppet, call, open_office, raw_call

import toolgate
from toolgate.agent.discretion import Discretion, Pieces
from toolgate.agent.history import AgentSaid, PersonSaid, ToolsSaid
from toolgate.agent.limits import Limits
from toolgate.agent.model import Question, Reply
from toolgate.errors import ConflictError, ModelError
from toolgate.kernel.text.masking import Masker
from toolgate.ports.store import CallQuery
from toolgate.ports.threads import RunStatus, Usage
from toolgate.testing.patience import PATIENCE_S, until

SECRET = "tulip-9-forest"


@toolgate.tool(effects="read")
async def add(left: int, right: int) -> int:
    return left + right


@toolgate.tool(effects="read")
async def secrets() -> dict[str, str]:
    return {"password": SECRET}


@toolgate.tool(risk_level="medium")
async def pay(amount: int) -> str:
    return f"paid {amount}"


@toolgate.tool
async def explode() -> None:
    raise RuntimeError("kaboom")


TOOLS = [add, secrets, pay, explode]


def last_outcomes(question: Question) -> list[Any]:
    said = question.said[-1]
    assert isinstance(said, ToolsSaid)
    return [outcome.value for outcome in said.outcomes]


async def test_a_message_becomes_calls_and_an_answer() -> None:
    model = Puppet(
        Reply(text="Let me see.", calls=(call("add", left=1, right=2), call("add", left=3, right=4))),
        lambda question: Reply(text=f"They are {last_outcomes(question)}."),
    )
    async with open_office(model, TOOLS) as office:
        told = await office.answer("add them")
        assert (told["answer"], told["analysis"], told["status"]) == ("They are [3, 7].", "Let me see.", "completed")
        assert [one["result"] for one in told["tool_results"]] == [3, 7]
        assert office.ears.text() == "Let me see. They are [3, 7]. "
        states = [data["status"] for name, data in office.ears.heard if name == "chat.tool"]
        assert states == ["completed", "completed"]
        [offered] = {tuple(tool.name for tool in one.tools) for one in model.asked}
        assert set(offered) == {"add", "secrets", "pay", "explode"}
        assert [call.context.run_id for call in await office.gate.calls.list(CallQuery(project="p"))] == [
            told["run_id"]
        ] * 2


async def test_a_run_waits_for_a_person_without_a_task_and_goes_on() -> None:
    model = Puppet(Reply(calls=(call("pay", amount=5),)), lambda question: Reply(text=str(last_outcomes(question)[0])))
    async with open_office(model, TOOLS) as office:
        run = await office.send("pay")
        await office.ears.next("chat.run", status="waiting")
        await until(lambda: not office.agent.at_work)
        assert await office.status(run) is RunStatus.WAITING
        with pytest.raises(ConflictError):
            await office.send("and more")
        await office.approve()
        assert (await office.ears.next("chat.message", final=True))["answer"] == "paid 5"
        assert await office.status(run) is RunStatus.COMPLETED


@pytest.mark.parametrize(
    ("decision", "word", "advice"),
    [("deny", "rejected", "said no"), ("approve", None, None)],
)
async def test_what_people_decide_is_told(decision: str, word: str | None, advice: str | None) -> None:
    model = Puppet(Reply(calls=(call("pay", amount=5),)), Reply(text="ok"))
    async with open_office(model, TOOLS) as office:
        run = await office.send("pay")
        await office.ears.next("chat.run", status="waiting")
        await office.approve(decision, reason="too dear")
        await office.ears.next("chat.message", final=True)
        [value] = last_outcomes(model.asked[-1])
        if word is None:
            assert value == "paid 5"
        else:
            assert (value["status"], "too dear" in value["error"], str(advice) in value["advice"]) == (word, True, True)
        assert await office.status(run) is RunStatus.COMPLETED


async def test_edited_arguments_and_answers_are_told() -> None:
    model = Puppet(Reply(calls=(call("pay", amount=5), call("pay", amount=6))), Reply(text="ok"))
    async with open_office(model, TOOLS) as office:
        await office.send("pay")
        await office.ears.next("chat.run", status="waiting")
        first, second = await office.gate.pending()
        await office.gate.approvals.edit(first.id, {"amount": 1}, by="bob")
        await office.gate.approvals.respond(second.id, "use the card", by="bob")
        await office.ears.next("chat.message", final=True)
        edited, answered = last_outcomes(model.asked[-1])
        assert (edited["result"], edited["arguments"]) == ("paid 1", {"amount": 1})
        assert (answered["answer"], "instead" in answered["advice"]) == ("use the card", True)


async def test_what_goes_wrong_is_told_to_the_model() -> None:
    calls = (
        raw_call("add", '{"left": 1'),
        call("add", left="one", right=2),
        call("nothing"),
        call("explode"),
        call("banned"),
    )
    model = Puppet(Reply(calls=calls), Reply(text="ok"))
    banned = toolgate.ToolDefinition("banned", {}, lambda _given: None, allowed_behaviors=("never",))
    async with open_office(model, [*TOOLS, banned]) as office:
        told = await office.answer("do")
        values = last_outcomes(model.asked[-1])
        assert [value["code"] for value in values] == [
            "invalid_arguments", "invalid_arguments", "tool_not_found", "execution_failed", "denied",
        ]  # fmt: skip
        assert all(value["advice"] for value in values)
        assert "banned" not in [tool.name for tool in model.asked[0].tools]
        assert [one["status"] for one in told["tool_results"]] == ["failed"] * 4 + ["denied"]


async def test_an_expired_question_is_told() -> None:
    brief = toolgate.ToolDefinition(
        "brief", {}, lambda _given: "done", requires_approval=True, approval_timeout_seconds=0.05
    )
    model = Puppet(Reply(calls=(call("brief"),)), Reply(text="ok"))
    async with open_office(model, [brief]) as office:
        await office.answer("do")
        [value] = last_outcomes(model.asked[-1])
        assert (value["status"], "Nobody answered" in value["advice"]) == ("timeout", True)


async def test_secrets_reach_the_model_and_nobody_else() -> None:
    model = Puppet(
        Reply(calls=(call("secrets"),)), lambda question: Reply(text=f"The password is {last_outcomes(question)}")
    )
    async with open_office(model, TOOLS) as office:
        told = await office.answer("my token is ghp_abcdefghijklmnopqrstuvwxyz0123456789, look")
        assert last_outcomes(model.asked[-1]) == [{"password": SECRET}]
        kept = await office.threads.messages("p", "ann", "s1")
        shown = str([message.shown for message in kept]) + str(told) + str(office.ears.heard)
        shown += str(await office.threads.conversations("p", "ann"))
        assert SECRET not in shown
        assert "ghp_abc" not in shown
        assert any(SECRET.encode() in message.content for message in kept)


@toolgate.tool(effects="read")
async def echo(text: str) -> str:
    return text


async def test_a_hidden_result_stays_hidden_in_later_results_and_names() -> None:
    model = Puppet(
        Reply(calls=(call("secrets"),)), Reply(calls=(call("echo", text=SECRET), call(SECRET))), Reply(text="done")
    )
    async with open_office(model, [*TOOLS, echo]) as office:
        told = await office.answer("look")
        kept = [one.shown for one in await office.threads.messages("p", "ann", "s1")]
        assert [one["status"] for one in told["tool_results"]] == ["completed", "completed", "failed"]
        assert SECRET not in str(told["tool_results"])
        assert SECRET not in str(kept)
        assert SECRET not in str(office.ears.heard)


async def test_independent_calls_run_together_and_dependent_ones_in_order() -> None:
    order: list[str] = []
    together = asyncio.Barrier(2)

    @toolgate.tool(effects="read")
    async def meet(name: str) -> None:
        async with asyncio.timeout(PATIENCE_S):
            await together.wait()

    @toolgate.tool
    async def write(path: str, content: str) -> None:
        await asyncio.sleep(0)
        order.append(content)

    calls = (
        call("meet", name="a"),
        call("meet", name="a"),
        call("write", path="f", content="1"),
        call("write", path="f", content="2"),
    )
    async with open_office(Puppet(Reply(calls=calls), Reply(text="ok")), [meet, write]) as office:
        assert (await office.answer("do"))["status"] == "completed"
    assert order == ["1", "2"]


async def test_a_later_call_waits_for_the_one_before_it() -> None:
    @toolgate.tool(requires_approval=True)
    async def write(path: str) -> str:
        return "written"

    @toolgate.tool(effects="read")
    async def read(path: str) -> str:
        return "read"

    model = Puppet(Reply(calls=(call("write", path="f"), call("read", path="f"))), Reply(text="ok"))
    async with open_office(model, [write, read]) as office:
        run = await office.send("do")
        assert (await office.ears.next("chat.run", status="waiting"))["waiting_for"] == [f"{run.id}.1.0"]
        await office.approve()
        await office.ears.next("chat.message", final=True)
        assert last_outcomes(model.asked[-1]) == ["written", "read"]


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        (Limits(steps=2), "2 steps"),
        (Limits(seconds=0.000001), "seconds"),
        (Limits(tokens=10), "tokens"),
        (Limits(cost=0.5), "cost 1.0"),
        (Limits(repeats=2), "same call 2 times"),
    ],
)
async def test_a_limit_stops_the_run_and_says_so(limits: Limits, reason: str) -> None:
    usage = Usage(input_tokens=5, output_tokens=5, cost=1.0)
    model = Puppet(lambda _question: Reply(calls=(call("add", left=1, right=1),), usage=usage))
    async with open_office(model, TOOLS, limits=limits) as office:
        told = await office.answer("go round")
        assert (told["status"], reason in told["content"]) == ("stopped", True)
        [kept] = [one for one in await office.threads.messages("p", "ann", "s1") if one.shown.get("notice")]
        assert reason in kept.shown["text"]
        after = await office.answer("and now", session="s1")
        assert after["status"] == "stopped"
        assert not any(isinstance(one, AgentSaid) and one.is_notice for one in model.asked[-1].said)


async def test_a_model_that_goes_round_is_warned_before_it_is_stopped() -> None:
    model = Puppet(lambda _question: Reply(calls=(call("add", left=1, right=1),)))
    async with open_office(model, TOOLS, limits=Limits(repeats=4)) as office:
        told = await office.answer("go round")
        assert len(told["tool_results"]) == 4
        said = model.asked[-1].said[-1]
        assert isinstance(said, ToolsSaid)
        assert "before" in said.outcomes[0].told["note"]


async def test_only_the_call_that_was_made_before_is_said_to_be() -> None:
    fresh = iter(range(10))
    model = Puppet(
        *[lambda _: Reply(calls=(call("add", left=1, right=1), call("add", left=2, right=next(fresh))))] * 2,
        Reply(text="ok"),
    )
    async with open_office(model, TOOLS) as office:
        await office.answer("go round")
        said = model.asked[-1].said[-1]
        assert isinstance(said, ToolsSaid)
        assert [outcome.note is not None for outcome in said.outcomes] == [True, False]


async def test_a_limit_of_money_holds_where_the_price_is_not_known() -> None:
    usage = Usage(input_tokens=5, output_tokens=5, cost=None)
    model = Puppet(Reply(calls=(call("add", left=1, right=1),), usage=usage), Reply(text="done", usage=usage))
    async with open_office(model, TOOLS, limits=Limits(cost=0.5)) as office:
        told = await office.answer("spend")
        assert (told["status"], "price of its model is not known" in told["content"]) == ("stopped", True)
        assert len(model.asked) == 1


async def test_a_model_that_takes_too_long_is_given_up() -> None:
    class Slow(Puppet):
        async def answer(self, question: Question, hear: Any) -> Reply:
            await asyncio.Event().wait()
            raise AssertionError

    async with open_office(Slow(Reply()), TOOLS, limits=Limits(seconds=0.15)) as office:
        told = await office.answer("go")
        assert (told["status"], "seconds" in told["content"]) == ("stopped", True)


async def test_a_model_that_is_busy_is_asked_again_and_one_that_refuses_is_not() -> None:
    busy = ModelError("busy", reason="overloaded", retry_after_s=0.0)
    async with open_office(Puppet(busy, Reply(text="here")), TOOLS) as office:
        assert (await office.answer("go"))["answer"] == "here"
        assert (await office.ears.next("chat.retry"))["error"] == "busy"
    refused = ModelError("The key password=hunter22 is wrong", reason="wrong_key")
    async with open_office(Puppet(refused), TOOLS) as office:
        run = await office.send("go")
        told = await office.ears.next("chat.error")
        assert (told["reason"], "hunter22" in str(told)) == ("wrong_key", False)
        assert await office.status(run) is RunStatus.FAILED
        assert len(office.model.asked) == 1
    async with open_office(Puppet(busy), TOOLS, retries=1) as office:
        await office.send("go")
        assert (await office.ears.next("chat.error"))["reason"] == "overloaded"
        assert len(office.model.asked) == 2


async def test_the_model_is_told_the_conversation_so_far() -> None:
    model = Puppet(Reply(text="one"), Reply(text="two"))
    async with open_office(model, TOOLS, limits=Limits(history=2), instructions="Be kind.") as office:
        await office.answer("first")
        await office.answer("second")
        assert [one.text for one in model.asked[-1].said if not isinstance(one, ToolsSaid)] == ["second"]
        assert model.asked[-1].instructions == "Be kind."
        assert isinstance(model.asked[0].said[0], PersonSaid)


async def test_what_is_left_of_a_run_that_was_forgotten_in_part_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Puppet(Reply(calls=(call("add", left=1, right=1),)), Reply(text="2"), Reply(text="yes"))
    async with open_office(model, TOOLS) as office:
        await office.answer("add")
        threads = office.threads
        every = threads.messages

        async def left(*which: Any, **page: Any) -> list[Any]:
            return [one for one in await every(*which, **page) if one.position > 2]

        monkeypatch.setattr(threads, "messages", left)
        await office.answer("again?")
        assert [type(one).__name__ for one in model.asked[-1].said] == ["PersonSaid"]


async def test_an_answer_is_not_told_in_pieces_that_hide_nothing_yet() -> None:
    """A secret is known as one only when more of the answer is there: pieces then stop, and the answer is masked."""
    pieces = Pieces(Discretion(Masker(["open sesame and more"])))
    told = pieces.add("the magic words are open ") + pieces.add("sesame and more, do not tell anybody else of them ")
    assert "sesame" not in told
    assert pieces.finish() == ""
    whole = Pieces(Discretion(Masker()))
    assert whole.add("short") + whole.finish() == "short"


async def test_an_answer_that_repeats_a_hidden_argument_hides_it() -> None:
    @toolgate.tool(effects="read")
    async def login(password: str) -> str:
        return "in"

    model = Puppet(
        Reply(calls=(call("login", password=SECRET), raw_call("login", "not json"))),
        Reply(text=f"I used {SECRET}."),
    )
    async with open_office(model, [login]) as office:
        told = await office.answer("log in")
        assert SECRET not in str(told) + str(office.ears.heard)


async def test_a_result_that_cannot_be_shown_and_data_of_a_failure_are_told() -> None:
    async def half(_given: toolgate.ToolInput) -> toolgate.ToolOutput:
        return toolgate.ToolOutput.fail("half done", data={"rows": 3})

    model = Puppet(Reply(calls=(call("half"),)), Reply(text="ok"))
    async with open_office(model, [toolgate.ToolDefinition("half", {}, half)]) as office:
        told = await office.answer("do")
        [value] = last_outcomes(model.asked[-1])
        assert (value["error"], value["data"]) == ("half done", {"rows": 3})
        assert told["tool_results"][0]["result"]["data"] == {"rows": 3}
