"""Read secrets in a text exactly, one character after the other, each in any of its spellings.

Where to read is found out in `spelled`. Reading takes time, so there is a limit for each text: beyond it everything
that may be a secret counts as one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from toolgate.kernel.text.masking.keys import Span

DEEPEST: Final = 8
"""The most backslashes before one escape."""
DEEPEST_IN_JSON: Final = 2 * DEEPEST + 1
"""The same where a text is written as JSON once more."""
WIDEST: Final = 2 * (DEEPEST + 5)
"""The most bytes that spell one character: two halves, escaped."""
ENTITIES: Final = {
    b"&amp;": "&", b"&lt;": "<", b"&gt;": ">", b"&quot;": '"', b"&#34;": '"', b"&#x27;": "'", b"&#39;": "'",
}  # fmt: skip

_FREE_STEPS: Final = 200_000  # beside one for each byte of the text
_BRANCH: Final = 256  # characters of an odd secret that are kept as a tree; the rest is read when those are there
_ESCAPED: Final = {
    b"n": "\n", b"r": "\r", b"t": "\t", b"b": "\b", b"f": "\f", b'"': '"', b"/": "/", b"'": "'",
}  # fmt: skip
_PERCENT: Final = re.compile(rb"(?:%[0-9A-Fa-f]{2}){1,4}")
_ENTITY: Final = re.compile(b"|".join(ENTITIES))
_UNIT: Final = re.compile(rb"u([0-9A-Fa-f]{4})")
_LOW: Final = {
    most: re.compile(rb"\\{1,%d}u([Dd][C-Fc-f][0-9A-Fa-f]{2})" % most) for most in (DEEPEST, DEEPEST_IN_JSON)
}
_BACKSLASHES: Final = {most: re.compile(rb"\\{1,%d}" % (most + 1)) for most in (DEEPEST, DEEPEST_IN_JSON)}
_USUAL: Final = re.compile(
    rb"[%&\\](?:(?<=%)[0-9A-Fa-f]{2}(?:%[0-9A-Fa-f]{2})*|(?<=\\)\\{0,7}(?:[nrtbf\"/']|u[0-9A-Fa-f]{4})|(?<=&)[a-z0-9#]{2,4};)"
)
_RUNS: Final = re.compile(r"[^%&\\]{1,64}|.", re.DOTALL)


class Odd:
    """Secrets of which no part reads the same everywhere, to be read wherever one of them may begin."""

    __slots__ = ("begins", "longest", "tree")

    def __init__(self, secrets: Iterable[str]) -> None:
        self.tree: dict[str | None, Any] = {}
        self.longest = 0
        following: dict[str, set[bytes]] = {}
        for secret in secrets:
            node = self.tree
            for char in secret[:_BRANCH]:
                node = node.setdefault(char, {})
            node.setdefault(None, []).append(secret)
            self.longest = max(self.longest, len(secret))
            following.setdefault(secret[0], set()).add(re.escape(secret[1].encode("utf-8", "surrogatepass")[:1]))
        self.begins = re.compile(b"|".join(_beginning(char, seconds) for char, seconds in following.items()))


def _beginning(char: str, seconds: set[bytes]) -> bytes:
    """Return a pattern for the first byte of a secret's first character, by that and what must follow."""
    raw = char.encode("utf-8", "surrogatepass")
    unit = char.encode("utf-16-be", "surrogatepass")[:2].hex().encode()
    ways = [rb"%s(?=[%%&\\+%s])" % (re.escape(raw), b"".join(seconds))]
    ways.append(b"%%(?=(?i:%s))" % raw.hex("%").encode())
    ways.append(rb"\\(?=\\{0,%d}(?:u(?i:%s)|[\\nrtbf\"/']))" % (DEEPEST_IN_JSON, unit))
    ways.append(rb"&(?=[a-z0-9#]{2,4};)|\+")
    return b"|".join(ways)


