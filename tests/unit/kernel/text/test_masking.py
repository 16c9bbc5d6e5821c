"""How masking behaves: registered secrets, strange values, idempotence, linear time."""

from __future__ import annotations

import base64
import copy
import datetime
import decimal
import enum
import json
import threading
import time
import types
import urllib.parse
import uuid
from collections import OrderedDict, namedtuple
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from toolgate.kernel.text.masking import MASK, TOO_DEEP, Masker
from toolgate.kernel.text.masking.keys import Verdict, judge

CANARY = "zK7qP" + "wX2vB9" + "tR4m"

scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
telling = st.sampled_from(
    """password token auth name value key city cookie --password -p mysql curl -u a:b@c password=x1 Authorization:
    Bearer x1 {"password":"x1"} https://a:b@c \\ " *** ["--token","x1"] password: API_KEY""".split()
)
values = st.recursive(
    scalars | telling | st.binary(),
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(st.text() | telling, inner)
        | st.tuples(inner, inner)
        | st.tuples(telling, inner)
    ),
    max_leaves=20,
)
PARTS = """
    password token auth cookie Authorization secret = : " ' \\ { } [ ] ( ) , ; & ? :// @ a x1 hunter2 | > < / - -- value
    is Bearer Basic %3D %22 *** eyJ -u curl ` </ key API_KEY name é 密码 => == 0123456789abcdefghij ${X} İ
""".split()
fragments = st.lists(
    st.sampled_from([*PARTS, " ", " ", ": ", "\n", "\n  ", "\ud800", "-----BEGIN PRIVATE KEY-----"]), max_size=24
).map("".join)


def form(secret: str) -> dict[str, str]:
    raw = secret.encode()
    return {
        "plain": f"x {secret} y",
        "json": json.dumps({"x": secret}),
        "json twice": json.dumps(json.dumps([secret])),
        "json with slashes": json.dumps(secret).replace("/", "\\/"),
        "percent": urllib.parse.quote(secret, safe=""),
        "percent, lower case": "".join(f"%{byte:02x}" for byte in raw),
        "form": urllib.parse.quote_plus(secret),
        "base64": base64.b64encode(raw).decode(),
        "base64, one before": base64.b64encode(b"a" + raw + b"z").decode(),
        "base64, two before": base64.b64encode(b"ab" + raw + b"yz").decode(),
        "base64, no padding": base64.b64encode(raw).decode().rstrip("="),
        "base64, url-safe": base64.urlsafe_b64encode(raw).decode(),
        "hex": raw.hex(),
        "HEX": raw.hex().upper(),
        "html": secret.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;"),
    }


@pytest.mark.parametrize("secret", ["s3cr3t-value", 'a"b\\c/d é&<密> \t+?~', "plainword", "????>>>>~~~~"])
def test_registered_secret_is_hidden_in_every_spelling(secret: str) -> None:
    masker = Masker([secret])
    for name, text in form(secret).items():
        masked = masker.text(text)
        assert MASK in masked, name
        assert secret not in masked, name
        assert masked != text, name
        assert masker(masked) == masked, name


def test_registered_secret_is_hidden_in_keys_values_and_numbers() -> None:
    masker = Masker(["hunter2-hunter2", "48151623"])
    value = {"say hunter2-hunter2": [1, ("hunter2-hunter2",), 48151623, 48151623.5, {48151623: 2.5}], "n": 7}
    assert masker(value) == {"say ***": [1, (MASK,), MASK, MASK, {MASK: 2.5}], "n": 7}


def test_short_registered_secret_hides_only_a_value_equal_to_it() -> None:
    masker = Masker(["abc", ""])
    assert masker({"x": "abc", "y": "abcd", "z": "x abc"}) == {"x": MASK, "y": "abcd", "z": "x abc"}


def test_secret_added_later_is_hidden_from_then_on() -> None:
    masker = Masker()
    value = {"swordfish": "swordfish"}
    assert masker(value) == value
    masker.add("swordfish")
    masker.add("swordfish")
    masker.add("a swordfish")
    assert masker(value) == {MASK: MASK}
    assert masker("a swordfish") == MASK


