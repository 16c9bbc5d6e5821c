"""Whether a call that failed with a passing error, such as a broken connection, is tried once more.

Where no file says, tools with `effects="read"` and idempotent ones are.
"""

from __future__ import annotations

from toolgate.policy.values import Share, Site, Surroundings

SPEC = bool


def build(spec: bool, _site: Site, _surroundings: Surroundings) -> Share:
    return Share(may_retry=spec)
