"""May this call run? Asks the tool's own demands and the policy's rules; runs before asking and before running."""

from __future__ import annotations

from toolgate.kernel.call import Call
from toolgate.kernel.policy import Facts, Judgement, Policy, Rule, Verdict, Word, judge
from toolgate.kernel.tool import ToolDefinition


def permit(call: Call, tool: ToolDefinition, policy: Policy, rules: tuple[Rule, ...], facts: Facts) -> Judgement:
    """Return what the rules say of this call under these facts.

    An undo answers to the same denials, but is asked about only where the policy says so: that a
    tool needs approval is no reason to wait for one before taking its effect back.
    """
    judgement = judge(rules, call, tool, facts)
    if call.undo_of is None or judgement.word is Word.DENY:
        return judgement
    if policy.undo_asks:
        return Judgement(Word.ASK, (Verdict(Word.ASK, "the policy asks before an undo", "undo", "undo_asks"),))
    return Judgement(Word.ALLOW, (Verdict(Word.ALLOW, "an undo that no rule denies", "undo"),))
