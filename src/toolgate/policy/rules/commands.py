"""Which commands a tool may run, by the grammars under the file's `commands:`.

A line no grammar knows is refused, or a person is asked about it as it stands (`unknown: ask`).

The word of every command in the line, its subcommand and every flag used counts: the strictest wins.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pydantic import Field, model_validator

from toolgate.guards.argv import Parsed
from toolgate.guards.edges import RunLater
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
    unknown: Literal["ask", "deny"] = Field(
        default="deny",
        description="What a command, subcommand or flag without grammar leads to. `ask`: a person sees the exact "
        "command line; a yes runs it in the sandbox, without network unless the call asks for one.",
    )
    overlay: bool | None = Field(
        default=None,
        description="Commands that write run once, before anybody is asked, in a copy-on-write workspace without "
        "network; the card shows what they changed, and a yes applies exactly that. Needs bubblewrap.",
    )
    run_later: RunLater = Field(
        default="report",
        description="What a changed file leads to that runs later, outside the sandbox: a hook, an editor's task, a "
        "build or CI file. `report`: the result names it. `ask`: a person decides. `deny`: nothing is applied. The "
        "latter two imply `overlay: true`.",
    )

    @model_validator(mode="after")
    def _can_hold_back(self) -> Commands:
        if self.run_later != "report" and self.overlay is False:
            raise ValueError(
                f"`run_later: {self.run_later}` holds changes back, which only an overlay can; write `overlay: true` "
                "beside it, or leave `overlay` out"
            )
        return self


SPEC = Commands
_STRICTEST_FIRST = (Word.DENY, Word.ASK, Word.ALLOW)


@dataclass(frozen=True, slots=True)
class CommandsRule:
    """Allow, ask or deny by what the command line means."""

    allowed: frozenset[str] | None
    site: Site
    unknown: Word = Word.DENY
    overlay: bool = False
    run_later: RunLater = "report"
    name: str = "commands"

    def __call__(self, _call: Call, _tool: ToolDefinition, facts: Facts, /) -> Verdict | None:
        target: CommandTarget = facts.found["commands"]
        if not target.parsed:
            return Verdict(Word.DENY, target.refused, self.name, "command_refused")
        verdicts = [self._judge(parsed) for parsed in target.parsed]
        strictest = next(word for word in _STRICTEST_FIRST if any(one.word is word for one in verdicts))
        said = [one for one in verdicts if one.word is strictest]
        return said[0]._replace(reason="; ".join(dict.fromkeys(one.reason for one in said)))

    def _judge(self, parsed: Parsed) -> Verdict:
        for name in (parsed.command, *parsed.runs):
            if self.allowed is not None and name not in self.allowed:
                how = f"Add it to `commands: {{allowed: [...]}}` of this tool in {self.site.file}"
                said = f"command '{name}' is not listed. {how}"
                return Verdict(Word.DENY, said, self.name, "command_not_allowed")
        if parsed.unknown and self.unknown is Word.DENY:
            how = f"Add it under `commands:` in {self.site.file}, or write `commands: {{unknown: ask}}` for this tool"
            return Verdict(Word.DENY, f"{parsed.unknown} {how}", self.name, "command_unknown")
        if parsed.unknown:
            said = "; ".join((f"no grammar knows this command: {parsed.unknown}", *parsed.reasons[1:]))
            return Verdict(Word.ASK, said, self.name, "command_unknown")
        said = "; ".join(parsed.reasons) or " ".join((parsed.command, *parsed.subcommands))
        if parsed.word is Word.DENY:
            said += f". Its `decision` under `commands:` says so; `ask` there has a person asked ({self.site.file})"
        return Verdict(parsed.word, f"command: {said}", self.name, f"command_{parsed.word}")


def build(spec: Commands, site: Site, _surroundings: Surroundings) -> Share:
    allowed = None if spec.allowed == "all" else frozenset(spec.allowed)
    overlay = bool(spec.overlay) or spec.run_later != "report"
    rule = CommandsRule(allowed, site, Word(spec.unknown), overlay, spec.run_later)
    return Share(rules=[rule], command_argument=spec.argument or "", judges_paths=True)
