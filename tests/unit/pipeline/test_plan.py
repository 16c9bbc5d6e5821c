"""Where a policy lets calls run, and what is worked out before any call."""

from __future__ import annotations

import pytest
from tests.unit.kernel.samples import a_tool

from toolgate.kernel.policy import Stance
from toolgate.kernel.terms import SandboxBackend, SandboxTerms
from toolgate.kernel.tool import Placement
from toolgate.pipeline.plan import placement_of

UNBOXED = SandboxTerms(backend=SandboxBackend.NONE)


@pytest.mark.parametrize(
    ("requires", "wanted", "sandbox", "placed"),
    [
        (False, None, None, Placement.INLINE),
        (True, None, None, Placement.SANDBOX),
        (False, Placement.SANDBOX, None, Placement.SANDBOX),
        (True, Placement.INLINE, None, Placement.SANDBOX),
        (True, Placement.INLINE, SandboxTerms(), Placement.SANDBOX),
        (True, Placement.INLINE, UNBOXED, Placement.INLINE),
    ],
)
def test_a_tool_that_needs_a_sandbox_leaves_it_only_where_the_policy_says_so(
    requires: bool, wanted: Placement | None, sandbox: SandboxTerms | None, placed: Placement
) -> None:
    stance = Stance(placement=wanted, sandbox=sandbox)
    assert placement_of(a_tool(requires_sandbox=requires), stance) is placed
