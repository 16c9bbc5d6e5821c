"""Errors of a tool's handler that mean its effect did not happen, so that the call ends `failed`, not `unknown`.

Python's own are named as they are, others with their module: `[ValueError, httpx.ConnectError]`. They are added to
those that the tool names itself; of several layers, what all of them name counts.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from toolgate.policy.values import Share, Site, Surroundings

SPEC = list[Annotated[str, Field(pattern=r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*$", max_length=200)]]


def build(spec: list[str], _site: Site, _surroundings: Surroundings) -> Share:
    return Share(nothing_happened=frozenset(spec))
