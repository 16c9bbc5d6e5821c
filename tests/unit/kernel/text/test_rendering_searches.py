"""That searching finds exactly what looking at every character finds, in time that grows as the text does."""

from __future__ import annotations

import random
import time
import unicodedata

import pytest
from benchmarks.text_kinds import kinds
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.kernel.text import rendering_reference as reference

from toolgate.kernel.text.rendering import as_lines, brief, reveal, suspicious
from toolgate.kernel.text.rendering.characters import _UNSEEN, Kind, _always, suspects
from toolgate.kernel.text.rendering.clear import _suspect, is_clear
from toolgate.kernel.text.rendering.lookalikes import _EAST_ASIAN, _MAYBE_EAST_ASIAN, _PUNCTUATION, _kind, may_pretend

EVERY = "".join(map(chr, range(0x110000)))
POOLS = (
    "abcXYZ 019 .@/-_|\n\t", "aé ñü", "аеорсухѕіјһӏԁ", "бгджзийлцчшщ", "ονιρυαγΑΒΕ", "θλπσω", "օսհոցզԲգդ",
    "\u0301\u0300\u20e3\u034f\u0903\u093f", "\u200b\u200c\u200d\ufe0e\ufe0f\ufe00", "😀👩💻❤🏳🌈🏴",
    "\u202a\u202e\u2066\u2069\u200e\u200f\u061c", "אבגעربية", "漢字ひらカナ一ノ〇", "\u3000\u00a0\u2009\u202f",
    "\u2044\u2215\u2024\u01c3\u2571", "٠١٢०१２３", "ａｂＡＢｱ", "𝐚𝐛𝟏\u212aɡɑⅰ", "ᎠᎡꓐⲀ",
    "\ud800\udfff\ue000\ufffe\ufdd0\U0010ffff\U0001fffe", "\x00\x1b\x7f\x85\r\u2028", "می\u200cخواهمक्षि्\u094d",
    "\u115f\u1160\u1100\u1680ᚁ\u180b\u180eᠠ\u2800\u2801", "\U000e0067\U000e0062\U000e007f\U000e0100\U000e1000",
    "\U00013430\U00013000\U00010330\U0001e000", "ªºµΩ", "\u00ad\ufeff\u2060\u3164", '"\\nt',
)  # fmt: skip
MIXED = st.lists(st.sampled_from(POOLS), min_size=1, max_size=5).flatmap(
    lambda pools: st.text(alphabet=st.sampled_from("".join(pools)), max_size=60)
)


@given(MIXED | st.text(alphabet=st.characters(exclude_categories=[]), max_size=40))
def test_searching_finds_what_looking_at_each_character_finds(text: str) -> None:
    assert suspicious(text) == reference.suspicious(text)


def test_it_does_so_for_thousands_of_random_texts() -> None:
    dice = random.Random(18)
    for _ in range(1000):
        pools = dice.sample(POOLS, dice.randrange(1, 6))
        text = "".join(dice.choice(dice.choice(pools)) * dice.choice((1, 1, 1, 12)) for _ in range(dice.randrange(40)))
        assert suspicious(text) == reference.suspicious(text), ascii(text)


@given(MIXED)
def test_a_text_is_clear_only_where_nothing_is_suspicious(text: str) -> None:
    assert not is_clear(text) or reference.suspicious(text) == {}


@given(st.dictionaries(MIXED, MIXED, max_size=3))
def test_a_value_shows_each_text_as_if_it_stood_alone(value: dict[str, str]) -> None:
    lines = "\n".join(as_lines(value)[0])
    for text in (*value, *value.values()):
        alone = as_lines([text])[0]
        assert alone == ["[", alone[1], "]"]
        assert alone[1].strip() in lines


def test_no_character_that_may_be_unseen_or_pretend_escapes_the_search() -> None:
    found = set(_suspect().findall(EVERY))
    marks = {one for one in EVERY if unicodedata.category(one) in ("Mn", "Me")}
    kinds_of = {one: _kind(one) for one in EVERY if one.isalpha() or one.isnumeric()}
    pretending = {"CYRILLIC", "GREEK", "ARMENIAN", "STYLED", "FULLWIDTH", "CHEROKEE"}
    letters = {one for one, kind in kinds_of.items() if kind in pretending}
    digits = {one for one in EVERY if one.isdecimal() and not one.isascii()}
    always = {one for one in EVERY if _always(one) is not None and one not in "\t\n\r"}
    assert (always | marks | letters | digits | set(_UNSEEN) | set(_PUNCTUATION)) <= found
    assert letters | digits <= set(may_pretend().findall(EVERY))
    wide = {one for one, kind in kinds_of.items() if kind in _EAST_ASIAN and one not in _PUNCTUATION}
    assert wide <= set(_MAYBE_EAST_ASIAN.findall(EVERY))
    assert suspects()


@pytest.mark.parametrize("text", kinds(20_000).values(), ids=kinds(1))
def test_ordinary_text_needs_no_closer_look(text: str) -> None:
    assert is_clear(text.rstrip("\u200d"))
    assert reveal(text).warnings == ()


LONG = {
    "marks on one letter": "a" + "\u0301" * 9999,
    "wide spaces": "\u3000é" * 5000,
    "direction marks": "a\u200e" * 5000,
    "direction marks in Hebrew": "א\u200f" * 5000,
    "zero width": "a\u200bb" * 3333,
    "joiners": "\u200d" * 10000,
    "scripts in one word": "aаοb" * 2500,
    "addresses of twins": "сосо/a/" * 1428,
    "digits of two systems": "1٢" * 5000,
    "half pairs": "a\ud800" * 5000,
    "lines": "x\n" * 5000,
    "one line": "é" * 10000,
}


@pytest.mark.soak  # the clock of a busy machine is no judge of every change
@pytest.mark.parametrize("name", LONG)
def test_eight_times_the_text_takes_about_eight_times_as_long(name: str) -> None:
    text = LONG[name]

    def seconds(times: int) -> float:
        value = {"content": text * times}
        best = float("inf")
        for _ in range(3):
            began = time.process_time()
            as_lines(value)
            brief(value, 100)
            best = min(best, time.process_time() - began)
        return max(best, 1e-4)

    seconds(1)
    assert seconds(8) < 28 * seconds(1)  # were it quadratic, 64 times


@settings(max_examples=25)
@given(st.text(alphabet=st.sampled_from("".join(POOLS[:6]) + " "), min_size=2500, max_size=2600), st.integers(1, 200))
def test_the_beginning_of_a_text_hides_nothing_the_whole_would_show(text: str, width: int) -> None:
    assert as_lines([text])[0][1].strip()[:width] == brief(text, width)[:width]


def test_many_distinct_letters_are_judged_alike_and_not_all_remembered() -> None:
    text = " ".join(f"а{chr(code)}" for code in range(0x4E00, 0x4E00 + 9000))
    assert suspicious(text) == {}
    assert suspicious("pаypal") == {1: Kind.LOOK_ALIKE}
