"""The rows of calls, as they are kept."""

from __future__ import annotations

import builtins

from toolgate.kernel.call import Call
from toolgate.kernel.context import DEFAULT_PROJECT
from toolgate.kernel.misuse import explained
from toolgate.pipeline.driver import Driver
from toolgate.ports.store import CallQuery


class Calls:
    """`gate.calls`. `gate.get` returns what a caller needs of one."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver

    @explained
    async def get(self, call_id: str, *, project: str = DEFAULT_PROJECT) -> Call:
        """Return the whole row of a call; `shown` and `shown_result` are its masked arguments and result."""
        return await self._driver.read(project, call_id)

    async def list(self, query: CallQuery) -> builtins.list[Call]:
        """Return the rows that fit, oldest first."""
        return await self._driver.store.calls(query)
