"""Which letters pretend to be others. Only mixtures are suspicious: a word in one script is that language's own.

A word is suspicious where a run of one script inside it consists wholly of letters that look like those of the
script around it (`pаypal` with a Cyrillic а). Names and words that are openly of two scripts stay as they are.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import cache, cached_property, lru_cache
from typing import Final

from toolgate.kernel.text.lazy_pattern import lazy_pattern
from toolgate.kernel.text.rendering.characters import script
from toolgate.kernel.text.rendering.classes import MAY_BE_ALIKE, MAY_BE_EAST_ASIAN, all_marks, inside, may_be_digit

_TWINS: Final = {
    "CYRILLIC": frozenset("аеорсухѕіјһӏԁԛԝѵүҽѡАВЕЅІЈКМНОРСТУХԚԜҮӀЅҺԌЬ"),
    "GREEK": frozenset("ονιρυαγϲϳΑΒΕΖΗΙΚΜΝΟΡΤΥΧϹϺ"),
    "ARMENIAN": frozenset("օսհոցզյգքՕՏՍԼՈ"),
    "LATIN": frozenset("ABCEHIKMOPTXYaceiopxy"),
}
"""Letters whose shape is a letter of another script. LATIN lists those with a Cyrillic twin."""
_ALL_TWINS: Final = frozenset().union(*_TWINS.values())
_FIRMLY: Final = frozenset("ονΑΒΕΖΗΙΚΜΝΟΡΤΥΧϲϳϹϺ")
"""Greek letters that are exactly Latin ones; the others are also symbols, as in TNFα, and need more proof."""
_NEVER_MIXED: Final = frozenset("CHEROKEE COPTIC LISU TIFINAGH DESERET GOTHIC CARIAN LYCIAN LYDIAN VAI OSAGE".split())
_NEVER_MIXED_TWO: Final = ("OLD ITALIC", "CANADIAN SYLLABICS", "OLD PERMIC")
_PHONETIC: Final = frozenset("ɡɑɩꞁ")
_STYLED: Final = frozenset(map(chr, (*range(0x1D400, 0x1D7CC), 0x212A, *range(0x2170, 0x2180)))) | _PHONETIC
"""Latin letters in disguise: mathematical alphabets, the Kelvin sign, small Roman numerals, phonetic g and a."""
_PUNCTUATION: Final = frozenset("\u2044\u2215\u29f8\u2024\u2236\ua789\u2571\u3033\u30ce\u4e3f\u4e00\u3007\u4e28\u01c3")
"""Slashes, dots, colons and strokes that are not the ones of paths and addresses."""
_SIGN: Final = lazy_pattern(f"[{inside(_PUNCTUATION)}](?:(?<=[A-Za-z].)(?=[A-Za-z0-9])|(?<=[0-9].)(?=[A-Za-z]))")
_LETTER_IN_NUMBER: Final = lazy_pattern(r"(?<=\d)[ОоЗзΟοՕօ](?=\d)")
_DIGIT: Final = lazy_pattern(r"\d")
_EAST_ASIAN: Final = frozenset("CJK HIRAGANA KATAKANA HANGUL BOPOMOFO IDEOGRAPHIC".split())
_LATIN_WORD: Final = lazy_pattern(r"[A-Za-z]{3}")
_CHUNK: Final = lazy_pattern(r"\S+")
_NOT_LATIN: Final = lazy_pattern(r"[^\W\x00-\x7f\u00c0-\u024f]")
_MAYBE_EAST_ASIAN: Final = lazy_pattern(f"[{MAY_BE_EAST_ASIAN}]")
_OF_ONE_KIND: Final = lazy_pattern(r"[\u0370-\u058f\u1f00-\u1fff!-/:-@[-`{-~«»„“”’—–…]+")
"""Words of other scripts without a Latin letter or a digit: none of them pretends beside the others."""


def find_look_alikes(text: str, *, start_of: str | None = None) -> list[int]:
    """Return the positions of letters and signs that pretend to be others.

    What a piece of text between two spaces holds is judged once, however often it stands there. With `start_of`, the
    text is the beginning of that one, up to a space, and judged as a part of it.
    """
    if text.isascii():
        return []
    whole = _Whole(text if start_of is None else start_of)
    found = [match.start() for match in _SIGN.finditer(text)]
    if found and whole.is_east_asian:
        found = []
    if may_pretend().search(text) is None:
        return found
    judged = {chunk: places for chunk in set(text.split()) if (places := _in_chunk(chunk, whole))}
    if judged:
        for chunk in _CHUNK.finditer(text):
            start = chunk.start()
            found += [start + place for place in judged.get(chunk.group(), ())]
    return sorted(set(found))


def imitators() -> str:
    """Every character without which nothing pretends to be another, as the inside of a set."""
    return f"{MAY_BE_ALIKE}{may_be_digit()}{inside(_PUNCTUATION)}"


@cache
def may_pretend() -> re.Pattern[str]:
    """Finds the letters and digits without which nothing pretends but a sign."""
    return re.compile(f"[{MAY_BE_ALIKE}{may_be_digit()}]")


class _Whole:
    """What only the whole text tells; each is found out when it is needed."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._is_openly: dict[str, bool] = {}

    @cached_property
    def is_east_asian(self) -> bool:
        return any(_kind(other) in _EAST_ASIAN for other in self._each(_MAYBE_EAST_ASIAN) if other not in _PUNCTUATION)

    def is_openly(self, kind: str) -> bool:
        """Whether it holds a letter of a script that looks like no other script's."""
        if kind not in self._is_openly:
            others = (other for other in self._each(may_pretend()) if other not in _ALL_TWINS)
            self._is_openly[kind] = not kind or any(_kind(other) == kind for other in others)
        return self._is_openly[kind]

    @cached_property
    def is_ascii_but_for_twins(self) -> bool:
        """Whether it has Latin words, and besides no letter but those that look Latin."""
        if _LATIN_WORD.search(self._text) is None:
            return False
        others = (other for other in self._each(_NOT_LATIN) if other not in _PUNCTUATION)
        return all(_kind(other) in ("", "LATIN") or other in _TWINS.get(_kind(other), ()) for other in others)

    def _each(self, pattern: re.Pattern[str]) -> Iterator[str]:
        return (match.group() for match in pattern.finditer(self._text))


