"""Which characters of a text a reader cannot see, or that move what they see. Look-alikes: `lookalikes`.

Almost every invisible character has a place in some language or emoji, so each is judged by its neighbours:
a joiner between Persian letters is spelling, the same joiner inside `admin` is a trick.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from enum import StrEnum
from functools import cache, lru_cache
from typing import Final, NamedTuple

from toolgate.kernel.text.lazy_pattern import lazy_pattern
from toolgate.kernel.text.rendering.classes import PICTOGRAPHS, inside, may_stack


class Kind(StrEnum):
    """Why a character is shown by its code instead of itself."""

    CONTROL = "control"
    BIDI = "bidirectional"
    INVISIBLE = "invisible"
    STACKED = "stacked"
    UNDEFINED = "undefined"
    LOOK_ALIKE = "look-alike"


MAX_MARKS: Final = 10
"""So many combining marks on one letter are still writing; more would cover the neighbouring lines."""

_ASCII_CONTROL: Final = lazy_pattern(r"[\x00-\x08\x0b-\x1f\x7f](?!(?<=\r)\n)")
_CONTROLS: Final = r"\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029"
_UNDEFINED: Final = (
    "\ud800-\uf8ff\ufdd0-\ufdef\ufffe-\uffff\U0001fffe-\U0001ffff\U0002fffe-\U0002ffff\U0003fffe-\U0010ffff"
)
"""With what stands far above, nearly all of it undefined too; it is looked at again."""
_LONE_RETURN: Final = lazy_pattern(r"\r(?!\n)")
_JOINER: Final = lazy_pattern(f"\u200d(?:(?<![{PICTOGRAPHS}\ufe0f]\u200d)|(?![{PICTOGRAPHS}]))")
"""A joiner that does not stand inside an emoji, as almost all do."""
_SELECTOR: Final = lazy_pattern(f"[\ufe0e\ufe0f](?<![{PICTOGRAPHS}0-9#*][\ufe0e\ufe0f])")
_BIDI_MARK: Final = lazy_pattern("[\u061c\u200e\u200f]")
_MAYBE_IDEOGRAPHIC: Final = lazy_pattern(r"[^\x00-\u10ff]")
_WIDE_SPACE: Final = "\u3000"
_EXPLICIT_BIDI: Final = frozenset(map(chr, (*range(0x202A, 0x202F), *range(0x2066, 0x206A))))
_BIDI_MARKS: Final = frozenset("\u061c\u200e\u200f")
_ZWNJ, _ZWJ, _ZWSP = "\u200c", "\u200d", "\u200b"
_VIRAMAS: Final = tuple("\u094d\u09cd\u0a4d\u0acd\u0b4d\u0bcd\u0c4d\u0ccd\u0d4d\u0dca")
_RIGHT_TO_LEFT: Final = ("R", "AL")
_BLANKS: Final = frozenset("\u00a0\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f")
_SUBDIVISIONS: Final = ("gbeng", "gbsct", "gbwls")  # the flags of England, Scotland and Wales
_BLACK_FLAG: Final = "\U0001f3f4"

_JOINING: Final = frozenset(
    "ARABIC SYRIAC MANDAIC NKO MONGOLIAN PHAGS-PA DEVANAGARI BENGALI GURMUKHI GUJARATI ORIYA TAMIL TELUGU KANNADA "
    "MALAYALAM SINHALA KHMER MYANMAR TIBETAN BALINESE JAVANESE SUNDANESE TAKRI CHAKMA GRANTHA KAITHI NEWA TIRHUTA "
    "SAURASHTRA SHARADA SIDDHAM MODI MEETEI LEPCHA LIMBU BRAHMI KHAROSHTHI ADLAM HANIFI MANICHAEAN PSALTER TAI "
    "BATAK BUGINESE REJANG NANDINAGARI DOGRA SOYOMBO ZANABAZAR BHAIKSUKI KHOJKI KHUDAWADI MAHAJANI AHOM "
    "PAHAWH THAANA VEDIC".split()
)
_SPACELESS: Final = frozenset("THAI LAO KHMER MYANMAR TAI NEW BALINESE JAVANESE TIBETAN CJK HIRAGANA KATAKANA".split())
_IDEOGRAPHIC: Final = frozenset("CJK HIRAGANA KATAKANA HANGUL BOPOMOFO IDEOGRAPHIC FULLWIDTH HALFWIDTH YI".split())


@lru_cache(maxsize=8192)
def script(character: str) -> str:
    """The first word of a character's name, which is its script for letters; "" where it has none."""
    return unicodedata.name(character, "").partition(" ")[0]


