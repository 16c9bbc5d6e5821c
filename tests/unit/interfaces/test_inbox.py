"""What the inbox shows and what its keys mean, without a terminal."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from rich.cells import cell_len
from rich.text import Text

from toolgate.interfaces.cli.inbox import LIST_KEYS, LOOK_KEYS, MARGIN, Choice, Inbox, wrap
from toolgate.testing.clock import NOON
from toolgate.testing.conformance.rows import an_approval


def inbox(*ids: str, **fields: Any) -> Inbox:
    state = Inbox()
    state.refresh([an_approval(id, arguments={"to": id}, **fields) for id in ids])
    return state


def press(state: Inbox, *keys: str) -> Choice | None:
    choice = None
    for key in keys:
        choice = state.press(key)
    return choice


def test_keys_move_within_the_list() -> None:
    state = inbox("a1", "a2", "a3")
    press(state, "down", "down", "down", "up")
    assert state.place == 1
    assert press(state, "q") is Choice.QUIT
    assert press(inbox(), "down", "enter", "a") is None


def test_a_question_is_looked_at_before_it_is_answered() -> None:
    state = inbox("a1")
    assert press(state, "a") is None
    assert "Open it first" in state.note
    assert [press(state, "enter", key) for key in "adrc+e"] == [
        Choice.APPROVE, Choice.DENY, Choice.RESPOND, Choice.COMMENT, Choice.EXTEND, Choice.EDIT,
    ]  # fmt: skip
    assert press(state, "z") is None
    press(state, "esc")
    assert state.looking is None


def test_what_is_hidden_is_expanded_before_it_is_approved() -> None:
    state = inbox("a1", claim="x" * 2000)
    assert press(state, "enter", "a") is None
    assert "Press x" in state.note
    assert press(state, "d") is Choice.DENY
    assert press(state, "x", "a") is Choice.APPROVE


def test_the_screen_fits_and_scrolls() -> None:
    state = inbox("a1", claim="\n".join(f"line {number}" for number in range(60)))
    press(state, "enter", "x", "down", " ", "pageup", "up", "pagedown")
    lines = state.lines(width=60, height=20, now=NOON)
    assert len(lines) == 20
    assert "more lines below" in lines[17]
    press(state, *["pagedown"] * 50)
    state.lines(width=60, height=20, now=NOON)
    assert "line 59" in "\n".join(state.lines(width=60, height=20, now=NOON))


def test_the_list_says_how_long_is_left_and_what_waits() -> None:
    state = inbox("a1", expires_at=NOON + timedelta(hours=2, minutes=5), risk="high", user="ann")
    (line,) = [line for line in state.lines(width=100, height=10, now=NOON) if "write(" in line]
    assert "2h05m" in line
    assert "high" in line
    assert "for ann" in line
    assert "0m00s" in "\n".join(inbox("a1").lines(width=100, height=10, now=NOON + timedelta(days=1)))


def test_the_chosen_question_stays_chosen_and_an_answered_one_is_left() -> None:
    state = inbox("a1", "a2")
    press(state, "down", "enter")
    state.refresh([an_approval("a0"), an_approval("a2")])
    assert (state.place, state.looking and state.looking.id) == (1, "a2")
    state.refresh([an_approval("a0")])
    assert (state.looking, state.place) == (None, 0)
    assert "Somebody answered" in state.note
    state.tell("done", leave=True)
    assert state.note == "done"


@pytest.mark.parametrize("width", [20, 60])
def test_wrapped_lines_of_others_keep_their_margin(width: int) -> None:
    lines = wrap(f"Title\n{MARGIN}" + "日本 word " * 30, width)
    assert lines[0] == "Title"
    assert len(lines) > 3
    assert all(line.startswith(MARGIN) for line in lines[1:])


def test_the_chosen_question_is_in_sight_however_many_wait() -> None:
    state = inbox(*(f"a{number:03}" for number in range(100)))
    press(state, *["down"] * 70)
    shown = "\n".join(state.lines(width=80, height=24, now=NOON))
    assert "a070" in shown
    assert "100 waiting" in shown
    assert "a000" not in shown


def test_no_row_is_wider_than_the_terminal() -> None:
    state = inbox("界" * 60, "b" * 200, "short", user="somebody-with-a-long-name@example.org")
    for line in state.lines(width=80, height=24, now=NOON):
        assert cell_len(Text.from_ansi(line).plain) <= 80


@pytest.mark.parametrize("keys", [LIST_KEYS, LOOK_KEYS])
def test_the_keys_fit_a_terminal_of_eighty_columns(keys: str) -> None:
    assert len(f" {keys} ") <= 80


@pytest.mark.parametrize(
    "text", ["word " * 200, "x" * 999, "é" * 500, "Ж, и " * 99, " " * 300, "漢字" * 99, "a\u0301" * 200]
)
@pytest.mark.parametrize("colour", ["", "\x1b[32m"])
def test_a_long_line_is_broken_without_leaving_anything_out(text: str, colour: str) -> None:
    drawn = f"{MARGIN}{colour}{text}\x1b[0m" if colour else f"{MARGIN}{text}"
    parts = wrap(drawn, 44)
    assert all(part.startswith(MARGIN) for part in parts)
    shown = [re.sub(r"\x1b\[[\d;]*m", "", part.removeprefix(MARGIN)) for part in parts]
    assert all(cell_len(part) <= 40 for part in shown)
    assert "".join(shown).replace(" ", "") == text.replace(" ", "")
    assert not colour or all(colour in part for part in parts if part.removeprefix(MARGIN).strip())
