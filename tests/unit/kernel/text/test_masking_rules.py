"""Single rules of masking: addresses of databases, what was read wrongly before, and the edges of each rule."""

from __future__ import annotations

import random
from typing import Any

import orjson
import pytest
from tests.unit.kernel.text import test_masking_secrets as secret

from toolgate.errors import UsageError
from toolgate.kernel.text.masking import MASK, TOO_DEEP, Masker
from toolgate.kernel.text.masking.places import find_places
from toolgate.kernel.text.masking.plain import MOST_BOXES_OF_JSON

masker = Masker()


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("postgres://ann:hunter22@db.example.com/main", "postgres://ann:***@db.example.com/main"),
        ("Server=db;User Id=ann;Password=hunter22;", "Server=db;User Id=ann;Password=***;"),
        ("host=db user=ann password=hunter22", "host=db user=ann password=***"),
        (
            "AccountName=a;AccountKey=aB3dE5gH==;EndpointSuffix=x.net",
            "AccountName=a;AccountKey=***;EndpointSuffix=x.net",
        ),
        ("Server=db;Other=x;Password=hunter22", MASK),  # what is not understood stays hidden
        ("postgres://db.example.com/main", MASK),  # no password was found: it may be anywhere
        ("qwerty", MASK),
    ],
)
@pytest.mark.parametrize("key", ["connection_string", "connectionString", "dsn", "DB_CONN_STR"])
def test_a_connection_string_loses_its_password_and_not_its_host(key: str, address: str, shown: str) -> None:
    assert masker({key: address}) == {key: shown}
    assert masker({key: shown}) == {key: shown}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Basic \u0130bcdefghijk", "Basic \u0130bcdefghijk"),  # its lower case is an ASCII letter to some
        ("mysql -pPwd12345 db", "mysql -p*** db"),  # the name of a flag may be a password itself
        ("ann:@tcp(h) ann:hunter22@tcp(h) :x@tcp(h)", "ann:@tcp(h) ann:***@tcp(h) :x@tcp(h)"),
        ("jdbc:oracle:thin:ann/hunter22@db", "jdbc:oracle:thin:ann/***@db"),
        ("x://u:p@ss@h/", "x://u:***@h/"),
        ("log in with the password `hunter22`:\n", "log in with the password `***`:\n"),
        ("the server this credential authenticates against.", "the server this credential authenticates against."),
        ("ipsec up --psk hunter22/x", "ipsec up --psk ***"),
        ('ssid="home" psk="hunter22"', 'ssid="home" psk="***"'),
        ("random_seed=12345678 seed: 4711 security: high5", "random_seed=12345678 seed: 4711 security: high5"),
        (
            '{"\\u043f\\u0430\\u0440\\u043e\\u043b\\u044c": "hunter22"}',
            '{"\\u043f\\u0430\\u0440\\u043e\\u043b\\u044c": "***"}',
        ),
        ('{"\\u5bc6\\u7801": "hunter22"}', '{"\\u5bc6\\u7801": "***"}'),
        ("var APIKey string = `hunter22`", "var APIKey string = `***`"),  # its type stands behind a name in Go
        ('const dbPassword string="hunter22"', 'const dbPassword string="***"'),
        (
            "func login(password string) (token string, err error)",
            "func login(password string) (token string, err error)",
        ),
        ("x://u:hunter22:***@h/", "x://u:***@h/"),  # half of a password hides nothing
        ("x://u:hunter/22:***@h/", "x://u:***@h/"),
        ("\u043f\u0410\u0440\u043e\u043b\u044c: hunter22", "\u043f\u0410\u0440\u043e\u043b\u044c: ***"),
        ("smtp://a:hunter22@h:587https://" + "aB3dE5gH7jK9mN1pQ2sT4v@g.com", "smtp://a:***@h:587https://***@g.com"),
        ("token1234=token1234 key", "token1234=token1234 key"),
        ("password=xxxx1234", "password=***"),
        ("Cookie: <name>=<value>", "Cookie: <name>=<value>"),
        ("Set-Cookie: ***=***", "Set-Cookie: ***=***"),
        ("credentials: {a: '", "credentials: {a: '"),
        ("password == 'abc'", "password == '***'"),
        ("token == 'abc'", "token == 'abc'"),
        ('token["password", "abc def"]', 'token["password", "abc def"]'),
        ("AKIA" + "ABCDEFGHIJKLMNOP" * 2, "AKIA" + "ABCDEFGHIJKLMNOP" * 2),
        ("apikey: sunshine", "apikey: ***"),  # as after `password:`
        ("x-api-key: sunshine\nname: x", "x-api-key: ***\nname: x"),
        ("api_key: sunshine is what we look for", "api_key: sunshine is what we look for"),
        ("api_key: required", "api_key: required"),
        ("api_key: configured", "api_key: configured"),
        ("connect({ apiKey: key, region: eu })", "connect({ apiKey: key, region: eu })"),
        ("token: identifier", "token: identifier"),
        ("Bearer abc/password=x", "Bearer ***"),
        ("Bearer abc/password=x,y1z2 is it", "Bearer *** is it"),
        ("Bearer abcdefgh12== (old)", "Bearer *** (old)"),
        ("Bearer aB3dE5gH7=Bearer jK9mN1pQ2", "Bearer ***=Bearer ***"),
        ("sk-ant-aB3dE5gH7jK9mN1pQ2-password=hunter22", "***=***"),
        ("SK" + "0a1b2c3d" * 4 + " and xSK" + "0a1b2c3d" * 4, "*** and xSK" + "0a1b2c3d" * 4),
    ],
)
def test_a_rule_hides_just_its_secret(text: str, shown: str) -> None:
    assert masker.text(text) == shown
    assert masker.text(shown) == shown


