"""Look at files: `read_file` and `list_directory`. Nothing here writes; `changes` does."""

from __future__ import annotations

import asyncio
import base64
import functools
import os
import stat
from typing import Any

from toolgate.errors import ToolExecutionError
from toolgate.guards.edges import Edges, EdgeSource, edges_of
from toolgate.guards.files import PathFact, kind_of
from toolgate.kernel.context import Mode
from toolgate.kernel.signature import tool
from toolgate.kernel.tool import ToolDefinition
from toolgate.ports.confinement import MEBIBYTE

QUICK_BYTES = 262_144
"""Files up to this size are read at once; larger ones on a thread, so that others go on meanwhile."""
MAX_ENTRIES = 10_000
EVERY_MODE = tuple(mode.value for mode in Mode)
PATH = {"type": "string", "format": "path", "minLength": 1}


def tools(edges: EdgeSource) -> list[ToolDefinition]:
    """Return the tools that look at files."""
    return [
        tool(
            name="read_file",
            description="Read the contents of a file.",
            input_schema=READ_SCHEMA,
            category="read_only",
            risk_level="low",
            effects="read",
            allowed_modes=EVERY_MODE,
        )(functools.partial(read_file, edges)),
        tool(
            name="list_directory",
            description="List the files in a directory.",
            input_schema=LIST_SCHEMA,
            category="read_only",
            risk_level="low",
            effects="read",
            allowed_modes=EVERY_MODE,
        )(functools.partial(list_directory, edges)),
    ]


READ_SCHEMA = {
    "type": "object",
    "properties": {
        "path": {**PATH, "description": "The file, absolute or relative to the workspace; taken literally."},
        "max_size_mb": {
            "type": "number",
            "exclusiveMinimum": 0,
            "maximum": 1000,
            "default": 10,
            "description": "Refuse files larger than this many MiB.",
        },
        "encoding": {
            "type": "string",
            "enum": ["text", "base64"],
            "default": "text",
            "description": "`text` for UTF-8, `base64` for anything else.",
        },
        "first_line": {"type": "integer", "minimum": 1, "default": 1, "description": "Begin at this line."},
        "max_lines": {"type": "integer", "minimum": 1, "description": "Return at most this many lines."},
    },
    "required": ["path"],
    "additionalProperties": False,
}
LIST_SCHEMA = {
    "type": "object",
    "properties": {
        "path": {**PATH, "default": ".", "description": "The directory; the workspace by default."},
        "max_entries": {
            "type": "integer",
            "minimum": 1,
            "maximum": MAX_ENTRIES,
            "default": 1000,
            "description": "Return at most this many entries.",
        },
        "recursive": {
            "type": "boolean",
            "default": False,
            "description": "Also what is in the directories beneath, by paths from this one.",
        },
    },
    "additionalProperties": False,
}


async def read_file(
    edges: EdgeSource,
    path: str,
    max_size_mb: float = 10,
    encoding: str = "text",
    first_line: int = 1,
    max_lines: int | None = None,
) -> dict[str, Any]:
    """Return a file's content, whole or by lines. Its size is the open file's own, in bytes."""
    current = edges_of(edges)
    fact = current.look("read_file", path, "read")
    limit = current.limit("read_file", int(max_size_mb * MEBIBYTE))
    if (fact.size or 0) <= QUICK_BYTES:
        data = read_bytes(current, fact, limit)
    else:
        data = await asyncio.to_thread(read_bytes, current, fact, limit)
    size = len(data)
    if encoding == "base64":
        return {"content": base64.b64encode(data).decode(), "size": size, "encoding": "base64"}
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise ToolExecutionError(f"{path!r} is not UTF-8 text; read it with encoding 'base64'.") from None
    if first_line == 1 and max_lines is None:
        return {"content": text, "size": size}
    return {"size": size, **_lines(text, first_line, max_lines)}


