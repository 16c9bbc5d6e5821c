"""What a user sees: lines, objects, or a screen; never a byte of the server's that moves the cursor."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from toolgate.interfaces.runner.notices import Kind, Notice
from toolgate.interfaces.runner.view import JsonLines, Lines, Screen, view_for


def about(kind: Kind, text: str = "", **data: Any) -> Notice:
    return Notice(kind=kind, text=text, tool_id="call-0001", tool_name="write_file", data=data)


STORY = [
    Notice(kind=Kind.CHECKED, text="policy p"),
    Notice(kind=Kind.CONNECTED, text="connected to http://s"),
    about(Kind.SIGNAL, "the server wants it run"),
    about(Kind.STARTED, arguments={"path": "a.txt"}, began=False),
    about(Kind.ASKING, "the policy asks"),
    about(Kind.STARTED, "allowed by me", began=True),
    about(Kind.PROGRESS, "half way", progress=0.5),
    about(Kind.PROGRESS, "", progress=None),
    about(Kind.RECALLED, "stop"),
    about(Kind.LOST, "gone"),
]
END = [about(Kind.ENDED, "", status="COMPLETED"), about(Kind.DELIVERED, status="completed")]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_lines_say_what_happens_in_order() -> None:
    out = io.StringIO()
    view = Lines(out)
    for notice in [*STORY, *END]:
        view.tell(notice)
    view.pause()
    view.resume()
    view.close()
    lines = out.getvalue().splitlines()
    assert len(lines) == len(STORY) + len(END) - 1  # arguments alone are no line
    assert "signal" in lines[2]
    assert "write_file [all-0001]" in lines[2]
    assert "COMPLETED" in lines[-2]


def test_objects_are_one_per_line() -> None:
    out = io.StringIO()
    view = JsonLines(out)
    for notice in [*STORY, *END]:
        view.tell(notice)
    told = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [one["event"] for one in told] == [notice.kind.value for notice in [*STORY, *END]]
    assert told[2]["tool_id"] == "call-0001"
    assert told[-2]["status"] == "COMPLETED"


def screen(notices: list[Notice]) -> str:
    out = Terminal()
    view = Screen("runner", out=out)
    for notice in notices:
        view.tell(notice)
    assert view._live is not None
    view._live.refresh()
    view.pause()
    view.pause()
    view.resume()
    assert view._live is None  # a question is still open
    view.resume()
    assert view._live is not None
    view.close()
    return out.getvalue()


@pytest.mark.parametrize(
    ("upto", "shown"),
    [(2, "idle"), (3, "taken"), (5, "you are asked"), (6, "running"), (7, "50% half way"), (8, "running")],
)
def test_a_screen_shows_what_runs(upto: int, shown: str) -> None:
    text = screen(STORY[:upto])
    assert "connected to http://s" in text
    assert shown in text


def test_a_screen_shows_what_stops_and_what_ended() -> None:
    assert "stopping" in screen(STORY[:9])
    assert "not waited for" in screen(STORY)
    text = screen([*STORY, *END])
    assert "COMPLETED" in text
    assert "a.txt" in text
    assert "delivered 1" in text
    assert "not_begun" in screen([about(Kind.ENDED, "why", status="not_begun")])


def test_where_nobody_looks_there_are_lines() -> None:
    assert type(view_for("x", json=True, plain=False)) is JsonLines
    assert type(view_for("x", json=False, plain=True)) is Lines
    assert type(view_for("x", json=False, plain=False)) is Lines  # a test's output is no terminal
