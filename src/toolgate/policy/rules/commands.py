"""Which commands a tool may run, by the grammars under the file's `commands:`. A line no grammar knows is refused.

The word of the command, its subcommand and every flag used counts: the strictest wins.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from toolgate.kernel.call import Call
from toolgate.kernel.policy import Facts, Verdict, Word
from toolgate.kernel.tool import ToolDefinition
from toolgate.policy.targets import CommandTarget
from toolgate.policy.values import Name, Share, Site, Spec, Surroundings


class Commands(Spec):
    allowed: list[Name] | Literal["all"] = Field(
        default="all", description="Names of commands that have a grammar; `all` of them by default."
    )
    argument: Name | None = Field(
        default=None,
        description="The argument that holds the command line as a list; `argv`, `command` or `cmd` by default.",
    )


SPEC = Commands


@dataclass(frozen=True, slots=True)
class CommandsRule:
    """Allow, ask or deny by what the command line means."""

    allowed: frozenset[str] | None
    site: Site
    name: str = "commands"

    def __call__(self, _call: Call, _tool: ToolDefinition, facts: Facts, /) -> Verdict | None:
        target: CommandTarget = facts.found["commands"]
        parsed = target.parsed
        if parsed is None:
            return Verdict(Word.DENY, target.refused, self.name, "command_refused")
        if self.allowed is not None and parsed.command not in self.allowed:
            return Verdict(Word.DENY, f"command '{parsed.command}' is not listed", self.name, "command_not_allowed")
        said = "; ".join(parsed.reasons) or " ".join((parsed.command, *parsed.subcommands))
        return Verdict(parsed.word, f"command: {said}", self.name, f"command_{parsed.word}")


def build(spec: Commands, site: Site, _surroundings: Surroundings) -> Share:
    allowed = None if spec.allowed == "all" else frozenset(spec.allowed)
    return Share(rules=[CommandsRule(allowed, site)], command_argument=spec.argument or "", judges_paths=True)
