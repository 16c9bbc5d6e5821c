"""How long a call can be undone, and whether a person is asked first."""

from __future__ import annotations

from pydantic import Field

from toolgate.policy.values import Duration, Share, Site, Spec, Surroundings


class Undo(Spec):
    ttl: Duration | None = Field(default=None, description="How long undo data is kept.")
    ask: bool = Field(default=False, description="Ask a person before an undo.")


SPEC = Undo


def build(spec: Undo, _site: Site, _surroundings: Surroundings) -> Share:
    return Share(undo_asks=spec.ask, undo_ttl_s=spec.ttl)
