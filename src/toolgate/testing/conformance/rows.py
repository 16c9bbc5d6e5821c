"""Rows and changes to try a store with, and real races from many threads or tasks at once."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any, TypeVar

from toolgate.kernel.approval import Approval, ApprovalStatus
from toolgate.kernel.brake import Brake, Brakes
from toolgate.kernel.call import Call, Status
from toolgate.kernel.change import Change
from toolgate.kernel.context import Context, Mode
from toolgate.kernel.event import Draft
from toolgate.kernel.record import evolve
from toolgate.kernel.undo import UndoRecord
from toolgate.ports.store import Store
from toolgate.testing.clock import NOON

T = TypeVar("T")
PROJECT = "default"


async def commit(store: Store, change: Change) -> None:
    """Commit and return when it is written, whether or not this store makes its callers wait."""
    writing = store.commit(change)
    if writing is not None:
        await writing


def a_call(id: str = "c1", **fields: Any) -> Call:
    """A call that waits to be claimed, in version 1."""
    project = fields.pop("project", PROJECT)
    context = fields.pop("context", Context(project=project))
    standard: dict[str, Any] = {"status": Status.APPROVED, "version": 1, "created_at": NOON, "tool_name": "write"}
    return Call(id=id, project=project, context=context, **{**standard, **fields})


def an_approval(id: str = "a1", **fields: Any) -> Approval:
    """An undecided approval of call `c1`."""
    standard: dict[str, Any] = {
        "project": PROJECT,
        "call_id": "c1",
        "tool_name": "write",
        "message": "Run write?",
        "digest": "d",
        "nonce": "n",
        "definition_hash": "h",
        "requester": "agent:local",
        "created_at": NOON,
        "expires_at": NOON + timedelta(minutes=5),
    }
    return Approval(id=id, **{**standard, **fields})


def an_undo(call_id: str = "c1", **fields: Any) -> UndoRecord:
    """An undo record that can be claimed for an hour."""
    standard: dict[str, Any] = {
        "project": PROJECT,
        "tool_name": "write",
        "data": b'{"old":1}',
        "created_at": NOON,
        "expires_at": NOON + timedelta(hours=1),
    }
    return UndoRecord(call_id=call_id, **{**standard, **fields})


def a_fact(call_id: str | None = "c1", **data: Any) -> Draft:
    return ("tool.progress", call_id, {}, dict(data))


def insert(call: Call, **fields: Any) -> Change:
    """The change that makes this call exist."""
    return Change(project=call.project, at=NOON, call=call, expect=None, **fields)


def set_mode(mode: Mode, *brakes: Brake) -> Change:
    """The change that sets the mode of everybody, and exactly these brakes besides."""
    event = ("mode.changed", None, {"to": mode.value}, None)
    wanted = Brakes(whole=Brake(mode=mode), scoped={brake.scope: brake for brake in brakes})
    return Change(project="_system", at=NOON, events=(event,), set_mode=wanted)


def step(call: Call, status: Status, **fields: Any) -> Change:
    """The change that moves a stored call on to `status`."""
    changes = fields.pop("changes", {})
    return Change(project=call.project, at=NOON, call=evolve(call.to(status), **changes), expect=call.version, **fields)


def decision(call: Call, approval: Approval, *, yes: bool, by: str) -> Change:
    """The change in which `by` answers."""
    status = ApprovalStatus.APPROVED if yes else ApprovalStatus.DENIED
    closed = approval.close(status, at=NOON, by=by)
    return step(call, Status.APPROVED if yes else Status.REJECTED, approvals=(closed,))


async def race_tasks(count: int, attempt: Callable[[int], Awaitable[T]]) -> list[T | BaseException]:
    """Make `count` attempts as tasks of this loop and return what each gave or raised."""
    return await asyncio.gather(*(attempt(number) for number in range(count)), return_exceptions=True)


async def race_threads(count: int, attempt: Callable[[int], Awaitable[T]]) -> list[T | BaseException]:
    """Make `count` attempts at the same moment, each on a thread and loop of its own."""
    together = threading.Barrier(count)
    outcomes: list[T | BaseException] = []

    async def one(number: int) -> T:
        return await attempt(number)

    def work(number: int) -> None:
        together.wait()
        try:
            outcomes.append(asyncio.run(one(number)))
        except Exception as error:  # noqa: BLE001  # the caller judges what each attempt raised
            outcomes.append(error)

    threads = [threading.Thread(target=work, args=(number,), name=f"racer-{number}") for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        await asyncio.to_thread(thread.join)
    return outcomes


def winners(outcomes: list[T | BaseException]) -> list[T]:
    return [outcome for outcome in outcomes if not isinstance(outcome, BaseException)]


def losers(outcomes: list[T | BaseException]) -> list[BaseException]:
    return [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
