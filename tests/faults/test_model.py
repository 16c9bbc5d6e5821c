"""A model of the gate, driven at random beside the real one on both stores: they must agree after every step."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import threading
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from tests.faults.clock import ring, set_clock
from tests.faults.judge import judge
from tests.faults.world import World, copy_of
from tests.soak import times

from toolgate import Gate, ToolDefinition, ToolInput, ToolOutput
from toolgate.bootstrap import open as open_gate
from toolgate.errors import ConflictError, DecisionConflictError
from toolgate.kernel.call import Status
from toolgate.kernel.event import verify
from toolgate.kernel.undo import DEFAULT_UNDO_TTL_S
from toolgate.testing.clock import FakeClock
from toolgate.testing.patience import PATIENCE_S, until

T = TypeVar("T")
QUICK_S = 300.0
FUTURE = datetime(2100, 1, 1, tzinfo=UTC)
"""A gate that is opened looks around before it gets the model's clock; nothing may be due for it then."""

_NUMBERS = st.integers(min_value=0, max_value=30)


@dataclass
class Expected:
    """What the model believes of one call."""

    tool: str
    status: Status
    effects: int = 0
    expires_at: datetime | None = None
    approval_id: str | None = None
    undo_until: datetime | None = None


class Model(RuleBasedStateMachine):
    """Call, answer, cancel, wait, undo, settle, change the mode, close and open again, in any order."""

    def __init__(self, world: World, url: str) -> None:
        super().__init__()
        self.world = world
        self.url = url
        self.clock = FakeClock(FUTURE)
        self.runner = asyncio.Runner()
        self.release = threading.Event()
        self.began = threading.Event()
        self.mode = "NORMAL"
        self.calls: dict[str, Expected] = {}
        self.gate: Gate | None = None

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(asyncio.wait_for(work, PATIENCE_S))

    def stuck(self, _given: ToolInput) -> ToolOutput:
        self.began.set()
        self.release.wait(PATIENCE_S)
        return ToolOutput.ok()

    @initialize()
    def open(self) -> None:
        self.gate = self.run(self._open())

    async def _open(self) -> Gate:
        stuck = ToolDefinition(name="stuck", handler=self.stuck, timeout_seconds=0.02)
        gate = open_gate(self.url, tools=[*self.world.tools(), stuck])
        set_clock(gate, self.clock)
        return gate

    @property
    def opened(self) -> Gate:
        assert self.gate is not None
        return self.gate

    def pick(self, number: int, *statuses: Status) -> str | None:
        """One of the calls, of these statuses where any are named; None where there is none."""
        ids = [id for id, call in self.calls.items() if not statuses or call.status in statuses]
        return ids[number % len(ids)] if ids else None

    @rule(tool=st.sampled_from(["look", "put", "pay", "wire", "book", "write"]))
    def call(self, tool: str) -> None:
        id = f"{tool}-{len(self.calls)}"
        result = self.run(self.world.call(self.opened, tool, id))
        if self.mode == "LOCKDOWN":
            self.calls[id] = Expected(tool, Status.DENIED)
        else:
            until_when = self.clock.now() + timedelta(seconds=DEFAULT_UNDO_TTL_S)
            self.calls[id] = Expected(tool, Status.COMPLETED, 1, undo_until=until_when if tool == "write" else None)
        assert result.status is self.calls[id].status

    @rule(number=_NUMBERS)
    def call_again(self, number: int) -> None:
        id = self.pick(number)
        if id is None or self.calls[id].tool == "stuck":
            return
        result = self.run(self.world.call(self.opened, self.calls[id].tool, id, wait=False))
        assert result.status in self.possible(id)

    @rule()
    def ask(self) -> None:
        id = f"send-{len(self.calls)}"
        result = self.run(self.world.call(self.opened, "send", id, wait=False))
        if self.mode == "LOCKDOWN":
            self.calls[id] = Expected("send", Status.DENIED)
            return
        expires_at = self.clock.now() + timedelta(seconds=QUICK_S)
        self.calls[id] = Expected(
            "send", Status.AWAITING_APPROVAL, expires_at=expires_at, approval_id=result.approval_id
        )

    @rule(number=_NUMBERS, decision=st.sampled_from(["approve", "deny"]))
    def decide(self, number: int, decision: str) -> None:
        id = self.pick(number)
        if id is None or (approval_id := self.calls[id].approval_id) is None:
            return
        call = self.calls[id]
        if call.status is not Status.AWAITING_APPROVAL or self.is_over(call) or self.mode == "LOCKDOWN":
            with pytest.raises(DecisionConflictError):
                self.run(self.world.decide(self.opened, approval_id, decision, by="ann"))
            return
        self.run(self.world.decide(self.opened, approval_id, decision, by="ann"))
        call.status, call.effects = (Status.COMPLETED, 1) if decision == "approve" else (Status.REJECTED, 0)
        assert self.run(self.opened.wait(id)).status is call.status

    @rule(number=_NUMBERS)
    def cancel(self, number: int) -> None:
        id = self.pick(number)
        if id is None:
            return
        result = self.run(self.opened.cancel(id))
        call = self.calls[id]
        if call.status is Status.AWAITING_APPROVAL:
            assert result.status in (Status.CANCELLED, *self.possible(id) - {Status.AWAITING_APPROVAL})
            call.status = result.status
        assert result.status is call.status

    @rule(seconds=st.sampled_from([1.0, 100.0, 299.0, 300.0, 4000.0, -50.0]))
    def pass_time(self, seconds: float) -> None:
        self.clock.advance(seconds)

    @rule()
    def sweep(self) -> None:
        over = [id for id, call in self.calls.items() if self.is_over(call)]
        if not over:
            return
        ring(self.opened)
        for id in over:
            assert self.run(self.opened.wait(id)).status is Status.TIMEOUT
            self.calls[id].status = Status.TIMEOUT

    @rule(number=_NUMBERS)
    def undo(self, number: int) -> None:
        id = self.pick(number)
        if id is None:
            return
        call = self.calls[id]
        can = call.undo_until is not None and self.clock.now() < call.undo_until and self.mode != "LOCKDOWN"
        result = self.run(self.opened.undo(id))
        assert result.success is can
        if can:
            call.undo_until = None

    @rule()
    def lose(self) -> None:
        """Let a handler run longer than allowed: nobody knows what it did."""
        if self.mode == "LOCKDOWN":
            return
        id = f"stuck-{len(self.calls)}"
        self.began.clear()
        result = self.run(self.opened.call("stuck", {"n": id}, call_id=id))
        if not self.began.is_set():  # a machine so busy that it had not begun: then it surely did nothing
            self.calls[id] = Expected("stuck", Status.FAILED)
            assert result.status is Status.FAILED
            return
        self.calls[id] = Expected("stuck", Status.UNKNOWN)
        assert result.status is Status.UNKNOWN
        self.release.set()
        self.run(until_told(self.opened, id, "tool.late_result"))
        self.release = threading.Event()

    @rule(number=_NUMBERS, happened=st.booleans())
    def settle(self, number: int, happened: bool) -> None:
        id = self.pick(number)
        if id is None:
            return
        call = self.calls[id]
        work = self.opened.settle(id, happened=happened, by="ann", reason="looked")
        if call.status is not Status.UNKNOWN:
            with pytest.raises(ConflictError):
                self.run(work)
            return
        call.status = self.run(work).status
        assert call.status is (Status.COMPLETED if happened else Status.FAILED)

    @rule(mode=st.sampled_from(["NORMAL", "ALERT", "LOCKDOWN"]))
    def set_mode(self, mode: str) -> None:
        self.run(self.opened.set_mode(mode, by="ann"))
        self.mode = mode

    @precondition(lambda self: self.url.startswith("sqlite"))
    @rule()
    def open_again(self) -> None:
        self.run(self.opened.aclose())
        self.open()
        assert self.opened.mode == self.mode

    def is_over(self, call: Expected) -> bool:
        return (
            call.status is Status.AWAITING_APPROVAL
            and call.expires_at is not None
            and self.clock.now() >= call.expires_at
        )

    def possible(self, id: str) -> set[Status]:
        """The statuses a call may have: an expired question may or may not have been closed yet."""
        call = self.calls[id]
        ever_over = call.status is Status.AWAITING_APPROVAL and call.expires_at is not None
        return {call.status, Status.TIMEOUT} if ever_over and self.is_over(call) else {call.status}

    @invariant()
    def agrees(self) -> None:
        if self.gate is None:
            return
        for id, call in self.calls.items():
            status = self.run(self.gate.get(id)).status
            assert status in self.possible(id), f"{id} is {status}, not {self.possible(id)}"
            if status is Status.TIMEOUT:
                call.status = status  # a jump back does not bring it back
        happened = {line["call"] for line in self.world.ledger.lines("effect")}
        assert happened == {id for id, call in self.calls.items() if call.effects}
        assert len(self.world.ledger.lines("effect")) == len(happened)
        events = self.run(self.gate.events(limit=10_000))
        assert verify(events) == len(events)

    def teardown(self) -> None:
        self.release.set()
        if self.gate is not None:
            self.run(self.gate.aclose())
        self.runner.close()
        if self.world.file.exists() and not any(call.tool == "stuck" for call in self.calls.values()):
            judge(self.world.file, self.world.ledger)
        shutil.rmtree(self.world.folder.parent)


