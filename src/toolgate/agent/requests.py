"""What the scripted agent understands: one request a line, in a small fixed set of forms."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

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
    flags = re.IGNORECASE | re.DOTALL
    return Form(usage=usage, does=does, kind=kind, pattern=re.compile(rf"(?:please\s+)?{pattern}", flags))


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
    _form("run COMMAND", "runs a command, without a shell", "run", r"(?:run|execute)\s+`?(?P<a>[^`]+?)`?"),
    _form(
        "replace X with Y in FILE",
        "changes a text in a file; quote texts with spaces",
        "replace",
        r"replace\s+(?P<q>[`'\"]?)(?P<a>.+?)(?P=q)\s+(?:with|by)\s+(?P<r>[`'\"]?)(?P<b>.*?)(?P=r)\s+in\s+"
        + _thing("c"),
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
            parts = tuple(_bare(groups[name] or "", form.kind) for name in ("a", "b", "c") if name in groups)
            return Request(kind=form.kind, parts=parts)
    return None


def _bare(text: str, kind: Kind) -> str:
    """A name without its quotes; commands and JSON keep theirs."""
    is_quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "`'\""
    return text[1:-1] if is_quoted and kind not in ("run", "tool") else text


def requests_in(text: str) -> list[tuple[str, Request | None]]:
    """Return every line that says something, with what it asks for."""
    return [(line.strip(), understand(line)) for line in text.splitlines() if line.strip()]


def what_it_can() -> str:
    """Say what can be asked for, as a list."""
    lines = [f"- `{form.usage}` {form.does}" for form in FORMS]
    return "I work without a model and understand these requests, one a line:\n" + "\n".join(lines)
