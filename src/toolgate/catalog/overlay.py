"""Run a command that writes in an overlay before anybody is asked, and later apply what it changed, or take it back.

The run is the tool's `prepare`: it happens once. Its change set and its output are kept, sealed, with the call; they
are what a person says yes to. Executing the call is applying the set to files that are as they were.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from toolgate.catalog import git
from toolgate.catalog.applying import apply, conflicts, named, opened, restore
from toolgate.catalog.code import result_of
from toolgate.catalog.shown import shown_changes
from toolgate.errors import SandboxError, ToolDeniedError, ToolExecutionError, ToolUnknownOutcomeError
from toolgate.guards.change_set import Change, ChangeRefused, Node, changes_of, load, look
from toolgate.guards.edges import Edges, EdgeSource, RunLater, edges_of
from toolgate.guards.run_later import led_to, runs_later, told
from toolgate.guards.steering import is_repository
from toolgate.kernel.input import ToolInput
from toolgate.kernel.output import ToolOutput
from toolgate.kernel.tool import Prepared
from toolgate.kernel.undo import UndoMetadata
from toolgate.ports.confinement import Confined, ConfinedLine, Finished, InPlace, Layered, Overlaid

KEPT = "overlay"
"""The name under which preconditions hold a run in an overlay."""
TOO_MUCH = {
    "names": "it wrote more files than a change set can hold (10,000)",
    "bytes": "it wrote more than a change set can hold (64 MiB); have it write what need not stay to /tmp",
    "disk": "it wrote more than it may (`sandbox: {disk_mb: ...}` in the policy; 512 MiB by default)",
}
_REPOSITORY = frozenset(("HEAD", "objects", "refs"))
STEERING = frozenset(git.STEERING)
STOPPED = {
    "timeout": "Command timed out",
    "memory": "Command used too much memory",
    "disk": "Command wrote more to the disk than it may (`sandbox: {disk_mb: ...}` in the policy)",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rehearsed:
    """A run in an overlay, as it is kept with the call: its result, why it was stopped, and what it would change.

    ran_for: the digest of the arguments it ran with; it says nothing about a call that has others by now.
    """

    ran_for: str
    result: Mapping[str, Any]
    roots: tuple[str, ...]
    changes: tuple[Change, ...]
    stopped: str | None = None
    note: str | None = None

    def as_json(self) -> dict[str, Any]:
        return {
            KEPT: {
                "ran_for": self.ran_for,
                "result": self.result,
                "roots": self.roots,
                "changes": [change.as_json() for change in self.changes],
                "stopped": self.stopped,
                "note": self.note,
            }
        }

    @classmethod
    def of(cls, given: ToolInput) -> Rehearsed | None:
        """Return the run that was prepared for a call; None where there was none, or an edit made it another call."""
        kept = given.prepared
        if not isinstance(kept, dict) or KEPT not in kept or kept[KEPT].get("ran_for") != _digest(given):
            return None
        known = kept[KEPT]
        changes = load(known["changes"])
        return cls(**(known | {"roots": tuple(known["roots"]), "changes": changes}))

    def output(self) -> ToolOutput:
        """Return how the call ends once the changes are applied."""
        told = dict(self.result) | {"overlay": f"{len(self.changes)} changes applied" if self.changes else "no changes"}
        if self.stopped is not None:
            return ToolOutput.fail(f"{self.stopped}; nothing was applied", data=dict(self.result))
        return ToolOutput.ok(told)


class Runs(Protocol):
    """The hook of a tool that runs commands."""

    name: str

    @property
    def edges(self) -> EdgeSource: ...

    def planned(self, given: ToolInput) -> Confined | ConfinedLine: ...

    def described(self, given: ToolInput) -> Prepared: ...

    def writes(self, given: ToolInput) -> bool: ...


class Rehearsal:
    """The `prepare` hook: says what would run or, where the policy wants an overlay, runs it there."""

    def __init__(self, runs: Runs) -> None:
        self._runs = runs

    async def __call__(self, given: ToolInput) -> Prepared:
        raise ToolExecutionError(f"`{self._runs.name}` is prepared by the sandbox; this gate has no sandbox runner.")

    def plan(self, given: ToolInput) -> Overlaid | InPlace:
        """Return what runs in the overlay; nothing where the policy wants none, it writes nothing, or it ran before."""
        edges = edges_of(self._runs.edges)
        if edges.overlay(self._runs.name) is None or Rehearsed.of(given) is not None or not self._runs.writes(given):
            return InPlace()
        planned = self._runs.planned(given)
        online = next((one for one in _programs(planned) if one.reach is not None or one.network), None)
        if online is not None:
            raise ToolDeniedError(
                f"'{os.path.basename(online.argv[0])}' is refused: it has a network, and it or another command of its "
                "line writes. The policy says `overlay: true`, and an overlay run has no network, since it happens "
                "before anybody is asked. Make two calls of it, run it yourself, or write `overlay: false` under "
                "`commands:` for this tool."
            )
        return Overlaid(planned=planned)

    def conclude(self, given: ToolInput, layered: Layered | None) -> Prepared:
        described = self._runs.described(given)
        if layered is not None:
            return self._prepared(described, self._rehearsed(given, layered))
        kept = Rehearsed.of(given)
        return described if kept is None else self._prepared(described, kept)

    def _rehearsed(self, given: ToolInput, layered: Layered) -> Rehearsed:
        """Return a run as it is kept; raise where what it left may never be applied."""
        edges, finished = edges_of(self._runs.edges), layered.finished
        roots = tuple(dict.fromkeys(entry.root for entry in layered.written))
        if layered.too_much:
            raise _refused(finished, TOO_MUCH[layered.too_much])
        try:
            with opened(roots) as held:
                changes = changes_of(layered.written, held)
        except ChangeRefused as error:
            raise _refused(finished, str(error)) from None
        planted = next(_steering(edges, layered, changes), None)
        if planted is not None:
            raise ToolDeniedError(
                f"Nothing was applied: the command changed '{planted}', which steers programs or Toolgate itself. "
                "Change it yourself, or make an exception under `protected:` in the policy."
            )
        later = _run_later(changes)
        finished = replace(finished, run_later=later)
        left_out = [entry.path.decode(errors="replace") for entry in layered.written if entry.has_attributes]
        note = f"Extended attributes and access lists of {named(left_out)} are not applied." if left_out else None
        stopped = None if finished.ending == "exited" else STOPPED.get(finished.ending, "Command was stopped")
        return Rehearsed(
            ran_for=_digest(given),
            result=result_of(finished),
            roots=roots,
            changes=() if stopped else changes,
            stopped=stopped,
            note=note,
        )

    def _prepared(self, described: Prepared, kept: Rehearsed) -> Prepared:
        later = tuple(kept.result.get("run_later", ()))
        asks = self._judged(edges_of(self._runs.edges).overlay(self._runs.name) or "report", later)
        with opened(kept.roots) as held:
            changed = conflicts(kept.changes, held)
            if changed:
                raise ToolExecutionError(
                    f"{named(changed)} changed since the command ran; nothing was applied. Make the call again."
                )
            before = [replace(one, before=look(held[one.root], one.path)) for one in kept.changes]
        told = described.preview if isinstance(described.preview, dict) else {}
        preview = told | {"ran": "in an overlay, once; a yes applies what it changed"}
        preview |= shown_changes(before, kept.result)
        undo = [{"root": one.root, "path": one.path, "node": one.before.as_json(whole=True)} for one in before]
        return Prepared(
            preview=preview | ({} if kept.note is None else {"note": kept.note}),
            preconditions=kept.as_json(),
            undo_data={"paths": undo} if undo else None,
            asks=asks,
        )

    def _judged(self, word: RunLater, later: tuple[str, ...]) -> str | None:
        """Return why a person must be asked about files that run later; ToolDeniedError where they are denied."""
        if not later or word == "report":
            return None
        if word == "deny":
            raise ToolDeniedError(
                f"Nothing was applied. {told(later)} The policy says `run_later: deny`; with `ask`, a person decides."
            )
        return f"{told(later)} The policy says `run_later: ask`."


def _digest(given: ToolInput) -> str:
    """Return what tells the arguments of one call from others."""
    return hashlib.sha256(json.dumps(given.payload, sort_keys=True).encode()).hexdigest()


def _programs(planned: Confined | ConfinedLine) -> tuple[Confined, ...]:
    if isinstance(planned, Confined):
        return (planned,)
    return tuple(piped.confined for step in planned.steps for piped in step.piped)


def _refused(finished: Finished, why: str) -> ToolExecutionError:
    said = finished.stderr.decode(errors="replace").strip()[-300:]
    told = f" It ended with exit code {finished.exit_code}" + (f" and said: {said}" if said else ".")
    return ToolExecutionError(f"Nothing was applied: {why}.{told}")


def _run_later(changes: Sequence[Change]) -> tuple[str, ...]:
    """Return the changed files that run later, by name, or since a link of such a name leads to them."""
    touched = {os.path.join(*one.place): one.path for one in changes if not _is_folder(one)}
    found = {path for path in touched.values() if runs_later(path)}
    for root in dict.fromkeys(one.root for one in changes):
        found |= {touched[target] for target in led_to(root) if target in touched}
    return tuple(sorted(found))


def _is_folder(change: Change) -> bool:
    return "folder" in (change.before.kind, change.after.kind) and {change.before.kind, change.after.kind} <= {
        "folder",
        "absent",
    }


def _steering(edges: Edges, layered: Layered, changes: Sequence[Change]) -> Iterator[str]:
    """Yield the changed paths that steer programs or Toolgate itself and that no program of the run may change."""
    own = {os.path.realpath(path) for path in (*edges.policy_files, *edges.private_files)}
    may_make = any(makes for _, makes in layered.kept)
    for change in changes:
        path = os.path.join(*change.place)
        is_kept = all(any(_within(path, one) for one in kept) for kept, _ in layered.kept)
        top = _outermost(edges, change)
        is_new = top is not None and not os.path.lexists(top)
        is_made = is_new and may_make and os.path.basename(top or "") == ".git"
        if is_kept or path in own or (is_new and not is_made) or (not may_make and _steers_git(change.path)):
            yield path
    if not may_make:
        yield from _bare(changes)


def _steers_git(path: str) -> bool:
    """Whether a file of a repository names programs to run, or other places to look for them.

    Git may write in `.git`, but these only where it makes a repository: a link leads its output there.
    """
    _, found, inner = f"/{path}".partition("/.git/")
    top, *names = inner.split("/")
    return bool(found) and (top in STEERING or (top in ("modules", "worktrees") and not STEERING.isdisjoint(names)))


def _outermost(edges: Edges, change: Change) -> str | None:
    """Return the outermost name on the way to a path that steers programs."""
    at = change.root
    for name in change.path.split("/"):
        at = f"{at}/{name}"
        if edges.locked.match(at) is not None:
            return at
    return None


def _bare(changes: Sequence[Change]) -> Iterator[str]:
    """Yield the folders that become repositories, whatever they are called; inside a `.git` that is Git's business."""
    named_so = [os.path.join(*one.place) for one in changes if os.path.basename(one.path) in _REPOSITORY]
    folders = {os.path.dirname(path) for path in named_so}
    after = {os.path.join(*one.place): one.after.kind != "absent" for one in changes}
    for folder in sorted(folders):
        there = set(os.listdir(folder)) if os.path.isdir(folder) else set()
        names = {name for name in _REPOSITORY if after.get(f"{folder}/{name}", name in there)}
        if is_repository(names) and not is_repository(there) and ".git" not in folder.split("/"):
            yield folder


