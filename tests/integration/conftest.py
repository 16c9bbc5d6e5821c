"""What integration tests share: a clean set of process-wide objects, and no test for a document that is not there."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.integration.documents import document

from toolgate.tools import clear_approval_service, clear_tool_registry, clear_undo_store

collect_ignore = [] if document(1) else ["test_document_001.py"]


@pytest.fixture(autouse=True)
def clean_process() -> Iterator[None]:
    """Forget the process-wide registry, undo store and approval service after each test."""
    yield
    clear_tool_registry()
    clear_undo_store()
    clear_approval_service()
