from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from tests.unit.interfaces.server.house import House, open_house

from toolgate.client import Client


@pytest.fixture
async def house() -> AsyncIterator[House]:
    async with open_house() as house:
        yield house


@pytest.fixture
async def ann(house: House) -> AsyncIterator[Client]:
    async with Client(house.url, token=house.tokens["ann"], project="demo") as client:
        yield client


@pytest.fixture
async def bob(house: House) -> AsyncIterator[Client]:
    async with Client(house.url, token=house.tokens["bob"], project="demo") as client:
        yield client
