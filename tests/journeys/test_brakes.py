"""The brake can be pulled for a project, an agent or a run, and holds at the moment of use."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.journeys.scene import Open, names, park

import toolgate
from toolgate import Context, Gate, ToolInput
from toolgate.errors import DecisionConflictError, InvalidIdError, NotAllowedError, UsageError
from toolgate.kernel.brake import MOST, MOST_IN_PROJECT, Brake, Brakes, Scope
from toolgate.kernel.call import Status
from toolgate.kernel.context import Mode
from toolgate.kernel.record import evolve
from toolgate.pipeline import braking
from toolgate.policy import read_policy

MINE = Context(project="shop", principal="agent:ann", user="ann", run_id="r1")
OTHERS = Context(project="shop", principal="agent:bob", user="bob", run_id="r2")
ELSEWHERE = Context(project="lab", principal="agent:ann", user="ann", run_id="r1")


@toolgate.tool
def ping() -> str:
    return "pong"


@toolgate.tool(requires_approval=True)
def pay() -> str:
    return "paid"


async def ends(gate: Gate, *contexts: Context) -> list[str]:
    return [(await gate.call("ping", context=context)).status.value for context in contexts]


@pytest.mark.parametrize(
    ("scope", "denied"),
    [
        ({"project": "shop"}, [True, True, False]),
        ({"project": "shop", "agent": "agent:ann"}, [True, False, False]),
        ({"project": "shop", "agent": "ann"}, [True, False, False]),
        ({"project": "shop", "run": "r1"}, [True, False, False]),
        ({}, [True, True, True]),
    ],
    ids=["project", "principal", "user", "run", "everybody"],
)
async def test_a_brake_holds_for_its_scope_and_no_further(
    open_gate: Open, scope: dict[str, Any], denied: list[bool]
) -> None:
    async with open_gate(tools=[ping]) as gate:
        await gate.set_mode("LOCKDOWN", by="eve", reason="drill", **scope)
        results = [await gate.call("ping", context=context) for context in (MINE, OTHERS, ELSEWHERE)]
        assert [result.status is Status.DENIED for result in results] == denied
        assert "LOCKDOWN over" in (results[0].error or "")
        assert "by eve: drill" in (results[0].error or "")
        await gate.set_mode("NORMAL", by="eve", **scope)
        assert await ends(gate, MINE, OTHERS, ELSEWHERE) == ["COMPLETED"] * 3


async def test_a_call_must_pass_under_every_mode_over_it(open_gate: Open) -> None:
    @toolgate.tool(allowed_modes=("ALERT",))
    def drill() -> None: ...

    @toolgate.tool(allowed_modes=("NORMAL", "ALERT"))
    def both() -> str:
        return "ran"

    async with open_gate(tools=[drill, both, ping]) as gate:
        await gate.set_mode("ALERT", by="eve", project="shop")
        await gate.set_mode("DEGRADED", by="eve", project="shop", run="r1")
        assert (await gate.call("drill", context=OTHERS)).status is Status.DENIED  # everybody is in NORMAL
        assert (await gate.call("both", context=OTHERS)).data == "ran"
        assert (await gate.call("both", context=MINE)).status is Status.DENIED  # its run is in DEGRADED
        assert await ends(gate, MINE, OTHERS) == ["COMPLETED"] * 2


async def test_what_a_handler_calls_is_held_with_its_run(open_gate: Open) -> None:
    found: list[Status] = []

    @toolgate.tool(allowed_modes=("NORMAL", "LOCKDOWN"))
    async def outer(given: ToolInput) -> None:
        found.append((await given.call("ping")).status)

    async with open_gate(tools=[outer, ping]) as gate:
        await gate.set_mode("LOCKDOWN", by="eve", project="shop", run="r1")
        assert (await gate.call("outer", context=MINE)).status is Status.COMPLETED
        assert found == [Status.DENIED]


async def test_questions_of_a_braked_scope_wait_and_others_do_not(open_gate: Open) -> None:
    async with open_gate(tools=[pay]) as gate:
        held, free = await park(gate, "pay", context=MINE), await park(gate, "pay", context=OTHERS)
        await gate.set_mode("LOCKDOWN", by="eve", project="shop", agent="ann", reason="look into it")
        with pytest.raises(DecisionConflictError, match=r"agent 'ann' in project 'shop', by eve: look into it"):
            await gate.decide(held.id, "approve", by="zoe")
        await gate.decide(free.id, "approve", by="zoe")
        assert (await gate.wait(free.call_id, project="shop")).data == "paid"
        enforced = (await gate.events(project="shop"))[-1]
        for event in await gate.events(project="shop"):
            enforced = event if event.type == "mode.enforced" else enforced
        assert (enforced.data["pending"], enforced.data["scope"]) == (1, {"project": "shop", "agent": "ann"})
        await gate.set_mode("NORMAL", by="eve", project="shop", agent="ann")
        await gate.decide(held.id, "approve", by="zoe")
        assert (await gate.wait(held.call_id, project="shop")).data == "paid"


async def test_an_approval_given_before_the_brake_does_not_run(open_gate: Open) -> None:
    @toolgate.tool(requires_approval=True, placement="caller")
    def mine() -> None: ...

    async with open_gate(tools=[mine]) as gate:
        asked = await park(gate, "mine", context=MINE)
        await gate.decide(asked.id, "approve", by="zoe")
        await gate.set_mode("LOCKDOWN", by="eve", project="shop", run="r1")
        result = await gate.run_here(asked.call_id, lambda _: pytest.fail("it ran"), project="shop")
        assert result.status is Status.DENIED


async def test_running_calls_of_the_scope_are_stopped_and_no_others(open_gate: Open) -> None:
    begun, release = [asyncio.Event(), asyncio.Event()], asyncio.Event()

    @toolgate.tool
    async def slow(number: int) -> str:
        begun[number].set()
        await release.wait()
        return "done"

    async with open_gate(tools=[slow]) as gate:
        calls = [
            asyncio.create_task(gate.call("slow", {"number": number}, context=context))
            for number, context in enumerate((MINE, OTHERS))
        ]
        await asyncio.gather(*(each.wait() for each in begun))
        await gate.set_mode("LOCKDOWN", by="eve", project="shop", run="r1")
        assert (await calls[0]).status is Status.CANCELLED
        release.set()
        assert (await calls[1]).data == "done"


async def test_an_undo_belongs_to_the_run_of_what_it_undoes(open_gate: Open) -> None:
    async def take_back(_undo: Any) -> None: ...

    @toolgate.tool(undoable=True, undo_handler=take_back)
    def write() -> toolgate.ToolOutput:
        return toolgate.ToolOutput(success=True, undo_metadata={"was": 1})

    async with open_gate(tools=[write]) as gate:
        done = await gate.call("write", context=MINE)
        await gate.set_mode("LOCKDOWN", by="eve", project="shop", run="r1")
        for context in (evolve(OTHERS, claimed=True), Context(project="shop", principal="agent:ann")):
            assert (await gate.undo(done.call_id, context=context)).status is Status.DENIED
        await gate.set_mode("NORMAL", by="eve", project="shop", run="r1")
        await gate.set_mode("LOCKDOWN", by="eve", project="shop", agent="agent:ann")
        assert (await gate.undo(done.call_id, context=MINE)).status is Status.DENIED
        assert (await gate.undo(done.call_id, context=OTHERS)).status is Status.COMPLETED  # a person's, of the agent's


async def test_who_names_their_run_themselves_does_not_escape_by_naming_another(open_gate: Open) -> None:
    claims = Context(project="shop", principal="bot", run_id="r1", claimed=True)
    renamed = Context(project="shop", principal="bot", run_id="r9", claimed=True)
    neighbour = Context(project="shop", principal="other", run_id="r9", claimed=True)
    async with open_gate(tools=[ping]) as gate:
        assert await ends(gate, claims, renamed) == ["COMPLETED"] * 2
        await gate.set_mode("LOCKDOWN", by="eve", project="shop", run="r1")
        assert await ends(gate, claims, renamed, neighbour) == ["DENIED", "DENIED", "COMPLETED"]
        (brake,) = gate.brakes.active
        assert brake.holds == ("bot",)
        await gate.set_mode("NORMAL", by="eve", project="shop", run="r1")
        assert await ends(gate, claims, renamed) == ["COMPLETED"] * 2


async def test_everybody_who_named_the_run_is_held_however_many_calls_it_has(
    open_gate: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(braking, "PAGE", 1)
    async with open_gate(tools=[ping]) as gate:
        for name in ("bot", "cat"):
            await ends(gate, Context(project="shop", principal=name, run_id="r1", claimed=True))
        await gate.set_mode("LOCKDOWN", by="eve", project="shop", run="r1")
        assert gate.brakes.active[0].holds == ("bot", "cat")


async def test_the_strictest_ruling_under_any_mode_counts(open_gate: Open) -> None:
    policy = read_policy("tools: {pay: {requires_approval_in_modes: [ALERT], allowed_in_modes: [NORMAL]}}")

    @toolgate.tool(name="pay")
    def free() -> str:
        return "paid"

    async with open_gate(tools=[free], policy=policy) as gate:
        await gate.set_mode("ALERT", by="eve", project="shop")
        asked = await gate.call("pay", context=MINE, wait=False)
        assert asked.status is Status.AWAITING_APPROVAL
        assert (await gate.call("pay", context=ELSEWHERE)).data == "paid"
        await gate.set_mode("RECOVERY", by="eve", project="shop", run="r2")
        assert (await gate.call("pay", context=OTHERS)).status is Status.DENIED


async def test_none_of_many_racing_calls_starts_after_the_brake(open_gate: Open) -> None:
    is_pulled, late = False, []

    @toolgate.tool
    async def touch(number: int) -> None:
        if is_pulled:
            late.append(number)

    async with open_gate(tools=[touch]) as gate:
        racing = [asyncio.create_task(gate.call("touch", {"number": n}, context=MINE)) for n in range(50)]
        await asyncio.sleep(0)
        await gate.set_mode("LOCKDOWN", by="eve", project="shop", agent="agent:ann")
        is_pulled = True
        await asyncio.gather(*racing)
        assert late == []
        assert (await gate.call("touch", {"number": 50}, context=MINE)).status is Status.DENIED


async def test_brakes_pulled_at_once_all_hold(open_gate: Open) -> None:
    async with open_gate(tools=[ping]) as gate:
        await asyncio.gather(*(gate.set_mode("ALERT", by="eve", project="shop", run=f"r{n}") for n in range(8)))
        assert {brake.scope.run for brake in gate.brakes.active} == {f"r{n}" for n in range(8)}


async def test_what_was_set_is_told_in_the_system_and_in_the_project(open_gate: Open) -> None:
    async with open_gate(tools=[ping]) as gate:
        await gate.set_mode("ALERT", by="eve", project="shop", run="r1", reason="odd")
        (told,) = await gate.events(project="_system")
        (shown,) = await gate.events(project="shop")
        assert told.data == shown.data
        assert told.data["scope"] == {"project": "shop", "run": "r1"}
        assert (told.data["from"], told.data["to"], told.data["by"]) == ("NORMAL", "ALERT", "eve")
        assert told.data["reason"] == "odd"
        assert names([told, shown]) == ["mode.changed"] * 2


async def test_who_may_only_pull_releases_and_loosens_nothing(open_gate: Open) -> None:
    async with open_gate(tools=[ping]) as gate:
        only: dict[str, Any] = {"by": "eve", "project": "shop", "only_pull": True}
        for mode in ("ALERT", "LOCKDOWN", "LOCKDOWN"):
            await gate.set_mode(mode, **only)
        for mode in ("NORMAL", "ALERT"):
            with pytest.raises(NotAllowedError, match="not release"):
                await gate.set_mode(mode, **only)
        assert gate.brakes.at(Scope("shop")).mode is Mode.LOCKDOWN


async def test_a_scope_is_named_whole(open_gate: Open) -> None:
    async with open_gate(tools=[ping]) as gate:
        wrong: list[dict[str, Any]] = [{"agent": "a"}, {"run": "r"}, {"project": "p", "agent": "a", "run": "r"}]
        for scope in wrong:
            with pytest.raises(UsageError):
                await gate.set_mode("LOCKDOWN", by="eve", **scope)
        odd_names: list[dict[str, Any]] = [{"run": "a\nb"}, {"run": "a/b"}, {"agent": "a\nb"}]
        for odd in odd_names:
            with pytest.raises(InvalidIdError):
                await gate.set_mode("LOCKDOWN", by="eve", project="shop", **odd)
        assert gate.brakes.active == ()


@pytest.mark.parametrize("name", ["team/bot", "..", "ghp_" + "A" * 36, "b" * 200])
async def test_whoever_can_ask_can_be_braked(open_gate: Open, name: str) -> None:
    async with open_gate(tools=[ping]) as gate:
        await gate.set_mode("LOCKDOWN", by="eve", project="my/shop", agent=name)
        assert await ends(gate, Context(project="my/shop", principal=name)) == ["DENIED"]


def pulled(*scopes: Scope) -> Brakes:
    return Brakes(scoped={scope: Brake(scope=scope, mode=Mode.ALERT) for scope in scopes})


def test_one_project_uses_up_no_other_projects_brakes_nor_its_own() -> None:
    full = pulled(*(Scope("p", run=str(n)) for n in range(MOST_IN_PROJECT)))
    with pytest.raises(UsageError, match="pull the one of their project"):
        full.put(Brake(scope=Scope("p", agent="bot"), mode=Mode.LOCKDOWN))
    for scope in (Scope("p"), Scope("q", run="r1"), Scope("q"), Scope("p", run="1")):
        assert full.put(Brake(scope=scope, mode=Mode.LOCKDOWN)).at(scope).mode is Mode.LOCKDOWN


def test_there_are_only_so_many_brakes_in_all() -> None:
    narrow = pulled(*(Scope(f"p{n}", run="r1") for n in range(MOST)))
    with pytest.raises(UsageError, match="pull the one of their project"):
        narrow.put(Brake(scope=Scope("q", run="r1"), mode=Mode.ALERT))
    narrow.put(Brake(scope=Scope("q"), mode=Mode.ALERT))
    wide = pulled(*(Scope(f"p{n}") for n in range(MOST)))
    with pytest.raises(UsageError, match="release some"):
        wide.put(Brake(scope=Scope("q"), mode=Mode.ALERT))


async def test_pulling_a_runs_brake_again_lets_nobody_go_whom_it_holds(open_gate: Open) -> None:
    renamed = Context(project="shop", principal="bot", run_id="r9", claimed=True)
    async with open_gate(tools=[ping]) as gate:
        await ends(gate, Context(project="shop", principal="bot", run_id="r1", claimed=True))
        await gate.set_mode("ALERT", by="eve", project="shop", run="r1")
        before = len(await gate.events(project="_system"))
        await gate.set_mode("LOCKDOWN", by="eve", project="shop", run="r1", only_pull=True)
        told = [event.data["holds"] for event in (await gate.events(project="_system"))[before:]]
        assert told == [["bot"]] * len(told)
        assert await ends(gate, renamed) == ["DENIED"]


@pytest.mark.parametrize("scope", [{"project": ""}, {"project": "shop", "agent": ""}])
async def test_a_brake_over_nobody_is_refused(open_gate: Open, scope: dict[str, Any]) -> None:
    async with open_gate(tools=[ping]) as gate:
        with pytest.raises(InvalidIdError, match="an empty name is nobody's"):
            await gate.set_mode("LOCKDOWN", by="eve", **scope)
