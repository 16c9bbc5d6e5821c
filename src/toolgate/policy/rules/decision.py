"""Allow, ask or deny every call of a tool; the plainest rule there is. Stricter rules still win."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from toolgate.kernel.call import Call
from toolgate.kernel.policy import Facts, Verdict, Word
from toolgate.kernel.tool import ToolDefinition
from toolgate.policy.values import Share, Site, Surroundings, WordName

SPEC = WordName

_SAID = {
    Word.ALLOW: "the policy allows it",
    Word.ASK: "the policy asks before every call",
    Word.DENY: "the policy denies it",
}


@dataclass(frozen=True, slots=True)
class DecisionRule:
    """Say the same of every call."""

    word: Word
    site: Site
    name: str = "decision"
    is_static: ClassVar[bool] = True

    def __call__(self, _call: Call, _tool: ToolDefinition, _facts: Facts, /) -> Verdict | None:
        return Verdict(self.word, _SAID[self.word], self.name, f"policy_{self.word}")


def build(spec: WordName, site: Site, _surroundings: Surroundings) -> Share:
    return Share(rules=[DecisionRule(Word(spec), site)])