def test_secrets_may_be_added_while_others_mask() -> None:
    masker = Masker()
    secrets = [f"secret-number-{number:04}" for number in range(100)]
    leaks: list[str] = []

    def work(mine: list[str]) -> None:
        for secret in mine:
            masker.add(secret)
            if secret in json.dumps(masker({secret: [secret]})):
                leaks.append(secret)

    threads = [threading.Thread(target=work, args=(secrets[start::4],)) for start in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not leaks
    assert masker(secrets) == [MASK] * 100


@pytest.mark.parametrize(
    ("key", "verdict"),
    [
        ("password", Verdict.SECRET),
        ("apiKey", Verdict.TOKEN),
        ("auth", Verdict.WEAK),
        ("value", Verdict.VALUE),
        ("author", Verdict.CLEAN),
        ("what is the password of the day", Verdict.CLEAN),
        ("x" * 200 + "_password", Verdict.SECRET),
        (b"password", Verdict.CLEAN),
        (7, Verdict.CLEAN),
    ],
)
def test_key_is_judged_by_its_words(key: object, verdict: Verdict) -> None:
    assert judge(key) is verdict


def test_remembered_keys_stay_bounded() -> None:
    masker = Masker()
    for number in range(5000):
        judge(f"key{number}")
    assert masker({f"name{number}": number for number in range(5000)}) == {f"name{n}": n for n in range(5000)}
    assert masker({"password": "x1"}) == {"password": MASK}


def test_flags_and_empty_values_under_a_telling_key_stay() -> None:
    value: dict[str, Any] = {
        "password": None,
        "token": True,
        "secret": "",
        "auth": {"on": False, "x": [None][0]},
        "api_key": [],
        "pin": 7,
    }
    assert Masker()(value) == value


@pytest.mark.parametrize("item", [5, 1.5, [1], {"a": 1}, (1,), {"x"}, b"x", object(), {"type": "string", "value": "x"}])
def test_anything_else_under_a_telling_key_is_masked_whole(item: object) -> None:
    assert Masker()({"password": item}) == {"password": MASK}


def test_masked_keys_do_not_swallow_each_other() -> None:
    masker = Masker(["alpha-omega", "gamma-delta"])
    masked = masker({"alpha-omega": 1, "gamma-delta": 2, "c": 3})
    assert masked == {MASK: 1, "***2": 2, "c": 3}
    assert masker(masked) == masked


def test_json_text_keeps_its_layout_unless_something_is_masked() -> None:
    masker = Masker()
    assert masker('{"a":1,"token":"x1"}') == '{"a":1,"token":"***"}'
    assert masker('{"a": 1, "token": "x1"}') == '{"a": 1, "token": "***"}'
    assert masker('{\n  "token": "x1"\n}') == '{\n  "token": "***"\n}'
    assert masker('{"é": 1, "token": "x1"}') == '{"é": 1, "token": "***"}'
    assert masker('["mysql", "-px1"]') == '["mysql", "-p***"]'
    assert masker('{"token" :null }') == '{"token" :null }'


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ('password="first\nsecond" x', 'password="***" x'),
        ('password: "first\nsecond', 'password: "***\nsecond'),
        (f'password="first\n{"x" * 500}"', f'password="***\n{"x" * 500}"'),
        ('password="a\\"b" c', 'password="***" c'),
        (
            "Private-Lines: 2\n" + "Ab3" * 20 + "\n" + "Cd4" * 20 + "\nPrivate-MAC: 1",
            "Private-Lines: 2\n***Private-MAC: 1",
        ),
        ("ODBC UID=sa;PWD=hunter2;", "ODBC UID=sa;PWD=***;"),
    ],
)
def test_value_is_masked_to_its_end_and_no_further(text: str, masked: str) -> None:
    assert Masker().text(text) == masked


@pytest.mark.parametrize(
    "text",
    [
        'fields = ("password", "user name")',
        'if token == "identifier":',
        '"password": {"type": "string", "minLength": 12} and so on',
        "PWD=/home/bob OLDPWD=/Data/Sets",
        'password = "user {name} here"',
        'password: "Please enter your password again"',
        "basic abcdefghi",
        "Basic c29tZSB0ZXh0IHdpdGhvdXQ= is not a login",
        "https://user:@host/ and https://host:80/@x",
    ],
)
def test_text_that_only_looks_like_a_secret_stays(text: str) -> None:
    assert Masker().text(text) == text


