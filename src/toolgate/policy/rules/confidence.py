"""How sure the score must be to run without asking (`auto`), and to ask only the person in the session (`quick`)."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from toolgate.kernel.tool import Thresholds
from toolgate.policy.values import Share, Site, Spec, Surroundings

Percent = Annotated[int, Field(ge=0, le=100)]


class Confidence(Spec):
    auto: Percent = Field(default=85, description="At least this sure: nobody is asked.")
    quick: Percent = Field(default=60, description="At least this sure: a quick question; below, a full review.")

    @model_validator(mode="after")
    def _ordered(self) -> Confidence:
        if self.quick > self.auto:
            raise ValueError("`quick` must not be above `auto`")
        return self


SPEC = Confidence


def build(spec: Confidence, _site: Site, _surroundings: Surroundings) -> Share:
    return Share(thresholds=Thresholds(auto=spec.auto, quick=spec.quick))
