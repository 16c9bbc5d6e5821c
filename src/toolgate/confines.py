"""What ties a gate, its policy and its sandbox together: where handlers may reach, as the policy says at the moment."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from datetime import datetime
from importlib import import_module
from os import PathLike
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from toolgate.gate import Gate
from toolgate.gate.programs import ProgramPins
from toolgate.gate.windows import PolicyWindows
from toolgate.guards.state import state_folder
from toolgate.kernel.pin import PinBook
from toolgate.kernel.policy import Policy
from toolgate.pipeline.driver import utc_now
from toolgate.ports.bus import Bus
from toolgate.ports.confinement import Confined
from toolgate.ports.directory import HOST
from toolgate.ports.runner import Job
from toolgate.ports.store import Clocked, Store


def policy_windows(url: str, store: Store, source: Any, *, mask: Callable[[str], str]) -> PolicyWindows:
    """Return what knows which of a policy's files sandboxed runs could have written."""
    return PolicyWindows(store, source.named, now=_clock(store), place=_place(url), mask=mask)


def program_pins(url: str, store: Store, book: PinBook | None = None) -> ProgramPins:
    """Return what keeps the record of programs that could be replaced; `book` is where the policy looks them up."""
    return ProgramPins(store, book or PinBook(), now=_clock(store), place=_place(url))


def _clock(store: Store) -> Callable[[], datetime]:
    return store.now if isinstance(store, Clocked) else utc_now


def _place(url: str) -> str:
    """Return the name of this machine, where machines share a store."""
    return socket.gethostname() if url.startswith(("postgresql://", "postgres://")) else ""


def admit(
    windows: PolicyWindows | None,
    pins: ProgramPins,
    policy: Policy | None,
    accepted: str | None,
    store: Store,
    bus: Bus,
) -> None:
    """Read what is on record of programs, and let nothing begin under a policy that a person must look at first;
    everything is closed again then."""

    async def begin() -> None:
        try:
            if windows is not None and policy is not None:
                await windows.admit(policy, accepted, by=HOST)
            await pins.read()
        except BaseException:
            bus.close()
            await store.close()
            raise

    with ThreadPoolExecutor(1) as aside:  # this may be called where an event loop runs
        aside.submit(asyncio.run, begin()).result()


class PolicyEdges:
    """What the gate's policy says of files, commands and hosts at the moment; without one, the workspace alone.

    policy: what counts until there is a gate. private: files and folders besides the database's own that no command
    may see.
    """

    def __init__(
        self,
        workspace: str | PathLike[str] | None,
        url: str,
        policy: Policy | None = None,
        private: Iterable[str | PathLike[str]] = (),
    ) -> None:
        self._workspace = workspace
        self._policy = policy
        state = state_folder()
        kept = () if state is None else (str(state),)  # other folders' databases, keys and journals, too
        self._private = (*_files_of(url), *kept, *map(os.path.abspath, private))
        self._found: tuple[object, Any] | None = None
        self.gate: Gate | None = None

    def __call__(self) -> Any:
        policy = self._policy if self.gate is None else self.gate.policy
        if self._found is None or self._found[0] is not policy:
            self._found = (policy, replace(self._make(policy), private_files=self._private))
        return self._found[1]

    def _make(self, policy: Policy | None) -> Any:
        of_policy = getattr(policy, "edges", None)
        if of_policy is not None:
            return of_policy()
        workspace = import_module("toolgate.guards.files").Workspace(self._workspace or ".")
        return import_module("toolgate.guards.edges").Edges(workspace=workspace)


def _files_of(url: str) -> tuple[str, ...]:
    """Return the database's own files, with its key: what no command may see."""
    scheme, _, path = url.partition(":///")
    if url.startswith(("postgresql://", "postgres://")):
        named = dict(parse_qsl(urlsplit(url).query)).get("key") or os.environ.get("TOOLGATE_KEY_FILE")
        return (os.path.abspath(named),) if named else ()
    if scheme != "sqlite" or not path:
        return ()
    return tuple(os.path.abspath(f"{path}{end}") for end in ("", "-wal", "-shm", "-journal", ".key", ".owners"))


class LazySandbox:
    """The sandbox runner, made when something is to run in it: most gates never need one."""

    def __init__(self, edges: PolicyEdges, uid: int | None) -> None:
        self._edges = edges
        self._uid = uid
        self._runner: Any = None
        self._lock = threading.Lock()
        self.gate: Gate | None = None

    def run(self, job: Job) -> Awaitable[object]:
        with self._lock:
            if self._runner is None:
                self._runner = self._make()
        running: Awaitable[object] = self._runner.run(job)
        return running

    def _make(self) -> Any:
        sandbox = import_module("toolgate.adapters.runners.sandbox").Sandbox
        runner = import_module("toolgate.adapters.runners.sandbox").SandboxRunner
        return runner(sandbox(self._edges, uid=self._uid, on_tested=self._note), around=self._around)

    def _around(self, job: Job, confined: Confined, backend: str) -> AbstractContextManager[None]:
        """Have it on record what a run starts, and which policy files it could write, before it begins and when it
        ended."""
        if self.gate is None:
            return nullcontext()
        given = job.args[0] if job.args else None
        self.gate.host.settle_programs(job.call, confined.programs, getattr(given, "approver", None))
        writable = ("/",) if backend == "none" else confined.writable
        kept = (*confined.hidden, *confined.locked) if backend == "bubblewrap" else ()
        return self.gate.host.policy_window(job.call, writable, kept)

    def _note(self, report: Any) -> None:
        if self.gate is not None:
            self.gate.host.note_sandbox(report.as_json())

    async def close(self) -> None:
        if self._runner is not None:
            await self._runner.close()
