"""How often calls may run. A use is reserved in the commit that claims the call, so races cannot exceed a rate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from pydantic import Field

from toolgate.kernel.call import Call
from toolgate.kernel.change import Reservation
from toolgate.policy.values import Duration, Per, Positive, Share, Site, Spec, Surroundings, whose


class Rate(Spec):
    limit: Positive = Field(description="How many calls.")
    window: Duration = Field(description="Within how long; any stretch of this length counts.")
    per: Per = Field(
        default="project", description="Who shares it: the project, or each principal, user, session or run."
    )


SPEC = list[Rate]


@dataclass(frozen=True, slots=True)
class RateMeter:
    """Every call uses one. Tools that share an entry (a category, a pattern) share its rate."""

    section: str
    limit: int
    window_s: float
    per: Per

    def __call__(self, call: Call, _arguments: Mapping[str, Any], /) -> Reservation:
        key = f"rate:{self.section}:{self.window_s:g}:{whose(call, self.per)}"
        excess = f"Rate limit exceeded: {self.limit} in {self.window_s:g} s ({self.section}, per {self.per})."
        return Reservation(key=key, limit=self.limit, window_s=self.window_s, excess=excess)

    def shares_with(self, other: object) -> bool:
        """Whether two layers set a limit for the same uses; the lower one then counts."""
        return isinstance(other, RateMeter) and replace(other, limit=self.limit) == self


def build(spec: list[Rate], site: Site, _surroundings: Surroundings) -> Share:
    return Share(meters=[RateMeter(site.section, rate.limit, rate.window, rate.per) for rate in spec])
