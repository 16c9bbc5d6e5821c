"""Tools registered as classes and by factories: made once, when somebody looks for them, and run through the gate."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.unit.tools.scene import act, echo

from toolgate.errors import ToolNotFoundError, UsageError
from toolgate.testing.patience import PATIENCE_S
from toolgate.tools import (
    BaseTool,
    ToolDefinition,
    ToolExecutor,
    ToolInput,
    ToolOutput,
    ToolRegistry,
    base,
    diff,
    get_tool_registry,
    tool,
)


class Counting(BaseTool):
    """Counts how often it was made."""

    name = "counting"
    description = "Counts."
    made = 0

    def __init__(self) -> None:
        type(self).made += 1

    async def execute(self, input: ToolInput, ctx: dict[str, object]) -> ToolOutput:
        return ToolOutput.ok({"got": input.action.payload})


@pytest.fixture(autouse=True)
def nothing_made() -> None:
    Counting.made = 0


def test_a_factory_is_called_once_and_only_when_its_tool_is_looked_for() -> None:
    registry = ToolRegistry()
    registry.register_factory("COUNT", Counting)
    registry.register_factory("OTHER", lambda: ToolDefinition("other", {}, echo))
    assert registry.can_execute("COUNT")
    assert len(registry) == 2
    assert Counting.made == 0
    assert registry.get("COUNT") is registry.get("COUNT") is registry.get_by_action_type("COUNT")
    assert isinstance(registry.get("counting"), Counting)
    assert (Counting.made, len(registry)) == (1, 2)


def test_a_factorys_tool_is_found_by_the_name_it_brings() -> None:
    registry = ToolRegistry()
    registry.register_factory("COUNT", Counting)
    assert "counting" in registry
    assert "nothing" not in registry
    assert registry.resolve("counting").action_type == "COUNT"
    with pytest.raises(ToolNotFoundError):
        registry.resolve("nothing")


def test_listing_makes_every_tool_and_a_discarded_factory_makes_none() -> None:
    registry = ToolRegistry()
    registry.register_factory("COUNT", Counting)
    assert [one.name for one in registry.list_tools()] == ["counting"]
    registry.register_factory("AGAIN", Counting)
    registry.unregister("AGAIN")
    assert not registry.has("AGAIN")
    assert Counting.made == 1


def test_a_factory_that_fails_is_tried_again() -> None:
    tries: list[int] = []

    def make() -> Counting:
        tries.append(1)
        if len(tries) == 1:
            raise OSError("not yet")
        return Counting()

    registry = ToolRegistry()
    registry.register_factory("COUNT", make)
    with pytest.raises(OSError, match="not yet"):
        registry.get("COUNT")
    assert registry.get("COUNT") is not None


def test_threads_that_look_at_once_get_one_tool() -> None:
    registry, together = ToolRegistry(), threading.Barrier(8)
    registry.register_factory("COUNT", Counting)

    def look(_: int) -> object:
        together.wait(PATIENCE_S)
        return registry.get("COUNT")

    with ThreadPoolExecutor(8) as pool:
        found = set(map(id, pool.map(look, range(8))))
    assert (Counting.made, found) == (1, {id(registry.get("counting"))})


async def test_a_decorated_class_runs_through_the_gate_under_its_action_type() -> None:
    assert tool("COUNT_UP", name="ignored", description="Ignored.")(Counting) is Counting
    executor = ToolExecutor()
    assert executor.can_execute("COUNT_UP")
    assert (await executor.execute(act("COUNT_UP", a=1))).data == {"got": {"a": 1}}
    assert isinstance(executor.get_tool("counting"), Counting)
    assert executor.get_tool("nothing") is None


def test_the_decorators_words_count_where_the_class_has_none() -> None:
    @tool("SAY", description="Says.")
    class Saying(BaseTool):
        async def execute(self, input: ToolInput, ctx: dict[str, object]) -> ToolOutput:
            return ToolOutput.ok()

    shown = get_tool_registry().list()[0]
    assert (shown.name, shown.description, shown.action_type) == ("Saying", "Says.", "SAY")


def test_the_decorator_says_where_functions_go() -> None:
    with pytest.raises(UsageError, match=r"@toolgate\.tool"):
        tool("SAY")(echo)  # type: ignore[arg-type]  # that is the mistake
    with pytest.raises(UsageError, match="for classes"):
        tool(echo)  # type: ignore[arg-type]  # as above


def test_an_executor_on_a_plain_registry_finds_tools_too() -> None:
    from toolgate.kernel.registry import ToolRegistry as KernelRegistry

    echoing = ToolDefinition("echo", {}, echo)
    assert ToolExecutor(KernelRegistry([echoing])).get_tool("echo") is echoing


def test_the_modules_of_base_tools_and_differences_have_stageflows_names() -> None:
    assert base.BaseTool is BaseTool
    assert diff.diff_text("a", "b").has_changes
