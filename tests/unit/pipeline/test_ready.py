from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import orjson
import pytest
from tests.unit.pipeline.rig import Rig

from toolgate import ToolDefinition, ToolInput, ToolOutput
from toolgate.errors import ToolDeniedError
from toolgate.kernel.call import Status
from toolgate.kernel.context import DEFAULT_CONTEXT, Context, Mode, Principal
from toolgate.kernel.tool import Prepared
from toolgate.pipeline import ready
from toolgate.ports.runner import Job
from toolgate.ports.store import ApprovalQuery
from toolgate.testing.conformance.rows import set_mode
from toolgate.testing.patience import until


class Bench:
    """A tool whose preparation goes on for as long as the test likes."""

    def __init__(self) -> None:
        self.begun = 0
        self.go_on = asyncio.Event()
        self.error: Exception | None = None
        self.ran: list[str] = []
        self.rig = Rig(
            ToolDefinition(name="write", handler=self.run, prepare=self.prepare),
            ToolDefinition(name="quick", handler=self.run, prepare=lambda _given: Prepared(preview="soon")),
            ToolDefinition(name="ask", handler=self.run, prepare=self.prepare, requires_approval=True),
        )

    async def prepare(self, _given: ToolInput) -> Prepared:
        self.begun += 1
        await self.go_on.wait()
        if self.error is not None:
            raise self.error
        return Prepared(preview="ready", preconditions={"at": 1})

    async def run(self, given: ToolInput) -> ToolOutput:
        self.ran.append(str(given.action_id))
        return ToolOutput.ok("done")

    def submit(self, tool: str, context: Context = DEFAULT_CONTEXT) -> asyncio.Task[Any]:
        return asyncio.ensure_future(self.rig.pipeline.run(tool, {}, context, call_id="c1"))

    async def status(self) -> Status | None:
        call = await self.rig.store.call("default", "c1")
        return None if call is None else call.status

    async def is_pending(self) -> bool:
        return await self.status() is Status.PENDING


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    bench = Bench()
    yield bench
    bench.go_on.set()
    while bench.rig.spawned:
        await asyncio.gather(*bench.rig.spawned)
        await asyncio.sleep(0)  # gathering what is done already does not let the loop forget it
    await bench.rig.close()


async def test_a_call_is_stored_as_pending_while_its_preparation_takes_time(bench: Bench) -> None:
    made = bench.submit("write")
    await until(bench.is_pending)
    assert await bench.rig.names("c1") == ["tool.invoked"]
    bench.go_on.set()
    assert (await made).status is Status.COMPLETED
    call = await bench.rig.driver.read("default", "c1")
    assert (call.preview, call.version, bench.ran) == ("ready", 3, ["c1"])
    assert await bench.rig.names("c1") == ["tool.invoked", "tool.started", "tool.completed"]


async def test_a_call_that_is_prepared_quickly_begins_with_its_claim(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ready, "PENDING_AFTER_S", 60)
    assert (await bench.submit("quick")).status is Status.COMPLETED
    call = await bench.rig.driver.read("default", "c1")
    assert (call.preview, call.version) == ("soon", 2)


async def test_a_question_follows_a_slow_preparation(bench: Bench) -> None:
    made = bench.submit("ask")
    await until(bench.is_pending)
    bench.go_on.set()
    assert (await made).status is Status.AWAITING_APPROVAL


async def test_a_slow_preparation_that_fails_ends_the_stored_call(bench: Bench) -> None:
    bench.error = ValueError("no such file")
    made = bench.submit("write")
    await until(bench.is_pending)
    bench.go_on.set()
    result = await made
    assert (result.status, result.error_code, bench.ran) == (Status.FAILED, "prepare_failed", [])
    assert await bench.rig.names("c1") == ["tool.invoked", "tool.failed"]


