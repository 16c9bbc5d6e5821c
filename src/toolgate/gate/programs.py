"""The programs that sandboxed runs start from the workspace and from tool directories: pinned when first used.

One that is another file since does not run unless a person agreed to what it is now.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import Future
from datetime import datetime
from typing import Any

import orjson

from toolgate.errors import SandboxError
from toolgate.guards.pins import remember
from toolgate.kernel.call import Call
from toolgate.kernel.change import Change, Durability
from toolgate.kernel.context import SYSTEM_PROJECT
from toolgate.kernel.event import Draft
from toolgate.kernel.pin import FIRST_USE, FORGOTTEN, PINNED, PinBook, Program, stream_of
from toolgate.ports.store import Store

PAGE = 1000


class ProgramPins:
    """Keeps the book of one place. `commit` writes a change, and is the store's own until a gate gives a better one."""

    def __init__(self, store: Store, book: PinBook, *, now: Callable[[], datetime], place: str = "") -> None:
        self.book = book
        self._store = store
        self._now = now
        self._stream = stream_of(place)
        self._submit: Callable[[Coroutine[Any, Any, None]], Future[Any]] | None = None
        self.commit: Callable[[Change], Awaitable[None] | None] = store.commit

    def attach(
        self,
        submit: Callable[[Coroutine[Any, Any, None]], Future[Any]],
        commit: Callable[[Change], Awaitable[None] | None],
    ) -> None:
        """Work on the loop of a gate from now on, asked from any other thread."""
        self._submit, self.commit = submit, commit
        self.book.refresh = lambda: submit(self.read()).result()

    async def read(self) -> None:
        """Bring the book up to what the events tell by now."""
        while True:
            page = await self._store.events(SYSTEM_PROJECT, after=self.book.seq, limit=PAGE, call_id=self._stream)
            self.book.take(page)
            if len(page) < PAGE:
                remember(pin.program for pin in self.book.pins.values())
                return

    def settle(self, call: Call, programs: Sequence[Program], approver: str | None) -> None:
        """Let a run start these programs, off the loop: new ones are on record first; SandboxError for changed ones.

        What a person who approved this very call was shown of a changed one is pinned, and nothing else.
        """
        if self._submit is None or self.book.knows(programs):
            return
        self._submit(self.begin(call, programs, approver)).result()

    async def begin(self, call: Call, programs: Sequence[Program], approver: str | None) -> None:
        """Do what `settle` does, on the loop."""
        await self.read()
        agreed = _agreed(call) if approver is not None else {}
        drafts: list[Draft] = []
        for program in programs:
            changed = self.book.changed(program)
            if changed is None and program.path in self.book.pins:
                continue
            if changed is not None and agreed.get(program.path) != program.identity:
                raise SandboxError(
                    f"Nothing ran: {changed.reason}. Look at it, agree with `toolgate programs accept {program.path}`, "
                    "and make the call again."
                )
            by = FIRST_USE if changed is None or approver is None else approver
            drafts.append(self._pinned(program, by, of_project=call.project, of_call=call.id))
        await self._tell(drafts)

    def _pinned(self, program: Program, by: str, **more: str) -> Draft:
        before = self.book.pins.get(program.path)
        told = {**program._asdict(), "by": by, "before": None if before is None else before.program.sha256, **more}
        return (PINNED, self._stream, told, None)

    async def _tell(self, drafts: Sequence[Draft]) -> None:
        if drafts:
            change = Change(project=SYSTEM_PROJECT, at=self._now(), events=tuple(drafts), durability=Durability.FSYNCED)
            writing = self.commit(change)
            if writing is not None:
                await writing
        await self.read()

    async def accept(self, programs: Iterable[Program], *, by: str) -> None:
        """Record that somebody agrees to what these programs are now."""
        await self._tell([self._pinned(program, by) for program in programs])

    async def forget(self, paths: Sequence[str], *, by: str) -> None:
        """Take programs off the record: the next run of each is its first."""
        await self._tell([(FORGOTTEN, self._stream, {"paths": sorted(paths), "by": by}, None)] if paths else [])


def _agreed(call: Call) -> Mapping[str, Any]:
    """Return what a yes to this call rests on, as it was prepared: programs by their paths, among other things."""
    found = None if call.preconditions is None else orjson.loads(call.preconditions)
    return found if isinstance(found, dict) else {}
