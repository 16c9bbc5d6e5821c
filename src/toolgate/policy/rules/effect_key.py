"""The identity of a tool's effect, such as `refund:{payment_id}`: only one call of a project has it at a time.

Names of arguments stand in braces; they must be given in every call, as text, numbers or truth values. `per` is how
long a call that completed keeps others from having the same effect; without it, for good. The key takes the place of
the tool's own. Of several layers, the first counts.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from toolgate.kernel.effect import effect_key
from toolgate.policy.values import Duration, Share, Site, Spec, Surroundings


def _readable(template: str) -> str:
    effect_key(template)
    return template


Template = Annotated[str, Field(max_length=200), AfterValidator(_readable)]


class EffectKeySpec(Spec):
    template: Template = Field(description="The key, with names of arguments in braces.")
    per: Duration | None = Field(default=None, description="How long a completed call holds it; for good by default.")


SPEC = Template | EffectKeySpec


def build(spec: str | EffectKeySpec, _site: Site, _surroundings: Surroundings) -> Share:
    if isinstance(spec, str):
        return Share(effect=effect_key(spec))
    return Share(effect=effect_key(spec.template, spec.per))