@lru_cache(maxsize=8192)
def _kind(character: str) -> str:
    """The script of a letter; "" for everything else."""
    if character.isascii():
        return "LATIN" if character.isalpha() else ""
    if character in _STYLED:
        return "STYLED"
    if not character.isalpha():
        return ""
    name = unicodedata.name(character, "")
    if name.startswith(_NEVER_MIXED_TWO):
        return "CHEROKEE"
    first = script(character)
    if first == "FULLWIDTH":
        return "FULLWIDTH" if " LATIN " in name else "KATAKANA"
    return "CHEROKEE" if first in _NEVER_MIXED else first


class _Codes(dict[int, str]):
    """From a letter to a sign for its script, as `str.translate` wants it; learned as letters are met.

    A capital says that the letter has a twin in another script.
    """

    def __missing__(self, code: int) -> str:
        if len(self) > _MOST_CODES:
            self.clear()
        kind = _kind(chr(code))
        sign = _SIGNS.get(kind, "o")
        self[code] = sign = sign.upper() if chr(code) in _TWINS.get(kind, ()) else sign
        return sign


_SIGNS: Final = {
    "": ".", "LATIN": "l", "CYRILLIC": "c", "GREEK": "g", "ARMENIAN": "a", "STYLED": "s", "FULLWIDTH": "f",
    "CHEROKEE": "n",
}  # fmt: skip
_MOST_CODES: Final = 8192
_codes: Final = _Codes()
_PRETENDER: Final = lazy_pattern("[cgasfn]", re.IGNORECASE)
_RUNS: Final = lazy_pattern("(?<![cC])C++(?!c)|(?<![aA])A++(?!a)|(?<![gG])G++(?!g)|s++|f++|n++")
"""Letters of one script that stand together in a word, where they may pretend: for three scripts, if all have twins."""
_LATIN_TWINS: Final = lazy_pattern("(?<![lL])L++(?!l)")
_LATIN: Final = lazy_pattern("[lL]++")
_WHOLE_TWIN: Final = lazy_pattern(r"\.*(?:C{2,}|G{2,}|A{2,})\.*")


