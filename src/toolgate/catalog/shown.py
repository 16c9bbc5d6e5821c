"""Show a person what a change set does: a list of the paths, and one unified diff of what is text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from toolgate.guards.change_set import Change, Node
from toolgate.kernel.text.diff import diff_text

MAX_LISTED = 200
MAX_DIFF = 100_000
MAX_COMPARED_BYTES = 1 << 20
MAX_OUTPUT = 2_000


def shown_changes(changes: Sequence[Change], result: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the card says of a run in an overlay: how it ended, each path, and the diff."""
    listed = [_line(change) for change in changes[:MAX_LISTED]]
    if len(changes) > MAX_LISTED:
        listed.append(f"... and {len(changes) - MAX_LISTED:,} more")
    output = (str(result["stdout"]) + str(result["stderr"]))[-MAX_OUTPUT:]
    told: dict[str, Any] = {"exit_code": result["exit_code"], "output": output, "changes": listed or ["nothing"]}
    if "note" in result:
        told["run later"] = result["note"]
    diff, left_out = _diff(changes)
    if left_out:
        told["not in the diff"] = left_out
    return told | ({"diff": diff} if diff else {})


def _plain(path: str) -> str:
    """Return a path in which nothing breaks a line or hides: what is not printable is spelled out."""
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in path)


def _line(change: Change) -> str:
    before, after = change.before, change.after
    path = _plain(change.path)
    if change.same_as is not None:
        return f"{change.action} {path}, another name of {_plain(change.same_as)}"
    if after.kind == "link":
        return f"{change.action} {path}, a link to {_plain(after.target or '')}"
    if change.action == "mode":
        return f"mode {path}, {before.mode or 0:04o} to {after.mode or 0:04o}"
    kind = after.kind if after.kind != "absent" else before.kind
    size = len((after if after.kind == "file" else before).content or b"")
    what = f"{size:,} bytes" if kind == "file" else kind
    mode = f", mode {after.mode:04o}" if after.kind == "file" and (after.mode or 0) & 0o111 else ""
    return f"{change.action} {path}, {what}{mode}"


def _diff(changes: Sequence[Change]) -> tuple[str, str]:
    """Return one diff of all files that are text, and why others are not in it."""
    pieces: list[str] = []
    room, hidden = MAX_DIFF, 0
    for change, texts in _texts(changes):
        path = _plain(change.path)
        found = None if texts is None else diff_text(*texts, fromfile=f"a/{path}", tofile=f"b/{path}")
        if found is None or len(found.diff_output) > room:
            hidden += 1
            continue
        piece = found.diff_output
        room -= len(piece)
        pieces.append(piece if piece.endswith("\n") or not piece else f"{piece}\n")
    return "".join(pieces), f"{hidden} files that are no text, or too long" if hidden else ""


def _texts(changes: Sequence[Change]) -> Iterator[tuple[Change, tuple[str, str] | None]]:
    """Yield the changes of files' content with both texts; None for what is no text."""
    for change in changes:
        if "file" in (change.before.kind, change.after.kind) and change.before.digest != change.after.digest:
            old, new = _text(change.before), _text(change.after)
            yield change, None if old is None or new is None else (old, new)


def _text(node: Node) -> str | None:
    if node.kind != "file":
        return ""
    content = node.content or b""
    if len(content) > MAX_COMPARED_BYTES or b"\0" in content:
        return None
    try:
        return content.decode()
    except UnicodeDecodeError:
        return None
