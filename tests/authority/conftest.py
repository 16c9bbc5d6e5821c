from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from tests.unit.interfaces.server.house import House, open_house

import toolgate


@pytest.fixture
async def house() -> AsyncIterator[House]:
    terms = toolgate.ApprovalTerms(escalate_to=frozenset({"lead"}))
    policy = toolgate.Policy(terms=terms, revision="escalates")
    async with open_house(policy=policy, failure_burst=10_000) as house:
        yield house