def test_long_key_is_judged_but_not_remembered() -> None:
    key = "x_" * 100 + "password"
    assert Masker()({key: CANARY, "y_" * 100: 1}) == {key: MASK, "y_" * 100: 1}


def test_json_with_a_repeated_key_hides_both_values() -> None:
    masked = Masker().text(f'{{"password": "{CANARY}", "password": "{CANARY}2"}}')
    assert CANARY not in masked


def test_json_that_nests_too_deep_or_breaks_off_is_masked_as_text() -> None:
    for text in (
        "[" * 100_000 + f'"password={CANARY}"' + "]" * 100_000,
        f'{{"password": "{CANARY}"',
        f'["token={CANARY}"}}',
    ):
        assert CANARY not in Masker().text(text)


class Color(enum.StrEnum):
    RED = "red"


class Unshowable:
    def __str__(self) -> str:
        raise RuntimeError("no")


class Shown:
    def __repr__(self) -> str:
        return f"Shown(user='bob', password='{CANARY}')"


Point = namedtuple("Point", "x y")


def test_values_that_are_not_json_become_data_or_masked_text() -> None:
    masker = Masker()
    assert masker(Shown()) == "Shown(user='bob', password='***')"
    assert masker(Unshowable()) == "<Unshowable>"
    assert masker(ValueError(f"password={CANARY}")) == "ValueError: password=***"
    assert masker(types.MappingProxyType({"password": CANARY, "a": 1})) == {"password": MASK, "a": 1}
    assert masker(OrderedDict(a=1)) == {"a": 1}
    assert masker(Point(1, "b c")) == (1, "b c")
    assert masker(bytearray(b"abc")) == b"abc"
    assert masker(f"token={CANARY}".encode()) == b"token=***"
    assert masker({"a", f"token={CANARY}"}) == {"a", "token=***"}
    assert masker(frozenset({1})) == frozenset({1})
    assert masker({Shown(): 1, ("a", "b"): 2}) == {
        "Shown(user='bob', password='***')": MASK,
        "('a', 'b')": 2,
    }


class Hashable(dict[str, int]):
    def __hash__(self) -> int:  # type: ignore[override]
        return 1


def test_set_whose_masked_items_cannot_be_hashed_becomes_a_list() -> None:
    assert Masker()({Hashable(a=1)}) == [{"a": 1}]


@pytest.mark.parametrize(
    "value",
    [
        datetime.datetime(2024, 5, 1, 12, tzinfo=datetime.UTC),
        datetime.timedelta(seconds=5),
        decimal.Decimal("1.50"),
        uuid.UUID(int=7),
        Color.RED,
        float("inf"),
    ],
)
def test_plain_values_that_are_not_json_come_out_equal(value: object) -> None:
    assert Masker()(value) == value
    assert Masker(["some-secret"])([value]) == [value]


def test_number_too_long_to_print_comes_out_equal() -> None:
    assert Masker(["some-secret"])([10**5000]) == [10**5000]


def test_deep_nesting_ends_in_a_marker() -> None:
    deep: Any = CANARY
    for _ in range(5000):
        deep = [deep, {"a": deep}] if isinstance(deep, str) else [deep]
    masker = Masker()
    masked = masker({"password": 1, "x": deep})
    shown = json.dumps(masked)
    assert TOO_DEEP in shown
    assert CANARY not in shown
    assert masker(masked) == masked


def test_value_that_contains_itself_is_bounded() -> None:
    loop: dict[str, Any] = {"a": 1}
    loop["self"] = [loop, loop]
    loop["fields"] = [loop, 1]
    assert Masker()(loop) == {"a": 1, "self": [TOO_DEEP, TOO_DEEP], "fields": [TOO_DEEP, 1]}


def test_shared_parts_are_masked_once() -> None:
    shared: list[Any] = ["x"]
    for _ in range(60):
        shared = [shared, shared]
    Masker()(shared)


def test_text_that_never_settles_is_masked_whole() -> None:
    masker = Masker(["****"])
    assert masker("*" * 4) == MASK
    assert set(masker.text("*" * 400)) == {"*"}


def test_text_full_of_secrets_is_cut_where_they_become_too_many() -> None:
    masked = Masker().text(f"password={CANARY};" * 10_000)
    assert CANARY not in masked
    assert masked.startswith("password=***;")


