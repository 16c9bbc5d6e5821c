"""Runner: where a handler runs. It runs what was claimed; it never decides and never writes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, Protocol, runtime_checkable

from toolgate.kernel.call import Call
from toolgate.kernel.output import ToolOutput
from toolgate.kernel.terms import SandboxTerms
from toolgate.kernel.tool import Hook, ToolDefinition
from toolgate.kernel.undo import UndoRecord


class Parked:
    """Returned by a runner whose result arrives later through `complete`."""


PARKED: Final = Parked()


class Job:
    """One claimed execution, and the handle by which others may end it.

    `started` is the monotonic time at which the hook was entered, 0.0 while it does not run. `stop` says why
    somebody wants it to end, and `end` is what those who wait for it wait for. A runner whose hook cannot be
    stopped clears `stoppable`, and calls `late` if the hook ends after its `run` was cancelled. `payload` are
    the call's arguments where they are at hand as a copy nobody else holds. `undo` is the undo record claimed
    or prepared with the call. `lasting` is what the claim was (see `Change`): a runner leaves `call.shown` alone.
    `sandbox` is what the policy says of the sandbox it may run in. `output` is what the hook returned, if that was
    a ToolOutput. `runner` is where it runs instead of its placement's runner: a worker runs a call by this, `inside`
    the placement it has there.
    """

    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = MappingProxyType({})
    stop: str | None = None
    detail: str | None = None
    stoppable: bool = True
    started: float = 0.0
    task: asyncio.Task[Any] | None = None
    loop: asyncio.AbstractEventLoop | None = None
    end: asyncio.Future[Any] | None = None
    late: Callable[[BaseException | None], None] | None = None

    payload: dict[str, Any] | None = None
    lasting: bool = False
    runner: Runner | None = None
    inside: str = ""
    sandbox: SandboxTerms | None = None
    output: ToolOutput | None = None

    def __init__(self, call: Call, tool: ToolDefinition, hook: Hook, is_async: bool, undo: UndoRecord | None) -> None:
        self.call = call
        self.tool = tool
        self.hook = hook
        self.is_async = is_async
        self.undo = undo


class Runner(Protocol):
    """Awaiting `run` gives what the hook returns or raises. Cancelling it asks the hook to stop."""

    def run(self, job: Job) -> Awaitable[object]: ...

    async def close(self) -> None: ...


@runtime_checkable
class RemoteRunner(Runner, Protocol):
    """A runner whose hooks run elsewhere: `run` gives `PARKED` at once, and the result comes through `complete`."""

    def recall(self, call: Call, reason: str) -> None:
        """Ask whoever runs this call to stop. They may not hear it; only their report or the lease's end is certain."""
        ...
