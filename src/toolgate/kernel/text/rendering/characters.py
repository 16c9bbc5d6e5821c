"""Which characters of a text a reader cannot see, or that move what they see. Look-alikes: `rendering_lookalikes`.

Almost every invisible character has a place in some language or emoji, so each is judged by its neighbours:
a joiner between Persian letters is spelling, the same joiner inside `admin` is a trick.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator
from enum import StrEnum
from functools import lru_cache
from typing import Final

from toolgate.kernel.text.lazy_pattern import lazy_pattern


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

_RARE: Final = lazy_pattern(r"[^\t\n -~]")
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


def _among_ideographs(text: str, _index: int) -> bool:
    return any(script(other) in _IDEOGRAPHIC for other in text if other != "\u3000" and not other.isascii())


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
    (_among_ideographs, (0x3000,)),
    (_varies, (*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))),
    (_beside_hieroglyphs, tuple(range(0x13430, 0x13440))),
    (_names_a_flag, tuple(range(0xE0020, 0xE0080))),
    (_reads_as_space, tuple(map(ord, _BLANKS))),
)
"""Characters that show nothing, each with where it is ordinary; None: nowhere."""


def find_unseen(text: str) -> Iterator[tuple[int, Kind]]:
    """Yield where a text holds a character that is unseen or moves others, and of what kind it is."""
    marks = 0
    for found in _RARE.finditer(text):
        index = found.start()
        character = text[index]
        category = unicodedata.category(character)
        if category not in ("Mn", "Me"):
            marks = 0
            kind = _judge(text, index, category)
        else:
            marks = marks + 1 if index and unicodedata.category(text[index - 1]) in ("Mn", "Me") else 1
            kind = _judge_mark(text, index, marks)
        if kind is not None:
            yield index, kind


def _judge_mark(text: str, index: int, marks: int) -> Kind | None:
    if text[index] in _UNSEEN:
        return _judge_unseen(text, index)
    if marks > MAX_MARKS or _before(text, index) in ("", "\n", "\t"):
        return Kind.STACKED  # on nothing of its own, it would mark what stands before the text
    return None


def _judge(text: str, index: int, category: str) -> Kind | None:
    character = text[index]
    if character in _UNSEEN:
        return _judge_unseen(text, index)
    if category == "Cc":
        return None if character == "\r" and _after(text, index) == "\n" else Kind.CONTROL
    if category in ("Zl", "Zp"):
        return Kind.CONTROL
    if character in _EXPLICIT_BIDI:
        return Kind.BIDI
    if character in _BIDI_MARKS:
        return None if _line_runs_right_to_left(text, index) else Kind.BIDI
    is_nothing = category in ("Co", "Cs") or (ord(character) & 0xFFFE) == 0xFFFE or "\ufdd0" <= character <= "\ufdef"
    return Kind.UNDEFINED if is_nothing else None


def _judge_unseen(text: str, index: int) -> Kind | None:
    ordinary = _UNSEEN[text[index]]
    return None if ordinary is not None and ordinary(text, index) else Kind.INVISIBLE


def _line_runs_right_to_left(text: str, index: int) -> bool:
    start = text.rfind("\n", 0, index) + 1
    end = text.find("\n", index)
    line = text[start : end if end >= 0 else len(text)]
    return any(unicodedata.bidirectional(other) in _RIGHT_TO_LEFT for other in line if other not in _BIDI_MARKS)
