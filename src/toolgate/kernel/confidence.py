"""How routine a call is, 0 to 100, and what moved the number. It routes questions; it never overrides a rule.

What speaks for a call comes from the trusted host (roles, a verified workspace); arguments can only lower the score.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any, Final

import orjson

from toolgate.kernel.call import Call
from toolgate.kernel.misuse import explained
from toolgate.kernel.policy import Score
from toolgate.kernel.tool import ToolDefinition

BASE: Final[dict[str, int]] = {
    "sign_contract": 50,
    "delete_project": 40,
    "approve_expense": 60,
    "send_notification": 80,
    "update_task_status": 85,
}
DEFAULT_BASE: Final = 70
LARGE_AMOUNT: Final = 1000
_BULK: Final = re.compile(r"(?i:(?:\b|_)bulk(?:\b|_))|bulk(?=[A-Z])|Bulk")
_DEPTH: Final = 16
_NO: Final = frozenset({"", "0", "false", "no", "none", "off"})


def score(tool_name: str, arguments: Mapping[str, Any], *, is_admin: bool, is_verified: bool) -> Score:
    """Return the confidence in a call with its factors."""
    base = BASE.get(tool_name, DEFAULT_BASE)
    steps = [(base, f"{base}: base of `{tool_name}`" if tool_name in BASE else f"{base}: base of any other tool")]
    if is_admin:
        steps.append((10, "+10: asked for by an admin"))
    if is_verified:
        steps.append((5, "+5: the workspace is verified"))
    if any(_is_large(amount) for amount in _amounts(arguments, 0)):
        steps.append((-15, f"-15: an amount above {LARGE_AMOUNT}, or one that cannot be read"))
    if _BULK.search(tool_name) or is_true(arguments.get("bulk")):
        steps.append((-10, "-10: a bulk operation"))
    total = sum(step for step, _ in steps)
    return Score(min(100, max(0, total)), tuple(said for _, said in steps))


def score_call(call: Call, tool: ToolDefinition) -> Score:
    """Return the confidence in a call, with what its host vouches for."""
    context = call.context
    return score(
        tool.name,
        orjson.loads(call.arguments),
        is_admin="admin" in context.roles,
        is_verified=context.workspace_verified,
    )


@explained
def calculate_confidence(tool_name: str, args: Mapping[str, Any], context: Mapping[str, Any] | None = None) -> int:
    """Return the confidence in a call as a number; `context` is the host's, never the model's."""
    told = context or {}
    return score(
        tool_name,
        args,
        is_admin=told.get("user_role") == "admin",
        is_verified=is_true(told.get("workspace_verified")),
    ).value


def is_true(value: object) -> bool:
    """Whether a flag is set, however it is written: the words for no are no."""
    return str(value).strip().lower() not in _NO if isinstance(value, str) else bool(value)


def _amounts(value: Any, depth: int) -> Iterator[Any]:
    """Every value under a key called `amount`, however deep; one nested too deep to look at counts too."""
    if depth > _DEPTH:
        yield "too deep to look at"
    elif isinstance(value, Mapping):
        for key, item in value.items():
            if str(key).lower() == "amount":
                yield item
            yield from _amounts(item, depth + 1)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _amounts(item, depth + 1)


def _is_large(amount: Any) -> bool:
    """Whether an amount is above the limit. One that is no plain number counts as large: it could be anything."""
    if isinstance(amount, Decimal) and amount.is_nan():  # one that cannot even be compared
        return True
    if isinstance(amount, int | float | Decimal):
        return not -LARGE_AMOUNT <= amount <= LARGE_AMOUNT
    if amount is None:
        return False
    if isinstance(amount, list | tuple):
        return any(map(_is_large, amount))
    if isinstance(amount, Mapping):
        return any(map(_is_large, amount.values()))
    return _is_large_text(str(amount))


def _is_large_text(text: str) -> bool:
    digits = re.sub(r"[\s_'\u2019]", "", text)
    found = re.fullmatch(r"[^\d.,+\-]{0,4}([+\-]?[\d.,]*\d[\d.,]*)[^\d.,]{0,4}", digits)
    if found is None:
        return True
    return any(abs(Decimal(reading)) > LARGE_AMOUNT for reading in _readings(found[1]))


def _readings(number: str) -> list[str]:
    """A point or comma may part thousands or decimals; whoever must be careful looks at both."""
    if "." not in number and "," not in number:
        return [number]
    mark = max(".,", key=number.rfind)
    whole, _, rest = number.rpartition(mark)
    plain = re.sub("[.,]", "", whole)
    readings = [f"{plain or 0}.{rest or 0}" if plain not in ("", "+", "-") else f"{plain}0.{rest or 0}"]
    is_grouped = len(rest) == 3 and whole.strip("+-") not in ("", "0")
    return [*readings, f"{plain}{rest}"] if is_grouped else readings
