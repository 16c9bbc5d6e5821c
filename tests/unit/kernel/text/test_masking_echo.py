from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import orjson
import pytest

from toolgate.kernel.call import Call
from toolgate.kernel.context import DEFAULT_CONTEXT
from toolgate.kernel.text.masking import Masker
from toolgate.kernel.text.masking.echo import CallMasker, hidden, mask_alike


def masker_of(arguments: dict[str, Any], *secrets: str) -> CallMasker:
    masker = Masker(secrets)
    call = Call(
        id="c",
        project="p",
        tool_name="t",
        context=DEFAULT_CONTEXT,
        created_at=datetime.now(UTC),
        arguments=orjson.dumps(arguments),
        shown=masker(arguments),
    )
    return CallMasker(masker, call)


def test_a_password_stays_hidden_when_a_handler_quotes_it() -> None:
    hide = masker_of({"user": "ann", "password": "hunter22", "nested": [{"api_key": "correct horse"}]})
    assert hide.text("ann: wrong password hunter22, or correct horse") == "ann: wrong password ***, or ***"
    assert hide({"echo": ["hunter22"], "user": "ann"}) == {"echo": ["***"], "user": "ann"}


def test_what_the_arguments_show_is_shown() -> None:
    hide = masker_of({"user": "hunter22", "note": "hello world"})
    assert hide.text("hunter22 says hello world") == "hunter22 says hello world"


def test_short_values_would_hit_ordinary_words() -> None:
    assert masker_of({"password": "test"}).text("the test failed") == "the test failed"


def test_registered_secrets_are_hidden_as_ever() -> None:
    assert masker_of({"a": 1}, "registered-one").text("this is registered-one") == "this is ***"


@pytest.mark.parametrize(
    ("value", "shown", "found"),
    [
        ({"a": "visible", "b": "invisible"}, {"a": "visible", "b": "***"}, ["invisible"]),
        ({"a": {"b": "invisible", "c": 1234567}}, {"a": "***"}, ["invisible", "1234567"]),
        ([["invisible"], "x"], [["***"], "x"], ["invisible"]),
        (["invisible"], "***", ["invisible"]),
        ({"a": None, "b": True, "c": "short"}, "***", []),
        ("visible", "visible", []),
    ],
)
def test_what_a_view_does_not_show_is_found(value: Any, shown: Any, found: list[str]) -> None:
    assert list(hidden(value, shown)) == found


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ({"argv": ["--password", "sw0rdfish"], "path": "/sw0rdfish"}, {"argv": ["--password", "***"], "path": "/***"}),
        ({"argv": ["mysql", "-psw0rdfish"], "path": "/w/sw0rdfish"}, {"argv": ["mysql", "-p***"], "path": "/w/***"}),
        ({"argv": ["--password", "w0rd"], "path": "/w0rd"}, {"argv": ["--password", "***"], "path": "/w0rd"}),
        ({"token": ["sw0rdfish"], "path": "/w/sw0rdfish"}, {"token": "***", "path": "/w/***"}),
        ({"argv": ["x", 1], "path": "/w"}, {"argv": ["x", 1], "path": "/w"}),
    ],
)  # fmt: skip
def test_what_is_hidden_at_one_place_is_hidden_at_every_other(value: Any, shown: Any) -> None:
    assert mask_alike(Masker(), value) == shown


def test_what_is_left_of_a_text_says_nothing_where_it_is_another_text() -> None:
    views = {"a-sw0rdfish": "b-***", "x": "x"}
    value = {"one": "a-sw0rdfish", "two": "sw0rdfish"}
    assert mask_alike(lambda given: {"one": views[given["one"]], "two": "sw0rdfish"}, value)["two"] == "sw0rdfish"  # type: ignore[index]  # it is given that value
