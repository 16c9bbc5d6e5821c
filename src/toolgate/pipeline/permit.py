"""May this call run? Asks the tool's own demands and the policy's rules; runs before asking and before running."""

from __future__ import annotations

from toolgate.kernel import ruling

permit = ruling.permit
"""`permit(call, tool, stance, rules, facts)` returns what the rules say together."""

rule_on = ruling.rule_on
"""`rule_on(call, tool, stance, rules, facts)` permits and, where nothing denies, assesses."""
