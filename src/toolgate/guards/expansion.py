"""What the patterns of a shell line stand for (`src/*.ts`, `{a,b}.txt`), found without a shell, beneath the workspace.

The words are those that bash would make of them: sorted, hidden names only where the pattern begins with a dot, the
pattern itself where nothing fits. Only a bare `*` leaves out what commands do not see: secrets, and what leads out.
What cannot be told so (a place outside, too many names, a name that would be taken for a flag) is not guessed: the
line is one that cannot be split.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from toolgate.guards.edges import SECRETS, judge_by_default
from toolgate.guards.files import PathFact, PathRefused, Workspace
from toolgate.guards.shell import Unsplittable

Expand = Callable[[str, str], tuple[str, ...]]
"""From a pattern (what was quoted in it is behind a backslash) and the directory it is read in: its words."""
MAX_MATCHES = 200
MAX_SEEN = 20_000
_PIECE = re.compile(r"\\(.)|(.)", re.DOTALL)
_BRACES = re.compile(r"((?:\\.|[^{}\\])*)(?:\{((?:\\.|[^{}\\])*)\})?", re.DOTALL)
_COMMA = re.compile(r"((?:\\.|[^,\\])*)(?:,|\Z)", re.DOTALL)
_SET = re.compile(r"\[([!^]?)(\]?[^\]\\/\[]*)\]")
_CONTROL = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")


def expander(workspace: Workspace) -> Expand:
    """Return how patterns are expanded in a workspace."""

    def expand(pattern: str, here: str) -> tuple[str, ...]:
        found: list[str] = []
        for word in _alternatives(pattern):
            found += _Search(workspace, here, word).words() if is_glob(word) else [plain(word)]
            if len(found) > MAX_MATCHES:
                raise Unsplittable(f"a pattern that stands for more than {MAX_MATCHES} names")
        return tuple(word for word in found if word)

    return expand


def plain(pattern: str) -> str:
    """Return a pattern as the text it is where nothing fits it."""
    return _PIECE.sub(lambda piece: piece[1] or piece[2], pattern)


def is_glob(pattern: str) -> bool:
    """Whether a shell would compare names with a word."""
    bare = re.sub(r"\\.", "", pattern, flags=re.DOTALL)
    return "*" in bare or "?" in bare or "]" in bare.partition("[")[2]


def _alternatives(pattern: str) -> Iterator[str]:
    """Yield the words that braces stand for."""
    parts: list[list[str]] = []
    for match in _BRACES.finditer(pattern):
        parts.append([match[1]])
        if match[2] is not None:
            parts.append(_COMMA.findall(match[2])[: _commas(match[2]) + 1])
    for count, chosen in enumerate(itertools.product(*parts)):
        if count > MAX_MATCHES:
            raise Unsplittable(f"an expansion to more than {MAX_MATCHES} words ('{{')")
        yield "".join(chosen)


def _commas(text: str) -> int:
    return re.sub(r"\\.", "", text, flags=re.DOTALL).count(",")


@dataclass(slots=True)
class _Search:
    """The names that one pattern stands for, one directory after the other."""

    workspace: Workspace
    here: str
    pattern: str
    seen: int = 0
    found: list[str] = field(default_factory=list)

    def words(self) -> list[str]:
        names = _PIECE.sub(lambda piece: "/" if piece[1] == "/" else piece[0], self.pattern).split("/")
        start = "" if names[0] else "/"
        self._go_on(start, names[1:] if start else names)
        for word in self.found:
            if word.startswith("-"):
                raise Unsplittable(f"a pattern that stands for a name like a flag, {word[:80]!r}")
            if _CONTROL.search(word):
                raise Unsplittable(f"a pattern that stands for a name with odd characters, {word[:80]!r}")
        return sorted(self.found, key=os.fsencode) or [plain(self.pattern)]

    def _go_on(self, before: str, names: list[str]) -> None:
        """Take one name of the pattern. before: what the names before it became, as it is written."""
        name, rest = names[0], names[1:]
        if not is_glob(name):
            self._literal(before, plain(name), rest)
            return
        for found in self._fitting(before, name):
            word = before + found
            if not rest:
                self.found.append(word)
            elif self._directory(word) is not None:
                self._take(word, rest)
            if len(self.found) > MAX_MATCHES:
                raise Unsplittable(f"a pattern that stands for more than {MAX_MATCHES} names")

    def _literal(self, before: str, name: str, rest: list[str]) -> None:
        word = before + name
        if rest:
            self._take(word, rest)
        elif os.path.lexists(os.path.join(self.here, word)) and self._directory(before or ".") is not None:
            self.found.append(word)

    def _take(self, word: str, rest: list[str]) -> None:
        if any(rest):
            self._go_on(f"{word}/", rest)
        else:
            self.found.append(word + "/" * len(rest))

    def _fitting(self, before: str, name: str) -> list[str]:
        """Return the names of a directory that fit, none where it may not be looked into."""
        place = before or "."
        fact = self._directory(place)
        if fact is None:
            if not self.found and not is_glob(self.pattern[: len(before)]):
                self._check_inside(place)
            return []
        fits = _compiled(name)
        shows_hidden = plain(name[:2]).startswith(".") and name[0] in "\\."
        descriptor = self.workspace.open(fact, os.O_RDONLY | os.O_DIRECTORY)
        try:
            with os.scandir(descriptor) as entries:
                names = [entry.name for entry in itertools.islice(entries, MAX_SEEN + 1 - self.seen)]
        finally:
            os.close(descriptor)
        self.seen += len(names)
        if self.seen > MAX_SEEN:
            raise Unsplittable(f"a pattern in directories of more than {MAX_SEEN} names")
        found = [each for each in names if (shows_hidden or each[0] != ".") and fits.fullmatch(each)]
        return found if name.strip("*") else [each for each in found if self._is_seen(before + each)]

    def _is_seen(self, word: str) -> bool:
        try:
            return judge_by_default("", self.workspace.look(word, base=self.here), "read") is None
        except PathRefused:
            return False

    def _directory(self, place: str) -> PathFact | None:
        """Return the directory of the workspace that a place is, unless it holds secrets."""
        try:
            fact = self.workspace.look(place, base=self.here)
        except PathRefused:
            return None
        is_fit = fact.root is not None and fact.kind == "directory"
        return fact if is_fit and SECRETS.match_fact(fact) is None else None

    def _check_inside(self, place: str) -> None:
        try:
            inside = self.workspace.look(place, base=self.here).root is not None
        except PathRefused:
            inside = False
        if not inside:
            raise Unsplittable(f"a pattern outside the workspace ({plain(self.pattern)[:80]!r})")


def _compiled(name: str) -> re.Pattern[str]:
    """Return what one name of a pattern compares with."""
    found: list[str] = []
    at = 0
    while at < len(name):
        char = name[at]
        members = _SET.match(name, at)
        if char == "\\":
            at += 1
            found.append(re.escape(name[at : at + 1]))
        elif char == "*":
            found.append("" if found and found[-1] == ".*" else ".*")
        elif char == "?":
            found.append(".")
        elif members is not None:
            found.append(_members(members))
            at = members.end() - 1
        elif char == "[" and "]" in name[at:]:
            raise Unsplittable("a pattern ('[')")
        else:
            found.append(re.escape(char))
        at += 1
    return re.compile("".join(found), re.DOTALL)


def _members(match: re.Match[str]) -> str:
    """Return a set of characters (`[a-z]`, `[!_]`); Unsplittable where its meaning hangs on the language."""
    negated, inside = match[1], match[2]
    ranges = re.sub(r"[a-z]-[a-z]|[A-Z]-[A-Z]|[0-9]-[0-9]", "", inside)
    if not inside or "-" in ranges.strip("-"):
        raise Unsplittable("a pattern ('[')")
    escaped = re.sub(r"([^A-Za-z0-9-])", r"\\\1", inside)
    return f"[^{escaped}]" if negated else f"[{escaped}]"
