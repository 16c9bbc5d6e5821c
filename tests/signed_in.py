"""Signing in as a browser does: the cookie stays with the client, and the keys are read from the page it gets."""

from __future__ import annotations

import re
from typing import NamedTuple

import httpx2


class Keys(NamedTuple):
    key: str
    pages: str
    """Where the pages without a script are, for this session alone."""

    @property
    def headers(self) -> dict[str, str]:
        return {"X-Toolgate-Key": self.key}


async def sign_in(client: httpx2.AsyncClient, token: str, **form: str) -> Keys:
    """Sign a client in that has no session yet."""
    response = await client.post("/login", data={"token": token, **form})
    assert response.status_code == 200, response.text
    return keys_in(response.text)


def keys_in(page: str) -> Keys:
    """The keys on the page a session begins on."""
    key = re.search(r'name="toolgate-key" content="([^"]+)"', page)
    path = re.search(r'href="([^"]*/pages/[^/]+)/', page)
    assert key is not None, page
    assert path is not None, page
    return Keys(key[1], path[1])
