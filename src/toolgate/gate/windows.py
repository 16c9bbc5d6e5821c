"""Whether the policy's files may be believed: runs in a sandbox that could write them open a window over them.

Windows are events, so every process that uses the store knows them, after a restart too. What a file says at the end
of one that it did not say before takes effect once a person accepted it.
"""

from __future__ import annotations

import difflib
import logging
import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from toolgate.errors import ConflictError, PolicyHeldError
from toolgate.guards.descriptor import Descriptor
from toolgate.guards.exposure import ABSENT, exposed, fingerprint, fingerprint_of, is_still, pin
from toolgate.kernel.call import Call, Status
from toolgate.kernel.change import Change, Durability
from toolgate.kernel.context import SYSTEM_PROJECT
from toolgate.kernel.policy import Policy
from toolgate.kernel.window import ACCEPTED, CLOSED, HELD, OPENED, RELEASED, STREAM, Ledger, Window
from toolgate.pipeline.driver import new_id
from toolgate.pipeline.plan import REMOTE
from toolgate.ports.store import Store

PAGE = 1000
LOOK_BACK = 2000
"""How many of the system's last events are read first for one that says where to begin."""
LOST = "The text from before is not known any more; look at the whole file.\n"
FEWEST = 12
"""How many characters of a revision name it."""
log = logging.getLogger("toolgate.policy")
Texts = Mapping[str, str]


class Held(NamedTuple):
    """A policy that waits for a person: what its files say, which of them changed, and how they differ from before.

    `kept` is the revision that was in force; `diffs` are made of whole texts, file by file. `diff` is all of them, and
    says so where the text from before is lost.
    """

    revision: str
    kept: str
    files: tuple[str, ...]
    diffs: Mapping[str, str]

    @property
    def diff(self) -> str:
        return "".join(self.diffs.values()) or LOST

    def as_json(self) -> dict[str, Any]:
        return {"revision": self.revision, "kept": self.kept, "files": list(self.files), "diff": self.diff}


def revision_of(policy: Policy) -> str:
    """Return what names everything that the files of a policy say, those of single projects too."""
    if not policy.projects:
        return policy.revision
    own = (f"{project} {policy.projects[project].revision}" for project in sorted(policy.projects))
    return fingerprint_of("\n".join((policy.revision, *own)))


def is_named(revision: str, given: str) -> bool:
    """Whether somebody named this revision, or enough of its beginning."""
    return len(given) >= min(FEWEST, len(revision)) and revision.startswith(given)


