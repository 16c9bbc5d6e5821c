"""The error tree, its codes, and every way the documents build an error."""

from __future__ import annotations

import copy
import inspect
import pickle
import re
from typing import Any

import pytest

from toolgate import errors
from toolgate.errors import (
    ToolApprovalDeniedError,
    ToolApprovalTimeoutError,
    ToolDeniedError,
    ToolError,
    ToolExecutionError,
    ToolgateError,
    ToolInputError,
    ToolNotFoundError,
    ToolOutputError,
    ToolTimeoutError,
    ToolUndoError,
    ToolUnknownTimeoutError,
)

CLASSES = [
    item
    for item in vars(errors).values()
    if inspect.isclass(item) and issubclass(item, ToolgateError) and not item.__name__.startswith("_")
]
TOOL_ERRORS = [item for item in CLASSES if issubclass(item, ToolError)]
BUILT: list[ToolgateError] = [
    ToolDeniedError(tool="edit", behavior="chat", allowed=("practice",)),
    ToolDeniedError("text"),
    ToolApprovalDeniedError(tool="edit", reason="no"),
    ToolApprovalTimeoutError(tool="edit", request_id="a1", timeout_seconds=3.0),
    ToolExecutionError(tool="edit", action_id="c1", cause=ValueError("boom")),
    ToolInputError("bad", tool="edit", location="/a"),
    ToolUndoError(tool="edit", action_id="c1", reason="gone"),
    errors.ConflictError("late"),
]


def drawn() -> dict[str, str | None]:
    """Return the tree of the docstring: each class with its parent."""
    parents: dict[str, str | None] = {}
    path: list[str] = []
    for line in (errors.__doc__ or "").splitlines():
        found = re.match(r"    ([|` -]*)(\w+Error|NotExecuted)\b", line)
        if found:
            depth = len(found[1]) // 4
            path[depth:] = [found[2]]
            parents[found[2]] = path[depth - 1] if depth else None
    return parents


def test_the_tree_in_the_docstring_is_the_tree_there_is() -> None:
    public = {item.__name__: item for item in CLASSES}
    parents = {
        name: next((base.__name__ for base in item.__mro__[1:] if base.__name__ in public), None)
        for name, item in public.items()
    }
    assert drawn() == parents


def test_every_code_belongs_to_one_class() -> None:
    codes = [
        item.code for item in CLASSES if item is not ToolUnknownTimeoutError
    ]  # an unknown outcome, told as a timeout
    assert len(set(codes)) == len(codes)
    assert all(re.fullmatch(r"[a-z_]+", code) for code in codes)


@pytest.mark.parametrize("kind", TOOL_ERRORS)
def test_a_lone_positional_argument_is_the_message(kind: type[ToolError]) -> None:
    error = kind("User denied the action")
    assert str(error) == "User denied the action"
    assert error.args == ("User denied the action",)
    assert error.tool is None


@pytest.mark.parametrize("kind", TOOL_ERRORS)
def test_an_error_about_a_tool_names_it(kind: type[ToolError]) -> None:
    error = kind(tool="edit")
    assert error.tool == "edit"
    assert str(error).startswith("Tool `edit`")


@pytest.mark.parametrize("kind", TOOL_ERRORS)
def test_an_error_without_words_still_says_something(kind: type[ToolError]) -> None:
    assert len(str(kind())) > 8
    assert "None" not in str(kind())


@pytest.mark.parametrize("kind", TOOL_ERRORS)
def test_a_message_and_attributes_go_together(kind: type[ToolError]) -> None:
    error = kind("text", tool="edit")
    assert (str(error), error.tool) == ("text", "edit")


@pytest.mark.parametrize("word", ["allowed", "allowed_behaviors"])
def test_a_denial_names_tool_behavior_and_what_is_allowed(word: str) -> None:
    options: dict[str, Any] = {"tool": "edit", "behavior": "chat", word: ("doc_edit", "practice")}
    error = ToolDeniedError(**options)
    assert (error.tool, error.behavior, error.allowed_behaviors) == ("edit", "chat", ("doc_edit", "practice"))
    assert error.allowed == error.allowed_behaviors
    assert str(error) == "Tool `edit` is not allowed in behavior 'chat'; it is allowed in: doc_edit, practice."