def is_mark(character: str) -> bool:
    return unicodedata.category(character)[0] == "M"


def _before(text: str, index: int) -> str:
    return text[index - 1] if index else ""


def _after(text: str, index: int) -> str:
    return text[index + 1] if index + 1 < len(text) else ""


def _base(text: str, index: int) -> str:
    """The character that the marks before `index` stand on."""
    index -= 1
    while index > 0 and is_mark(text[index]):
        index -= 1
    return text[index] if index >= 0 else ""


def _script_of(character: str) -> str:
    return script(character) if character else ""


def is_pictograph(character: str) -> bool:
    """Whether a character may be part of an emoji; unassigned ones in the emoji planes count, fonts are newer."""
    code = ord(character) if character else 0
    return 0x1F000 <= code <= 0x1FAFF or 0x2190 <= code <= 0x2BFF or character in "\u00a9\u00ae\u203c\u2049\u3030\u303d"


def _joins(text: str, index: int) -> bool:
    """Whether a joiner or non-joiner does its work here: in a script that has them, or inside an emoji."""
    before, after = _before(text, index), _after(text, index)
    if before == _ZWJ and text[index] == _ZWNJ and text[index - 2 : index - 1] in _VIRAMAS:
        return True  # how some of India's languages ask for one form of a letter and not for the next
    if before in (_ZWJ, _ZWNJ) or not before:
        return False
    if _script_of(before) in _JOINING or _script_of(_base(text, index)) in _JOINING:
        return True
    if text[index] == _ZWNJ:
        return False
    return (is_pictograph(before) or before == "\ufe0f") and is_pictograph(after)


def _breaks(text: str, index: int) -> bool:
    """Whether a zero-width space parts words of a language that writes none between them."""
    around = (_before(text, index), _after(text, index))
    is_beside = any(_script_of(other) in _SPACELESS for other in around)
    return is_beside and not any(other.isascii() and other.isalnum() for other in around)


def _varies(text: str, index: int) -> bool:
    """Whether a variation selector follows something that has variants."""
    before, code = _before(text, index), ord(text[index])
    if not before:
        return False
    if code in (0xFE0E, 0xFE0F):
        return is_pictograph(before) or before in "0123456789#*" or unicodedata.category(before) in ("So", "Sm", "Po")
    return _script_of(before) in _IDEOGRAPHIC or _script_of(before) in ("MYANMAR", "PHAGS-PA") or _is_symbol(before)


def _is_symbol(character: str) -> bool:
    return unicodedata.category(character) in ("Sm", "So")


def _follows_mongolian(text: str, index: int) -> bool:
    return _script_of(_before(text, index)) == "MONGOLIAN"


def _names_a_flag(text: str, index: int) -> bool:
    """Whether a tag character belongs to one of the flags that are written with them."""
    start = text.rfind(_BLACK_FLAG, max(0, index - 7), index)
    if start < 0:
        return False
    spelled = "".join(chr(ord(tag) - 0xE0000) if ord(tag) >= 0xE0000 else " " for tag in text[start + 1 : start + 7])
    return any(spelled == f"{name}\x7f" for name in _SUBDIVISIONS)


def _fills_a_syllable(text: str, index: int) -> bool:
    """Whether a Hangul filler stands in for a missing letter of an old syllable."""
    if text[index] == "\u115f":
        return "\u1160" <= _after(text, index) <= "\u11a7"
    return "\u1100" <= _before(text, index) <= "\u115f"


def _beside_braille(text: str, index: int) -> bool:
    return any("\u2801" <= other <= "\u28ff" for other in (_before(text, index), _after(text, index)))


def _on_a_mark(text: str, index: int) -> bool:
    before = _before(text, index)
    return bool(before) and is_mark(before)


