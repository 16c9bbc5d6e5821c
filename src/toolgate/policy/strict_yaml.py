"""Read YAML the strict way: what could mean two things is refused, and every value knows where it stands.

Only mappings with plain text keys, lists, text, numbers, true, false and null are read. Anchors, aliases,
tags, directives, several documents, repeated keys and words that YAML 1.1 reads as something else are errors.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from toolgate.errors import PolicyError, PolicyProblem

MAX_BYTES = 1024 * 1024
MAX_DEPTH = 40
Path = tuple[str | int, ...]

_INTEGER = re.compile(r"-?(0|[1-9][0-9]*)\Z")
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?\Z")
_AMBIGUOUS = re.compile(
    r"""(?ix) (?:
        yes | no | on | off                                          # truth values of YAML 1.1
      | [-+]?0[0-7_]+ | [-+]?0[xob][0-9a-f_]+ | [-+]?[0-9][0-9_]*_[0-9_.]* | \+[0-9.]+  # other bases, grouped digits
      | [-+]?[0-9]+(:[0-5]?[0-9])+(\.[0-9]*)?                        # base sixty
      | [-+]?\.(inf|nan) | [-+]?\.[0-9]+ | [-+]?[0-9]+\.
      | [0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([tT ].*)?                     # dates
      | = | <<
    ) \Z"""
)
_CONSTANTS = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys(("null", "Null", "NULL", "~", ""), None),
}


class Place(NamedTuple):
    """Where something stands, counted from one."""

    line: int
    column: int


class Tree(NamedTuple):
    """What a file says, and where: `keys` has the places of mapping keys, `values` those of values."""

    name: str
    content: Any
    keys: dict[Path, Place]
    values: dict[Path, Place]

    def place(self, path: Path, *, key: bool = False) -> Place:
        """Return where this path stands, or the nearest thing around it."""
        if key and path in self.keys:
            return self.keys[path]
        while path and path not in self.values:
            path = path[:-1]
        return self.values.get(path, Place(1, 1))


def read(text: str | bytes, name: str) -> Tree:
    """Return what a YAML text says; raise PolicyError naming line and column."""
    size = len(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
    if size > MAX_BYTES:
        raise _refused(name, Place(1, 1), f"the file has {size:,} bytes; at most {MAX_BYTES:,} are read")
    if isinstance(text, bytes):
        try:
            text = text.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = error.object.count(b"\n", 0, error.start) + 1
            raise _refused(name, Place(line, 1), "the file is not UTF-8") from None
    return _Builder(name).build(text)


def _refused(name: str, place: Place, message: str) -> PolicyError:
    return PolicyError([PolicyProblem(name, place.line, place.column, "", message)])


class _Builder:
    """Turns parser events into plain values, remembering places."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.keys: dict[Path, Place] = {}
        self.values: dict[Path, Place] = {}

    def build(self, text: str) -> Tree:
        from ruamel.yaml import YAML
        from ruamel.yaml.error import MarkedYAMLError, YAMLError

        try:
            content = self._document(YAML(typ="safe", pure=True).parse(text))
        except MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            place = Place(1, 1) if mark is None else Place(mark.line + 1, mark.column + 1)
            raise _refused(self.name, place, f"this is not YAML: {error.problem or error.context}") from None
        except YAMLError as error:
            at = getattr(error, "position", 0) or 0
            place = Place(text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at))
            raise _refused(self.name, place, "this character is not allowed in YAML") from None
        return Tree(self.name, content, self.keys, self.values)

    def _document(self, events: Iterator[Any]) -> Any:
        next(events)  # the stream
        start = next(events)
        if type(start).__name__ == "StreamEndEvent":
            return None
        if start.version is not None or start.tags:
            raise self._error(start, "directives such as %YAML and %TAG are not allowed; remove them")
        content = self._node(next(events), events, ())
        next(events)  # the document's end
        after = next(events)
        if type(after).__name__ != "StreamEndEvent":
            raise self._error(after, "a policy file is one document; remove the second `---`")
        return content

    def _node(self, event: Any, events: Iterator[Any], path: Path) -> Any:
        kind = type(event).__name__
        if kind == "AliasEvent":
            raise self._error(event, f"aliases are not allowed; write out what `*{event.anchor}` stands for")
        if event.anchor is not None:
            raise self._error(event, f"anchors are not allowed; remove `&{event.anchor}`")
        if event.tag is not None:
            raise self._error(event, "tags are not allowed; write the value without `!`")
        if len(path) > MAX_DEPTH:
            raise self._error(event, f"values are nested more than {MAX_DEPTH} deep")
        self.values[path] = _place(event)
        if kind == "ScalarEvent":
            return self._scalar(event)
        return self._mapping(events, path) if kind == "MappingStartEvent" else self._list(events, path)

    def _mapping(self, events: Iterator[Any], path: Path) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while type(event := next(events)).__name__ != "MappingEndEvent":
            if type(event).__name__ != "ScalarEvent":
                raise self._error(event, "a key must be plain text")
            key = self._node(event, events, (*path, ""))
            del self.values[(*path, "")]
            if not isinstance(key, str):
                raise self._error(event, f"a key must be text; write it in quotes: '{event.value}'")
            at = (*path, key)
            if key in found:
                raise self._error(event, f"`{key}` is written twice here; the first is in line {self.keys[at].line}")
            self.keys[at] = _place(event)
            found[key] = self._node(next(events), events, at)
        return found

    def _list(self, events: Iterator[Any], path: Path) -> list[Any]:
        found: list[Any] = []
        while type(event := next(events)).__name__ != "SequenceEndEvent":
            found.append(self._node(event, events, (*path, len(found))))
        return found

    def _scalar(self, event: Any) -> Any:
        text: str = event.value
        if event.style is not None:
            return text
        if text in _CONSTANTS:
            return _CONSTANTS[text]
        if _INTEGER.match(text):
            return self._number(event, int(text) if len(text) < 20 else math.inf)
        if _NUMBER.match(text):
            return self._number(event, float(text))
        if _AMBIGUOUS.match(text):
            raise self._error(event, f"`{text}` means different things to different YAML readers; {_hint(text)}")
        return text

    def _number(self, event: Any, value: float) -> float:
        if abs(value) > 2**53:
            raise self._error(event, f"{event.value[:40]} is beyond the numbers that are read exactly; quote it")
        return value

    def _error(self, event: Any, message: str) -> PolicyError:
        return _refused(self.name, _place(event), message)


def _hint(text: str) -> str:
    low = text.lower()
    if low in ("yes", "on"):
        return f"write true, or '{text}' in quotes"
    if low in ("no", "off"):
        return f"write false, or '{text}' in quotes"
    return f"write '{text}' in quotes, or a plain decimal number"


def _place(event: Any) -> Place:
    return Place(event.start_mark.line + 1, event.start_mark.column + 1)
