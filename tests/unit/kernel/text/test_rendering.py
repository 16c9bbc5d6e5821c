"""What is ordinary stays as it is; what hides, moves or imitates is shown by its code."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolgate.kernel.text.rendering import BUDGET, as_lines, clip, reveal, suspicious
from toolgate.kernel.text.rendering.characters import Kind, find_unseen
from toolgate.kernel.text.rendering.lookalikes import find_look_alikes

ORDINARY = {
    "English": "Hello, world! It's 5 o'clock – “really” … — ok?",
    "Arabic": "مرحبا بالعالم، كيف حالك؟ ١٢٣",
    "Hebrew with marks of direction": "שלום\u200e (abc)\u200f עולם",
    "Hebrew with points": "בְּרֵאשִׁ֖ית בָּרָ֣א אֱלֹהִ֑ים",
    "Persian with a non-joiner": "می\u200cخواهم کتاب\u200cها",
    "Arabic year with a joiner at its end": "1445 ه\u200d",
    "Hindi with a joiner": "क्\u200dष नमस्ते",
    "Malayalam chillu": "അവന്\u200d",
    "Sinhala": "ශ්\u200dරී ලංකා",
    "Thai with zero-width spaces": "ไทย\u200bภาษา",
    "Khmer with zero-width spaces": "ភាសា\u200bខ្មែរ",
    "Burmese": "မြန်မာစာ",
    "Tibetan": "བོད་སྐད་ ཧྐྵྨླྺྼྻྂ",
    "Russian": "Привет, мир! Сара и Роса",
    "Russian in one word of twins": "Сара",
    "Russian and English": "USB-кабель для iPhone 15, PDFки и VIPы",
    "Greek": "Ελληνικό κείμενο, Ἀθῆναι",
    "Greek letters as symbols": "ΔT = 3 µs, 5 kΩ, TNFα, E = hν, σ²",
    "Chinese": "简体中文，繁體中文。",
    "Japanese with wide letters and spaces": "日本語　ＡＢＣ１２３ テキスト、iPhoneを買う",
    "Japanese strokes": "ノート一冊",
    "a variant of an ideograph": "葛\U000e0100城",
    "Korean": "한국어 텍스트 COVID-19은",
    "old Korean": "\u1100\u1160\u11a8 \u115f\u1161",
    "Vietnamese": "Tiếng Việt, đường phố",
    "decomposed letters": "e\u0301 a\u0302 n\u0303",
    "Malayalam with both joiners": "അല്\u200d\u200cറ്റായി",
    "Burmese with a break beside a space": "ခုရဲ့ \u200bအကြောင်း",
    "French before an option": "L'option «\u00a0-l\u00a0» et s\u00a0-O",
    "Cyrillic joined to Latin": "Не-DFSG-совместимое ПО, --domain=ДОМЕН_ТЕКСТА, <i>Не обрано",
    "Cyrillic beside a placeholder": "СХЕМА: %s",
    "French spaces": "Bonjour\u00a0! 10\u202f000\u00a0€ « oui »",
    "Czech spaces": "v\u00a0Praze a\u00a0k\u00a0domu",
    "Georgian, Armenian, Amharic": "ქართული Հայերեն አማርኛ",
    "Cherokee": "ᏣᎳᎩ ᎦᏬᏂᎯᏍᏗ",
    "Mongolian": "ᠮᠣᠩᠭᠣᠯ\u180e\u180b",
    "Braille": "⠓⠑⠇⠇⠕⠀⠺⠕⠗⠇⠙",
    "Ogham": "᚛ᚑᚌᚐᚋ\u1680ᚑᚌᚐᚋ᚜",
    "hieroglyphs": "𓀀\U00013430𓀁",
    "Biblical joiner": "א\u05b8\u034f\u05bc",
    "families": "👨\u200d👩\u200d👧\u200d👦 👩🏽\u200d💻 🏳\ufe0f\u200d🌈",
    "keycaps and hearts": "1\ufe0f\u20e3 ❤\ufe0f ☎\ufe0e ©\ufe0f ‼\ufe0f",
    "flags": "🇩🇪 🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
    "a new emoji": "\U0001fae8",
    "signs": "½ ™ © ® x² ≤ ≥ → № ﬁne ƒ(x) 1⁄2 3∶1",
    "phonetics": "ɡoʊ /ˈɡuːɡəl/",
    "mathematics": "𝑥 + 𝑦 = 𝑧 ∩︀",
    "code": "for (i = 0; i < n; ++i) { a[i] = \"x\\n\"; }\n\tif x:\r\n",
    "house numbers": "д. 12а, 9А класс",
    "digits of one system": "१२३ ৪৫ ١٢",
}  # fmt: skip

HOSTILE = {
    "escape sequence": ("a\x1b[2Kb", Kind.CONTROL),
    "null": ("a\x00b", Kind.CONTROL),
    "carriage return": ("rm -rf /\rls", Kind.CONTROL),
    "next line": ("a\x85b", Kind.CONTROL),
    "line separator": ("a\u2028b", Kind.CONTROL),
    "override": ("photo\u202egpj.exe", Kind.BIDI),
    "isolate": ("if \u2066admin\u2069", Kind.BIDI),
    "mark in Latin text": ("a\u200fb\nשלום", Kind.BIDI),
    "zero-width space": ("ad\u200bmin", Kind.INVISIBLE),
    "joiner in Latin text": ("ad\u200dmin", Kind.INVISIBLE),
    "non-joiner in Latin text": ("ad\u200cmin", Kind.INVISIBLE),
    "joiner alone": ("\u200d", Kind.INVISIBLE),
    "two joiners": ("می\u200c\u200dخ", Kind.INVISIBLE),
    "joiner after an emoji": ("👍\u200dx", Kind.INVISIBLE),
    "byte order mark": ("\ufeffid", Kind.INVISIBLE),
    "soft hyphen": ("pass\u00adword", Kind.INVISIBLE),
    "word joiner": ("a\u2060b", Kind.INVISIBLE),
    "tags": ("ok\U000e0041\U000e0042", Kind.INVISIBLE),
    "tags after another flag": ("🏴\U000e0075\U000e0073\U000e0074\U000e0078\U000e007f", Kind.INVISIBLE),
    "tags after plain text behind a flag": ("🏴ab\U000e0041", Kind.INVISIBLE),
    "variation selector": ("a\ufe0fb", Kind.INVISIBLE),
    "variation selector alone": ("\ufe00", Kind.INVISIBLE),
    "two variation selectors": ("葛\U000e0100\U000e0101", Kind.INVISIBLE),
    "Hangul filler": ("a\u3164b", Kind.INVISIBLE),
    "syllable filler": ("a\u1160b", Kind.INVISIBLE),
    "leading filler": ("\u115fb", Kind.INVISIBLE),
    "Braille blank": ("a\u2800b", Kind.INVISIBLE),
    "ideographic space": ("rm\u3000x", Kind.INVISIBLE),
    "Ogham space": ("a\u1680b", Kind.INVISIBLE),
    "Mongolian separator": ("a\u180eb", Kind.INVISIBLE),
    "grapheme joiner": ("a\u034fb", Kind.INVISIBLE),
    "grapheme joiner first": ("\u034fb", Kind.INVISIBLE),
    "hieroglyph control": ("a\U00013430b", Kind.INVISIBLE),
    "space before an option": ("rm\u00a0-rf x", Kind.INVISIBLE),
    "space before a path": ("rm\u2003/etc", Kind.INVISIBLE),
    "annotation": ("a\ufff9b", Kind.INVISIBLE),
    "object": ("a\ufffcb", Kind.INVISIBLE),
    "marks without a letter": ("\u0338x", Kind.STACKED),
    "marks over the lines": ("z" + "\u0301" * 30, Kind.STACKED),
    "private use": ("\ue000", Kind.UNDEFINED),
    "no character": ("\ufffe", Kind.UNDEFINED),
    "lone surrogate": ("\ud800", Kind.UNDEFINED),
    "Cyrillic in Latin": ("p\u0430ypal", Kind.LOOK_ALIKE),
    "Latin in Cyrillic": ("Мoсква", Kind.LOOK_ALIKE),
    "Greek in Latin": ("g\u03bf\u03bfgle", Kind.LOOK_ALIKE),
    "Greek at the start": ("\u03b1dmin", Kind.LOOK_ALIKE),
    "Greek capital": ("\u0391DMIN", Kind.LOOK_ALIKE),
    "Armenian in Latin": ("\u0585kay", Kind.LOOK_ALIKE),
    "Cherokee in Latin": ("\u13aaPPLE", Kind.LOOK_ALIKE),
    "syllabics in Latin": ("\u1473al", Kind.LOOK_ALIKE),
    "a whole name in an address": ("\u0430\u0440\u0440\u04cf\u0435.com", Kind.LOOK_ALIKE),
    "a whole name in an English text": ("send it to \u0430\u0440\u0440\u04cf\u0435 now, café", Kind.LOOK_ALIKE),
    "an address in a Russian text": ("перейдите на \u0430\u0440\u0440\u04cf\u0435.com", Kind.LOOK_ALIKE),
    "zero-width space beside Latin": ("ไทย\u200badmin", Kind.INVISIBLE),
    "mathematical letters": ("𝐚𝐝𝐦𝐢𝐧", Kind.LOOK_ALIKE),
    "wide letters": ("\uff41dmin", Kind.LOOK_ALIKE),
    "Kelvin": ("\u212aey", Kind.LOOK_ALIKE),
    "Roman numeral": ("\u217cogin", Kind.LOOK_ALIKE),
    "phonetic g": ("\u0261oogle", Kind.LOOK_ALIKE),
    "slash": ("etc\u2215passwd", Kind.LOOK_ALIKE),
    "dot": ("example\u2024com", Kind.LOOK_ALIKE),
    "letter in a number": ("1\u041e00", Kind.LOOK_ALIKE),
    "digits of two systems": ("1\u09ea4", Kind.LOOK_ALIKE),
}


@pytest.mark.parametrize("name", ORDINARY)
def test_ordinary_text_is_shown_unchanged_and_without_a_warning(name: str) -> None:
    assert reveal(ORDINARY[name]) == (ORDINARY[name], ())


@pytest.mark.parametrize("name", HOSTILE)
def test_what_deceives_is_made_visible_with_a_warning(name: str) -> None:
    text, kind = HOSTILE[name]
    found = suspicious(text)
    assert kind in found.values()
    shown = reveal(text)
    assert str(kind) in " ".join(shown.warnings)
    for at in found:
        assert f"⟦U+{ord(text[at]):04X}⟧" in shown.text
    assert suspicious(shown.text.replace("⟦", "(").replace("⟧", ")")).keys() <= found.keys()


@given(st.text(alphabet=st.characters(exclude_categories=[]), max_size=40))
def test_nothing_that_moves_a_terminal_or_hides_survives(text: str) -> None:
    shown = reveal(text)
    assert bool(shown.warnings) == (shown.text != text)
    for kind in find_unseen(shown.text).values():
        # A character may become suspicious where its neighbour was replaced; it must not have been dangerous before.
        assert kind in (Kind.INVISIBLE, Kind.STACKED, Kind.BIDI)
    assert not {char for char in shown.text if char < " " and char not in "\r\n\t"}


def test_a_warning_names_a_few_and_counts_the_rest() -> None:
    warnings = reveal("".join(map(chr, range(1, 9)))).warnings
    assert warnings[0].startswith("8 control characters: U+0001")
    assert warnings[0].endswith("and 2 more")


def test_ascii_has_no_look_alikes() -> None:
    assert list(find_look_alikes("plain")) == []


def test_a_word_of_twins_among_latin_words_is_one_from_three_letters_on() -> None:
    assert list(find_look_alikes("go \u0441\u043e\u0440\u0435 now")) == [3, 4, 5, 6]
    assert list(find_look_alikes("go \u0441\u043e now")) == []


SCALARS = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
VALUES: st.SearchStrategy[object] = st.recursive(
    SCALARS | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(VALUES)
def test_lines_of_a_value_are_exactly_the_value(value: object) -> None:
    assert json.loads("\n".join(as_lines(value)[0])) == value


def test_lines_of_a_value_escape_what_hides_and_keep_the_rest() -> None:
    lines, warnings = as_lines({"b": "x\u202ey\n", "a": ["ж", {}], "\U000e0041": 1})
    assert lines == [
        "{",
        '  "a": [',
        '    "ж",',
        "    {}",
        "  ],",
        '  "b": "x\\u202ey\\n",',
        '  "\\udb40\\udc41": 1',
        "}",
    ]
    assert len(warnings) == 2


def test_what_is_short_is_not_clipped() -> None:
    assert clip("a\nb") == ("a\nb", 0, 0)


def test_clipping_keeps_both_ends_and_says_how_much_is_hidden() -> None:
    lines = [f"line {number}" for number in range(1000)]
    clipped = clip("\n".join(lines))
    assert clipped.text.startswith("line 0\n")
    assert clipped.text.endswith("\nline 999")
    assert "lines" in clipped.text
    assert len(clipped.text.split("\n")) <= BUDGET.lines + 1
    shown = [line for line in clipped.text.split("\n") if line.startswith("line")]
    assert clipped.hidden == sum(len(line) + 1 for line in lines) - sum(len(line) + 1 for line in shown)
    assert clipped.lines == 1000 - len(shown)


def test_a_long_line_is_clipped_in_its_middle() -> None:
    clipped = clip("a" * 1000 + "END\nb")
    assert clipped.text.endswith("END\nb")
    assert clipped.hidden == 1003 - BUDGET.line * 2 // 3 - BUDGET.line // 4


def test_many_long_lines_are_clipped_by_their_characters() -> None:
    lines = ["x" * 390 + str(number) for number in range(60)]
    clipped = clip("\n".join(lines))
    assert clipped.hidden > 0
    assert clipped.text.endswith("59")
    assert len(clipped.text) < 8200
