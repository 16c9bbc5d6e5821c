"""The governance page names everything the door offers."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolgate import governance

PAGE = (Path(__file__).parents[2] / "docs/reference/governance.md").read_text()


@pytest.mark.parametrize("name", governance.__all__)
def test_every_name_is_on_the_page(name: str) -> None:
    assert f"`{name}" in PAGE


@pytest.mark.parametrize("model", [governance.ToolParameter, governance.ToolDefinition, governance.ToolResult])
def test_every_field_is_on_the_page(model: type[governance.ToolDefinition]) -> None:
    assert [field for field in model.model_fields if f"`{field}`" not in PAGE] == []
