"""Change files: `write_file`, `edit_file` and `delete_file`, each with a preview, a precondition and an undo.

What a change would do is worked out by `prepare` without touching anything. The change itself is a temporary file
renamed over the old one, on disk before it counts. Undo puts back content, mode and absence.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import hashlib
import os
import secrets
import stat
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import orjson

from toolgate.errors import ToolDeniedError, ToolExecutionError, ToolUnknownOutcomeError
from toolgate.guards.descriptor import Descriptor
from toolgate.guards.edges import Edges, EdgeSource, edges_of
from toolgate.guards.files import PathFact, PathRefused, cannot_open
from toolgate.kernel.input import ToolInput
from toolgate.kernel.output import ToolOutput
from toolgate.kernel.text.diff import diff_text
from toolgate.kernel.tool import Prepared, ToolDefinition
from toolgate.kernel.undo import UndoMetadata
from toolgate.ports.confinement import MEBIBYTE

MAX_UNDO_BYTES = 64 * MEBIBYTE
"""The largest file that is changed: what it held must be kept to be put back."""
MAX_DIFF_BYTES = 1 * MEBIBYTE
MAX_SHOWN = 100_000
_REMEMBERED = 1024
QUOTES = 12
"""Room for the quotes around a text, so that one of a few letters counts as short."""

PATH = {"type": "string", "format": "path", "minLength": 1, "description": "The file; taken literally."}
ENCODING = {
    "type": "string",
    "enum": ["text", "base64"],
    "default": "text",
    "description": "`text` for UTF-8, `base64` for bytes.",
}
WRITE_SCHEMA = {
    "type": "object",
    "properties": {
        "path": PATH,
        "content": {"type": "string", "description": "What the file shall hold, whole."},
        "encoding": ENCODING,
        "create_directories": {"type": "boolean", "default": True, "description": "Make missing directories."},
    },
    "required": ["path", "content"],
    "additionalProperties": False,
}
EDIT_SCHEMA = {
    "type": "object",
    "properties": {
        "path": PATH,
        "old_text": {"type": "string", "minLength": 1, "description": "The text to replace, exactly as it stands."},
        "new_text": {"type": "string", "description": "What takes its place."},
        "replace_all": {"type": "boolean", "default": False, "description": "Replace every occurrence, not just one."},
    },
    "required": ["path", "old_text", "new_text"],
    "additionalProperties": False,
}
DELETE_SCHEMA = {
    "type": "object",
    "properties": {
        "path": {**PATH, "format": "link-path", "description": "The file, or the link itself; taken literally."}
    },
    "required": ["path"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """What a path holds: nothing, bytes with a mode, or a link. `stamp` tells quickly whether it is still the same."""

    content: bytes | None
    mode: int | None = None
    stamp: tuple[int, ...] | None = None
    link: str | None = None

    @property
    def is_there(self) -> bool:
        return self.content is not None or self.link is not None

    @property
    def digest(self) -> str | None:
        return None if self.content is None else hashlib.sha256(self.content).hexdigest()

    def as_json(self) -> dict[str, Any]:
        known = {"sha256": self.digest, "mode": self.mode}
        return known if self.link is None else {**known, "link": self.link}


NOTHING = State(content=None)
Plan = Callable[[dict[str, Any], State], bytes | None]
"""From a call's arguments and what is there to what shall be there; None for nothing."""


def tools(edges: EdgeSource) -> list[ToolDefinition]:
    """Return the tools that change files."""
    return [
        _definition(Change(edges, "write_file", written), WRITE_SCHEMA, "Write content to a file."),
        _definition(
            Change(edges, "edit_file", edited), EDIT_SCHEMA, "Replace an exact piece of text in a file by another."
        ),
        _definition(Change(edges, "delete_file", deleted, follow=False), DELETE_SCHEMA, "Delete a file."),
    ]


def _definition(change: Change, schema: dict[str, Any], description: str) -> ToolDefinition:
    return ToolDefinition(
        change.name,
        schema,
        change.run,
        description=description,
        approval_message=f"{description} The preview shows what would change.",
        category="system_write",
        risk_level="high",
        effects="reversible",
        nothing_happened=(ToolExecutionError, ToolDeniedError, OSError),
        undoable=True,
        undo_handler=change.undo,
        prepare=change.prepare,
        fingerprint=change.fingerprint,
    )


