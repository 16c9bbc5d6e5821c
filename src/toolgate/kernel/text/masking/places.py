"""Find, in one pass over a text, every place where a rule of masking might apply, and apply it there.

One automaton holds the words that all rules start from, so a text in which none of them occurs is cleared by one search
that takes no longer for any text of its length; what is found is looked at closely, and nothing else is.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Final

from ahocorasick_rs import BytesAhoCorasick, Implementation

from toolgate.kernel.text.masking.assignments import HEAD, STEMS, URL_STEMS, key_spans
from toolgate.kernel.text.masking.commands import (
    COMMANDS,
    SETTERS,
    USERS,
    Command,
    command_span,
    flag_spans,
    setter_span,
    user_span,
)
from toolgate.kernel.text.masking.key_blocks import key_block_spans
from toolgate.kernel.text.masking.keys import MASK, Span
from toolgate.kernel.text.masking.shapes import PPK_HEAD, SHAPES, headless_spans, ppk_span, shape_spans
from toolgate.kernel.text.masking.urls import DRIVERS, basic_span, bearer_span, driver_span, oracle_span

Rule = Callable[[str, list[int]], list[Span]]
"""Returns what is to be hidden of a text, given all places in it of the word the rule starts from."""
Places = list[tuple[int, int, int]]
"""Where a word was found: which one, its start and its end."""

KEY_BLOCK: Final = "private key"
_NUMBERED: Final = ("\\u0141", "\\u0142", "\\u041f", "\\u043f", "\\u5bc6", "\\u30d1\\u30b9", "\\ube44\\ubc00")
STRUCTURE: Final = ('"-', "\\u00", *_NUMBERED)
"""Marks of a text to be read as JSON where it is some: a flag in a list, a letter written as its number.

