"""What is cleared in one look, no rule of masking would have changed."""

from __future__ import annotations

import random
from typing import Any

import orjson
from hypothesis import example, given
from hypothesis import strategies as st
from tests.unit.kernel.text import test_masking_ordinary as ordinary
from tests.unit.kernel.text import test_masking_secrets as secret

from toolgate.kernel.text.masking import MASK, Masker, _Walk, commands, keys, shapes
from toolgate.kernel.text.masking.places import find_places
from toolgate.kernel.text.masking.plain import DEEPEST, boxes_of_plain

WORDS = (
    "please leave the parcel with my neighbour at number 14 Mill Lane ann@example.com 12.50 EUR ORD-2026-0042 "
    "https://example.org/a?b=c -u --flag -p pass pwd key=1 token: author design spin 4111111111111111 sk-abc eyJhbG "
    "- set ENV x://u:p@h %3D \\u0041 \" ' ` = : ,"
).split(" ")
PIECES = [*WORDS, *secret.TEXTS, *ordinary.TEXTS, *secret.KEYS, *ordinary.KEYS]
closely = Masker()


def looked_at_closely(value: Any) -> Any:
    return closely._any(value, 0, _Walk())


def test_what_is_plain_is_left_as_it_is() -> None:
    texts = [text.replace("§", secret.CANARY) for text in PIECES]
    assert [
        text for text in texts if boxes_of_plain(orjson.dumps(text)) is not None and closely.text(text) != text
    ] == []


def test_what_is_put_together_at_random_is_judged_alike() -> None:
    chance, cleared = random.Random(7), 0
    for _ in range(4_000):
        texts = [
            chance.choice((" ", "", "\n")).join(chance.choices(PIECES[: len(WORDS)], k=chance.randint(1, 6)))
            for _ in range(chance.randint(1, 5))
        ]
        value = {"a": texts[0], "list": texts, "b": {"c": [texts[-1], 1, None]}}
        masked = Masker()
        masked({"a": "", "list": [], "b": {"c": []}, "c": ""})  # its keys are known
        assert masked(value) == looked_at_closely(value)
        cleared += boxes_of_plain(orjson.dumps(texts)) is not None
    assert cleared > 100


@given(st.recursive(st.text(max_size=40) | st.integers() | st.none(), lambda inner: st.lists(inner, max_size=5)))
def test_any_value_is_masked_alike(value: Any) -> None:
    assert Masker()([value]) == looked_at_closely([value])


def test_every_word_that_names_a_secret_is_a_place_to_start_from() -> None:
    words = [*keys._SECRET_WORDS, *keys._TOKEN_WORDS, *keys._WEAK_WORDS, "pass", "pin", "key", "code", "tokens"]
    words += [" ".join(pair) for pair in keys._PAIRS]
    words += [form(word) for word in words for form in (str.upper, str.title)]
    assert [word for word in words if not find_places(word)] == []


def test_every_command_that_takes_a_secret_is_a_place_to_start_from_in_a_list() -> None:
    named = {*commands._ATTACHED, *(name for names in commands._SHORT_FLAGS.values() for name in names)}
    assert [name for name in named if boxes_of_plain(orjson.dumps([name, "-p"])) is not None] == []
    for argv in (["http", "-u", "ann:hunter22"], ["bcp", "-P", "hunter22"], ["mysql", "-phunter22"]):
        assert "hunter22" not in str(Masker()({"argv": argv, "x": "y z"}))


@given(st.text(st.sampled_from("aé😀\ud800K\u212apasswordtoken=: x1"), max_size=60), st.sampled_from(["", "é", "😀\n"]))
def test_places_are_counted_in_characters(text: str, before: str) -> None:
    low = text.replace("\u212a", "k").lower()
    found = {start for _, start, _ in find_places(before + text)}
    for word in ("password", "token"):
        at = low.find(word)
        assert at < 0 or at + len(before) in found or word == "password"  # known by its first letters
    for _, start, stop in find_places(before + text):
        assert 0 <= start < stop <= len(before + text)


def test_a_copy_shares_nothing_with_the_value() -> None:
    masker = Masker()
    value: dict[str, Any] = {"a": [{"b": "two words here"}], "c": {"d": 1}}
    for _ in range(2):
        copy: Any = masker(value)
        assert copy == value
        assert copy["a"] is not value["a"]
        assert copy["a"][0] is not value["a"][0]
        assert copy["c"] is not value["c"]