def written(arguments: dict[str, Any], before: State) -> bytes:
    """Return what `write_file` leaves."""
    if arguments.get("encoding", "text") == "text":
        return str(arguments["content"]).encode()
    try:
        return base64.b64decode(arguments["content"], validate=True)
    except (binascii.Error, ValueError):
        raise ToolExecutionError("The content is not valid base64.") from None


def edited(arguments: dict[str, Any], before: State) -> bytes:
    """Return what `edit_file` leaves; the old text must be there once, or every occurrence meant."""
    if before.content is None:
        raise ToolExecutionError(f"{arguments['path']!r} does not exist; write it instead.")
    old, new = arguments["old_text"].encode(), arguments["new_text"].encode()
    count = before.content.count(old)
    if count == 0:
        raise ToolExecutionError(f"The old text does not occur in {arguments['path']!r}; read the file again.")
    if count > 1 and not arguments.get("replace_all", False):
        raise ToolExecutionError(
            f"The old text occurs {count} times in {arguments['path']!r}; give more of what surrounds it, "
            "or set replace_all."
        )
    return before.content.replace(old, new)


def deleted(arguments: dict[str, Any], before: State) -> None:
    """What `delete_file` leaves is nothing, where there was something."""
    if not before.is_there:
        raise ToolExecutionError(f"{arguments['path']!r} does not exist.")


class Change:
    """One of the tools: its plan, and the hooks that all of them share. follow: a link stands for what it points at."""

    def __init__(self, edges: EdgeSource, name: str, plan: Plan, *, follow: bool = True) -> None:
        self.name = name
        self._follow = follow
        self._edges = edges
        self._plan = plan
        self._seen: OrderedDict[str, tuple[int, ...] | None] = OrderedDict()

    def prepare(self, given: ToolInput) -> Prepared:
        """Say what would change, what it rests on, and what would put it back."""
        edges, arguments = edges_of(self._edges), given.payload
        fact = self._look(edges, arguments["path"])
        before = state_of(edges, fact)
        after = self._result(edges, arguments, before)
        self._remember(str(given.action_id), before.stamp)
        return Prepared(
            preview=preview(fact, before, after),
            preconditions={"path": fact.path, **before.as_json()},
            undo_data={
                "path": fact.path,
                **_kept(before.content),
                "mode": before.mode,
                "directories": _missing(edges, fact) if before.content is None and after is not None else [],
                **({} if before.link is None else {"link": before.link}),
            },
        )

    def run(self, given: ToolInput) -> ToolOutput:
        """Make the change, if what is there is what was prepared for.

        A plain function: the runner knows that it cannot be stopped halfway, and says so where somebody tries.
        """
        return self._run(given.payload, str(given.action_id))

    def _run(self, arguments: dict[str, Any], action_id: str) -> ToolOutput:
        edges = edges_of(self._edges)
        fact = self._look(edges, arguments["path"])
        before = state_of(edges, fact)
        if action_id in self._seen and self._seen.pop(action_id) != before.stamp:
            raise ToolExecutionError(f"{arguments['path']!r} changed since this was prepared; nothing was written.")
        after = self._result(edges, arguments, before)
        if after is None:
            remove(edges, fact)
        else:
            replace_file(edges, fact, after, before.mode, parents=arguments.get("create_directories", True))
        size = None if after is None else len(after)
        return ToolOutput.ok({"path": arguments["path"], "size": size, "created": not before.is_there})

    def undo(self, undo: UndoMetadata) -> None:
        """Put back what was there."""
        edges, data = edges_of(self._edges), undo.undo_data
        fact = self._look(edges, data["path"])
        if data.get("link") is not None:
            make_link(edges, fact, data["link"])
        elif data["before"] is None:
            remove(edges, fact)
            for directory in data["directories"]:
                _remove_directory(edges, self.name, directory)
        else:
            before = data["before"].encode() if data.get("encoding") == "text" else base64.b64decode(data["before"])
            replace_file(edges, fact, before, data["mode"], parents=True)

    def fingerprint(self, undo: UndoMetadata) -> dict[str, Any]:
        """Say what is there now."""
        edges = edges_of(self._edges)
        return state_of(edges, self._look(edges, undo.undo_data["path"])).as_json()

    def _look(self, edges: Edges, path: str) -> PathFact:
        fact = edges.look(self.name, path, "write", follow=self._follow)
        if fact.kind == "directory" or os.path.basename(path) in ("", "."):
            raise PathRefused("kind", f"{path!r} names a directory, not a regular file.")
        return fact

    def _result(self, edges: Edges, arguments: dict[str, Any], before: State) -> bytes | None:
        after = self._plan(arguments, before)
        limit = edges.limit(self.name, MAX_UNDO_BYTES)
        if after is not None and len(after) > limit:
            raise ToolExecutionError(f"The content is {len(after)} bytes, more than the {limit} allowed.")
        return after

    def _remember(self, action_id: str, stamp: tuple[int, ...] | None) -> None:
        self._seen[action_id] = stamp
        if len(self._seen) > _REMEMBERED:
            self._seen.popitem(last=False)


