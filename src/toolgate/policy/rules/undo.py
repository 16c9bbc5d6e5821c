"""How long a call can be undone, whether a person is asked first, and whether it may be done unchecked."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from toolgate.policy.values import Duration, Share, Site, Spec, Surroundings


class Undo(Spec):
    ttl: Duration | None = Field(default=None, description="How long undo data is kept.")
    ask: bool = Field(default=False, description="Ask a person before an undo.")
    unchecked: Literal["allow", "deny"] = Field(
        default="allow",
        description="`deny` refuses an undo that cannot see whether the state has changed since, because the tool has "
        "no `fingerprint`; one by force is not refused.",
    )


SPEC = Undo


def build(spec: Undo, _site: Site, _surroundings: Surroundings) -> Share:
    return Share(undo_asks=spec.ask, undo_ttl_s=spec.ttl, refuses_unchecked_undo=spec.unchecked == "deny")