async def test_the_same_call_made_twice_while_it_is_prepared_is_one_call(bench: Bench) -> None:
    first = bench.submit("write")
    await until(bench.is_pending)
    second = await bench.submit("write")
    assert (second.joined, second.status) == (True, Status.PENDING)
    bench.go_on.set()
    await first
    assert bench.ran == ["c1"]


async def test_who_goes_away_before_the_call_is_stored_leaves_nothing(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ready, "PENDING_AFTER_S", 60)
    made = bench.submit("write")
    await until(lambda: bench.begun == 1)
    made.cancel()
    await asyncio.wait({made})
    assert (made.cancelled(), await bench.status()) == (True, None)


async def test_a_stored_call_goes_on_without_whoever_waited_for_it(bench: Bench) -> None:
    made = bench.submit("write")
    await until(bench.is_pending)
    made.cancel()
    await asyncio.wait({made})
    assert made.cancelled()
    bench.go_on.set()
    await until(lambda: bench.ran == ["c1"])
    assert bench.begun == 2


async def test_a_call_that_ended_meanwhile_does_not_go_on(bench: Bench) -> None:
    made = bench.submit("write")
    await until(bench.is_pending)
    await bench.rig.answers.cancel("default", "c1", reason="enough")
    made.cancel()
    await asyncio.wait({made})
    bench.go_on.set()
    await until(lambda: not bench.rig.spawned)
    assert (await bench.status(), bench.ran) == (Status.CANCELLED, [])


async def _stored(bench: Bench) -> None:
    """Leave a call behind as PENDING, as a process does that dies."""
    made = bench.submit("write")
    await until(bench.is_pending)
    bench.rig.driver.spawn = lambda coroutine: coroutine.close()
    made.cancel()
    await asyncio.wait({made})
    bench.go_on.set()


async def test_a_restarted_call_is_prepared_again_and_runs(bench: Bench) -> None:
    await _stored(bench)
    looked: list[int] = []

    async def refresh() -> None:
        looked.append(1)

    bench.rig.driver.refresh = refresh
    result = await bench.rig.pipeline.restart(await bench.rig.driver.read("default", "c1"))
    assert (result.status, bench.ran, bench.begun, looked) == (Status.COMPLETED, ["c1"], 2, [1])


async def test_a_restarted_call_whose_tool_is_another_now_ends(bench: Bench) -> None:
    await _stored(bench)
    bench.rig.driver.registry.add(ToolDefinition(name="write", handler=bench.run, effects="irreversible"))
    result = await bench.rig.pipeline.restart(await bench.rig.driver.read("default", "c1"))
    assert (result.status, result.error_code, bench.ran) == (Status.FAILED, "prepare_failed", [])


async def test_a_restarted_call_is_judged_by_the_rules_of_now(bench: Bench) -> None:
    await _stored(bench)
    lockdown = set_mode(Mode.LOCKDOWN)
    await bench.rig.driver.commit(lockdown)
    result = await bench.rig.pipeline.restart(await bench.rig.driver.read("default", "c1"))
    assert (result.status, bench.begun) == (Status.DENIED, 1)


async def test_a_restarted_call_that_cannot_be_prepared_ends(bench: Bench) -> None:
    await _stored(bench)
    bench.error = ToolDeniedError("outside", tool="write")
    result = await bench.rig.pipeline.restart(await bench.rig.driver.read("default", "c1"))
    assert (result.status, bench.ran) == (Status.DENIED, [])


@pytest.mark.parametrize("arguments", [{"a": 1, "text": "x" * 70_000}, {"a": 1, "box": ["x" * 70_000]}])
async def test_what_preparing_does_to_its_arguments_reaches_nobody(arguments: dict[str, Any]) -> None:
    ran: list[dict[str, Any]] = []

    def prepare(given: ToolInput) -> Prepared:
        given.payload["a"] = 2
        given.payload.get("box", []).clear()
        return Prepared(preview="changed")

    async def run(given: ToolInput) -> ToolOutput:
        ran.append(given.payload.copy())
        given.payload["a"] = 3
        return ToolOutput.ok("done")

    rig = Rig(ToolDefinition(name="write", handler=run, prepare=prepare))
    assert (await rig.pipeline.run("write", arguments, DEFAULT_CONTEXT, call_id="c1")).success
    call = await rig.store.call("default", "c1")
    assert call is not None
    assert (ran, orjson.loads(call.arguments), call.shown) == ([arguments], arguments, arguments)
    assert arguments["a"] == 1