def test_a_key_with_a_letter_of_another_alphabet_is_found_where_it_stands() -> None:
    assert masker.text("\u00e9t\u00e9 to\u212aen=aB3dE5gH7") == "\u00e9t\u00e9 to\u212aen=***"
    assert masker.text("\ud800 \U0001f600 password=hunter22") == "\ud800 \U0001f600 password=***"
    assert masker.text("\u041f\u0430\u0440\u043e\u043b\u044c: hunter22") == "\u041f\u0430\u0440\u043e\u043b\u044c: ***"


def test_texts_are_found_among_others_however_they_are_known() -> None:
    bot = "MTIzNDU2Nzg5MDEyMzQ1Njc4" + ".GabcdE." + "aB3dE5gH7jK9mN1pQ2sT4vW6yZ8"
    value = {"a": "one two", "b": [f"x {bot}", "http://a:b@c, and"], "c": {"d": "ok so"}}
    assert masker(value) == {"a": "one two", "b": [f"x {MASK}", "http://a:***@c, and"], "c": {"d": "ok so"}}
    assert find_places(bot) == []


def test_json_with_many_brackets_is_looked_at_closely() -> None:
    deep: object = "end of it"
    for _ in range(MOST_BOXES_OF_JSON + 10):
        deep = [deep]
    assert TOO_DEEP in str(masker.of(deep, orjson.dumps(deep)))


def test_a_repeated_text_is_masked_at_every_place() -> None:
    unit = 'password: "{x}" key=[1, token=abc1234x, password=[z9, '
    masked = masker.text(unit * 50)
    assert "abc1234x" not in masked
    assert masked.startswith(masker.text(unit)[:60])


def test_one_value_far_behind_its_quote_is_read_once() -> None:
    text = 'pw="the way it is \\"' * 3000
    assert len(masker.text(text)) <= len(text)


def test_a_text_in_which_there_is_always_more_to_hide_is_hidden_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolgate.kernel.text.masking._MAX_PASSES", 1)
    assert masker.text("password=hunter22") == MASK


HEADLESS = ("SK" + "0a1b2c3d" * 4, "MTA1" + "aB3dE5gH7jK9lM1nO3p.Gabc12." + "aB3dE5gH7jK9lM1nO3pQ5rS7tU9vW")


