"""The policy's word on the identity of a tool's effect."""

from __future__ import annotations

from pathlib import Path

import pytest

import toolgate
from toolgate.errors import PolicyError


@toolgate.tool(name="refund")
def refund(payment_id: str, run: toolgate.ToolInput) -> str | None:
    """Refund."""
    return run.effect_key


def written(folder: Path, value: str) -> Path:
    file = folder / "policy.yaml"
    file.write_text(f"version: 1\ntools:\n  refund:\n    decision: allow\n    effect_key: {value}\n")
    return file


@pytest.mark.parametrize(
    ("value", "per_s"), [("'r:{payment_id}'", None), ("{template: 'r:{payment_id}', per: 24h}", 86400.0)]
)
async def test_a_policy_gives_a_tool_its_effect_key(tmp_path: Path, value: str, per_s: float | None) -> None:
    async with toolgate.open(tools=[refund], policy=written(tmp_path, value)) as gate:
        result = await gate.call("refund", {"payment_id": "p1"}, wait=False)
        assert result.data == "r:p1"
        assert (await gate.calls.get(result.call_id)).effect_per_s == per_s
        assert (await gate.call("refund", {"payment_id": "p1"}, wait=False)).joined


@pytest.mark.parametrize("template", ["r:{", "r:{api_key}"])
def test_a_template_that_makes_no_key_is_a_problem_with_its_line(tmp_path: Path, template: str) -> None:
    with pytest.raises(PolicyError, match=r"policy\.yaml:5.*effect_key"):
        toolgate.open(tools=[refund], policy=written(tmp_path, f"'{template}'"))
