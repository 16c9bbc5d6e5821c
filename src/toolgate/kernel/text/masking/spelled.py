"""Find secrets spelled character by character: percent-encoded, JSON-escaped, as HTML entities, or as they are.

A text is folded first: every escape becomes the character it stands for, so that one search finds all secrets in all
mixtures of spellings. Folding forgets more than it must; what is found so is a candidate, read exactly in `reading`.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from toolgate.kernel.text.masking.automaton import HEAD, Automaton
from toolgate.kernel.text.masking.keys import Span
from toolgate.kernel.text.masking.reading import DEEPEST, DEEPEST_IN_JSON, ENTITIES, WIDEST, Odd, Reading

_RARE: Final = 8  # bytes of a secret that ordinary texts do not have by chance
_LEAST: Final = 4
_HIDDEN: Final = 5  # bytes at the end of an escape that may be the beginning of a secret as well
_WINDOW: Final = 16
_SHARED: Final = 16  # secrets that may have the same part looked for
_FOUR: Final = 4  # bytes an escape stands for at most

_ENTITY: Final = "(?:amp|lt|gt|quot|#34|#x27|#39);"
_HEX: Final = "[0-9A-Fa-f]"
_ESCAPE: Final = re.compile(
    (  # A set in front: the search for one is fast. A backslash by itself, also `%5c`, is dropped.
        r"([%&\\](?:(?<=%)(?:5[Cc](?:%5[Cc])*|(?!5[Cc])HH(?:%(?!5[Cc])HH)*)"
        r"|(?<=\\)\\*+(?:u(?:[Dd][89ABab]HH\\++u[Dd][C-Fc-f]HH|HHHH))?"
        rf"|(?<=&){_ENTITY}))"
    ).replace("H", _HEX).encode()
)  # fmt: skip
# What the end or the beginning of an escape in the text may hide of a secret, and what in a secret reads as an escape.
_BEGINNINGS: Final = (re.compile("[#a-z0-9]{0,5};"), re.compile(f"u{_HEX}{{4}}|{_HEX}{{1,4}}"))
_ENDING: Final = re.compile(rf"(?:%{_HEX}?|&[#a-z0-9]{{0,5}}|\\u{_HEX}{{0,3}})\Z")
_INSIDE: Final = re.compile(rf"%{_HEX}{{2}}|\\u{_HEX}{{4}}|&{_ENTITY}|[\ud800-\udfff]")
# Backslashes are dropped, so `\n` reads as `n`: then so must a newline. In forms, a space is written as a plus.
_ALIKE: Final = bytes.maketrans(b"\n\r\t\b\f+", b"nrtbf ")


class Spelled:
    """Secrets to find in mixed spellings."""

    __slots__ = ("_automaton", "_by_core", "_has_space", "_odd", "_pairs", "_reaches", "_short")

    def __init__(self, secrets: Iterable[str]) -> None:
        odd: list[str] = []
        by_core: dict[bytes, list[_Secret]] = {}
        self._has_space = False
        for text in secrets:
            self._has_space |= " " in text
            secret = _plan(text)
            if secret is None:
                odd.append(text)
            else:
                by_core.setdefault(secret.core, []).append(secret)
        for core in [core for core, sharing in by_core.items() if len(sharing) > _SHARED]:
            odd += [secret.text for secret in by_core.pop(core)]
        self._by_core = by_core
        self._reaches = {core: _reach(sharing) for core, sharing in by_core.items()}
        self._automaton = Automaton(self._reaches)
        short = {core: (len(core), 0) for core, sharing in by_core.items() if any(one.is_short for one in sharing)}
        self._short = Automaton(short) if short else None
        self._pairs = frozenset(core[at : at + 2] for core in short for at in range(_HIDDEN))
        self._odd = Odd(odd) if odd else None

    def may_be_in(self, data: bytes) -> bool:
        """Whether a secret may be in the data, or in a text inside it when it is JSON. No is certain, yes is not."""
        folded = _Folded(data)
        if not folded.has_escapes and not self._has_space:
            return False
        if self._automaton.is_in(folded.data):
            return True
        if self._short is not None and self._short.is_in(folded.windows(self._pairs)[1]):
            return True
        return self._odd is not None and any(Reading(data, DEEPEST_IN_JSON).find(self._odd))

    def find(self, data: bytes, hidden: list[Span]) -> list[Span]:
        """Return where secrets are; one that lies within a hidden span may be left out."""
        folded = _Folded(data)
        if not folded.has_escapes and not self._has_space:
            return []
        reading = Reading(data, DEEPEST)
        spans = [] if self._odd is None else list(reading.find(self._odd))
        reach, strings = self._automaton.reach, self._automaton.strings
        begins = [start for start, _ in hidden]
        unread: list[Span] = []
        for index, start, end in self._automaton.find(folded.data):
            if index < 0 or reading.is_over:
                before, after = reach[~index] if index < 0 else self._reaches[strings[index]]
                first, past = end - before - _FOUR, end + after
                if unread and first <= unread[-1][1]:
                    first, past = min(first, unread[-1][0]), max(past, unread.pop()[1])
                unread.append((first, past))
                continue
            for secret in self._by_core[strings[index]]:
                first = start - secret.before
                begin, over = folded.at(first), folded.after(first + secret.whole)
                place = bisect_right(begins, begin) - 1
                is_hidden = place >= 0 and over <= hidden[place][1]
                spans += self._read(folded, reading, secret, (begin, over), start, is_hidden)
        spans += [(folded.after(first), folded.after(past)) for first, past in unread]
        return spans + self._find_short(folded, reading)

    def _read(
        self, folded: _Folded, reading: Reading, secret: _Secret, likely: Span, core: int, is_hidden: bool
    ) -> Iterable[Span]:
        """Return where the secret is whose core was found; most likely it is the span that folding says."""
        if secret.is_tame and not reading.is_after_backslash(likely[0]):
            if is_hidden:
                return ()
            if reading.is_spelled(secret.text, *likely):
                return (likely,)
        last = folded.after(core + 1) - 1  # of many backslashes only the last eight may belong to it
        first = core - secret.before
        earliest = folded.after(first - _FOUR if secret.skipped else first)
        earliest = max(earliest, last - WIDEST * (secret.skipped + 1))
        return reading.read(secret.text, range(earliest, last + 1), likely[1])

    def _find_short(self, folded: _Folded, reading: Reading) -> list[Span]:
        """Return where the beginning of a short secret is also the end of an escape."""
        if self._short is None:
            return []
        spans: list[Span] = []
        ends, windows = folded.windows(self._pairs)
        for index, start, _ in self._short.find(windows):
            place, offset = divmod(start, _HIDDEN + _WINDOW + 1)
            if index < 0 or reading.is_over:
                return spans + [(max(0, end - _HIDDEN), end + WIDEST * _WINDOW) for end in ends]
            if offset < _HIDDEN:
                begin = ends[place] - _HIDDEN + offset
                for secret in self._by_core[self._short.strings[index]]:
                    spans += reading.read(secret.text, range(begin, begin + 1), begin + WIDEST * len(secret.text))
        return spans


@dataclass(frozen=True, slots=True)
class _Secret:
    """A secret, and the part of it that reads the same in a folded text whatever is around it."""

    text: str
    core: bytes
    skipped: int  # characters before the core
    before: int  # bytes before the core, folded
    whole: int  # bytes of it all, folded
    is_short: bool  # an escape may hide its beginning, and the rest is too short to look for
    is_tame: bool  # no escape beside it belongs to it, but for a backslash before


def _plan(text: str) -> _Secret | None:
    """Choose what of a secret to look for; `None` when no part of it would do."""
    beginning = max(match.end() if (match := pattern.match(text)) else 0 for pattern in _BEGINNINGS)
    ending = _ENDING.search(text)
    parts, at = [], beginning
    for inside in _INSIDE.finditer(text):
        parts.append((at, inside.start()))
        at = max(beginning, inside.end())
    parts.append((at, ending.start() if ending else len(text)))
    start, stop = max(parts, key=lambda part: part[1] - part[0])
    core, whole = _fold(text[start:stop]), len(_fold(text))
    is_short = 0 < start == beginning and len(core) < _RARE and len(parts) == 1 and ending is None
    if is_short:
        start, core = 0, _fold(text)
    if len(core) < _LEAST:
        return None
    start += len(text) - start - len(text[start:].lstrip("\\"))  # they are not in the core
    is_tame = text[0] != "\\" and text[-1] not in "\\%&"
    return _Secret(text, core[:HEAD], start, len(_fold(text[:start])), whole, is_short, is_tame)


def _reach(sharing: list[_Secret]) -> Span:
    """Return how far secrets with the same core reach before and after its end."""
    ends = [secret.before + len(secret.core) for secret in sharing]
    return max(ends), max(secret.whole - end for secret, end in zip(sharing, ends, strict=True))


def _fold(text: str) -> bytes:
    """Return what a part of a secret is in a folded text."""
    return text.replace("\\", "").encode("utf-8", "surrogatepass").translate(_ALIKE)


_SEAM: Final = b"\xff"  # in no secret


class _Folded:
    """A text whose escapes were replaced by what they stand for, and where each byte of it came from."""

    __slots__ = ("_decoded", "_ends", "_pieces", "_raw", "_sources", "data", "has_escapes")

    def __init__(self, raw: bytes) -> None:
        self._raw = raw
        self._pieces = _ESCAPE.split(raw)
        self.has_escapes = len(self._pieces) > 1
        known = {escape: _decode(escape) for escape in set(self._pieces[1::2])}
        self._decoded = self._pieces.copy()
        self._decoded[1::2] = [known[escape] for escape in self._pieces[1::2]]
        self.data = b"".join(self._decoded).translate(_ALIKE)
        self._ends: list[int] = []  # of each piece, folded
        self._sources: list[int] = []  # where each piece begins in the text

    def at(self, place: int) -> int:
        """Return where in the text the byte at this place of the folded text begins."""
        return self._source(place, 0) if 0 <= place < len(self.data) else 0 if place < 0 else len(self._raw)

    def after(self, place: int) -> int:
        """Return where in the text the bytes before this place of the folded text end."""
        return self._source(place - 1, 1) if 0 < place <= len(self.data) else 0 if place <= 0 else len(self._raw)

    def _source(self, place: int, past: int) -> int:
        self._locate()
        index = bisect_right(self._ends, place)
        piece, decoded = self._pieces[index], self._decoded[index]
        width = 3 if index % 2 and piece[:1] == b"%" else 1
        offset = place - self._ends[index] + len(decoded) + past
        if index % 2 and width == 1:
            offset = past * len(piece)
        return self._sources[index] + width * offset

    def _locate(self) -> None:
        if not self._ends:
            self._ends = list(accumulate(map(len, self._decoded)))
            self._sources = [0, *accumulate(map(len, self._pieces))]

    def _escapes(self) -> Iterator[tuple[int, int]]:
        """Yield where each escape ends, in the text and folded; backslashes alone are none."""
        self._locate()
        for index in range(1, len(self._pieces), 2):
            piece, begin, end = self._pieces[index], self._sources[index], self._ends[index]
            if piece[:1] == b"%":
                width = 1 if self._decoded[index] else 0
                first = end - len(self._decoded[index])
                yield from ((begin + 3 * nth, first + width * nth) for nth in range(1, len(piece) // 3 + 1))
            elif piece[-1:] != b"\\":
                yield begin + len(piece), end

    def windows(self, pairs: frozenset[bytes]) -> tuple[list[int], bytes]:
        """Return where escapes end, and what is around there: before it as it stands, after it folded.

        Only those are returned where the bytes before and after make one of the pairs.
        """
        raw, data, ends, windows = self._raw, self.data, [], []
        for end, place in self._escapes():
            if raw[end - 1 : end] + data[place : place + 1] in pairs:
                ends.append(end)
                before = raw[max(0, end - _HIDDEN) : end].rjust(_HIDDEN, _SEAM)
                windows.append(before + data[place : place + _WINDOW].ljust(_WINDOW, _SEAM))
        return ends, _SEAM.join(windows)


def _decode(escape: bytes) -> bytes:
    if escape[:1] == b"&":
        return ENTITIES[escape].encode()
    if escape[:1] == b"%":
        return bytes.fromhex(escape.replace(b"%", b"").decode()).replace(b"\\", b"")
    units = bytes.fromhex("".join(part[:4].decode() for part in escape.split(b"u")[1:]))
    return units.decode("utf-16-be", "surrogatepass").replace("\\", "").encode("utf-8", "surrogatepass")