def test_json_is_cleared_by_its_bytes_and_keeps_its_order() -> None:
    masker = Masker()
    for value in (
        {"b": "two words", "a": [1, {"c": None}]},
        {"note": "line\n-u bob:hunter22"},
        {"password": "hunter22"},
        {"name": "password", "value": "hunter22"},
        {"a": "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQ"},
        {"ä": "pässword: x"},
    ):
        encoded = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
        assert masker.of(value, encoded) == masker(value) == looked_at_closely(value)
        assert list(masker.of(value, encoded)) == list(value)


def test_a_registered_secret_is_hidden_in_ordinary_data() -> None:
    masker = Masker()
    value = {"a": ["some ordinary words"], "n": 1234567}
    assert masker(value) == value == masker(value)
    masker.add("ordinary")
    masker.add("1234567")
    assert masker(value) == {"a": [f"some {MASK} words"], "n": MASK}


def test_what_is_deep_wide_or_goes_round_is_looked_at_closely() -> None:
    masker = Masker()
    deep: Any = "end"
    for _ in range(DEEPEST + 4):
        deep = {"a": [deep]}
    masker(deep)
    assert masker(deep) == looked_at_closely(deep)
    round_: dict[str, Any] = {"a": 1}
    round_["b"] = [round_]
    masker(round_)
    assert masker(round_) == {"a": 1, "b": ["<too deep>"]}


PARTS = [".", "S", "SK", "0a1b2c3d" * 4, "MTIzNDU2Nzg5MDEyMzQ1Njc4", "GabcdE", "aB3" * 9, " ", "é"]


@given(text=st.lists(st.sampled_from(PARTS), max_size=12))
@example(text=["SK", PARTS[3]])
@example(text=[PARTS[4], ".", "GabcdE", ".", PARTS[6]])
def test_a_token_without_a_head_is_found_by_its_pattern_alone(text: list[str]) -> None:
    """The quick look before the patterns never hides from them what they would find."""
    joined = "".join(text)
    if shapes._SK.search(joined) or any(shapes._BOT.search(joined, at) for at in range(len(joined))):
        assert shapes.may_be_headless(joined)
        assert shapes.headless_spans(joined)


def test_dicts_and_lists_of_plain_json_are_counted() -> None:
    assert boxes_of_plain(b"12") == 0
    assert boxes_of_plain(b'{"a":1}') == 1
    assert boxes_of_plain(b'{"a":[{},[]],"b":{}}') == 5
    assert boxes_of_plain(b'{"a":"[x"}') == 2  # it may hold as many, not more
    assert boxes_of_plain(orjson.dumps([[]] * 60)) is None


def test_what_bytes_clear_is_a_copy_in_the_order_of_the_value() -> None:
    for value in ({"b": 1, "a": "x"}, {"b": [1, {"d": 2, "c": 3}], "a": {}}, [[], {"b": 1, "a": 2}], "text", 7):
        shown = Masker().of(value, orjson.dumps(value, option=orjson.OPT_SORT_KEYS))
        assert orjson.dumps(shown) == orjson.dumps(value)
        if isinstance(value, dict | list):
            assert shown is not value
            assert not {id(box) for box in boxes_in(value)} & {id(box) for box in boxes_in(shown)}


def boxes_in(value: Any) -> list[Any]:
    if not isinstance(value, dict | list):
        return []
    inner = value.values() if isinstance(value, dict) else value
    return [value, *(box for item in inner for box in boxes_in(item))]


def test_a_kelvin_sign_in_json_is_read_as_the_letter_it_looks_like() -> None:
    value = {"note": "api_\u212aey=hunter2222 é"}
    assert "hunter2222" not in str(Masker().of(value, orjson.dumps(value)))
    assert Masker().of({"note": "é\u212a"}, orjson.dumps({"note": "é\u212a"})) == {"note": "é\u212a"}


def test_a_token_without_a_head_is_found_in_json_bytes() -> None:
    token = "MTk4NjIyNDgzNDcxOTI1MjQ4.Cl2FMQ.ZnCjm1XVW7vRze4b7Cq4se7kKWs"
    for value in ({"note": token}, {"note": f"x {token}", "list": [1]}):
        assert token not in str(Masker().of(value, orjson.dumps(value)))


def test_each_of_many_addresses_keeps_its_name_and_host() -> None:
    text = "".join(f"http://u{number}:pw{number}@h{number}/ " for number in range(50))
    assert Masker().text(text) == "".join(f"http://u{number}:{MASK}@h{number}/ " for number in range(50))