def _beside_hieroglyphs(text: str, index: int) -> bool:
    return _script_of(_base(text, index)) == "EGYPTIAN"


def _among_ideographs(text: str) -> bool:
    """Whether a wide space is ordinary anywhere in a text: it holds what such spaces stand between."""
    others = (match.group() for match in _MAYBE_IDEOGRAPHIC.finditer(text))
    return any(script(other) in _IDEOGRAPHIC for other in others if other != _WIDE_SPACE)


def _beside_ogham(text: str, index: int) -> bool:
    return "OGHAM" in (_script_of(_before(text, index)), _script_of(_after(text, index)))


def _reads_as_space(text: str, index: int) -> bool:
    """Whether a typographic space stands in prose, not before a command's option or path."""
    after, following, word = _after(text, index), text[index + 2 : index + 3], text[max(0, index - 2) : index]
    is_option = after in ("-", "/", "|") and following.isascii() and (following.isalnum() or after == "|")
    # One letter and a space before an option is a preposition of some languages; a command has more letters.
    return not (is_option and len(word) == 2 and word.isascii() and word.isalnum())


Ordinary = Callable[[str, int], bool]


def _spread(*rows: tuple[Ordinary | None, tuple[int, ...]]) -> dict[str, Ordinary | None]:
    return {chr(code): ordinary for ordinary, codes in rows for code in codes}


_UNSEEN: Final[dict[str, Ordinary | None]] = _spread(
    (None, (0x00AD, 0x17B4, 0x17B5, *range(0x2060, 0x2066), *range(0x206A, 0x2070), 0x3164, 0xFEFF, 0xFFA0)),
    (None, (*range(0xFFF0, 0xFFFD), *range(0x1BCA0, 0x1BCA4), *range(0x1D173, 0x1D17B))),
    (None, (*range(0xE0000, 0xE0020), *range(0xE0080, 0xE0100), *range(0xE01F0, 0xE1000))),
    (_on_a_mark, (0x034F,)),
    (_fills_a_syllable, (0x115F, 0x1160)),
    (_beside_ogham, (0x1680,)),
    (_follows_mongolian, (0x180B, 0x180C, 0x180D, 0x180E, 0x180F)),
    (_breaks, (0x200B,)),
    (_joins, (0x200C, 0x200D)),
    (_beside_braille, (0x2800,)),
    (_varies, (*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))),
    (_beside_hieroglyphs, tuple(range(0x13430, 0x13440))),
    (_names_a_flag, tuple(range(0xE0020, 0xE0080))),
    (_reads_as_space, tuple(map(ord, _BLANKS))),
)
"""Characters that show nothing, each with where it is ordinary; None: nowhere."""


_ALWAYS: Final = "".join(
    (
        _CONTROLS,
        inside(_EXPLICIT_BIDI),
        inside(one for one, ordinary in _UNSEEN.items() if ordinary is None and one < "\U000e0000"),
        _UNDEFINED,
    )
)
"""What is never shown as it is, as the inside of a set."""


def find_unseen(text: str) -> dict[int, Kind]:
    """Return where a text holds a character that is unseen or moves others, and of what kind it is.

    Searches pass over what is ordinary wherever it stands; only what they find is judged by its neighbours.
    """
    if text.isascii():
        return {match.start(): Kind.CONTROL for match in _ASCII_CONTROL.finditer(text)}
    patterns = _patterns()
    found = {match.start(): Kind.CONTROL for match in _LONE_RETURN.finditer(text)}
    for match in patterns.always.finditer(text):
        for index, character in enumerate(match.group(), match.start()):
            kind = _always(character)
            if kind is not None:
                found[index] = kind
    if _WIDE_SPACE in text and not _among_ideographs(text):
        found.update((match.start(), Kind.INVISIBLE) for match in re.finditer(_WIDE_SPACE, text))
    for pattern in (patterns.by_neighbours, _JOINER, _SELECTOR, patterns.blank):
        for match in pattern.finditer(text):
            index = match.start()
            if not _is_ordinary(text, index):
                found[index] = Kind.INVISIBLE
    found.update(_marks_that_move(text))
    found.update(_stacked(text, patterns))
    return found


