"""Registered secrets are hidden as the plainest search for each of them would hide them, however many there are."""

from __future__ import annotations

import base64
import html
import json
import random
import re
import string
import threading
import urllib.parse
from collections.abc import Iterable
from functools import cache

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from toolgate.kernel.text.masking import MASK, Masker
from toolgate.kernel.text.masking.reading import _first
from toolgate.kernel.text.masking.registered import Registered

ESCAPES = {'"': '"', "\\": "\\", "/": "/", "\n": "n", "\r": "r", "\t": "t", "\b": "b", "\f": "f", "'": "'"}
ENTITIES = {
    " ": ("+",), "&": ("&amp;",), "<": ("&lt;",), ">": ("&gt;",), '"': ("&quot;", "&#34;"), "'": ("&#x27;", "&#39;"),
}  # fmt: skip


def ways(char: str) -> str:
    units = char.encode("utf-16-be", "surrogatepass").hex()
    escaped = "".join(rf"\\{{1,8}}u(?i:{units[at : at + 4]})" for at in range(0, len(units), 4))
    percent = "".join(f"(?i:%{byte:02x})" for byte in char.encode("utf-8", "surrogatepass"))
    others = [rf"\\{{1,8}}{re.escape(escape)}" for escape in ESCAPES.get(char, "")]
    return "|".join([re.escape(char), percent, escaped, *others, *map(re.escape, ENTITIES.get(char, ()))])


@cache
def patterns(secret: str) -> list[re.Pattern[str]]:
    return [re.compile(ways(char)) for char in secret]