def test_a_denial_with_a_reason_says_it() -> None:
    error = ToolDeniedError(tool="edit", reason="path outside", allowed=("practice",))
    assert str(error) == "Tool `edit` was denied: path outside"
    assert str(ToolDeniedError(tool="edit")) == "Tool `edit` was denied."
    assert str(ToolDeniedError()) == "The tool was denied."


def test_the_longer_word_for_allowed_wins_and_one_behavior_may_stand_alone() -> None:
    assert ToolDeniedError(allowed=("a",), allowed_behaviors=("b",)).allowed_behaviors == ("b",)
    assert ToolDeniedError(allowed=["a", "b"]).allowed_behaviors == ("a", "b")
    assert ToolDeniedError(allowed="practice").allowed_behaviors == ("practice",)
    assert ToolDeniedError("text").allowed_behaviors == ()


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ToolApprovalDeniedError(tool="edit"), "Tool `edit`: approval was denied"),
        (ToolApprovalDeniedError(tool="edit", reason="too risky"), "Tool `edit`: approval was denied: too risky"),
        (ToolApprovalDeniedError(reason="too risky"), "approval was denied: too risky"),
        (ToolApprovalTimeoutError(tool="edit"), "Tool `edit`: approval timed out"),
        (ToolUndoError(tool="edit", action_id="c1", reason="gone"), "Tool `edit`: undo failed: gone (action c1)"),
        (ToolNotFoundError(tool="x"), "Tool `x`: no tool of this name or action type is registered"),
    ],
)
def test_a_reason_is_part_of_the_text(error: ToolError, text: str) -> None:
    assert str(error) == text


def test_attributes_are_what_was_given() -> None:
    undo = ToolUndoError(tool="edit", action_id="c1", reason="gone")
    assert (undo.tool, undo.action_id, undo.reason) == ("edit", "c1", "gone")
    late = ToolApprovalTimeoutError(tool="edit", reason="busy", request_id="a1", timeout_seconds=3.0)
    assert (late.reason, late.request_id, late.timeout_seconds) == ("busy", "a1", 3.0)
    assert ToolInputError("bad", location="/a/0").location == "/a/0"
    assert ToolApprovalDeniedError("User denied the action").reason is None


@pytest.mark.parametrize("kind", [ToolExecutionError, ToolTimeoutError, ToolOutputError])
def test_an_execution_error_keeps_its_cause_and_the_causes_text(kind: type[ToolExecutionError]) -> None:
    cause = ValueError("disk is full")
    error = kind(tool="edit", action_id="c1", cause=cause)
    assert error.cause is error.__cause__ is cause
    assert error.action_id == "c1"
    assert str(error).endswith(": disk is full")


def test_a_cause_given_by_raising_from_it_wins() -> None:
    first, second = ValueError("first"), ValueError("second")
    with pytest.raises(ToolExecutionError) as caught:
        raise ToolExecutionError(cause=first) from second
    assert caught.value.__cause__ is second
    assert ToolExecutionError("text").__cause__ is None


@pytest.mark.parametrize("error", BUILT, ids=lambda error: f"{type(error).__name__}-{error}")
def test_an_error_survives_pickling_and_copying_whole(error: ToolgateError) -> None:
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(again) is type(error)
        assert str(again) == str(error)
        mine, its = dict(vars(error)), dict(vars(again))
        assert repr(mine.pop("cause", None)) == repr(its.pop("cause", None))
        assert its == mine


def test_one_handler_catches_every_tool_error() -> None:
    for kind in TOOL_ERRORS:
        with pytest.raises(ToolError):
            raise kind


def test_an_error_that_cannot_say_what_it_is_is_told_by_its_kind() -> None:
    class SpeechlessError(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no words")

    assert errors.text_of(SpeechlessError()) == "SpeechlessError"
    assert errors.text_of(ValueError()) == "ValueError"
    assert errors.text_of(ValueError("boom")) == "boom"
    assert str(ToolExecutionError(tool="edit", cause=SpeechlessError())).endswith(": SpeechlessError")