class PolicyWindows:
    """Opens, closes and looks through windows over the files of one policy.

    `named` gives the paths where it would be read from if anything were there; `place` is the machine, where machines
    share a store. `commit` writes a change, and is the store's own until a gate gives it a better one.
    """

    def __init__(
        self,
        store: Store,
        named: Callable[[], Iterable[str]],
        *,
        now: Callable[[], datetime],
        place: str = "",
        mask: Callable[[str], str] = str,
    ) -> None:
        self._store = store
        self._named = named
        self._now = now
        self._place = place
        self._mask = mask
        self._ledger = Ledger()
        self._begun = False
        self._lock = threading.Lock()
        self._own: dict[str, dict[str, Descriptor]] = {}
        """The windows of this process, each with the files that mounts keep from its run."""
        self._texts_at: dict[str, int] = {}
        self.commit: Callable[[Change], Awaitable[None] | None] = store.commit

    @property
    def seq(self) -> int:
        """The number of the last event that was read."""
        return self._ledger.seq

    async def read(self) -> Ledger:
        """Return what the events tell by now."""
        if not self._begun:
            begin = await self._beginning()
            with self._lock:
                self._ledger.seq = max(self._ledger.seq, begin)
                self._begun = True
        while True:
            page = await self._events(self._ledger.seq, PAGE)
            with self._lock:
                self._ledger.take(page)
            if len(page) < PAGE:
                return self._ledger

    async def _beginning(self) -> int:
        """Return the number of the event after which everything lies that still counts."""
        head, back = await self._store.head(SYSTEM_PROJECT), LOOK_BACK
        while back < head.seq:
            first = await self._events(head.seq - back, 1)
            if first:
                since: int = first[0].data["since"]
                return since - 1
            back *= 4
        return 0

    async def _events(self, after: int, limit: int) -> list[Any]:
        return await self._store.events(SYSTEM_PROJECT, after=after, limit=limit, call_id=STREAM)

    async def _tell(
        self,
        name: str,
        facts: dict[str, Any],
        said: dict[str, Any] | None = None,
        *,
        durability: Durability = Durability.FSYNCED,
    ) -> None:
        data = {**facts, "since": self._ledger.since}
        events = ((name, STREAM, data, said),)
        writing = self.commit(Change(project=SYSTEM_PROJECT, at=self._now(), events=events, durability=durability))
        if writing is not None:
            await writing

    def exposed(self, policy: Policy, writable: Sequence[str], kept: Sequence[str]) -> Mapping[str, bool]:
        """Return the files that a run with these rights could write, each with whether mounts keep it."""
        return exposed(self._watched(policy.texts()), writable=writable, kept=kept)

    def _watched(self, texts: Texts) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*texts, *self._named())))

    async def open(self, call: Call, policy: Policy, files: Mapping[str, bool]) -> Window:
        """Record that a run begins which could write these files; durable when it returns.

        What mounts keep from it needs a window, too: an editor's save puts a new file at the name, which takes the
        mount away, and the run can write that one. While the very file is there that was there before, whatever it
        says is not the run's; so it is pinned. Since that takes a save during the run, the record of such files alone
        is not flushed to disk, which would cost most of the time: it survives this process, and other processes see it.
        """
        await self.read()
        texts, revision = policy.texts(), revision_of(policy)
        told_at = self._texts_at.get(revision, 0)
        window = Window(
            new_id(),
            0,
            self._place,
            call.project,
            call.id,
            revision,
            told_at,
            {path: self._trusted(path, texts) for path in files},
        )
        durability = Durability.COMMITTED if all(files.values()) else Durability.FSYNCED
        said = None if told_at else {"policy_texts": {path: self._mask(text) for path, text in texts.items()}}
        self._own[window.id] = self._pinned(path for path, is_kept in files.items() if is_kept)
        try:
            await self._tell(OPENED, window.told(), said, durability=durability)
        except BaseException:
            self._let_go(window)
            raise
        opened = (await self.read()).windows[window.id]
        self._texts_at[revision] = opened.texts_at
        return opened

    def _trusted(self, path: str, texts: Texts) -> frozenset[str]:
        """Return what may be in a file: what is in force and, unless somebody must look at it first, what is there."""
        doubts = self._doubts(path, {})
        trusted = {text for one in doubts for text in one.files[path]} if doubts else {fingerprint(path)}
        if path in texts:
            trusted.add(fingerprint_of(texts[path]))
        return frozenset(trusted)

    def _pinned(self, kept: Iterable[str]) -> dict[str, Descriptor]:
        held = {path: pin(path) for path in kept if not self._doubts(path, {})}
        return {path: pinned for path, pinned in held.items() if pinned is not None}

    def _let_go(self, window: Window) -> None:
        for pinned in self._own.pop(window.id, {}).values():
            pinned.close()

    def _doubts(self, path: str, texts: Texts) -> list[Window]:
        """Return what keeps a file from being believed as it was read, or as it is where it was not."""
        return [one for one in self._over(path) if not self._is_trusted(path, one, texts)]

    def _is_trusted(self, path: str, window: Window, texts: Texts) -> bool:
        """Whether a file says what it may. A pin counts in the process that has it: a number alone comes again."""
        if (fingerprint_of(texts[path]) if path in texts else fingerprint(path)) in window.files[path]:
            return True
        pinned = self._own.get(window.id, {}).get(path)
        return pinned is not None and is_still(pinned, path)

    def _over(self, path: str) -> list[Window]:
        return [one for one in self._ledger.guards() if one.place == self._place and path in one.files]

    async def close(self, window: Window) -> tuple[str, ...]:
        """Record that a run is over, and return the files that wait for a person because of it."""
        ledger = await self.read()
        now = ledger.windows.get(window.id, window)
        changed = {path: texts for path, texts in now.files.items() if not self._is_trusted(path, now, {})}
        self._let_go(window)
        if window.id not in ledger.windows:
            return ()
        if not changed:
            await self._tell(CLOSED, {"window": window.id}, durability=Durability.COMMITTED)
        else:
            found = {path: fingerprint(path) for path in changed}
            await self._tell(HELD, {**now._replace(files=changed).told(), "found": found})
            log.warning("policy files changed during a run that could write them, and are held: %s", ", ".join(changed))
        await self.read()
        return tuple(changed)

    async def settle(self) -> None:
        """Close the windows of runs that died with their process, and release what says again what is trusted."""
        ledger = await self.read()
        for window in [one for one in ledger.windows.values() if one.place == self._place]:
            if window.id not in self._own and await self._is_over(window):
                await self.close(window)
        if any(one.place == self._place for one in ledger.windows.values()):
            return
        for hold in [one for one in ledger.holds.values() if one.place == self._place]:
            if all(self._is_trusted(path, hold, {}) for path in hold.files):
                await self._tell(RELEASED, {"window": hold.id})
        await self.read()

    async def _is_over(self, window: Window) -> bool:
        call = await self._store.call(window.project, window.call_id)
        if call is None or call.status is not Status.EXECUTING:
            return True
        if call.placement in REMOTE:  # whoever runs it may live on
            return False
        orphans = await self._store.orphans(limit=PAGE)
        return any((one.project, one.id) == (call.project, call.id) for one in orphans)

    async def doubted(self, policy: Policy) -> tuple[str, ...]:
        """Return the files that keep this policy, as it was read, from taking effect."""
        await self.read()
        return self._doubted(policy.texts())

    def _doubted(self, texts: Texts) -> tuple[str, ...]:
        return tuple(path for path in self._watched(texts) if self._doubts(path, texts))

    async def held(self, policy: Policy) -> Held | None:
        """Return what a person must look at before this policy, as it was read, takes effect; None: nothing."""
        files = await self.doubted(policy)
        if not files:
            return None
        window = next(one for path in files for one in self._over(path))
        told = await self._store.events(SYSTEM_PROJECT, after=window.texts_at - 1, limit=1)
        before: Texts = told[0].data.get("policy_texts", {}) if told else {}
        now = {path: self._mask(text) for path, text in policy.texts().items()}
        return Held(revision_of(policy), window.revision, files, dict(_diffs(before, now)))

    async def admit(self, policy: Policy, accepted: str | None, *, by: str) -> None:
        """Let a start follow this policy; PolicyHeldError where a person must look at it first and nobody named it."""
        await self.settle()
        files = await self.doubted(policy)
        if not files:
            return
        if accepted is None or not is_named(revision_of(policy), accepted):
            raise PolicyHeldError(revision_of(policy), files)
        await self.accept(policy, accepted, by=by)

    async def accept(self, policy: Policy, revision: str, *, by: str) -> None:
        """Record that somebody accepts this policy, as it was read; ConflictError where that is another revision.

        Where nothing waits for a word, as after the first of two presses, nothing is recorded.
        """
        real = revision_of(policy)
        if not is_named(real, revision):
            raise ConflictError(
                f"The policy files say revision {real[:FEWEST]} now, not {revision[:FEWEST]!r}; look at what changed, "
                "and accept that."
            )
        texts = policy.texts()
        if not await self.doubted(policy):
            return
        files = {path: fingerprint(path) for path in self._watched(texts)}
        files |= {path: fingerprint_of(text) for path, text in texts.items()}
        gone = {path for one in await self._guards() for path in one.files} - files.keys()
        files |= {path: ABSENT for path in gone if fingerprint(path) == ABSENT}
        await self._tell(ACCEPTED, {"place": self._place, "revision": real, "by": by, "files": files})
        await self.read()

    async def _guards(self) -> list[Window]:
        return [one for one in (await self.read()).guards() if one.place == self._place]


def _diffs(before: Texts, now: Texts) -> Iterator[tuple[str, str]]:
    for path in sorted({*before, *now} if before else ()):
        old, new = before.get(path, ""), now.get(path, "")
        if old != new:
            lines = difflib.unified_diff(old.splitlines(), new.splitlines(), path, path, "before", "now", lineterm="")
            yield path, "".join(f"{line}\n" for line in lines)
