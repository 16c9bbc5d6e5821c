"""How long an approved call waits for its caller to run it, where callers run a tool's calls themselves."""

from __future__ import annotations

from toolgate.policy.values import Duration, Share, Site, Surroundings

SPEC = Duration


def build(spec: float, _site: Site, _surroundings: Surroundings) -> Share:
    return Share(approved_for_s=spec)
