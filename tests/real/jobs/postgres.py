"""With `postgres`: an empty database gets its tables, and a call runs on it."""

from __future__ import annotations

import os

import toolgate


@toolgate.tool(effects="read")
def add(left: int, right: int) -> int:
    return left + right


with toolgate.open(os.environ["POSTGRESQL"], tools=[add]) as gate:
    result = gate.sync.call("add", '{"left": 2, "right": 3}')
    assert (result.status, result.data) == ("COMPLETED", 5), result