def _within(path: str, directory: str) -> bool:
    return path == directory or path.startswith(directory.rstrip("/") + "/")


def applied(kept: Rehearsed) -> ToolOutput:
    """Apply what a run changed, if the files are as they were, and return how the call ends."""
    with opened(kept.roots) as held:
        apply(kept.changes, held)
    return kept.output()


def must_be_rehearsed(name: str) -> SandboxError:
    """Return the error for a call that should have run in an overlay, and did not."""
    return SandboxError(
        f"Nothing ran: the policy wants what `{name}` writes to be prepared in an overlay, and it was not. Make the "
        "call again."
    )


class TakingBack:
    """The `undo_handler`: makes every path of a change set hold again what it held."""

    async def __call__(self, undo: UndoMetadata) -> None:
        raise ToolExecutionError("What a command changed is taken back by the sandbox's runner; this gate has none.")

    def plan(self, undo: UndoMetadata) -> InPlace:
        return InPlace(writable=tuple(dict.fromkeys(one["root"] for one in _paths(undo))))

    def conclude(self, undo: UndoMetadata, _finished: object) -> None:
        with opened(one["root"] for one in _paths(undo)) as held:
            restore([(held[one["root"]], one["path"], Node.of_json(one["node"])) for one in _paths(undo)])


def _paths(undo: UndoMetadata) -> list[dict[str, Any]]:
    paths: list[dict[str, Any]] = undo.undo_data.get("paths", [])
    return paths


def fingerprint(undo: UndoMetadata) -> dict[str, Any]:
    """Say what is there now at the paths of a change set."""
    with opened(one["root"] for one in _paths(undo)) as held:
        states = [(one, look(held[one["root"]], one["path"], may_be_closed=True)) for one in _paths(undo)]
    return {f"{one['root']}/{one['path']}": [now.kind, now.mode, now.digest, now.target] for one, now in states}


def reconcile(given: ToolInput) -> ToolOutput | None:
    """Say what an interrupted application did: all of it, nothing, or which part; None where nothing was prepared."""
    kept = Rehearsed.of(given)
    if kept is None:
        return None
    with opened(kept.roots) as held:
        now = [(one, look(held[one.root], one.path, may_be_closed=True)) for one in kept.changes]
    made = [one.path for one, found in now if found == one.after]
    left = [one.path for one, found in now if found != one.after]
    if not left:
        return kept.output()
    if all(found == one.before for one, found in now):
        return ToolOutput.fail("nothing of what the command changed was applied")
    raise ToolUnknownOutcomeError(
        f"{len(made)} of {len(now)} changes were applied: {named(made)}. Not applied: {named(left)}. To take back what "
        "was, settle the call with --happened and undo it"
    )