class Reading:
    """One text that is read; `most` is how many backslashes one escape may have."""

    __slots__ = ("_data", "_left", "_most")

    def __init__(self, data: bytes, most: int) -> None:
        self._data = data
        self._most = most
        self._left = _FREE_STEPS + len(data)

    @property
    def is_over(self) -> bool:
        """Whether the time for this text is used up."""
        return self._left < 0

    def is_after_backslash(self, at: int) -> bool:
        """Whether a backslash is before this place, which may belong to a secret here."""
        self._left -= 1
        return self._data[max(0, at - 1) : at] == b"\\"

    def is_spelled(self, secret: str, start: int, end: int) -> bool:
        """Whether this is the secret when its escapes are read in the usual way: yes is certain, no is not."""
        if self._left < 0 or not self._may_begin(secret[0], start):
            return False
        self._left -= 1 + (end - start) // 64
        return _USUAL.sub(_usual, self._data[start:end]) == secret.encode("utf-8", "surrogatepass")

    def read(self, secret: str, starts: range, over: int) -> Iterator[Span]:
        """Yield where the secret is that begins at one of the starts and, if it is there, ends at about `over`."""
        for start in starts:
            if self._left >= 0:
                end = self._end(secret, start) if self._may_begin(secret[0], start) else None
                if end is not None:
                    yield start, end
            if self._left < 0:
                yield start, over
                return

    def _may_begin(self, char: str, at: int) -> bool:
        return self._data[at : at + 1] in b"%&\\+" or self._data.startswith(char.encode("utf-8", "surrogatepass"), at)

    def _end(self, secret: str, start: int) -> int | None:
        ends = {start}
        for match in _RUNS.finditer(secret):
            run = match[0]
            raw = run.encode("utf-8", "surrogatepass")
            following: set[int] = set()
            for at in ends:
                self._left -= 1
                if self._left < 0:
                    return None
                if run not in "%&\\" and self._data.startswith(raw, at):
                    following.add(at + len(raw))
                else:
                    following |= self._spelled(run, at)
            if not following:
                return None
            ends = following
        return max(ends)

    def _spelled(self, run: str, at: int) -> set[int]:
        ends = {at}
        for char in run:
            self._left -= 1
            ends = {end for at in ends for other, end in self._options(at) if other == char}
            if not ends:
                break
        return ends

    def find(self, odd: Odd) -> Iterator[Span]:
        """Yield where odd secrets are."""
        for match in odd.begins.finditer(self._data):
            start = match.start()
            end = self._walk(odd.tree, start)
            if self._left < 0:
                end = start + WIDEST * odd.longest
            if end:
                yield start, end

    def _walk(self, tree: dict[str | None, Any], start: int) -> int:
        """Return where the longest secret ends that begins here, or zero."""
        reached = 0
        states, seen = [(tree, start)], {(id(tree), start)}
        while states and self._left >= 0:
            self._left -= 1
            node, at = states.pop()
            for secret in node.get(None, ()):
                end = at if len(secret) <= _BRANCH else self._end(secret, start)
                reached = max(reached, end or 0)
            for char, end in self._options(at):
                state = node.get(char), end
                if state[0] is not None and (id(state[0]), end) not in seen:
                    seen.add((id(state[0]), end))
                    states.append((state[0], end))
        return reached

    def _options(self, at: int) -> Iterator[tuple[str, int]]:
        """Yield each character that may be spelled here, and where its spelling ends."""
        data = self._data
        lead = data[at : at + 1]
        if lead == b"%" and (percent := _PERCENT.match(data, at)):
            char, width = _first(bytes.fromhex(percent[0].replace(b"%", b"").decode()))
            yield char, at + 3 * width
        elif lead == b"\\":
            yield from self._escaped(at)
        elif lead == b"&" and (entity := _ENTITY.match(data, at)):
            yield ENTITIES[entity[0]], entity.end()
        elif lead == b"+":
            yield " ", at + 1
        char, width = _first(data[at : at + 4])
        yield char, at + width

    def _escaped(self, at: int) -> Iterator[tuple[str, int]]:
        """Yield each character that may be spelled with a backslash here, and where its spelling ends."""
        data = self._data
        backslashes = _BACKSLASHES[self._most].match(data, at)
        past = backslashes.end() if backslashes else at
        self._left -= past - at
        yield from (("\\", end) for end in range(at + 2, past + 1))
        if past - at > self._most:
            return
        if (char := _ESCAPED.get(data[past : past + 1])) is not None:
            yield char, past + 1
        elif unit := _UNIT.match(data, past):
            yield chr(int(unit[1], 16)), unit.end()
            if unit[1][:1] in b"dD" and (low := _LOW[self._most].match(data, unit.end())):
                pair = bytes.fromhex((unit[1] + low[1]).decode())
                yield pair.decode("utf-16-be", "surrogatepass"), low.end()


def _usual(escape: re.Match[bytes]) -> bytes:
    whole = escape[0]
    if whole[:1] == b"%":
        return bytes.fromhex(whole.replace(b"%", b"").decode())
    if whole[:1] == b"&":
        return ENTITIES.get(whole, "").encode() or whole
    if (char := _ESCAPED.get(whole[-1:])) is not None and b"u" not in whole:
        return char.encode()
    return chr(int(whole[-4:], 16)).encode("utf-8", "surrogatepass")


def _first(raw: bytes) -> tuple[str, int]:
    """Return the first character and how many bytes it has; an empty one where none begins."""
    lead = raw[0] if raw else 0x80
    width = 1 if lead < 0xC0 else 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
    try:
        return raw[:width].decode("utf-8", "surrogatepass"), width
    except UnicodeDecodeError:
        return "", width
