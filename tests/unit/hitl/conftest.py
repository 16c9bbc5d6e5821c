"""Every test has the door's gate to itself."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from toolgate.hitl import clear_hitl_gate


@pytest.fixture(autouse=True)
async def own_gate() -> AsyncIterator[None]:
    clear_hitl_gate()
    yield
    gate = clear_hitl_gate()
    if gate is not None:
        await gate.aclose()