def _kept(content: bytes | None) -> dict[str, Any]:
    """Return what undo data says of a file's content: as text, unless its escapes would take more than base64 does."""
    if content is None:
        return {"before": None}
    with contextlib.suppress(UnicodeDecodeError):
        text = content.decode()
        if len(orjson.dumps(text)) * 3 <= len(content) * 4 + QUOTES:
            return {"before": text, "encoding": "text"}
    return {"before": base64.b64encode(content).decode()}


def state_of(edges: Edges, fact: PathFact) -> State:
    """Return what a path holds now."""
    if fact.kind == "absent":
        return NOTHING
    if fact.kind == "link":
        return _link_state(edges, fact)
    descriptor, status = edges.workspace.open_with_status(fact, os.O_RDONLY)
    with Descriptor(descriptor) as opened:
        if not stat.S_ISREG(status.st_mode):
            raise ToolExecutionError(f"{fact.given!r} is not a regular file.")
        if status.st_size > MAX_UNDO_BYTES:
            raise ToolExecutionError(
                f"{fact.given!r} is {status.st_size} bytes; files above {MAX_UNDO_BYTES} are not changed, "
                "since they could not be put back."
            )
        content = _read(opened.number)
    stamp = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    return State(content=content, mode=stat.S_IMODE(status.st_mode), stamp=stamp)


def _link_state(edges: Edges, fact: PathFact) -> State:
    """Return what a link says; where it leads is not looked at."""
    directory, name = edges.workspace.open_parent(fact)
    with Descriptor(directory):
        try:
            status, target = os.lstat(name, dir_fd=directory), os.readlink(name, dir_fd=directory)
        except OSError as error:
            raise cannot_open(fact.given, error) from None
    stamp = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    return State(content=None, stamp=stamp, link=target)


def _read(descriptor: int) -> bytes:
    pieces: list[bytes] = []
    while piece := os.read(descriptor, 1 << 20):
        pieces.append(piece)
    return b"".join(pieces)


def preview(fact: PathFact, before: State, after: bytes | None) -> dict[str, Any]:
    """Return a unified diff of a change, for a person; sizes alone where there is no text to compare."""
    action = "delete" if after is None else "create" if before.content is None else "replace"
    old, new = before.content or b"", after or b""
    shown: dict[str, Any] = {"path": fact.path, "action": action, "bytes_before": len(old), "bytes_after": len(new)}
    if before.link is not None:
        return shown | {"diff": None, "note": f"a link to {before.link!r}; what it leads to stays"}
    if len(old) + len(new) > MAX_DIFF_BYTES:
        return shown | {"diff": None, "note": "too large to compare"}
    try:
        texts = old.decode(), new.decode()
    except UnicodeDecodeError:
        return shown | {"diff": None, "note": "not text"}
    if "\0" in texts[0] + texts[1]:
        return shown | {"diff": None, "note": "not text"}
    found = diff_text(*texts, fromfile=f"a/{fact.relative}", tofile=f"b/{fact.relative}")
    diff = found.diff_output
    if len(diff) > MAX_SHOWN:
        diff = f"{diff[:MAX_SHOWN]}\n[... {len(diff) - MAX_SHOWN} characters left out ...]"
    return shown | {"diff": diff, "additions": found.additions, "deletions": found.deletions}


