"""What an error says of an effect, by the tool, the policy and the error itself."""

from __future__ import annotations

import pytest

from toolgate.errors import NotExecuted, SandboxError, ToolExecutionError, ToolUnknownOutcomeError
from toolgate.kernel.doubt import Doubt, Meaning, carried_kinds, doubt_of, is_lost, kinds_of
from toolgate.kernel.policy import OnError, Stance
from toolgate.kernel.tool import ToolDefinition

DECLARED = Doubt(is_declared=True)


def a_tool(effects: str | None = "irreversible", **options: object) -> ToolDefinition:
    return ToolDefinition("pay", {}, print, effects=effects, **options)  # type: ignore[arg-type]  # of any kind


@pytest.mark.parametrize(
    ("error", "meaning"),
    [
        (ValueError(), Meaning.UNKNOWN),
        (NotExecuted(), Meaning.NOTHING_HAPPENED),
        (ToolUnknownOutcomeError(), Meaning.UNKNOWN),
        (SandboxError("no sandbox"), Meaning.NOTHING_HAPPENED),
        (SandboxError("it was killed", may_have_run=True), Meaning.UNKNOWN),
    ],
    ids=repr,
)
def test_what_an_error_means_where_effects_are_declared(error: Exception, meaning: Meaning) -> None:
    assert DECLARED.of(error) is meaning


def test_a_handler_that_was_not_entered_did_nothing() -> None:
    assert DECLARED.of(ValueError(), began=False) is Meaning.NOTHING_HAPPENED


def test_an_error_of_another_process_is_read_by_the_names_it_had_there() -> None:
    for raised, meaning in ((NotExecuted(), Meaning.NOTHING_HAPPENED), (KeyError(), Meaning.UNKNOWN)):
        carried = ToolExecutionError("it failed there")
        carried.kinds = carried_kinds(raised)
        assert DECLARED.of(carried) is meaning
    lost = ToolExecutionError("it failed there")
    lost.kinds = carried_kinds(BrokenPipeError())
    assert Doubt().of(lost) is Meaning.UNKNOWN
    assert Doubt(has_effects=False).of(lost) is Meaning.FAILED


def test_an_error_is_known_by_its_classes_and_their_modules() -> None:
    kinds = kinds_of(NotExecuted())
    assert {"toolgate.errors.calls.NotExecuted", "toolgate.errors.calls.ToolError", "Exception"} <= kinds


def test_a_chain_of_errors_is_looked_at_only_so_far() -> None:
    error: Exception = ConnectionResetError()
    for _ in range(100):
        outer = RuntimeError()
        outer.__cause__ = error
        error = outer
    assert not is_lost(error)
    hidden = RuntimeError()
    hidden.__context__, hidden.__suppress_context__ = ConnectionResetError(), True
    assert not is_lost(hidden)


@pytest.mark.parametrize(
    ("tool", "stance", "declared", "has_effects"),
    [
        (a_tool(), Stance(), True, True),
        (a_tool("reversible"), Stance(), True, True),
        (a_tool(None), Stance(), False, True),
        (a_tool("read"), Stance(), False, False),
        (a_tool(idempotent=True), Stance(), False, False),
        (a_tool(), Stance(may_retry=True), False, False),
        (a_tool("read"), Stance(may_retry=False), False, False),
        (a_tool(), Stance(on_error=OnError.FAILED), False, False),
        (a_tool(None), Stance(on_error=OnError.UNKNOWN), True, True),
    ],
)
def test_a_tool_and_a_policy_say_how_errors_are_read(
    tool: ToolDefinition, stance: Stance, declared: bool, has_effects: bool
) -> None:
    doubt = doubt_of(tool, stance)
    assert (doubt.is_declared, doubt.has_effects) == (declared, has_effects)


def test_errors_that_mean_nothing_are_those_of_the_tool_and_of_the_policy() -> None:
    doubt = doubt_of(a_tool(nothing_happened=(NotExecuted, OSError)), Stance(nothing_happened=frozenset({"KeyError"})))
    assert doubt.harmless == {"toolgate.errors.calls.NotExecuted", "OSError", "KeyError"}
