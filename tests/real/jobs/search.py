"""With `search`: the provider's package is there, and `web_search` gets as far as the network."""

from __future__ import annotations

from ddgs import DDGS

import toolgate
from toolgate.catalog.web import DuckDuckGo

assert callable(DDGS(timeout=1).text)
with toolgate.open("memory://", built_in_tools=True) as gate:
    assert "web_search" in {tool.name for tool in gate.registry}
assert DuckDuckGo().hosts