@cache
def forms(secret: str) -> frozenset[str]:
    raw = secret.encode("utf-8", "surrogatepass")
    found = {secret, raw.hex(), raw.hex().upper()}
    for shift in range(3):
        encoded = base64.b64encode(bytes(shift) + raw).decode()
        core = encoded[-(-shift * 8 // 6) : (shift + len(raw)) * 8 // 6]
        found |= {core, core.replace("+", "-").replace("/", "_")} if len(core) >= 6 else set()
    return frozenset(found)


def spelled_ends(secret: str, text: str, start: int) -> set[int]:
    ends = {start}
    for pattern in patterns(secret):
        ends = {
            end for at in ends for end in range(at + 1, min(len(text), at + 26) + 1) if pattern.fullmatch(text, at, end)
        }
    return ends


def reference(secrets: Iterable[str], text: str) -> str:
    """Hide every place of every spelling of every secret, looked for one at a time."""
    hidden = [0] * len(text)  # 1: hidden, 2: hidden and joined to the one before
    for secret in secrets:
        spans = [
            (start, start + len(form))
            for form in forms(secret)
            for start in range(len(text))
            if text.startswith(form, start)
        ]
        spans += [(start, end) for start in range(len(text)) for end in spelled_ends(secret, text, start)]
        for start, end in spans:
            hidden[start] = hidden[start] or 1
            hidden[start + 1 : end] = [2] * (end - start - 1)
    shown = [MASK if mark == 1 else "" if mark else char for char, mark in zip(text, hidden, strict=True)]
    return "".join(shown)


LETTERS = "aAbcdefnrtu0123456789%&\\;#+ xmplqgo\"'/\n\t<>é密😀\ud83d\ude00*"
PARTS = (
    *LETTERS, "%41", "%25", "%5c", "%2B", "%C3%A9", "%c3", "\\u00e9", "\\u0041", "\\ud83d\\ude00", "\\\\u0061", "\\n",
    "\\\\", "\\" * 7, "&amp;", "&lt;", "&quot;", "&#39;", "amp;", "u0061", "\\\\\"", "%61", "%31", "\\u0031", "%F0%9F",
)  # fmt: skip


@st.composite
def spelling(draw: st.DrawFn, secret: str) -> str:
    """Spell a secret, each character in a way of its own."""
    way = draw(st.sampled_from(["as it is", "base64", "hex", "mixed", "mixed", "mixed", "mixed"]))
    raw = secret.encode("utf-8", "surrogatepass")
    if way == "as it is":
        return secret
    if way == "hex":
        return raw.hex()
    if way == "base64":
        return base64.b64encode(draw(st.binary(max_size=3)) + raw + draw(st.binary(max_size=3))).decode()
    return "".join(draw(st.sampled_from(list(some_ways(char)))) for char in secret)


def some_ways(char: str) -> Iterable[str]:
    yield char
    units = char.encode("utf-16-be", "surrogatepass").hex()
    for deep in (1, 2, 8):
        yield "".join("\\" * deep + "u" + units[at : at + 4] for at in range(0, len(units), 4))
        yield from ("\\" * deep + escape for escape in ESCAPES.get(char, ""))
    yield "".join(f"%{byte:02X}" for byte in char.encode("utf-8", "surrogatepass"))
    yield from ENTITIES.get(char, ())


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[str], str]:
    word = st.lists(st.sampled_from(PARTS), min_size=1, max_size=12).map("".join)
    few = st.text("ab", min_size=4, max_size=8)
    one = st.one_of(word, few, st.text("abcdef0123456789", min_size=4, max_size=14)).filter(lambda text: len(text) > 3)
    secrets = draw(st.lists(one, min_size=1, max_size=4))
    pieces = st.one_of(st.sampled_from(PARTS), st.sampled_from(secrets).flatmap(spelling), few)
    text = "".join(draw(st.lists(pieces, min_size=1, max_size=5)))
    return secrets, text


@given(cases())
@settings(max_examples=100)
@example((["nab c"], "\\nab+c"))
@example((["41bcd e"], "%41bcd+e"))
@example((["beef"], "\\u0bee%66"))
@example((["a%41b"], "a%2541b a%41b a%%341b a\\u002541b"))
@example((["a\\nb%"], "a\\\\nb%2541"))
@example((["ab c%"], "ab+c%41"))
@example((["\\\\\\\\x"], "\\" * 30 + "x"))
@example((["abcd", "cdef"], "abcdef"))
@example((["\ud83d\ude00ab"], "\\ud83d\\ude00%61b \ud83d\ude00ab 😀ab"))
def test_secrets_are_hidden_as_by_looking_for_each_of_them(case: tuple[list[str], str]) -> None:
    secrets, text = case
    registered = Registered(secrets)
    assert registered.hide(text) == reference(secrets, text)
    if registered.hide(text) != text:
        assert registered.found_in(text)
        assert registered.found_in(json.dumps([text]))
        assert registered.found_in(json.dumps({text: 1}, ensure_ascii=False).encode("utf-8", "surrogatepass"))


@pytest.mark.parametrize(
    ("secrets", "text", "hidden"),
    [
        (["swordfish", "swordfish-2", "fish-2-x"], "swordfish swordfish-2 swordfish-2-x", "*** *** ***"),
        (["hunter2!"], "hunter2!hunter2!", "******"),
        (["hunter2!"], "Hunter2! hunter2", "Hunter2! hunter2"),
        (["****"], "**** ** *** ******", "*** ** *** ***"),
        (["***"], "***", "***"),
        (["abcab"], "abcabcab x", "*** x"),
        (
            ["pässword", "пароль", "e\u0301clair"],
            "pässword ПАРОЛЬ пароль éclair e\u0301clair",
            "*** ПАРОЛЬ *** éclair ***",
        ),
        (["👩‍👩‍👧 family"], "👩‍👩‍👧+family 👩‍👩‍👧%20family \\ud83d\\udc69\u200d👩‍👧 family", "*** *** ***"),
        (["a\ud800bc"], "a\ud800bc a\udc00bc a\\ud800bc a%ED%A0%80bc", "*** a\udc00bc *** ***"),
        (["plain"], "\ud800 plain \udfff", "\ud800 *** \udfff"),
        (["nul\0nul"], "nul\0nul nul\\u0000nul nul%00nul", "*** *** ***"),
        (["caf\u00e9 & co"], "caf%c3%A9+&amp;%20co \\\\u00e9", "*** \\\\u00e9"),
        (["C:\\new\\tab"], '"C:\\\\new\\\\tab" C:\\new\\tab C:%5cnew%5Ctab', '"***" *** ***'),
    ],
)
def test_secrets_are_hidden_wherever_they_begin_end_and_meet(secrets: list[str], text: str, hidden: str) -> None:
    assert Registered(secrets).hide(text) == hidden


def test_a_text_without_secrets_comes_back_as_the_same_object() -> None:
    text = "100%25 of a \\u0041 &amp; b+c é"
    for secrets in ([], [""], ["abc"], ["swordfish"], ["%41%42"]):
        registered = Registered(secrets)
        assert registered.hide(text) is text
        assert not registered.found_in(text)
    assert not Registered(["sword fish"]).found_in("a+b")
    assert not Registered(["swordfish"]).found_in("a+b")
    assert Registered(["sword fish"]).found_in("sword+fish")


def test_a_secret_is_found_inside_its_own_base64_and_the_other_way_round() -> None:
    secret = "c2VjcmV0"
    encoded = base64.b64encode(secret.encode()).decode()
    assert Registered([secret, encoded]).hide(f"{encoded} {secret} {encoded}{secret}") == "*** *** ******"


def test_many_secrets_that_end_with_each_other_are_all_hidden() -> None:
    secrets = ["xyz-" * count + "word" for count in range(20)]
    registered = Registered(secrets)
    for secret in secrets:
        assert registered.hide(f"a {secret} b") == "a *** b"
        assert (
            registered.hide(f"a {secret} b%20 {urllib.parse.quote(secret, safe='').replace('x', '%78')}")
            == "a *** b%20 ***"
        )
    assert registered.hide("xyz-sword xyz-%73word") == "xyz-s*** xyz-%73***"


@pytest.mark.parametrize("length", [127, 128, 129, 300, 70_000])
def test_long_secrets_are_hidden_whole_and_only_whole(length: int) -> None:
    secret = "".join(random.Random(length).choices(string.ascii_letters + string.digits + "/ ", k=length - 1)) + "/"
    registered = Registered([secret, secret + "more"])
    raw = secret.encode()
    for text in (secret, secret + "more", raw.hex(), urllib.parse.quote(secret, safe=""), json.dumps(secret)[1:-1]):
        assert registered.hide(f"<{text}>") == "<***>"
        assert registered.found_in(json.dumps(f"<{text}>"))
    assert MASK in registered.hide(base64.b64encode(b"ab" + raw).decode())
    near = f"{secret[:-1]}! %41 {urllib.parse.quote(secret[:-1])}!"
    assert registered.hide(near) == near


@pytest.mark.parametrize("before", [2**18 - 5, 2**18, 2**18 + 3])
@pytest.mark.parametrize("spelled", ["swordfish-1", "sword%66ish-1"])
def test_a_secret_across_the_edge_of_a_piece_is_hidden(before: int, spelled: str) -> None:
    assert (
        Registered(["swordfish-1"]).hide("." * before + spelled + "." * 300_000) == "." * before + MASK + "." * 300_000
    )


HOSTILE = {
    "first character": (["aaaa"], "a" * 33_000),
    "nested": (["a" * count for count in range(4, 1000)], "a" * 33_000),
    "nested, escaped": (["a" * count for count in range(4, 1000)], "%61" * 10_000),
    "long, escaped": (["a" * 1000 + "b"], "%61" * 10_000),
    "long, nearly": (["a" * 33_000 + "b"], "a" * 26_000),
    "numbers": (["1" * count for count in range(4, 14)], "%1" + "%31" * 10_000),
    "numbers, shared": ([*("1" * count for count in range(4, 14)), "0" * 9], "%11111111111" * 3_000),
    "letters for newlines": (["nnnn" * 250], "\n" * 33_000 + "%41"),
    "too deep": (["\n" * 1000], ("\\" * 9 + "n") * 6_000),
    "backslashes": (["\\" * 100 + "x"], "\\" * 33_000),
    "percent signs": (["%25%25"], "%25" * 10_000),
    "percent signs only": (["swordfish"], "%25" * 10_000),
    "backslashes only": (["swordfish"], "\\" * 33_000),
    "escaped backslashes": (["swordfish"], "%5c" * 10_000),
    "plus": (["+" * 1000], ("+" * 999 + " %41") * 200),
    "long and odd": (["%41" * 10_000], "%2541" * 8_000),
    "long, odd and there": (["%41" * 6_000], "%2541" * 6_000),
    "shared part": (
        [f"https%3A%2F%2Fexample.com%2F{count}" for count in range(1000)],
        "http://example.com/%20 " * 3_000,
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_no_text_takes_much_longer_than_its_length(name: str) -> None:
    secrets, text = HOSTILE[name]
    registered = Registered(secrets)
    hidden = registered.hide(text)  # what is quadratic takes minutes
    assert registered.found_in(text) or hidden == text


def test_ten_thousand_secrets_are_added_and_looked_for_at_once() -> None:
    chance = random.Random(5)
    secrets = ["".join(chance.choices(string.ascii_letters + string.digits, k=24)) for _ in range(10_000)]
    masker = Masker()
    for secret in secrets:
        masker.add(secret)
    for secret in secrets[::1000]:
        assert masker.text(f"x {secret} y") == "x *** y"
        assert masker.text(f"x %{ord(secret[0]):02x}{secret[1:]} y") == "x *** y"
    text = "an ordinary line, with 100% of its words + a \\n and https://example.org/a%20b?c=d&amp;e\n" * 2_000
    assert not Registered(secrets).found_in(text)  # one at a time takes minutes


def test_a_text_masked_after_a_secret_was_added_hides_it_in_every_thread() -> None:
    masker, leaks = Masker(["swordfish-0"]), []

    def work(mine: int) -> None:
        for number in range(40):
            secret = f"swordfish-{mine}-{number}"
            masker.add(secret)
            if masker.text(f"say {secret}") != "say ***":
                leaks.append(secret)

    threads = [threading.Thread(target=work, args=(mine,)) for mine in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert leaks == []


def test_what_a_text_inside_json_hides_is_found_in_the_json() -> None:
    secret = 'a"b\\c\nd é😀'
    deep = "".join(
        "\\" * 8 + f"u{ord(char):04x}" if char < "\uffff" else "\\" * 8 + "ud83d" + "\\" * 8 + "ude00"
        for char in secret
    )
    registered = Registered([secret, '\\"%41'])
    for text in (
        secret,
        deep,
        html.escape(secret),
        urllib.parse.quote_plus(secret),
        "\\" * 9 + '"%2541',
        "\\" * 9 + "\\" * 8 + '"%41',
    ):
        assert registered.hide(text) == MASK
        for written in (json.dumps({"x": [text]}), json.dumps({text: 1}, ensure_ascii=False)):
            assert registered.found_in(written)
            assert registered.found_in(written.encode())


@pytest.mark.parametrize(
    ("raw", "first"), [(b"\xc3", ("", 2)), (b"", ("", 1)), (b"ab", ("a", 1)), (b"\xff" * 4, ("", 4))]
)
def test_what_is_no_character_reads_as_none(raw: bytes, first: tuple[str, int]) -> None:
    assert _first(raw) == first