def aliases(value: object, copied: object) -> bool:
    if isinstance(value, (dict, list)) and value is copied:
        return True
    if isinstance(value, dict) and isinstance(copied, dict):
        return any(aliases(value[key], copied[key]) for key in value if key in copied)
    if isinstance(value, (list, tuple)) and isinstance(copied, (list, tuple)):
        return any(map(aliases, value, copied))
    return False


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(values)
def test_masking_never_fails_never_mutates_never_aliases_and_settles(value: object) -> None:
    masker = Masker(["x1x1x1", "ab"])
    before = copy.deepcopy(value)
    masked = masker(value)
    assert repr(value) == repr(before)
    assert not aliases(value, masked)
    assert masker(masked) == masked


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(fragments)
@example('password="')
@example("password: |\n  a\n  b")
@example("Authorization: Digest a=\"b\", c='d'")
def test_masking_text_settles(text: str) -> None:
    masker = Masker()
    masked = masker.text(text)
    assert masker.text(masked) == masked


@settings(deadline=None)
@given(
    st.lists(st.from_regex(r"[a-z]{1,12}", fullmatch=True), max_size=30),
    st.sampled_from([" ", ", ", ". ", "\n", "-", "_"]),
)
def test_plain_words_come_out_equal(words: list[str], between: str) -> None:
    value = {"list": [word for word in words if not judge(word)]}
    assert Masker()(value) == value
    text = between.join(value["list"])
    assert Masker().text(text) == text


secrets = st.text("abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ0123456789", min_size=12, max_size=24).map(
    lambda text: f"q7{text}Z4"
)


@settings(deadline=None)
@given(secrets)
def test_random_secret_is_hidden_under_every_form(secret: str) -> None:
    places: list[object] = [
        {"db_password": secret},
        {"name": "API_KEY", "value": secret},
        [["X-Api-Key", secret]],
        ["tool", "--token", secret],
        [f"--client-secret={secret}"],
        {"body": json.dumps({"outer": json.dumps({"apiKey": secret})})},
        {"password": {"a": [secret]}},
        f"password={secret}",
        f"token: {secret}",
        f'{{"secret": "{secret}"',
        f"export DB_PASSWORD='{secret}'",
        f"Authorization: Bearer {secret}",
        f"Cookie: sid={secret}; a=b",
        f"https://user:{secret}@host/",
        f"https://host/?a=1&access_token={secret}#x",
        f"tool --password {secret} run",
        f"curl -u bob:{secret} https://host",
        f"<password>{secret}</password>",
        f"- name: TOKEN\n  value: {secret}",
        f"The password is {secret}.",
        RuntimeError(f"login failed: password={secret}"),
    ]
    masked = Masker()(places)
    assert secret not in json.dumps(masked)


ADVERSARIAL = [
    *[
        "password=",
        'password="',
        "password=[",
        "password: ",
        "auth: ",
        "eyJ",
        "eyJ-",
        ":",
        "://",
        "://@",
        "://a:",
        "//",
        "@",
    ],
    *[
        "\\",
        '\\"',
        '"',
        "'",
        "-----BEGIN",
        "-----BEGIN RSA PRIVATE KEY-----",
        " ",
        "pass",
        "key ",
        "token-",
        " --password",
    ],
    *[
        " -p",
        "mysql ",
        "login ",
        "curl -b ",
        "Bearer ",
        "Basic ",
        "{",
        "[",
        '{"password":',
        ".",
        "a",
        "SG.",
        "sk-proj-",
    ],
    *["%", "password%3d", "\n", "password: |\n  ", "password value:", "name: password\n value: ", "password is "],
    *[
        "<password>",
        "<password>x",
        '("password", ',
        "Cookie: a=",
        'Authorization: Digest a="',
        "password=a;",
        "=",
        " -u a:",
    ],
    *[
        ":thin:a/",
        "a:b@tcp(",
        "echo a | ",
        "identified by ",
        "ENV TOKEN ",
        "password=${",
        "password=<",
        "İpassword=",
        "M",
    ],
]


def seconds(masker: Masker, text: str) -> float:
    spent = []
    for _ in range(2):
        start = time.process_time()
        masker.text(text)
        spent.append(time.process_time() - start)
    return min(spent)