def replace_file(edges: Edges, fact: PathFact, content: bytes, mode: int | None, *, parents: bool) -> None:
    """Put a file in place at once and durably: whole under another name first, then renamed."""
    directory, name = _parent(edges, fact, parents)
    temporary = f".{secrets.token_hex(8)}.toolgate"
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(temporary, flags, 0o600, dir_fd=directory)
        try:
            with os.fdopen(descriptor, "wb", buffering=0) as file:
                _write(descriptor, content)
                _keep_owner(descriptor, directory, name)
                os.fchmod(descriptor, _new_mode() if mode is None else mode & 0o7777)
                os.fsync(file.fileno())
            os.rename(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary, dir_fd=directory)
            raise
        _make_lasting(directory)
    finally:
        os.close(directory)


def _make_lasting(directory: int) -> None:
    """Write a changed directory to the disk; where that fails, the change is there, but may be gone after a crash."""
    try:
        os.fsync(directory)
    except OSError as error:
        raise ToolUnknownOutcomeError(f"the change may not outlast a crash: {error.strerror}") from error


def _write(descriptor: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(descriptor, view) :]


def _keep_owner(descriptor: int, directory: int, name: str) -> None:
    """Give the new file the old one's owner, where we may."""
    with contextlib.suppress(FileNotFoundError, PermissionError):
        old = os.stat(name, dir_fd=directory, follow_symlinks=False)
        if (old.st_uid, old.st_gid) != (os.geteuid(), os.getegid()):
            os.fchown(descriptor, old.st_uid, old.st_gid)


def _new_mode() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return 0o666 & ~mask


def remove(edges: Edges, fact: PathFact) -> None:
    """Delete a file, durably."""
    directory, name = edges.workspace.open_parent(fact)
    try:
        os.unlink(name, dir_fd=directory)
        _make_lasting(directory)
    except FileNotFoundError:
        raise ToolExecutionError(f"{fact.given!r} does not exist.") from None
    finally:
        os.close(directory)


def make_link(edges: Edges, fact: PathFact, target: str) -> None:
    """Put a link back where there is nothing, durably."""
    directory, name = _parent(edges, fact, parents=True)
    with Descriptor(directory):
        try:
            os.symlink(target, name, dir_fd=directory)
        except FileExistsError:
            raise ToolExecutionError(f"{fact.given!r} is there again; the link was not put back.") from None
        _make_lasting(directory)


def _missing(edges: Edges, fact: PathFact) -> list[str]:
    """Return the directories that do not exist on the way to a file, innermost first."""
    found: list[str] = []
    path = os.path.dirname(fact.path)
    while path != fact.root and edges.workspace.look(path).kind == "absent":
        found.append(path)
        path = os.path.dirname(path)
    return found


def _parent(edges: Edges, fact: PathFact, parents: bool) -> tuple[int, str]:
    missing = _missing(edges, fact) if fact.kind == "absent" else []
    if missing and not parents:
        raise ToolExecutionError(f"The directory of {fact.given!r} does not exist; set create_directories.")
    for path in reversed(missing):
        directory, name = edges.workspace.open_parent(edges.workspace.look(path))
        try:
            with contextlib.suppress(FileExistsError):
                os.mkdir(name, 0o777, dir_fd=directory)
        finally:
            os.close(directory)
    return edges.workspace.open_parent(fact)


def _remove_directory(edges: Edges, tool: str, path: str) -> None:
    """Remove a directory that the change made, unless something else is in it by now."""
    with contextlib.suppress(OSError, PathRefused):
        directory, name = edges.workspace.open_parent(edges.look(tool, path, "write"))
        try:
            os.rmdir(name, dir_fd=directory)
        finally:
            os.close(directory)
