"""Add a line to a command in the text of a policy file, changing nothing else of it. Nothing is read or written.

Where things stand is taken from the YAML itself, so comments, order and style of the file stay as they are.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from toolgate.errors import UsageError
from toolgate.guards.grammar import ExactLine

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_.+-]*\Z")
_READ_OTHERWISE = frozenset("false n no null off on true y yes".split())
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


class Addition(NamedTuple):
    """A line for a command; `timeout_s` where the file has no grammar of the command yet."""

    command: str
    line: ExactLine
    timeout_s: float | None


def add_line(text: str, addition: Addition) -> str:
    """Return the text of a policy file with one more line of a command; UsageError where it has no place for it."""
    from ruamel.yaml import YAML

    newline = "\r\n" if "\r\n" in text else "\n"
    root = YAML(typ="safe", pure=True).compose(text)
    item, rest = _flow_line(addition.line), ["commands", addition.command, "lines"]
    if root is None:
        return text + _ended(text, newline) + newline.join(_block(rest, item, 0, addition.timeout_s)) + newline
    node = root
    while rest:
        _must_be(node, "mapping", rest[0])
        pair = next((pair for pair in node.value if pair[0].value == rest[0]), None)
        if pair is None:
            return _add_key(text, node, rest, item, addition.timeout_s, newline)
        rest.pop(0)
        if pair[1].id == "scalar" and not pair[1].style and pair[1].value in ("", "~", "null"):
            start, end = _place_of(text, *pair)
            return f"{text[:start]} {_inside(rest, item, addition.timeout_s)}{text[end:]}"
        node = pair[1]
    _must_be(node, "sequence", "lines")
    if node.flow_style:
        return _add_to_flow(text, node, item)
    at = _end_of(node)
    return _insert_lines(text, at, [f"{' ' * node.start_mark.column}- {item}"], newline)


def _must_be(node: Any, kind: str, key: str) -> None:
    if node.id != kind:
        raise UsageError(f"The policy file has no {kind} for `{key}` in line {node.start_mark.line + 1}.")


def _add_key(text: str, node: Any, rest: list[str], item: str, timeout_s: float | None, newline: str) -> str:
    if node.flow_style:
        key, *inner = rest
        return _add_to_flow(text, node, f"{_key(key)}: {_inside(inner, item, timeout_s)}")
    return _insert_lines(text, _end_of(node), _block(rest, item, node.start_mark.column, timeout_s), newline)


def _add_to_flow(text: str, node: Any, said: str) -> str:
    at = node.start_mark.index + 1
    return f"{text[:at]}{said}{', ' if node.value else ''}{text[at:]}"


def _insert_lines(text: str, at: int, lines: list[str], newline: str) -> str:
    """Put whole lines behind the line that a position is in; behind it, where it begins one."""
    if at and text[at - 1] != "\n":
        end = text.find("\n", at)
        at = len(text) if end < 0 else end + 1
    return text[:at] + _ended(text[:at], newline) + newline.join(lines) + newline + text[at:]


def _ended(text: str, newline: str) -> str:
    return "" if not text or text.endswith("\n") else newline


def _end_of(node: Any) -> int:
    """Return where the last thing in a block ends; a block's own end is where the next thing begins."""
    if node.id == "scalar" or node.flow_style:
        return int(node.end_mark.index)
    last = node.value[-1]
    if node.id == "sequence":
        return _end_of(last)
    key, value = last
    return int(key.end_mark.index) if value.id == "scalar" and not value.value else _end_of(value)


def _place_of(text: str, key: Any, value: Any) -> tuple[int, int]:
    """Return where a value without content stands; one that is not written stands behind its key's colon."""
    if value.value:
        return value.start_mark.index, value.end_mark.index
    at = text.index(":", key.end_mark.index) + 1
    return at, at


def _block(rest: list[str], item: str, column: int, timeout_s: float | None) -> list[str]:
    lines = []
    for depth, key in enumerate(rest):
        if key == "lines" and len(rest) > 1 and timeout_s is not None:
            lines += [f"{' ' * (column + 2 * depth)}{said}" for said in _of_its_own(timeout_s)]
        lines.append(f"{' ' * (column + 2 * depth)}{_key(key)}:")
    return [*lines, f"{' ' * (column + 2 * len(rest))}- {item}"]


def _of_its_own(timeout_s: float) -> tuple[str, ...]:
    """Return what a command needs that had no grammar: its time, and that nothing but its lines is known."""
    return (f"limits: {{timeout: {timeout_s:g}s}}", "only_lines: true")


def _inside(rest: list[str], item: str, timeout_s: float | None) -> str:
    """Return the value at the end of these keys, in flow style."""
    if not rest:
        return f"[{item}]"
    key, *inner = rest
    own = "".join(f"{said}, " for said in _of_its_own(timeout_s)) if key == "lines" and timeout_s is not None else ""
    return f"{{{own}{_key(key)}: {_inside(inner, item, timeout_s)}}}"


def _flow_line(line: ExactLine) -> str:
    parts = [f"args: [{', '.join(map(quoted, line.args))}]"]
    if line.environment:
        variables = ", ".join(f"{_key(name)}: {quoted(value)}" for name, value in line.environment)
        parts.append(f"environment: {{{variables}}}")
    parts += ["input: true"] * line.input + ["writes: true"] * line.writes
    return f"{{{', '.join(parts)}}}"


def _key(text: str) -> str:
    return text if _PLAIN.match(text) and text.lower() not in _READ_OTHERWISE else quoted(text)


def quoted(text: str) -> str:
    """Return a text as YAML reads it, with every character that is no plain one spelled out."""
    return '"' + "".join(map(_escaped, text)) + '"'


def _escaped(char: str) -> str:
    if char in _ESCAPES:
        return _ESCAPES[char]
    code = ord(char)
    if 0x20 <= code < 0x7F:
        return char
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
