"""How suspicious characters are found without any search: each character, word and text by itself, slowly.

What the searches of `toolgate.kernel.text.rendering` find is compared with what this finds.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import Final, NamedTuple

from toolgate.kernel.text.rendering import characters
from toolgate.kernel.text.rendering.characters import MAX_MARKS, Kind, is_mark, script
from toolgate.kernel.text.rendering.lookalikes import _kind

_RARE: Final = re.compile(r"[^\t\n -~]")
_EXPLICIT_BIDI: Final = frozenset(map(chr, (*range(0x202A, 0x202F), *range(0x2066, 0x206A))))
_BIDI_MARKS: Final = frozenset("\u061c\u200e\u200f")
_UNSEEN: Final = frozenset(characters._UNSEEN) | {"\u3000"}
_IDEOGRAPHIC: Final = frozenset("CJK HIRAGANA KATAKANA HANGUL BOPOMOFO IDEOGRAPHIC FULLWIDTH HALFWIDTH YI".split())


def suspicious(text: str) -> dict[int, Kind]:
    """Return the positions of characters that hide, move or imitate something."""
    found = dict(find_unseen(text))
    for index in find_look_alikes(text):
        found.setdefault(index, Kind.LOOK_ALIKE)
    return found


def _before(text: str, index: int) -> str:
    return text[index - 1] if index else ""


def _after(text: str, index: int) -> str:
    return text[index + 1] if index + 1 < len(text) else ""


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
    if text[index] == "\u3000":
        is_wide = any(script(other) in _IDEOGRAPHIC for other in text if other != "\u3000" and not other.isascii())
        return None if is_wide else Kind.INVISIBLE
    ordinary = characters._UNSEEN[text[index]]
    return None if ordinary is not None and ordinary(text, index) else Kind.INVISIBLE


def _line_runs_right_to_left(text: str, index: int) -> bool:
    start = text.rfind("\n", 0, index) + 1
    end = text.find("\n", index)
    line = text[start : end if end >= 0 else len(text)]
    return any(unicodedata.bidirectional(other) in ("R", "AL") for other in line if other not in _BIDI_MARKS)


_TWINS: Final = {
    "CYRILLIC": "аеорсухѕіјһӏԁԛԝѵүҽѡАВЕЅІЈКМНОРСТУХԚԜҮӀЅҺԌЬ",
    "GREEK": "ονιρυαγϲϳΑΒΕΖΗΙΚΜΝΟΡΤΥΧϹϺ",
    "ARMENIAN": "օսհոցզյգքՕՏՍԼՈ",
    "LATIN": "ABCEHIKMOPTXYaceiopxy",
}
"""Letters whose shape is a letter of another script. LATIN lists those with a Cyrillic twin."""
_ALL_TWINS: Final = frozenset("".join(_TWINS.values()))
_FIRMLY: Final = frozenset("ονΑΒΕΖΗΙΚΜΝΟΡΤΥΧϲϳϹϺ")
"""Greek letters that are exactly Latin ones; the others are also symbols, as in TNFα, and need more proof."""
_NEVER_MIXED: Final = frozenset("CHEROKEE COPTIC LISU TIFINAGH DESERET GOTHIC CARIAN LYCIAN LYDIAN VAI OSAGE".split())
_NEVER_MIXED_TWO: Final = ("OLD ITALIC", "CANADIAN SYLLABICS", "OLD PERMIC")
_PHONETIC: Final = frozenset("ɡɑɩꞁ")
_STYLED: Final = frozenset(map(chr, (*range(0x1D400, 0x1D7CC), 0x212A, *range(0x2170, 0x2180)))) | _PHONETIC
"""Latin letters in disguise: mathematical alphabets, the Kelvin sign, small Roman numerals, phonetic g and a."""
_PUNCTUATION: Final = frozenset("\u2044\u2215\u29f8\u2024\u2236\ua789\u2571\u3033\u30ce\u4e3f\u4e00\u3007\u4e28\u01c3")
"""Slashes, dots, colons and strokes that are not the ones of paths and addresses."""
_ZEROS: Final = frozenset("ОоЗзΟοՕօ")
_EAST_ASIAN: Final = frozenset("CJK HIRAGANA KATAKANA HANGUL BOPOMOFO IDEOGRAPHIC".split())
_LATIN_WORD: Final = re.compile(r"[A-Za-z]{3}")
_CHUNK: Final = re.compile(r"\S+")


class _Run(NamedTuple):
    script: str
    start: int
    letters: str


def find_look_alikes(text: str) -> Iterator[int]:
    """Yield the positions of letters and signs that pretend to be others."""
    if text.isascii():
        return
    found: set[int] = set()
    openly = {_kind(character) for character in text if character not in _ALL_TWINS}
    is_east_asian = any(_kind(character) in _EAST_ASIAN for character in text if character not in _PUNCTUATION)
    for chunk in _CHUNK.finditer(text):
        if not chunk.group().isascii():
            found.update(_in_chunk(text, chunk.start(), chunk.end(), is_east_asian))
            found.update(_in_address(text, chunk.start(), chunk.end(), openly))
    found.update(_strangers(text))
    yield from sorted(found)


def _in_chunk(text: str, start: int, end: int, is_east_asian: bool) -> Iterator[int]:
    for first, last in _words(text, start, end):
        word = text[first:last]
        if not word.isascii():
            yield from _in_word(word, first, is_east_asian)
            yield from _in_number(word, first)
    if is_east_asian:
        return
    for index in range(start + 1, end - 1):
        around = (text[index - 1], text[index + 1])
        is_sign = text[index] in _PUNCTUATION and all(other.isascii() and other.isalnum() for other in around)
        if is_sign and any(other.isalpha() for other in around):
            yield index


def _words(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    first = None
    for index in range(start, end):
        inside = text[index] not in _PUNCTUATION and (text[index].isalnum() or is_mark(text[index]))
        if inside and first is None:
            first = index
        elif not inside and first is not None:
            yield first, index
            first = None
    if first is not None:
        yield first, end


def _runs(word: str, start: int) -> list[_Run]:
    runs: list[_Run] = []
    for offset, character in enumerate(word):
        kind = _kind(character)
        if not kind:
            continue  # digits and marks belong to the letters before them
        if runs and runs[-1].script == kind and runs[-1].start - start + len(runs[-1].letters) == offset:
            runs[-1] = runs[-1]._replace(letters=runs[-1].letters + character)
        else:
            runs.append(_Run(kind, start + offset, character))
    return runs


def _in_word(word: str, start: int, is_east_asian: bool) -> Iterator[int]:
    runs = _runs(word, start)
    scripts = {run.script for run in runs}
    latin = "".join(run.letters for run in runs if run.script == "LATIN")
    for number, run in enumerate(runs):
        is_inside = 0 < number < len(runs) - 1
        if _pretends(run, scripts, latin, is_inside, is_east_asian):
            yield from range(run.start, run.start + len(run.letters))
    openly = any(run.script == "CYRILLIC" and not _has_twins(run) for run in runs)
    if openly and latin:
        for run in runs:
            if run.script == "LATIN" and _has_twins(run):
                yield from range(run.start, run.start + len(run.letters))


def _has_twins(run: _Run) -> bool:
    return all(letter in _TWINS[run.script] for letter in run.letters)


def _pretends(run: _Run, scripts: set[str], latin: str, is_inside: bool, is_east_asian: bool) -> bool:
    if run.script == "STYLED":
        # Phonetic letters beside others that are not ASCII are phonetic writing.
        is_writing = not latin.isascii() and _PHONETIC.issuperset(run.letters)
        return (bool(latin) or len(run.letters) > 2) and not is_writing
    if run.script == "FULLWIDTH":
        return not is_east_asian
    if run.script == "CHEROKEE":
        return bool(latin)
    if run.script not in ("CYRILLIC", "GREEK", "ARMENIAN") or not latin or not _has_twins(run):
        return False
    if run.script != "GREEK" or is_inside:
        return True
    return len(latin) > 2 and (latin.islower() or all(letter in _FIRMLY for letter in run.letters))


def _in_number(word: str, start: int) -> Iterator[int]:
    """Digits of two systems in one number, or a letter that stands for a digit inside one."""
    systems = {ord(digit) - unicodedata.decimal(digit) for digit in word if digit.isdecimal()}
    if len(systems) > 1:
        yield from (start + at for at, digit in enumerate(word) if digit.isdecimal() and not digit.isascii())
    for at in range(1, len(word) - 1):
        if word[at] in _ZEROS and word[at - 1].isdecimal() and word[at + 1].isdecimal():
            yield start + at


def _in_address(text: str, start: int, end: int, openly: set[str]) -> Iterator[int]:
    """A whole word of twins joined to Latin words, as in an address, a path or an identifier.

    In a text that is openly of the word's script only a dot or an at sign makes an address of it.
    """
    words = list(_words(text, start, end))
    if not any(text[first:last].isascii() and text[first:last].isalpha() for first, last in words):
        return
    for first, last in words:
        is_addressed = text[last : last + 1] in (".", "@") or text[first - 1 : first] in (".", "@")
        if is_addressed or _kind(text[first]) not in openly:
            yield from _whole_twin(text, first, last)


def _whole_twin(text: str, first: int, last: int) -> Iterator[int]:
    runs = _runs(text[first:last], first)
    is_foreign = len(runs) == 1 and len(runs[0].letters) > 1 and runs[0].script in ("CYRILLIC", "GREEK", "ARMENIAN")
    if is_foreign and _has_twins(runs[0]):
        yield from range(first, first + len(runs[0].letters))


def _strangers(text: str) -> Iterator[int]:
    """A whole word of twins, alone in a text that is otherwise ASCII."""
    rare = [word for word in _words(text, 0, len(text)) if not text[word[0] : word[1]].isascii()]
    runs = [run for first, last in rare for run in _runs(text[first:last], first) if run.script != "LATIN"]
    has_latin = _LATIN_WORD.search(text) is not None
    if not has_latin or any(run.script not in _TWINS or not _has_twins(run) for run in runs):
        return
    for first, last in rare:
        if last - first > 2:
            yield from _whole_twin(text, first, last)
