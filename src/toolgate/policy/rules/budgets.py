"""How much calls may use up in a time: their number, or the sum of an argument such as an amount of money.

What a call uses is reserved in the commit that claims it. Amounts are exact to a millionth. While a call's outcome is
unknown, what it used does not age; when somebody settles that it did not happen, it is given back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, Decimal
from typing import Annotated, Any

from pydantic import Field, model_validator

from toolgate.kernel.call import Call
from toolgate.kernel.change import Reservation
from toolgate.kernel.policy import Facts, Verdict, Word
from toolgate.kernel.tool import ToolDefinition
from toolgate.policy.values import Duration, Name, Per, Positive, Share, Site, Spec, Surroundings, whose

UNIT = 1_000_000


class Budget(Spec):
    calls: Positive | None = Field(default=None, description="How many calls.")
    field: Name | None = Field(
        default=None, description="The argument that is summed up, such as `amount`; dots go deeper."
    )
    limit: Annotated[float, Field(gt=0, le=1e12)] | None = Field(default=None, description="How much of `field`.")
    window: Duration = Field(description="Within how long.")
    per: Per = Field(default="project", description="Who shares it.")

    @model_validator(mode="after")
    def _one_kind(self) -> Budget:
        if (self.calls is None) == (self.field is None) or (self.field is None) != (self.limit is None):
            raise ValueError("a budget has either `calls`, or `field` and `limit`")
        return self


SPEC = list[Budget]


@dataclass(frozen=True, slots=True)
class BudgetRule:
    """Deny a call whose amount cannot be told: a negative one would give others room."""

    field: str
    site: Site
    name: str = "budgets"

    def __call__(self, _call: Call, _tool: ToolDefinition, facts: Facts, /) -> Verdict | None:
        amount = amount_of(facts.arguments, self.field)
        if amount is not None and 0 <= amount <= 10**15:
            return None
        reason = f"argument '{self.field}' must be a number that is not negative, for it counts against a budget"
        return Verdict(Word.DENY, reason, self.name, "no_amount")


@dataclass(frozen=True, slots=True)
class BudgetMeter:
    """A call uses its amount, in millionths, or one."""

    section: str
    field: str | None
    limit: int
    window_s: float
    per: Per

    def __call__(self, call: Call, arguments: Mapping[str, Any], /) -> Reservation:
        amount = 1 if self.field is None else amount_of(arguments, self.field) or 0
        key = f"budget:{self.section}:{self.field or ''}:{self.window_s:g}:{whose(call, self.per)}"
        what = "calls" if self.field is None else f"`{self.field}`"
        most = self.limit if self.field is None else f"{self.limit / UNIT:g}"
        excess = f"Budget exceeded: {most} of {what} in {self.window_s:g} s ({self.section}, per {self.per})."
        return Reservation(
            key=key, limit=self.limit, window_s=self.window_s, amount=amount, excess=excess, is_held=True
        )

    def shares_with(self, other: object) -> bool:
        """Whether two layers set a limit for the same uses; the lower one then counts."""
        return isinstance(other, BudgetMeter) and replace(other, limit=self.limit) == self


def amount_of(arguments: Mapping[str, Any], field: str) -> int | None:
    """Return an argument in millionths, rounded up; None where it is no number."""
    value: Any = arguments
    for name in field.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int((Decimal(str(value)) * UNIT).to_integral_value(rounding=ROUND_CEILING))


def build(spec: list[Budget], site: Site, _surroundings: Surroundings) -> Share:
    share = Share(reads_arguments=True)
    for budget in spec:
        limit = budget.calls if budget.calls is not None else int(Decimal(str(budget.limit)) * UNIT)
        share.meters.append(BudgetMeter(site.section, budget.field, limit, budget.window, budget.per))
        if budget.field is not None:
            share.rules.append(BudgetRule(budget.field, site))
    return share