class Planned:
    """A hook that plans what runs in the sandbox."""

    def __call__(self, _given: ToolInput) -> Prepared:
        raise AssertionError("its runner calls it")

    def plan(self, _given: ToolInput) -> None:
        raise AssertionError("its runner plans it")

    def conclude(self, _given: ToolInput, _finished: object) -> None:
        raise AssertionError("its runner concludes it")


class Sandbox:
    """A runner that prepares everything the same way."""

    def __init__(self, prepared: Prepared) -> None:
        self.prepared = prepared
        self.seen: list[Any] = []

    async def run(self, job: Job) -> object:
        self.seen.append(job.args[0].prepared)
        return self.prepared

    async def close(self) -> None:
        """Nothing is held."""


def planned_tool(**options: Any) -> ToolDefinition:
    return ToolDefinition(name="plan", handler=lambda _given: ToolOutput.ok(1), prepare=Planned(), **options)


async def test_what_plans_its_preparation_is_prepared_by_the_sandbox() -> None:
    rig = Rig(planned_tool(requires_approval=True))
    rig.driver.runners = {**rig.driver.runners, "sandbox": (sandbox := Sandbox(Prepared(preconditions={"a": 1})))}

    result = await rig.pipeline.run("plan", {}, DEFAULT_CONTEXT, call_id="c1")

    assert result.status is Status.AWAITING_APPROVAL
    approval = (await rig.store.approvals(ApprovalQuery(call_id="c1")))[0]
    assert not approval.undoable
    await rig.decide(approval.id, approve_it=True, by=Principal(name="ann"))
    await rig.pipeline.resume(await rig.driver.read("default", "c1"))
    await until(lambda: len(sandbox.seen) == 2)
    assert sandbox.seen == [None, {"a": 1}]
    await rig.close()


async def test_without_a_sandbox_it_is_not_prepared() -> None:
    rig = Rig(planned_tool())

    result = await rig.pipeline.run("plan", {}, DEFAULT_CONTEXT)

    assert result.error_code == "prepare_failed"
    assert "this gate has none" in (result.error or "")
    await rig.close()


async def test_what_a_tool_prepares_may_have_a_person_asked_although_the_rules_allow_it() -> None:
    tool = ToolDefinition(
        name="write",
        handler=lambda _given: ToolOutput.ok(1),
        prepare=lambda _given: Prepared(asks="it changes a hook"),
        undoable=True,
        undo_handler=lambda _undo: None,
    )
    rig = Rig(tool)

    result = await rig.pipeline.run("write", {}, DEFAULT_CONTEXT, call_id="c1")

    assert result.status is Status.AWAITING_APPROVAL
    approval = (await rig.store.approvals(ApprovalQuery(call_id="c1")))[0]
    assert approval.reasons[-1] == "prepare: it changes a hook"
    assert not approval.undoable, "nothing was prepared to undo it with"
    await rig.close()


async def test_a_call_that_was_prepared_without_undo_data_leaves_nothing_to_undo() -> None:
    tool = ToolDefinition(
        name="write",
        handler=lambda _given: ToolOutput.ok(1),
        prepare=lambda _given: Prepared(),
        undoable=True,
        undo_handler=lambda _undo: None,
    )
    rig = Rig(tool)

    result = await rig.pipeline.run("write", {}, DEFAULT_CONTEXT, call_id="c1")

    assert result.success
    assert await rig.store.undo("default", "c1") is None
    await rig.close()
