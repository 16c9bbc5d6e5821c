"""Look at the web: `fetch_url`, and `web_search` through a provider.

`fetch_url` plans; `fetching` does the work in the sandbox, where a hostile page can do no harm.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from toolgate.errors import ToolExecutionError
from toolgate.guards.edges import EdgeSource, edges_of
from toolgate.guards.net import UrlRefused, parse_url
from toolgate.kernel.extras import how_to_install
from toolgate.kernel.input import ToolInput
from toolgate.kernel.output import ToolOutput
from toolgate.kernel.policy import Word
from toolgate.kernel.signature import tool
from toolgate.kernel.tool import ToolDefinition
from toolgate.ports.confinement import ConfinedCall

MAX_BYTES = 10_000_000
FETCH_SCHEMA = {
    "type": "object",
    "properties": {
        "url": {"type": "string", "format": "iri", "minLength": 1, "description": "An http or https address."},
        "format": {
            "type": "string",
            "enum": ["text", "raw", "base64"],
            "default": "text",
            "description": "`text` turns HTML into text, `raw` returns text as it came, `base64` returns bytes.",
        },
        "max_bytes": {"type": "integer", "minimum": 1, "maximum": MAX_BYTES, "default": 1_000_000},
        "timeout": {"type": "integer", "minimum": 1, "maximum": 120, "default": 20},
    },
    "required": ["url"],
    "additionalProperties": False,
}
SEARCH_SCHEMA = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "minLength": 1, "maxLength": 1000, "description": "What to look for."},
        "max_results": {"type": "integer", "minimum": 1, "maximum": 50, "default": 5},
    },
    "required": ["query"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """One thing found."""

    title: str
    url: str
    snippet: str


class SearchProvider(Protocol):
    """Where `web_search` looks. `hosts` are the addresses it talks to: the policy must allow them all."""

    @property
    def hosts(self) -> Sequence[str]: ...

    def search(self, query: str, max_results: int) -> list[SearchResult]:
        """Return what was found, best first. Raises OSError where the web cannot be reached."""
        ...


class DuckDuckGo:
    """A provider that needs no key: the `ddgs` package, of the extra `search`."""

    hosts = ("https://duckduckgo.com/",)

    def search(self, query: str, max_results: int) -> list[SearchResult]:
        try:
            from ddgs import DDGS
            from ddgs.exceptions import DDGSException
        except ImportError:
            raise ToolExecutionError(
                f"No search provider is installed: {how_to_install('search')}, or pass a provider of your own."
            ) from None
        try:
            found = DDGS(timeout=15).text(query, max_results=max_results, backend="duckduckgo")
        except DDGSException as error:
            raise OSError(str(error)) from None
        return [
            SearchResult(title=str(one.get("title")), url=str(one.get("href")), snippet=str(one.get("body")))
            for one in found
        ]


def tools(edges: EdgeSource, search: SearchProvider | None = None) -> list[ToolDefinition]:
    """Return the tools that look at the web."""
    return [
        tool(
            name="web_search",
            description="Search the web.",
            input_schema=SEARCH_SCHEMA,
            category="network",
            risk_level="medium",
            effects="read",
        )(functools.partial(web_search, edges, search or DuckDuckGo())),
        ToolDefinition(
            "fetch_url",
            FETCH_SCHEMA,
            FetchUrl(edges),
            description="Fetch the content of a URL; HTML comes as text.",
            category="network",
            risk_level="medium",
            effects="read",
            placement="sandbox",
            requires_sandbox=True,
            timeout_seconds=150.0,
        ),
    ]


async def web_search(edges: EdgeSource, provider: SearchProvider, query: str, max_results: int = 5) -> dict[str, Any]:
    """Return what the provider finds, if the policy lets it be asked."""
    hosts = edges_of(edges).hosts
    for address in provider.hosts:
        word, reason = hosts.judge(parse_url(address))
        if word is Word.DENY:
            raise UrlRefused("denied", f"The search provider may not be asked: {reason}.")
    try:
        found = await asyncio.to_thread(provider.search, query, max_results)
    except OSError as error:
        raise ToolExecutionError(f"The search provider cannot be reached: {error}. Is there a network?") from error
    return {"query": query, "results": [asdict(one) for one in found[:max_results]]}


class FetchUrl:
    """Plans a fetch: the URL is judged here, before anything leaves; addresses and redirects where it happens."""

    def __init__(self, edges: EdgeSource) -> None:
        self._edges = edges

    async def __call__(self, given: ToolInput) -> ToolOutput:
        raise ToolExecutionError("`fetch_url` runs in the sandbox alone; this gate has no sandbox runner.")

    def plan(self, given: ToolInput) -> ConfinedCall:
        asked, hosts = given.payload, edges_of(self._edges).hosts
        target = parse_url(asked["url"])
        word, reason = hosts.judge(target)
        if word is Word.DENY:
            raise UrlRefused("denied", f"The URL is refused: {reason}.")
        timeout_s = float(asked.get("timeout", 20))
        return ConfinedCall(
            module="toolgate.catalog.fetching",
            name="fetch",
            arguments={
                "url": target.url,
                "hosts": hosts,
                "max_bytes": asked.get("max_bytes", 1_000_000),
                "timeout_s": timeout_s,
                "form": asked.get("format", "text"),
            },
            network=True,
            timeout_s=timeout_s + 5,
        )

    def conclude(self, given: ToolInput, finished: Any) -> ToolOutput:
        return ToolOutput.ok(finished)
