"""What the scripted agent understands: one request a line, in a small fixed set of forms."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

_FLAGS = re.IGNORECASE | re.DOTALL
_QUOTES = ("`", "'", '"')
_WITH = re.compile(r"\s(?:with|by)\s", _FLAGS)

Kind = Literal["read", "list", "tests", "run", "replace", "clean", "tool", "help"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One thing somebody asked for. `parts` are its words, by the kind."""

    kind: Kind
    parts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """A form of request: how it is written, what it does, and the pattern that finds it."""

    usage: str
    does: str
    kind: Kind
    pattern: re.Pattern[str]


def _form(usage: str, does: str, kind: Kind, pattern: str) -> Form:
    return Form(usage=usage, does=does, kind=kind, pattern=re.compile(rf"(?:please\s+)?{pattern}", _FLAGS))


def _thing(group: str) -> str:
    """A name: one word, or anything in quotes."""
    return rf"(?P<{group}>[^\s`'\"]+|`[^`]+`|'[^']+'|\"[^\"]+\")"


TEMPORARY = ("*.tmp", "*.temp", "*.bak", "*~", "*.pyc", "*.orig", ".DS_Store")
"""Names of files that `clean up` deletes."""

_END = r"\s*[.!?]?"

FORMS = (
    _form("read FILE", "shows a file", "read", r"(?:read|show|open|cat)\s+(?:me\s+)?(?:the\s+file\s+)?" + _thing("a")),
    _form("list FOLDER", "shows what is in a folder", "list", rf"(?:list|ls)(?:\s+(?:the\s+folder\s+)?{_thing('a')})?"),
    _form("run the tests", "runs the tests", "tests", rf"(?:run|execute)\s+(?:(?:the|all|my)\s+)*tests?{_END}"),
    _form("run COMMAND", "runs a command, without a shell", "run", r"(?:run|execute)\s++`?(?P<a>[^`]+?)`?"),
    _form(
        "replace X with Y in FILE",
        "changes a text in a file; quote texts with spaces",
        "replace",
        r"replace\s++(?P<a>.+)",
    ),
    _form(
        "clean up FOLDER",
        "deletes temporary files in a folder (" + ", ".join(f"`{name}`" for name in TEMPORARY) + ")",
        "clean",
        r"clean\s*up\s+(?:the\s+folder\s+)?" + _thing("a"),
    ),
    _form("/tool NAME JSON", "calls any tool with these arguments", "tool", r"/tool\s+(?P<a>\S+)(?:\s+(?P<b>.+))?"),
    _form("help", "says all this", "help", rf"(?:help|hello|hi|what can you do){_END}"),
)
"""In the order in which they are tried."""


def understand(line: str) -> Request | None:
    """Return what a line asks for; None where it is not understood."""
    text = line.strip()
    for form in FORMS:
        found = form.pattern.fullmatch(text)
        if found is not None:
            groups = found.groupdict()
            parts = [groups[name] or "" for name in ("a", "b") if name in groups]
            if form.kind == "replace":
                parts = _replacement(parts[0])
            if parts or not groups:
                return Request(kind=form.kind, parts=tuple(_bare(part, form.kind) for part in parts))
    return None


def _replacement(text: str) -> list[str]:
    """What to replace, with what, and in which file; nothing where the text does not say so.

    Read from both ends: one pattern would try every `with` of a long text with every `in`, for hours.
    """
    start = text.rfind(text[-1], 0, -1) if text[-1] in _QUOTES else max(text.rfind(" "), text.rfind("\t")) + 1
    file, before = text[start:], text[: max(start, 0)].rstrip()
    if not re.fullmatch(_thing("a"), file) or before[-2:].lower() != "in" or not before[-3:-2].isspace():
        return []
    asked = before[:-3].rstrip()
    quoted = re.compile(rf"{asked[0]}\s+(?:with|by)\s", _FLAGS) if asked[:1] in _QUOTES else None
    between = (quoted and quoted.search(asked, 1)) or _WITH.search(asked, 1)
    if between is None:
        return []
    old, new = asked[: between.start() + (between[0][0] in _QUOTES)], asked[between.end() :].strip()
    return [old.rstrip(), new, file] if new else []


def _bare(text: str, kind: Kind) -> str:
    """A name without its quotes; commands and JSON keep theirs."""
    is_quoted = len(text) > 1 and text[0] == text[-1] and text[0] in _QUOTES
    return text[1:-1] if is_quoted and kind not in ("run", "tool") else text


def requests_in(text: str) -> list[tuple[str, Request | None]]:
    """Return every line that says something, with what it asks for."""
    return [(line.strip(), understand(line)) for line in text.splitlines() if line.strip()]


def what_it_can() -> str:
    """Say what can be asked for, as a list."""
    lines = [f"- `{form.usage}` {form.does}" for form in FORMS]
    return "I work without a model and understand these requests, one a line:\n" + "\n".join(lines)
