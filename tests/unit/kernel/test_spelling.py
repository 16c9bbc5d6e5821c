"""A keyword that there is not is told with the one that was meant."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import toolgate
from toolgate.errors import UnknownKeywordError, UsageError
from toolgate.kernel.spelling import nearest, spelled, unknown_name


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


def test_what_a_function_raises_itself_is_left_alone() -> None:
    @spelled
    def add(one: int, *, other: int = 0) -> Any:
        """Add."""
        return one + other

    assert add(1, other=2) == 3
    assert (add.__name__, add.__doc__, "other" in inspect.signature(add).parameters) == ("add", "Add.", True)
    with pytest.raises(TypeError, match="unsupported operand"):
        add(1, other="2")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="missing 1 required"):
        add()  # type: ignore[call-arg]


def test_a_function_that_takes_any_keyword_refuses_none() -> None:
    @spelled
    def take(**given: Any) -> Any:
        return given

    assert take(anything=1) == {"anything": 1}
