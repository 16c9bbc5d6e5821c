"""Runner: where a handler runs. It runs what was claimed; it never decides and never writes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, Protocol, runtime_checkable

from toolgate.kernel.call import Call
from toolgate.kernel.terms import SandboxTerms
from toolgate.kernel.tool import Hook, ToolDefinition
from toolgate.kernel.undo import UndoRecord


class Parked:
    """Returned by a runner whose result arrives later through `complete`."""


PARKED: Final = Parked()


class Job:
    """One claimed execution, as a runner sees it.

    `undo` is the undo record claimed or prepared with the call. `inside` is where the hook runs: the call's placement,
    or, at a worker, the one it has there. `sandbox` is what the policy says of the sandbox it may run in. A runner
    whose hook cannot be stopped clears `stoppable`, and calls `late` if the hook ends after its `run` was cancelled.
    `began` is False where the hook was not entered.
    """

    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = MappingProxyType({})
    inside: str = ""
    sandbox: SandboxTerms | None = None
    stoppable: bool = True
    began: bool = True
    late: Callable[[BaseException | None], None] | None = None

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
