"""A keyword that there is not is told with the one that was meant."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import toolgate
from toolgate.errors import UnknownKeywordError, UsageError
from toolgate.kernel.spelling import nearest, spelled_fields, unknown_name


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("risk", "risk_level"),
        ("timeout", "timeout_seconds"),
        ("needs_approval", "requires_approval"),
        ("efects", "effects"),
        ("handlr", "handler"),
        ("colour", None),
    ],
)
def test_the_nearest_name_is_the_one_that_was_meant(written: str, meant: str | None) -> None:
    known = inspect.signature(toolgate.ToolDefinition).parameters
    assert nearest(written, list(known)) == meant


def test_where_no_name_is_near_all_of_them_are_told() -> None:
    assert unknown_name("f", "zzz", ["one", "two"]) == "`f` takes no `zzz`. It takes: one, two."
    assert nearest("one", []) is None


def test_a_tool_with_a_misspelt_option_says_which_one_was_meant() -> None:
    with pytest.raises(UnknownKeywordError, match=r"`tool` takes no `risk`\. Did you mean `risk_level`"):
        toolgate.tool(risk="high")
    with pytest.raises(UsageError, match="Did you mean `undoable`"):
        toolgate.tool(undable=True)
    with pytest.raises(TypeError, match=r"`ToolDefinition` takes no `risk`\. Did you mean `risk_level`"):
        toolgate.ToolDefinition("a", {}, print, risk="high")  # type: ignore[call-arg]
    with pytest.raises(UnknownKeywordError, match="Did you mean `policy`"):
        toolgate.open(polcy="toolgate.yaml")  # type: ignore[call-arg]
    with pytest.raises(UnknownKeywordError, match="Did you mean `session_id`"):
        toolgate.Context(session="s")  # type: ignore[call-arg]


def test_what_a_class_raises_itself_is_left_alone() -> None:
    @spelled_fields
    class Sum:
        def __init__(self, one: int, *, other: int = 0) -> None:
            """Add."""
            self.value = one + other

    assert Sum(1, other=2).value == 3
    assert (Sum.__init__.__doc__, "other" in inspect.signature(Sum).parameters) == ("Add.", True)
    with pytest.raises(TypeError, match="unsupported operand"):
        Sum(1, other="2")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="missing 1 required"):
        Sum()  # type: ignore[call-arg]


def test_a_class_that_takes_any_keyword_refuses_none() -> None:
    @spelled_fields
    class Anything:
        def __init__(self, **given: Any) -> None:
            self.given = given

    assert Anything(anything=1).given == {"anything": 1}
