"""Where calls of a tool run: in this process, in a sandbox, on a client or on a worker."""

from __future__ import annotations

from typing import Literal

from toolgate.kernel.tool import Placement
from toolgate.policy.values import Share, Site, Surroundings

SPEC = Literal["inline", "sandbox", "client", "worker"]


def build(spec: str, _site: Site, _surroundings: Surroundings) -> Share:
    return Share(placement=Placement(spec))
