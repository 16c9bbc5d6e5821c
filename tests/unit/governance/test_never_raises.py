"""A layer answers with a result whatever fails around it, and then nothing runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from toolgate import governance
from toolgate.governance import Mode, ModeManager, ToolDefinition, ToolExecutionLayer, ToolResult, TraceContext
from toolgate.kernel.approval import Approval

ASKS = "tools: {note: {requires_approval_in_modes: [ALERT], allowed_in_modes: [NORMAL]}}"


class Modes:
    """A mode manager that does as it is told."""

    def __init__(self, answer: Callable[[], Any]) -> None:
        self.answer = answer

    def get_current_mode(self) -> Any:
        return self.answer()


class World:
    def __init__(self) -> None:
        self.ran: list[str] = []
        self.registry = governance.ToolRegistry()
        parameters = [governance.ToolParameter(name="text", type="string", description="")]
        note = ToolDefinition(
            name="note", description="", category="x", parameters=parameters, risk_level="low", allowed_modes=["NORMAL"]
        )
        self.registry.register(note, self.note)
        self.layers: list[ToolExecutionLayer] = []

    def note(self, text: str) -> bool:
        self.ran.append(text)
        return True

    def both(self, modes: Any, *asked: Any, **options: Any) -> list[ToolResult]:
        """What the blocking and the async face say."""
        results = []
        for is_async in (False, True):
            layer = ToolExecutionLayer(self.registry, ASKS, modes, **options)
            self.layers.append(layer)
            given = asked or ("note", {"text": "a"})
            results.append(asyncio.run(layer.aexecute_tool(*given)) if is_async else layer.execute_tool(*given))
        return results


@pytest.fixture
def world() -> Iterator[World]:
    made = World()
    yield made
    for layer in made.layers:
        layer.close()


def fail(error: BaseException) -> Callable[..., Any]:
    def raise_it(*_args: Any) -> Any:
        raise error

    return raise_it


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (fail(RuntimeError("no connection")), "it failed with RuntimeError"),
        (lambda: None, "'None' is not a mode; modes are: NORMAL"),
        (lambda: "SLEEPY", "'SLEEPY' is not a mode"),
        (lambda: 7, "'7' is not a mode"),
        (lambda: object(), "is not a mode"),
    ],
)
def test_a_mode_manager_that_names_no_mode_lets_nothing_run(world: World, answer: Any, why: str) -> None:
    for result in world.both(Modes(answer)):
        assert (result.success, result.metadata["category"], result.tool_name) == (False, "permission", "note")
        assert str(result.error).startswith("Permission denied: the mode manager did not say which mode holds (")
        assert why in str(result.error)
    assert world.ran == []


def test_a_mode_that_cannot_be_told_after_the_answer_ends_the_call(world: World) -> None:
    for said in (ValueError("gone"), None):
        told: list[Any] = []

        def answer(told: list[Any] = told, said: Any = said) -> Any:
            told.append(Mode.ALERT)
            if len(told) > 1:
                return fail(said)() if said is not None else None
            return Mode.ALERT

        modes = Modes(answer)
        layer = ToolExecutionLayer(world.registry, ASKS, modes, lambda _name, _arguments: True)
        world.layers.append(layer)
        result = layer.execute_tool("note", {"text": "a"})
        assert not result.success
        assert "did not say which mode holds" in str(result.error)
    assert world.ran == []


class BrokenChannel:
    async def ask(self, approval: Approval) -> Any:
        raise OSError(f"cannot carry {approval.id}")


@pytest.mark.parametrize("approver", [fail(RuntimeError("no terminal")), BrokenChannel()])
def test_an_approver_that_fails_has_said_no(world: World, approver: Any) -> None:
    for result in world.both(ModeManager("ALERT"), approver=approver):
        assert (result.success, result.metadata["category"]) == (False, "permission")
        assert "the approver failed with" in str(result.error)
    assert world.ran == []


def test_a_registry_that_fails_is_told(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(world.registry, "get_tool", fail(LookupError("the list of tools is away")))
    for result in world.both(ModeManager()):
        assert (result.success, result.metadata["category"]) == (False, "unavailable")
        assert result.error == "the list of tools is away"
    monkeypatch.undo()
    monkeypatch.setattr(world.registry, "find", fail(LookupError()))
    for result in world.both(ModeManager()):
        assert result.error == "LookupError"
    assert world.ran == []


def test_what_a_failure_says_is_masked(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    key = "sk-" + "proj-" + "a1B2c3D4e5F6g7H8i9J0" * 2
    monkeypatch.setattr(world.registry, "get_tool", fail(LookupError(f"refused with {key}")))
    for result in world.both(ModeManager()):
        assert key not in str(result)


class SpeechlessError(Exception):
    """An error that fails when it is asked what it says."""

    def __str__(self) -> str:
        raise RuntimeError("no words")

    __repr__ = __str__


def test_a_failure_that_cannot_be_put_into_words_is_told_by_its_kind(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(world.registry, "get_tool", fail(SpeechlessError()))
    for result in world.both(ModeManager()):
        assert (result.success, result.error) == (False, "SpeechlessError")
    monkeypatch.undo()
    for result in world.both(ModeManager(), SpeechlessError()):
        assert (result.success, result.tool_name) == (False, "(SpeechlessError)")


@pytest.mark.parametrize("name", [None, 5, b"note", ["note"]])
def test_a_name_that_is_no_text_is_refused(world: World, name: Any) -> None:
    for result in world.both(ModeManager(), name):
        assert (result.success, result.metadata["category"]) == (False, "validation")
        assert "named by text" in str(result.error)


def test_a_trace_that_is_none_is_refused(world: World) -> None:
    for result in world.both(ModeManager(), "note", {"text": "a"}, "4bf92f35"):
        assert (result.success, result.metadata["category"]) == (False, "validation")
        assert "trace_ctx is a TraceContext, not str" in str(result.error)
    assert world.ran == []
    assert all(result.success for result in world.both(ModeManager(), "note", {"text": "a"}, TraceContext()))


def test_a_program_that_is_stopped_is_stopped(world: World) -> None:
    with pytest.raises(KeyboardInterrupt):
        world.both(Modes(fail(KeyboardInterrupt())))
    assert world.ran == []