@pytest.mark.parametrize("before", ["", "\n", "\t", "\r", "\b", "\f", "\x01", '"', "\\n", "\u00e9 "])
@pytest.mark.parametrize("token", HEADLESS)
def test_an_escape_in_json_hides_no_token_from_the_look_at_its_bytes(before: str, token: str) -> None:
    value = {"note": f"{before}{token} x", "place": "caf\u00e9"}

    assert masker.of(value, orjson.dumps(value)) == masker(value)
    assert token not in str(masker.of({"note": f"\n{token}"}, orjson.dumps({"note": f"\n{token}"})))


def test_a_text_within_a_text_is_looked_at_once_at_every_step() -> None:
    text = '{"dsn":"x1y2z3"}'
    for _ in range(28):
        inner = text.replace("\\", "\\u005c").replace('"', "\\u0022")
        text = f'{{"dsn":"{inner}"}}'

    assert masker.text(text) == '{"dsn":"***"}'  # with two looks at every step this would take hours


@pytest.mark.parametrize("text", ["a@b " + "http://" * 40_000, "xoxb-" * 40_000, "sntrys_" * 40_000])
def test_a_text_that_repeats_a_beginning_takes_no_longer_than_others(text: str) -> None:
    assert masker.text(text * 2)[-3:] in text + MASK  # one look from every beginning to the end takes minutes


@pytest.mark.parametrize("value", ["hj3kd9s", "X1y2z3", "12345678"])
def test_a_key_is_hidden_after_its_name_alone(value: str) -> None:
    assert masker.text(f"apikey {value}") == "apikey ***"
    assert masker.text(f"api key {value} is used") == "api key *** is used"


@pytest.mark.parametrize("wrong", ["text", b"texts", [b"text"], [7], [None]], ids=repr)
def test_a_secret_that_is_no_string_is_refused_without_quoting_it(wrong: Any) -> None:
    with pytest.raises(UsageError) as refused:
        Masker(wrong)
    assert "text" not in str(refused.value)


def test_thousands_of_keys_that_are_masked_alike_are_numbered_at_once() -> None:
    value = {f"ghp_{'a' * 20}{number:06d}": number for number in range(3_000)}
    assert list(masker(value))[:3] == ["***", "***2", "***3"]  # type: ignore[call-overload]  # it is a dict
    assert len(masker(value)) == len(value)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (["-H 'Cookie: sid=aB3dE5gH7'", "index.html"], ["-H 'Cookie: ***'", "index.html"]),
        (['--cookie "sid=aB3dE5gH7"', "M", "x"], ['--cookie "***"', "M", "x"]),
        (["Set-Cookie: sid=aB3dE5gH7; Path=/; HttpOnly", "item 12345678"], ["Set-Cookie: ***", "item 12345678"]),
        (["--password", "hunter22"], ["--password", MASK]),
        (["password", "hunter22"], ["password", MASK]),
    ],
)
def test_what_is_hidden_in_a_list_names_nothing_beside_it(value: list[str], shown: list[str]) -> None:
    assert masker(value) == shown
    assert masker(shown) == shown


ARGUMENTS = (
    "curl mysql redis-cli login -u -p -phunter22 --password --token -H name value user x1 -- *** -p*** bob:hunter22 "
    "Authorization: Cookie: password= --cookie"
).split()


def test_masking_a_list_twice_changes_nothing() -> None:
    chance = random.Random(18)
    texts = [text.replace("§", secret.CANARY) for text in secret.TEXTS]
    for _ in range(3_000):
        value = [chance.choice(chance.choice((ARGUMENTS, texts))) for _ in range(chance.randint(1, 6))]
        masked = masker(value)
        assert masker(masked) == masked


def test_empty_lists_and_dicts_are_copied_however_many_there_are() -> None:
    value: dict[str, Any] = {"lists": [[] for _ in range(5_000)], "dicts": [{} for _ in range(5_000)], "password": []}
    shown = masker.of(value, orjson.dumps(value))
    assert shown == value
    for key in ("lists", "dicts"):
        assert not {id(box) for box in shown[key]} & {id(box) for box in value[key]}
    text = orjson.dumps([*value["lists"], "password=hunter22"]).decode()
    assert masker.text(text) == text.replace("hunter22", MASK)
