"""Process-wide objects are forgotten after each test of the tools door."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from toolgate.tools import clear_approval_service, clear_tool_registry, clear_undo_store


@pytest.fixture(autouse=True)
def clean_process() -> Iterator[None]:
    yield
    clear_tool_registry()
    clear_undo_store()
    clear_approval_service()