def suspects() -> str:
    """Every character that may be unseen or move others, as the inside of a set."""
    return f"{_ALWAYS}{inside((*_UNSEEN, *_BIDI_MARKS))}{may_stack()}{_WIDE_SPACE}"


class _Patterns(NamedTuple):
    """Searches whose sets are made from Unicode's tables."""

    always: re.Pattern[str]
    by_neighbours: re.Pattern[str]
    blank: re.Pattern[str]
    marks: re.Pattern[str]


@cache
def _patterns() -> _Patterns:
    looked_at = set(_UNSEEN) - _BLANKS - {_ZWJ, "\ufe0e", "\ufe0f"}  # these have searches of their own
    by_neighbours = inside(character for character in looked_at if _UNSEEN[character] is not None)
    mark = f"[{may_stack()}]"
    # A set at the beginning of a pattern is searched for; a repeated set is tried at every place.
    return _Patterns(
        always=re.compile(f"[{_ALWAYS}][{_ALWAYS}]*+"),
        by_neighbours=re.compile(f"[{by_neighbours}]"),
        blank=re.compile(f"[{inside(_BLANKS)}](?=[-/|])"),
        marks=re.compile(rf"{mark}(?:(?<![^\n\t]{mark}){mark}*+|{mark}{{{MAX_MARKS},}}+)"),
    )


@lru_cache(maxsize=8192)
def _always(character: str) -> Kind | None:
    """The kind of a character that is never shown as it is; None for one that is, or may be among its neighbours."""
    if character in _UNSEEN:
        return Kind.INVISIBLE if _UNSEEN[character] is None else None
    if character in _EXPLICIT_BIDI:
        return Kind.BIDI
    category = unicodedata.category(character)
    if category in ("Cc", "Zl", "Zp"):
        return Kind.CONTROL
    is_nothing = category in ("Co", "Cs") or (ord(character) & 0xFFFE) == 0xFFFE or "\ufdd0" <= character <= "\ufdef"
    return Kind.UNDEFINED if is_nothing else None


def _stacked(text: str, patterns: _Patterns) -> Iterator[tuple[int, Kind]]:
    """Marks that would cover the neighbouring lines, or mark what stands before the text."""
    for match in patterns.marks.finditer(text):
        marks, is_first = 0, _before(text, match.start()) in ("", "\n", "\t")
        for index, character in enumerate(match.group(), match.start()):
            marks = marks + 1 if _stacks(character) else 0
            if (marks > MAX_MARKS or (marks and is_first)) and character not in _UNSEEN:
                yield index, Kind.STACKED
            is_first = False


@lru_cache(maxsize=8192)
def _stacks(character: str) -> bool:
    return unicodedata.category(character) in ("Mn", "Me")


def _marks_that_move(text: str) -> Iterator[tuple[int, Kind]]:
    """Direction marks in a line that has nothing to be set from right to left."""
    end, runs_right_to_left = -1, False
    for match in _BIDI_MARK.finditer(text):
        index = match.start()
        if index >= end:
            start = text.rfind("\n", 0, index) + 1
            end = text.find("\n", index)
            end = len(text) if end < 0 else end
            runs_right_to_left = _runs_right_to_left(text[start:end])
        if not runs_right_to_left:
            yield index, Kind.BIDI


def _runs_right_to_left(line: str) -> bool:
    return any(unicodedata.bidirectional(other) in _RIGHT_TO_LEFT for other in set(line) - _BIDI_MARKS)


def _is_ordinary(text: str, index: int) -> bool:
    """Whether a character that shows nothing has its place where it stands."""
    ordinary = _UNSEEN[text[index]]
    assert ordinary is not None
    if ordinary is _names_a_flag or (index and is_mark(text[index - 1])):
        return ordinary(text, index)
    start = max(0, index - 2)
    return _is_ordinary_between(text[start:index], text[index : index + 3])


@lru_cache(maxsize=8192)
def _is_ordinary_between(before: str, rest: str) -> bool:
    ordinary = _UNSEEN[rest[0]]
    assert ordinary is not None
    return ordinary(before + rest, len(before))