@pytest.mark.soak  # the clock of a busy machine is no judge of every change
@pytest.mark.parametrize("unit", ADVERSARIAL, ids=map(str, range(len(ADVERSARIAL))))
def test_time_grows_with_the_text_and_not_faster(unit: str) -> None:
    masker = Masker(["topsecretvalue"])
    small = unit * ((1 << 15) // len(unit))
    # Sixteen times the text: quadratic time would be 256 times as long.
    assert seconds(masker, small * 16) < 64 * max(seconds(masker, small), 0.002)


def test_a_dict_is_masked_alike_however_often_its_keys_were_met() -> None:
    masker = Masker()
    assert [masker({"city": "Paris", "n": n}) for n in range(3)] == [{"city": "Paris", "n": n} for n in range(3)]
    assert masker({"city": "password=hunter2", "n": 1}) == {"city": "password=***", "n": 1}
    assert masker({"city": ["--password", "hunter2"], "n": 1}) == {"city": ["--password", MASK], "n": 1}
    assert masker({"city": "Paris", "password": 1.5}) == masker({"city": "Paris", "password": 1.5})
    assert masker({"city": "Paris", "password": 1.5}) == {"city": "Paris", "password": MASK}


def test_a_copy_of_a_dict_with_known_keys_shares_nothing_with_it() -> None:
    masker, value = Masker(), {"city": "Paris"}
    masker(value)
    masked = masker(value)
    value["city"] = "Rome"
    assert masked == {"city": "Paris"}


@pytest.mark.parametrize("secret", ["city", "Paris", "42", "4"])
def test_a_secret_registered_later_is_hidden_under_known_keys(secret: str) -> None:
    masker, value = Masker(), {"city": "Paris", "n": 42 if secret == "42" else 4}
    assert masker(value) == masker(value) == value
    masker.add(secret)
    assert secret not in str(masker(value)).replace("42", "" if secret == "4" else "42")


def test_the_memory_of_keys_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolgate.kernel.text.masking._MAX_KEYS", 2)
    masker = Masker()
    for name in "abcab":
        assert masker({name: 1}) == {name: 1}
    assert len(masker._keys) <= 2
    wide = {f"k{number}": number for number in range(100)}
    assert masker(wide) == masker(wide) == wide


def test_repeated_texts_are_masked_alike_and_only_some_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolgate.kernel.text.masking.REPEATED", 1)
    masker = Masker()
    assert [masker.repeated("one hunter2-hunter2"), masker.repeated("two hunter2-hunter2")] == [
        "one hunter2-hunter2",
        "two hunter2-hunter2",
    ]
    masker.add("hunter2-hunter2")
    for text in ("one", "two", "one"):
        assert "hunter2" not in masker.repeated(f"{text} hunter2-hunter2")


@pytest.mark.parametrize("body", ["<your key here>", "...", "\n"])
def test_a_key_block_without_a_key_stays(body: str) -> None:
    text = f"-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----"
    assert Masker().text(text) == text


BEGIN, END = "-----BEGIN RSA PRIVATE KEY-----", "-----END RSA PRIVATE KEY-----"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (f"{BEGIN}\nkey: a-b <x>\n{END}", f"{BEGIN}\n***{END}"),
        (f"{BEGIN}\\nMIIE+/=x\\n{END}", f"{BEGIN}\\n***{END}"),
        (f"{BEGIN}\nProc-Type: 4,ENCRYPTED\nDEK-Info: A\n\nMIIEvQIBADANBgkqhk\nabc", f"{BEGIN}\n***"),
        (f"{BEGIN}\nMIIEvQIBADANBgkqhk\\nabc, and on", f"{BEGIN}\n***, and on"),
        (f"{BEGIN} is how it begins", f"{BEGIN} is how it begins"),
        (f"{BEGIN}{END}", f"{BEGIN}{END}"),
    ],
)
def test_a_key_block_is_masked_whole_or_as_far_as_it_goes(before: str, after: str) -> None:
    assert Masker().text(before) == after


def test_many_beginnings_of_key_blocks_are_read_once() -> None:
    text = f"{BEGIN}\n" + "Version: " * 20_000 + "\n" * 20_000 + BEGIN * 20_000
    assert Masker().text(text) == text
