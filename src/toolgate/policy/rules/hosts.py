"""Which hosts a tool may fetch from. Addresses are vetted again when they are resolved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field, model_validator

from toolgate.errors import DefinitionError
from toolgate.guards.net import HostRules
from toolgate.kernel.call import Call
from toolgate.kernel.policy import Facts, Verdict, Word
from toolgate.kernel.tool import ToolDefinition
from toolgate.policy.targets import UrlTarget, url_names
from toolgate.policy.values import Name, Share, Site, Spec, Surroundings

Port = Annotated[int, Field(gt=0, lt=65536)]


class Hosts(Spec):
    schemes: list[Name] = Field(default=["https", "http"], description="`https`, `http`.")
    ports: list[Port] = Field(default=[80, 443], description="Ports.")
    allow: list[Name] = Field(default=["*"], description="Names: `example.com`, `*.example.com` or `*`.")
    ask: list[Name] = Field(default=[], description="Names for which a person is asked.")
    deny: list[Name] = Field(default=[], description="Names that are refused.")
    allow_networks: list[Name] = Field(
        default=[], description="Networks such as `10.0.0.0/8` that are not public, yet allowed."
    )
    deny_networks: list[Name] = Field(default=[], description="Networks that are refused.")
    arguments: list[Name] = Field(default=[], description="Arguments that hold URLs, beside those named so.")

    @model_validator(mode="after")
    def _usable(self) -> Hosts:
        try:
            rules_of(self)
        except DefinitionError as error:
            raise ValueError(str(error)) from None
        return self


SPEC = Hosts


@dataclass(frozen=True, slots=True)
class HostsRule:
    """Allow, ask or deny by the URLs in the arguments."""

    rules: HostRules
    arguments: frozenset[str]
    must: bool
    site: Site
    name: str = "hosts"

    @property
    def asks(self) -> bool:
        """Whether a person is asked about some hosts."""
        return bool(self.rules.ask)

    def __call__(self, _call: Call, tool: ToolDefinition, facts: Facts, /) -> Verdict | None:
        urls: tuple[UrlTarget, ...] = facts.found["hosts"]
        if not urls and self.must and not self.arguments and not url_names(tool):
            reason = "no argument is known to hold a URL; name it under `hosts: arguments:`"
            return Verdict(Word.DENY, reason, self.name, "no_url")
        words: dict[Word, str] = {}
        for url in urls:
            if url.target is None:
                return Verdict(Word.DENY, url.refused, self.name, "url_refused")
            word, reason = self.rules.judge(url.target)
            words.setdefault(word, reason)
        for word in (Word.DENY, Word.ASK, Word.ALLOW):
            if word in words:
                return Verdict(word, words[word], self.name, f"host_{word}")
        return None


def rules_of(spec: Hosts) -> HostRules:
    return HostRules(
        schemes=tuple(spec.schemes),
        ports=tuple(spec.ports),
        allow=tuple(spec.allow),
        ask=tuple(spec.ask),
        deny=tuple(spec.deny),
        allow_networks=tuple(spec.allow_networks),
        deny_networks=tuple(spec.deny_networks),
    )


def build(spec: Hosts, site: Site, _surroundings: Surroundings) -> Share:
    rule = HostsRule(rules_of(spec), frozenset(spec.arguments), "." in site.section, site)
    return Share(rules=[rule], url_arguments=("", *spec.arguments))