async def until_told(gate: Gate, call_id: str, name: str) -> None:
    async def told() -> bool:
        return name in [event.type for event in await gate.events(call_id=call_id)]

    await until(told)


def on_memory(shelf: Path, _template: Path) -> Model:
    folder = Path(tempfile.mkdtemp(dir=shelf)) / "world"
    folder.mkdir()
    return Model(World(folder), "memory://")


def on_sqlite(shelf: Path, template: Path) -> Model:
    world = copy_of(template, Path(tempfile.mkdtemp(dir=shelf)) / "world")
    return Model(world, f"sqlite:///{world.file}")


@pytest.mark.parametrize("make", [on_memory, on_sqlite])
def test_the_gate_does_what_the_model_does(make: Callable[[Path, Path], Model], shelf: Path, template: Path) -> None:
    run_state_machine_as_test(
        lambda: make(shelf, template),  # type: ignore[arg-type]  # anything that makes a machine will do
        settings=settings(max_examples=25, stateful_step_count=20),
    )


@pytest.mark.soak
@pytest.mark.parametrize("make", [on_memory, on_sqlite])
def test_the_gate_does_what_the_model_does_for_long(
    make: Callable[[Path, Path], Model], shelf: Path, template: Path
) -> None:
    run_state_machine_as_test(
        lambda: make(shelf, template),  # type: ignore[arg-type]  # anything that makes a machine will do
        settings=settings(max_examples=times(600), stateful_step_count=40),
    )
