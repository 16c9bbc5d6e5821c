"""Run hooks in a sandbox: planned programs as they are, any other callable through a small child.

A run has a thread of its own, which lives as long as the sandbox: the kernel ends the sandbox with it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import pickle
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

from toolgate.adapters.runners.sandbox import layout
from toolgate.adapters.runners.sandbox.backend import OnOutput
from toolgate.adapters.runners.sandbox.child import BOOT, carried
from toolgate.adapters.runners.sandbox.line import run_line, words_of
from toolgate.adapters.runners.sandbox.planted import Planted
from toolgate.adapters.runners.sandbox.sandbox import Sandbox
from toolgate.adapters.runners.sandbox.streams import is_readable
from toolgate.adapters.runners.sandbox.turns import turn
from toolgate.errors import SandboxError, ToolExecutionError, ToolOutputError, ToolTimeoutError
from toolgate.guards.descriptor import Descriptor, pipe
from toolgate.guards.run_later import changed, short, stamps
from toolgate.kernel.input import ToolInput
from toolgate.kernel.output import ToolOutput
from toolgate.kernel.terms import SandboxTerms, least
from toolgate.ports.confinement import (
    MEBIBYTE,
    OVERLAY_BYTES,
    Confinable,
    Confined,
    ConfinedCall,
    ConfinedLine,
    Finished,
    InPlace,
    Layered,
    Overlaid,
)
from toolgate.ports.runner import Job

MAX_RESULT_BYTES = 16 * MEBIBYTE
MAX_SIDE_BY_SIDE = 64
PROGRESS_EVERY_S = 1.0
Around = Callable[[Job, Confined, str], AbstractContextManager[None]]
"""Begins before a program starts in a backend of this name, and ends when nothing of it runs any more."""


class SandboxRunner:
    """The runner of sandboxed tools. What it cannot confine it does not run."""

    def __init__(self, sandbox: Sandbox, *, around: Around | None = None) -> None:
        self.sandbox = sandbox
        self._around = around or _nothing_around
        self._room = threading.BoundedSemaphore(MAX_SIDE_BY_SIDE)

    async def run(self, job: Job) -> object:
        """Return what the hook gives. Cancelling kills everything it started, and waits until it is gone."""
        job.began = False
        loop = asyncio.get_running_loop()
        done: asyncio.Future[object] = loop.create_future()
        stop, pull = pipe()
        work = threading.Thread(target=self._work, args=(job, loop, done, stop), name="toolgate-sandbox", daemon=True)
        with pull:  # its end is a wish to stop, too: whoever goes away leaves nothing running
            try:
                work.start()
            except RuntimeError:
                stop.close()
                raise
            try:
                return await asyncio.shield(done)
            except asyncio.CancelledError:
                with contextlib.suppress(BrokenPipeError):  # it has just ended
                    os.write(pull.number, b"x")
                with contextlib.suppress(Exception):  # it was cancelled: how it ended is nobody's concern
                    await asyncio.shield(done)
                raise

    async def close(self) -> None:
        self.sandbox.close()

    def _work(self, job: Job, loop: asyncio.AbstractEventLoop, done: asyncio.Future[object], stop: Descriptor) -> None:
        """Perform a job on its thread. The end that tells when to stop is this thread's alone to close."""
        value: object = None
        failure: BaseException | None = None
        try:
            with stop, self._room:
                if is_readable(stop, 0):
                    raise SandboxError("Nobody waits for this any more; nothing ran.")
                value = self._perform(job, loop, stop)
        except BaseException as error:  # noqa: BLE001  # the future carries it to whoever waits
            failure = error
        with contextlib.suppress(RuntimeError):  # the loop was closed: nobody waits
            loop.call_soon_threadsafe(_settle, done, value, failure)

    def _perform(self, job: Job, loop: asyncio.AbstractEventLoop, stop: Descriptor) -> object:
        hook: object = job.hook
        if not isinstance(hook, Confinable):
            return self._call(job, Request.of_job(job), loop, stop.number)
        given = job.args[0]
        planned = hook.plan(given)
        if isinstance(planned, ConfinedCall):
            return hook.conclude(given, self._call(job, Request.of_plan(planned), loop, stop.number))
        if isinstance(planned, InPlace):
            with turn(planned.writable, timeout_s=planned.timeout_s, stop=stop):
                job.began = True
                return hook.conclude(given, None)
        limit_s = least(None if job.sandbox is None else job.sandbox.timeout_s, job.tool.timeout_seconds)
        if isinstance(planned, Overlaid):
            inner = planned.planned
            with turn(inner.writable, timeout_s=min(limit_s, inner.timeout_s), stop=stop, shared=True):
                layered = self._layered(job, hook, inner, stop)
            return hook.conclude(given, layered)
        with turn(planned.writable, timeout_s=min(limit_s, planned.timeout_s), stop=stop):
            with self.sandbox.watching(planned.writable) as planted:
                output = hook.conclude(given, self._finished(job, hook, planned, loop, stop, planted))
            return output if planted is None else planted.reported(output)

    def _finished(
        self,
        job: Job,
        hook: Confinable,
        planned: Confined | ConfinedLine,
        loop: asyncio.AbstractEventLoop,
        stop: Descriptor,
        planted: Planted | None,
    ) -> Finished:
        """Return how a program or a line ended. One that writes is planned again: the workspace is its own by now."""
        given: ToolInput = job.args[0]
        told = _lines(given, loop) if job.is_async else None

        def run(confined: Confined) -> Finished:
            within = limited(confined, job.sandbox, job.tool.timeout_seconds)
            with self._begun(job, within) as backend:
                try:
                    return self.sandbox.run(within, backend=backend, stop=stop.number, on_output=told)
                finally:  # what it made counts, however it ended
                    if planted is not None and confined.writable:
                        planted.look(makes_repositories=confined.makes_repositories)

        def again() -> Confined | ConfinedLine:
            anew = hook.plan(given) if planned.writable else planned
            if not isinstance(anew, Confined | ConfinedLine) or anew.writable != planned.writable:
                raise SandboxError(
                    "What the command may touch changed before it began. Try again.", may_have_run=job.began
                )
            return anew

        now = again()
        before = stamps(now.writable)
        if isinstance(now, ConfinedLine):
            with self._scratch(job, now) as scratch:
                finished = run_line(now, run, again, scratch=scratch)
        else:
            finished = run(now)
        later = changed(before, stamps(now.writable, may_have_run=True))
        return replace(finished, run_later=tuple(short(path, now.writable) for path in later))

    def _scratch(self, job: Job, line: ConfinedLine) -> AbstractContextManager[str | None]:
        """Return what the commands of a line share as their `/tmp`, where it has several and one names it."""
        is_named = len(line.steps) > 1 and any("/tmp/" in word for word in words_of(line))
        return self.sandbox.scratch(_backend(job)) if is_named else nullcontext()

    def _layered(self, job: Job, hook: Confinable, planned: Confined | ConfinedLine, stop: Descriptor) -> Layered:
        """Return how a program or a line ended that ran in an overlay, and what it wrote there.

        It is planned again, since the workspace was another's before; while it runs, nobody else writes there.
        """
        given, terms = job.args[0], job.sandbox
        disk = None if terms is None else terms.disk_mb
        kept: list[tuple[tuple[str, ...], bool]] = []
        size = OVERLAY_BYTES if disk is None else disk * MEBIBYTE
        with self.sandbox.overlay(planned.writable, backend=_backend(job), size=size) as overlay:
            anew = hook.plan(given)
            if not isinstance(anew, Overlaid) or anew.planned.writable != planned.writable:
                raise SandboxError("What the command may touch changed before it began. Try again.")
            now = anew.planned

            def run(confined: Confined) -> Finished:
                within = limited(confined, terms, job.tool.timeout_seconds)
                if confined.writable:
                    kept.append(((*confined.hidden, *confined.locked), confined.makes_repositories))
                with self._begun(job, replace(within, writable=())) as backend:  # it writes nothing that lasts
                    return self.sandbox.run(within, backend=backend, stop=stop.number, overlay=overlay)

            if isinstance(now, ConfinedLine):
                with self._scratch(job, now) as scratch:
                    finished = run_line(now, run, lambda: now, overlay.is_folder, scratch=scratch)
            else:
                finished = run(now)
            written, too_much = overlay.collect() if finished.ending == "exited" else ((), "")
        return Layered(finished=finished, written=written, kept=tuple(kept), too_much=too_much)

    def _call(self, job: Job, request: Request, loop: asyncio.AbstractEventLoop, stop: int) -> object:
        output = _ChildOutput(_input_of(job), loop)
        confined = limited(self._program(job, request), job.sandbox, job.tool.timeout_seconds)
        with self._begun(job, confined) as backend:
            finished = self.sandbox.run(confined, backend=backend, stop=stop, on_output=output.take)
        return output.outcome(job, finished)

    @contextlib.contextmanager
    def _begun(self, job: Job, confined: Confined) -> Iterator[str]:
        """Be around a program that begins now, in the backend of the name that it gives."""
        name = _backend(job)
        with self._around(job, confined, self.sandbox.choose(name).name):
            job.began = True
            yield name

    def _program(self, job: Job, request: Request) -> Confined:
        """Return the program that runs a Python callable: this interpreter, with what it imports, and the files."""
        try:
            data = pickle.dumps(request.asked)
        except (pickle.PicklingError, TypeError, AttributeError) as error:
            raise SandboxError(
                f"The handler of `{job.tool.name}` cannot be sent to the sandbox: {error}. Make it a function of a "
                "module, or an object that can be pickled."
            ) from None
        return Confined(
            argv=(sys.executable, "-I", "-c", BOOT, json.dumps([*filter(None, sys.path), *request.homes])),
            readable=(*layout.python_paths(), *request.files, *(self.sandbox.readable() if request.sees_files else ())),
            hidden=self.sandbox.hidden() if request.sees_files else (),
            environment={"PYTHONDONTWRITEBYTECODE": "1"},
            network=request.network,
            stdin=data,
            timeout_s=request.timeout_s,
            memory_bytes=request.memory_bytes,
            output_bytes=MAX_RESULT_BYTES,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a child is asked to call. `files` are modules it needs, `homes` further places to
    import from; `sees_files`: it may read the workspace."""

    asked: dict[str, Any]
    network: bool
    timeout_s: float
    memory_bytes: int
    sees_files: bool
    files: tuple[str, ...] = ()
    homes: tuple[str, ...] = ()

    @classmethod
    def of_job(cls, job: Job) -> Request:
        """Return the request for any hook of a sandboxed tool."""
        name = _name_of(job.hook)
        file = getattr(sys.modules.get("__main__"), "__file__", None)
        is_here = name[:1] == ("__main__",)
        main = os.path.abspath(file) if is_here and file and os.path.isfile(file) else None  # "<stdin>" is no file
        return cls(
            asked={
                "name": name,
                "pickled": None if name else job.hook,
                "main": main,
                "is_async": job.is_async,
                "args": tuple(map(carried, job.args)),
                "kwargs": {key: carried(value) for key, value in job.kwargs.items()},
            },
            network=job.sandbox is not None and job.sandbox.network,
            timeout_s=job.tool.timeout_seconds,
            memory_bytes=Confined(argv=()).memory_bytes,
            sees_files=True,
            files=(main,) if main else (),
            homes=_homes_of(name),
        )

    @classmethod
    def of_plan(cls, planned: ConfinedCall) -> Request:
        """Return the request for a planned function: it sees no files but the modules'."""
        return cls(
            asked={
                "name": (planned.module, planned.name),
                "pickled": None,
                "main": None,
                "is_async": False,
                "args": (),
                "kwargs": dict(planned.arguments),
            },
            network=planned.network,
            timeout_s=planned.timeout_s,
            memory_bytes=planned.memory_bytes,
            sees_files=False,
        )


def limited(confined: Confined, terms: SandboxTerms | None, timeout_s: float) -> Confined:
    """Return what is to run within what the policy and the tool allow."""
    confined = replace(confined, timeout_s=min(confined.timeout_s, timeout_s))
    if terms is None:
        return confined
    memory = None if terms.memory_mb is None else terms.memory_mb * MEBIBYTE
    return replace(
        confined,
        timeout_s=least(terms.timeout_s, confined.timeout_s),
        memory_bytes=least(memory, confined.memory_bytes),
        processes=least(terms.processes, confined.processes),
        output_bytes=least(terms.output_bytes, confined.output_bytes),
        disk_bytes=confined.disk_bytes if terms.disk_mb is None else terms.disk_mb * MEBIBYTE,
    )


def _nothing_around(_job: Job, _confined: Confined, _backend: str) -> AbstractContextManager[None]:
    return nullcontext()


def _backend(job: Job) -> str:
    return "auto" if job.sandbox is None else job.sandbox.backend.value


def _name_of(hook: Any) -> tuple[str, ...]:
    """Return the module and name by which a child finds the same function; nothing where it cannot."""
    name, module = getattr(hook, "__qualname__", ""), getattr(hook, "__module__", "")
    is_plain = bool(name) and "<" not in name and not hasattr(hook, "__self__")
    return (module, name) if is_plain and module else ()


def _homes_of(name: tuple[str, ...]) -> tuple[str, ...]:
    """Return the folder a function's module was imported from, where the search path does not lead there any more."""
    top = sys.modules.get(name[0].partition(".")[0]) if name else None
    file = getattr(top, "__file__", None)
    if top is None or file is None or top.__name__ == "__main__":
        return ()
    home = os.path.dirname(os.path.abspath(file))
    home = os.path.dirname(home) if hasattr(top, "__path__") else home
    return () if home in map(os.path.abspath, sys.path) else (home,)


def _input_of(job: Job) -> ToolInput | None:
    return next((value for value in (*job.args, *job.kwargs.values()) if isinstance(value, ToolInput)), None)


def _settle(done: asyncio.Future[object], value: object, failure: BaseException | None) -> None:
    if done.cancelled():
        return
    if failure is None:
        done.set_result(value)
        return
    is_plain = isinstance(failure, Exception)
    lost = SandboxError(f"The sandbox failed: {type(failure).__name__}.", may_have_run=True)
    done.set_exception(failure if is_plain else lost)
    done.exception()  # looked at: nobody may wait for it any more


def _tell(given: ToolInput, loop: asyncio.AbstractEventLoop, *told: Any) -> None:
    answer = given.progress(*told)
    if asyncio.iscoroutine(answer):
        asyncio.run_coroutine_threadsafe(answer, loop).result()


def _lines(given: ToolInput, loop: asyncio.AbstractEventLoop) -> OnOutput:
    """Report the last line of output as progress, once in a while."""
    due = [time.monotonic() + PROGRESS_EVERY_S]

    def take(_stream: str, data: bytes) -> None:
        line = data.decode(errors="replace").strip().rpartition("\n")[2][-200:]
        if line and time.monotonic() >= due[0]:
            due[0] = time.monotonic() + PROGRESS_EVERY_S
            _tell(given, loop, None, line, None)

    return take


class _ChildOutput:
    """What the child tells, line by line."""

    def __init__(self, given: ToolInput | None, loop: asyncio.AbstractEventLoop) -> None:
        self._given = given
        self._loop = loop
        self._rest = b""
        self._last: dict[str, Any] = {}

    def take(self, stream: str, data: bytes) -> None:
        if stream != "stdout":
            return
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > MAX_RESULT_BYTES:
            self._rest = b""
        for line in lines:
            self._line(line)

    def _line(self, line: bytes) -> None:
        try:
            told = json.loads(line)
        except ValueError:
            return
        if not isinstance(told, dict):
            return
        progress = told.get("progress")
        if progress is None:
            self._last = told
        elif self._given is not None and isinstance(progress, list) and len(progress) == 3:
            _tell(self._given, self._loop, *progress)

    def outcome(self, job: Job, finished: Finished) -> object:
        """Return the callable's value, or raise what it raised; the child's words are data, nothing more."""
        told = self._last
        if finished.ending == "timeout":
            text = f"The handler of `{job.tool.name}` timed out in the sandbox and was stopped."
            raise ToolTimeoutError(text, tool=job.tool.name)
        if finished.ending != "exited":
            raise ToolExecutionError(
                f"The handler of `{job.tool.name}` was stopped in the sandbox ({finished.ending})."
            )
        if "raised" in told:
            job.began = told.get("began") is not False
            raised = ToolExecutionError(str(told.get("text") or told["raised"]), tool=job.tool.name)
            raised.is_transient = told.get("transient") is True
            raised.kinds = frozenset(map(str, told.get("kinds") or ()))
            raise raised
        if isinstance(told.get("output"), dict):
            fields = told["output"]
            return ToolOutput(
                success=fields.get("success") is True,
                data=fields.get("data"),
                error=fields.get("error"),
                undo_metadata=fields.get("undo_metadata"),
                artifacts=fields.get("artifacts") or [],
            )
        if "value" in told:
            return told["value"]
        said = finished.stderr.decode(errors="replace").strip()[-500:]
        raise ToolOutputError(f"The handler of `{job.tool.name}` ended without a result: {said or 'no output'}.")