def _in_chunk(chunk: str, whole: _Whole) -> list[int]:
    if chunk.isascii() or may_pretend().search(chunk) is None:
        return []
    if _OF_ONE_KIND.fullmatch(chunk) and not whole.is_ascii_but_for_twins:
        return []
    found: list[int] = []
    words = [(match.start(), match.group()) for match in _word().finditer(chunk)]
    has_latin_word = any(word.isascii() and word.isalpha() for _, word in words)
    for start, word in words:
        if word.isascii() or may_pretend().search(word) is None:
            continue
        signs = word.translate(_codes)
        if _PRETENDER.search(signs):
            found += _in_word(word, signs, start, whole)
        found += _in_number(word, start)
        if _WHOLE_TWIN.fullmatch(signs) and _is_twin(chunk, start, word, whole, has_latin_word):
            found += range(start, start + len(signs.strip(".")))
    return found


def _in_word(word: str, signs: str, start: int, whole: _Whole) -> list[int]:
    """The letters of a word that pretend. Digits and marks are no letters, and part those beside them."""
    latin = "".join(word[run.start() : run.end()] for run in _LATIN.finditer(signs))
    first, last = len(signs) - len(signs.lstrip(".")), len(signs.rstrip("."))
    found: list[int] = []
    for run in _RUNS.finditer(signs):
        is_inside = first < run.start() and run.end() < last
        if _pretends(run.group()[0], word[run.start() : run.end()], latin, is_inside, whole):
            found += range(start + run.start(), start + run.end())
    if latin and "c" in signs:
        for run in _LATIN_TWINS.finditer(signs):
            found += range(start + run.start(), start + run.end())
    return found


def _pretends(sign: str, letters: str, latin: str, is_inside: bool, whole: _Whole) -> bool:
    if sign == "s":
        # Phonetic letters beside others that are not ASCII are phonetic writing.
        is_writing = not latin.isascii() and _PHONETIC.issuperset(letters)
        return (bool(latin) or len(letters) > 2) and not is_writing
    if sign == "f":
        return not whole.is_east_asian
    if not latin or sign != "G" or is_inside:
        return bool(latin)
    return len(latin) > 2 and (latin.islower() or _FIRMLY.issuperset(letters))


def _in_number(word: str, start: int) -> Iterator[int]:
    """Digits of two systems in one number, or a letter that stands for a digit inside one."""
    digits = set(_DIGIT.findall(word))
    if len({ord(digit) - unicodedata.decimal(digit) for digit in digits}) > 1:
        yield from (start + match.start() for match in _DIGIT.finditer(word) if not match.group().isascii())
    if digits:
        yield from (start + match.start() for match in _LETTER_IN_NUMBER.finditer(word))


def _is_twin(chunk: str, start: int, word: str, whole: _Whole, has_latin_word: bool) -> bool:
    """Whether a word that has letters of one script alone, all of them twins, pretends to be a Latin word.

    It does in an address, a path or an identifier, joined to Latin words; in a text that is openly of the word's
    script only a dot or an at sign makes an address of it. And it does alone in a text that is otherwise ASCII.
    """
    if has_latin_word:
        end = start + len(word)
        is_addressed = chunk[end : end + 1] in (".", "@") or chunk[max(0, start - 1) : start] in (".", "@")
        if is_addressed or not whole.is_openly(_kind(word[0])):
            return True
    return len(word) > 2 and whole.is_ascii_but_for_twins


@cache
def _word() -> re.Pattern[str]:
    """Letters, digits and the marks on them."""
    return re.compile(rf"(?:[^\W_{inside(_PUNCTUATION)}]++|[{all_marks()}]++)+")
