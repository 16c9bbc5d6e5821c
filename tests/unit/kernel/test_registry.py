"""Finding tools by name, then by action type, never ambiguously."""

from __future__ import annotations

from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.kernel.samples import a_tool

from toolgate.errors import DefinitionError, ToolNotFoundError
from toolgate.kernel.registry import ToolRegistry
from toolgate.kernel.tool import ToolDefinition

names = st.sampled_from(["a", "b", "c", "d"])


def test_a_tool_is_found_by_its_name_and_by_its_action_type() -> None:
    tool = a_tool("edit_document", action_type="EDIT_DOCUMENT")
    registry = ToolRegistry([tool])
    assert registry.find("edit_document") is registry.find("EDIT_DOCUMENT") is tool
    assert registry.resolve("EDIT_DOCUMENT") is registry.resolve("edit_document") is tool
    assert "EDIT_DOCUMENT" in registry
    assert "edit" not in registry
    assert registry.find("edit") is None


def test_iteration_gives_each_tool_once_in_order_of_registration() -> None:
    tools = [a_tool("b", action_type="B"), a_tool("a"), a_tool("c", action_type="C")]
    registry = ToolRegistry(tools)
    assert list(registry) == tools
    assert len(registry) == 3


def test_tools_may_be_added_while_somebody_iterates() -> None:
    registry = ToolRegistry([a_tool("a"), a_tool("b")])
    for tool in registry:
        registry.add(a_tool(f"more_{tool.name}"))
    assert len(registry) == 4


@pytest.mark.parametrize(
    "newcomer",
    [
        a_tool("x", action_type="edit"),
        a_tool("x", action_type="EDIT"),
        a_tool("EDIT"),
        a_tool("EDIT", action_type="x"),
    ],
)
def test_a_registration_that_makes_a_string_ambiguous_is_refused(newcomer: ToolDefinition) -> None:
    tool = a_tool("edit", action_type="EDIT")
    registry = ToolRegistry([tool])
    with pytest.raises(DefinitionError, match="already names tool `edit`"):
        registry.add(newcomer)
    assert list(registry) == [tool]
    assert registry.find("x") is None


def test_registering_a_name_again_replaces_the_tool_and_forgets_its_action_type() -> None:
    registry = ToolRegistry([a_tool("edit", action_type="OLD")])
    newer = a_tool("edit", action_type="NEW")
    registry.add(newer)
    assert list(registry) == [newer]
    assert registry.find("NEW") is newer
    assert registry.find("OLD") is None


def test_a_discarded_tool_is_found_no_more_and_frees_its_names() -> None:
    registry = ToolRegistry([a_tool("edit", action_type="EDIT")])
    registry.discard("edit")
    registry.discard("edit")
    assert (len(registry), registry.find("edit"), registry.find("EDIT")) == (0, None, None)
    registry.add(a_tool("other", action_type="EDIT"))


def test_discarding_goes_by_name_not_by_action_type() -> None:
    registry = ToolRegistry([a_tool("edit", action_type="EDIT")])
    registry.discard("EDIT")
    assert len(registry) == 1


@pytest.mark.parametrize("thing", [len, "edit", None, ToolDefinition])
def test_what_is_not_a_tool_is_refused(thing: Any) -> None:
    with pytest.raises(DefinitionError, match="is not a tool: decorate the function with `@tool`"):
        ToolRegistry([cast(ToolDefinition, thing)])


def test_an_unknown_name_is_reported_with_what_there_is() -> None:
    with pytest.raises(ToolNotFoundError, match="`nope` is not registered; registered tools: a, b") as caught:
        ToolRegistry([a_tool("b"), a_tool("a")]).resolve("nope")
    assert caught.value.tool == "nope"


def test_an_empty_registry_says_that_it_has_none() -> None:
    with pytest.raises(ToolNotFoundError, match="registered tools: none"):
        ToolRegistry().resolve("nope")


def test_a_report_about_an_unknown_name_stays_short() -> None:
    registry = ToolRegistry(a_tool(f"tool_{index:03}") for index in range(50))
    with pytest.raises(ToolNotFoundError) as caught:
        registry.resolve("x" * 10_000)
    assert caught.value.tool == "x" * 128
    assert "tool_019" in str(caught.value)
    assert "tool_020" not in str(caught.value)
    assert len(str(caught.value)) < 500


@given(st.lists(st.tuples(st.booleans(), names, names), max_size=12))
def test_whatever_is_added_and_discarded_every_string_names_at_most_one_tool(
    steps: list[tuple[bool, str, str]],
) -> None:
    registry = ToolRegistry()
    for adding, name, action_type in steps:
        if not adding:
            registry.discard(name)
            continue
        try:
            registry.add(a_tool(name, action_type=action_type))
        except DefinitionError:
            continue
    for string in "abcd":
        owners = [tool for tool in registry if string in (tool.name, tool.action_type)]
        assert len(owners) <= 1
        assert registry.find(string) is (owners[0] if owners else None)
        assert (string in registry) == bool(owners)