Of the letters outside of ASCII, those that a word naming a secret begins with or holds.
"""
NAMES_ONLY: Final = ("bcp",)
"""In a list, a command may take a secret, but no rule starts from it in a text."""
_NO_MORE: Final = (sys.maxsize, sys.maxsize)
_KELVIN: Final = "\u212a"
"""The one character outside of ASCII whose lower case is a letter within."""
_KELVIN_BYTES: Final = _KELVIN.encode()


class _Words:
    """The automaton of all words, and what may be done where one stands."""

    __slots__ = ("block", "commands", "find", "lengths", "named", "rules")

    def __init__(self) -> None:
        words = {word: index for index, word in enumerate((*STEMS, *URL_STEMS, *STRUCTURE, *NAMES_ONLY, KEY_BLOCK))}
        self.block = words[KEY_BLOCK]
        self.named = self.block
        self.rules: dict[int, list[Rule]] = {}
        for word, rule in _rules():
            self.rules.setdefault(words.setdefault(word.lower(), len(words)), []).append(rule)
        self.commands: dict[int, list[tuple[Command, int]]] = {}
        for command in COMMANDS:
            needed = words.setdefault(command.needs.lower(), len(words))
            self.commands.setdefault(words.setdefault(command.word, len(words)), []).append((command, needed))
        self.lengths = [len(word) for word in words]
        automaton = BytesAhoCorasick([word.encode() for word in words], implementation=Implementation.DFA)
        self.find: Callable[..., Places] = automaton.find_matches_as_indexes

    def rules_of(self, found: set[int]) -> dict[int, list[Rule]]:
        """Return the rules that can apply where these words, and no others, were found."""
        rules = {word: self.rules[word] for word in found & self.rules.keys()}
        for word in found & self.commands.keys():
            given = [partial(command_span, command) for command, needed in self.commands[word] if needed in found]
            rules[word] = [*rules.get(word, ()), *map(_at_each, given)]
        return rules


def _rules() -> Iterator[tuple[str, Rule]]:
    yield from ((shape.head, partial(shape_spans, shape)) for shape in SHAPES)
    yield from ((setter, _at_each(partial(setter_span, setter))) for setter in SETTERS)
    yield from ((word, _at_each(user_span)) for word in USERS)
    yield from ((word, _at_each(driver_span)) for word in DRIVERS)
    rest = ((":thin:", oracle_span), ("bearer", bearer_span), ("basic", basic_span), (PPK_HEAD, ppk_span))
    yield from ((word, _at_each(span)) for word, span in rest)


def _at_each(span_at: Callable[[str, int], Span | None]) -> Rule:
    """Return the rule that looks at one place after the other.

    It does not look again within what it hid, which may be as long as the text.
    """

    def spans_at(text: str, places: list[int]) -> list[Span]:
        spans: list[Span] = []
        done = 0
        for at in places:
            span = span_at(text, at) if at >= done else None
            if span:
                spans.append(span)
                done = span[1]
        return spans

    return spans_at


_words = cache(_Words)  # made at the first text, so that importing this file costs nothing


def has_places(raw: bytes) -> bool:
    """Whether a rule might apply somewhere in a text of these bytes."""
    if not raw.isascii():
        raw = raw.replace(_KELVIN_BYTES, b"k")
    return bool(_words().find(raw.lower()))


def find_places(text: str) -> Places:
    """Return every place in a text where a rule might apply; none: no rule can change the text."""
    if text.isascii():
        return _words().find(text.encode().lower(), overlapping=True)
    raw = text.replace(_KELVIN, "k").encode("utf-8", "surrogatepass").lower()
    places = _words().find(raw, overlapping=True)
    return _in_characters(places, raw) if places else places


def _in_characters(places: Places, raw: bytes) -> Places:
    """Return places counted in characters instead of bytes."""
    lengths = _words().lengths
    counted = []
    done = at = 0
    for word, _, end in places:  # in the order of their ends
        if end > done:
            at += len(raw[done:end].decode("utf-8", "surrogatepass"))
            done = end
        counted.append((word, at - lengths[word], at))
    return counted


def names_something(places: Places) -> bool:
    """Whether one of these places is that of a word by which a key may name a secret, or a mark of a structure."""
    return min(places)[0] < _words().named


def mask_places(text: str, places: Places) -> str:
    """Replace every secret at one of these places."""
    words = _words()
    found = {place[0] for place in places}
    rules = words.rules_of(found)
    spans = _rule_spans(text, places, rules) if rules else []
    if words.block in found:
        spans += key_block_spans(text)
    plain, stems = len(STEMS), len(STEMS) + len(URL_STEMS)
    keys = [(start if word < plain else start + 1, end) for word, start, end in places if word < stems]
    if keys and spans:
        keys = _outside(text, keys, spans)
    if keys:
        flags = dict(flag_spans(text)) if "-" in text else {}
        names = _outside(text, list(flags), spans) if spans else list(flags)
        spans += [flags[name] for name in names]
        spans += key_spans(text, keys)
    return replaced(text, spans) if spans else text


def _rule_spans(text: str, places: Places, rules: dict[int, list[Rule]]) -> list[Span]:
    """Return what the rules hide, each of them given all places of its word at once."""
    starts: dict[int, list[int]] = {word: [] for word in rules}
    for word, start, _ in places:
        if word in starts:
            starts[word].append(start)
    return [span for word, given in rules.items() for rule in given for span in rule(text, starts[word])]


def _outside(text: str, keys: list[Span], spans: list[Span]) -> list[Span]:
    """Return the keys that are not part of a secret themselves.

    One before a `=` is kept: its value may go further than the secret. Bounded, as keys are: a secret may be long.
    """
    spans.sort()
    outside = []
    ahead = iter(spans)
    begin, end = next(ahead, _NO_MORE)
    stop = -1
    for key in keys:
        while begin < key[1]:
            stop = max(stop, end)
            begin, end = next(ahead, _NO_MORE)
        if key[0] >= stop or text.find("=", key[1], min(stop + 1, key[1] + HEAD)) >= 0:
            outside.append(key)
    return outside


def mask_headless(text: str) -> str:
    """Replace every token that has no word of its own to be found by."""
    spans = headless_spans(text)
    return replaced(text, spans) if spans else text


def replaced(text: str, spans: list[Span]) -> str:
    """Return the text with a mask in place of these parts; parts that overlap get one."""
    spans.sort()
    pieces: list[str] = []
    done = 0
    for begin, stop in spans:
        if begin >= done:
            pieces.append(text[done:begin])
            done = stop
        elif stop > done:
            done = stop
    pieces.append(text[done:])
    return MASK.join(pieces)
