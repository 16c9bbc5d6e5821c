from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.authority.spy import watching
from tests.unit.interfaces.server.house import House, open_house

import toolgate
from toolgate.kernel.tool import ToolDefinition


@pytest.fixture
async def house() -> AsyncIterator[House]:
    """A server with an agent; whatever it does with its gate unasked fails the test."""
    terms = toolgate.ApprovalTerms(escalate_to=frozenset({"lead"}))
    policy = toolgate.Policy(terms=terms, revision="escalates")
    settings: dict[str, Any] = {"failure_burst": 100_000, "request_burst": 100_000, "requests_per_second": 100_000}
    async with open_house(policy=policy, agent="settings", **settings) as house:
        house.gate.register(ToolDefinition("here", {}, placement="caller", effects="read"))
        with watching(house) as escapes:
            yield house
            assert escapes == [], "something was done that the authority was not asked about"
