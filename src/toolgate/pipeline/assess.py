"""How risky and how routine is this call, and who must therefore say yes."""

from __future__ import annotations

from toolgate.kernel import ruling

assess = ruling.assess
"""`assess(call, tool, judgement, stance)` returns the assessment of a call that no rule denies."""