def _lines(text: str, first: int, most: int | None) -> dict[str, Any]:
    lines = text.splitlines(keepends=True)
    end = len(lines) if most is None else min(len(lines), first - 1 + most)
    return {
        "content": "".join(lines[first - 1 : end]),
        "first_line": first,
        "total_lines": len(lines),
        "truncated": first > 1 or end < len(lines),
    }


def read_bytes(edges: Edges, fact: PathFact, limit: int) -> bytes:
    """Return all of a regular file, if it is no larger than allowed."""
    require_file(fact)
    descriptor, status = edges.workspace.open_with_status(fact, os.O_RDONLY)
    try:
        size = status.st_size
        if size > limit:
            raise ToolExecutionError(f"{fact.given!r} is {size} bytes, more than the {limit} allowed.")
        data = os.read(descriptor, size + 1)
        while len(data) < size and (more := os.read(descriptor, size - len(data))):
            data += more
        if len(data) > size and len(data) + len(rest := os.read(descriptor, limit)) > limit:
            raise ToolExecutionError(f"{fact.given!r} grew beyond the {limit} bytes allowed while it was read.")
        return data if len(data) <= size else data + rest
    finally:
        os.close(descriptor)


def require_file(fact: PathFact) -> None:
    """Raise for what is no regular file; the text never says what is in it."""
    if fact.kind == "absent":
        raise ToolExecutionError(f"{fact.given!r} does not exist.")
    if fact.kind != "file":
        raise ToolExecutionError(f"{fact.given!r} is a {fact.kind}, not a regular file.")


async def list_directory(
    edges: EdgeSource, path: str = ".", max_entries: int = 1000, recursive: bool = False
) -> dict[str, Any]:
    """Return the entries of a directory by name, with their kind and size. Links are shown, not followed.

    What the policy protects is named where it lies, and not looked into.
    """
    current = edges_of(edges)
    fact = current.look("list_directory", path, "list")
    if fact.kind != "directory":
        there = "does not exist" if fact.kind == "absent" else f"is a {fact.kind}, not a directory"
        raise ToolExecutionError(f"{path!r} {there}.")
    return await asyncio.to_thread(_tree if recursive else _entries, current, fact, max_entries)


def _tree(edges: Edges, fact: PathFact, most: int) -> dict[str, Any]:
    """List a directory and those beneath it, each before what it holds; stops where enough is found."""
    entries: list[dict[str, Any]] = []
    ahead = [""]
    while ahead and len(entries) <= most:
        inside = ahead.pop()
        found = edges.workspace.look(os.path.join(fact.path, inside)) if inside else fact
        if inside and not _may_enter(edges, found):
            continue
        listed = _entries(edges, found, most + 1 - len(entries))["entries"]
        for entry in listed:
            entry["name"] = os.path.join(inside, entry["name"])
        entries += listed
        ahead += [entry["name"] for entry in reversed(listed) if entry["type"] == "directory"]
    kept = entries[:most]
    return {"path": fact.given, "entries": kept, "total": len(entries), "truncated": len(entries) > most}


def _may_enter(edges: Edges, fact: PathFact) -> bool:
    """Whether a directory that was found may be listed: it is still one, and the policy has nothing against it."""
    return fact.kind == "directory" and edges.judge_path("list_directory", fact, "list") is None


def _entries(edges: Edges, fact: PathFact, most: int) -> dict[str, Any]:
    descriptor = edges.workspace.open(fact, os.O_RDONLY | os.O_DIRECTORY)
    try:
        names = sorted(os.listdir(descriptor))
        entries = [_entry(descriptor, name) for name in names[:most]]
    finally:
        os.close(descriptor)
    return {
        "path": fact.given,
        "entries": [entry for entry in entries if entry is not None],
        "total": len(names),
        "truncated": len(names) > most,
    }


def _entry(directory: int, name: str) -> dict[str, Any] | None:
    try:
        status = os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return None  # it went away while we looked
    kind = "link" if stat.S_ISLNK(status.st_mode) else kind_of(status)
    shown = name.encode(errors="surrogateescape").decode(errors="backslashreplace")
    return {"name": shown, "type": kind, "size": status.st_size if kind == "file" else None}
