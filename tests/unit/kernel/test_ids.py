from __future__ import annotations

import pytest

from toolgate.errors import InvalidIdError, UsageError
from toolgate.kernel.context import Context
from toolgate.kernel.ids import MAX_ID, check_context, check_id
from toolgate.kernel.text.masking import Masker

OF_PROVIDERS = [
    "call_e5GTkcLXnWGI5UDP7ttEibTC",
    "toolu_01DqEUdbvESapJidzgodtNxg",
    "tooluse_o42MuRJ2-I4yuXd_GXaLZo",
    "chatcmpl-tool-ed39147f06974c99b1aa8d21032d266a",
    "call_ROeJIWoVLkZAjE884VqzkNzI|fc_b4b4ba34b44661be5c8d83905798a9ccd35db89f76c7bd520a",
    "function-call-310069420762373467",
    "3268b513-8cc9-4a8e-a451-f7d21784d646",
    "bdd6ee9647a6eb3d0acefc98bc946fbbded5fc5e6a92ec0e7779099e8f3f97f0",
    "oXdken0c3ZTUu8ZoK7TeWihfllaWLmNb1FhmFZRelVO",
]


@pytest.mark.parametrize("id", ["c1", "run-7.1.0", "\u00e9t\u00e9", "a b", "i" * MAX_ID, *OF_PROVIDERS])
def test_plain_text_and_what_providers_give_are_ids(id: str) -> None:
    check_id(id, "call id", Masker(["hunter2hunter2"]))


@pytest.mark.parametrize(
    ("id", "why"),
    [
        (7, "A run id is text, not int"),
        (b"c", "text, not bytes"),
        ("", "not empty"),
        ("i" * (MAX_ID + 1), f"at most {MAX_ID} characters; this one has {MAX_ID + 1}"),
        ("c\n1", "control characters"),
        ("c\x00", "control characters"),
        ("c\x1b[2J", "control characters"),
        ("\u202ec", "control characters"),
        ("\ud800", "control characters"),
        ("a/b", "no `/`"),
        ("..", "no `/`, and is neither"),
        (".", "neither `.` nor `..`"),
    ],
)
def test_anything_else_is_none(id: object, why: str) -> None:
    with pytest.raises(InvalidIdError, match=why) as raised:
        check_id(id, "run id")
    assert isinstance(raised.value, UsageError)
    assert raised.value.code == "invalid_id"


@pytest.mark.parametrize(
    "id",
    [
        "x-hunter2hunter2-1",
        "aHVudGVyMmh1bnRlcjI=",
        "ghp_GkiCkEWjYZmAxggEVVNa4STeMRp16b0DNhcC",
        "token=VpWjoSKfoN2LpZGJle12",
    ],
)
def test_what_would_be_hidden_is_no_id_and_is_not_repeated(id: str) -> None:
    with pytest.raises(InvalidIdError, match="holds a secret") as raised:
        check_id(id, "call id", Masker(["hunter2hunter2"]))
    assert id not in str(raised.value)
    assert "hunter2" not in str(raised.value)


def test_a_secret_made_known_later_counts_for_ids_that_were_taken_before() -> None:
    masker = Masker()
    check_id("hunter2hunter2", "call id", masker)
    masker.add("hunter2hunter2")
    with pytest.raises(InvalidIdError):
        check_id("hunter2hunter2", "call id", masker)


def test_many_ids_are_not_all_remembered() -> None:
    masker = Masker()
    for number in range(5000):
        check_id(f"c{number}", "call id", masker)
    assert not masker.hides("c1")


@pytest.mark.parametrize(
    ("context", "why"),
    [
        (Context(run_id="a/b"), "A run id"),
        (Context(session_id="s\n"), "A session id"),
        (Context(parent_call_id="x" * 129), "A call id"),
        (Context(request_id="r" * 257), "`request_id`"),
        (Context(behavior="b\x1b"), "`behavior`"),
        (Context(principal="agent:" + "x" * 300), "`principal`"),
        (Context(user="ann\nbob"), "`user`"),
        (Context(request_id="token=VpWjoSKfoN2LpZGJle12"), "`request_id` holds a secret"),
    ],
)
def test_every_id_and_name_of_a_context_is_looked_at(context: Context, why: str) -> None:
    with pytest.raises(InvalidIdError, match=why):
        check_context(context, Masker())


def test_an_ordinary_context_passes() -> None:
    check_context(
        Context(run_id="r1", session_id="s1", request_id="a/b", behavior="chat", user="ann@example.com"), Masker()
    )
