"""One policy file as checked data: its settings, and an entry for every tool and category it speaks of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import Field, model_validator

from toolgate.errors import PolicyProblem
from toolgate.guards.grammar import Command
from toolgate.guards.net import HostRules
from toolgate.kernel.policy import Default
from toolgate.kernel.tool import NAME_PATTERN
from toolgate.policy.grammar import CommandSpec, check_examples, grammar_of, tool_directory
from toolgate.policy.problems import Reader
from toolgate.policy.rules import aliases, hosts, keys
from toolgate.policy.rules.hosts import Hosts
from toolgate.policy.rules.paths import real
from toolgate.policy.scoring import Scoring
from toolgate.policy.strict_yaml import Path, Tree
from toolgate.policy.values import ModeName, Name, Positive, Share, Site, Spec, Surroundings, WordName

LayerName = Literal["org", "project", "tool"]
RANKS = ("tool", "project", "org")
"""Layers from the lowest to the highest. A file includes files of its own layer or of higher ones."""


class Settings(Spec):
    version: Literal[1] = Field(default=1, description="The version of this language.")
    description: str = Field(default="", description="For readers.")
    layer: LayerName = Field(
        default="project", description="Whose file this is. Every layer's rules count; the strictest wins."
    )
    include: list[Name] = Field(
        default=[], description="Other policy files, relative to this one, of this layer or a higher one."
    )
    default: Literal["deny", "ask", "by_risk"] | None = Field(
        default=None, description="What happens where no rule speaks; `by_risk` where no layer says otherwise."
    )
    single_person: bool | None = Field(
        default=None,
        description="At level full, the only person of a project who can decide may decide their own calls; the record "
        "says so. Not where no layer says it, or one says `false`.",
    )
    protected: list[Name] = Field(
        default=[],
        description="Path patterns no file tool touches, whatever else allows it, in any letter case, also absent. "
        "They add to the built-in names; `!pattern` makes an exception.",
    )
    hosts: Hosts | None = Field(
        default=None, description="What every tool may fetch that takes URLs; keys as in an entry."
    )
    scoring: Scoring | None = Field(
        default=None, description="How confidence is computed; the built-in score where no layer says."
    )
    tools: dict[str, Any] = Field(default={}, description="An entry per tool; `*` in a name stands for any characters.")
    categories: dict[str, Any] = Field(default={}, description="An entry per category.")
    commands: dict[str, CommandSpec | None] = Field(
        default={}, description="The grammar of each command that may be run."
    )
    tool_directories: list[Name] | None = Field(
        default=None,
        description="Where commands' programs are looked for besides the system's directories, in this order; `*` "
        "stands for any one name, of which the highest counts. Where several files say so, what all of them name.",
    )


class Example(Spec):
    arguments: dict[str, Any] = Field(default={}, description="The arguments of the call.")
    expect: WordName = Field(description="What the policy must say.")
    level: Literal["quick", "full"] | None = Field(default=None, description="The level it must ask at.")
    quorum: Positive | None = Field(default=None, description="How many people it must ask for.")
    mode: ModeName = Field(default="NORMAL", description="The mode.")
    behavior: Name | None = Field(default=None, description="The behavior of the run.")
    roles: list[Name] = Field(default=[], description="The roles of the caller.")
    principal: Name = Field(default="agent:example", description="The caller.")
    tool: Name | None = Field(default=None, description="The tool, where the entry is for several.")

    @model_validator(mode="after")
    def _asks(self) -> Example:
        if self.expect != "ask" and (self.level is not None or self.quorum is not None):
            raise ValueError("`level` and `quorum` go with `expect: ask`")
        return self


META = {"category": Name, "description": str, "examples": list[Example]}
"""The keys of an entry that are no rules."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What one file says of a tool or a category."""

    site: Site
    shares: tuple[Share, ...] = ()
    category: str | None = None
    examples: tuple[Example, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One file. `content` is what it said, for the hash; `text` is how it said it, for readers."""

    name: str
    layer: str
    content: Any
    text: str = ""
    includes: tuple[str, ...] = ()
    default: Default | None = None
    single_person: bool | None = None
    protected: tuple[str, ...] = ()
    hosts: HostRules | None = None
    hosts_share: Share | None = None
    scoring: Scoring | None = None
    tools: Mapping[str, Entry] = field(default_factory=dict)
    categories: Mapping[str, Entry] = field(default_factory=dict)
    commands: Mapping[str, Command] = field(default_factory=dict)
    tool_directories: tuple[str, ...] | None = None
    patterns: tuple[tuple[str, Entry], ...] = field(init=False)

    def __post_init__(self) -> None:
        patterns = tuple((name, entry) for name, entry in self.tools.items() if "*" in name)
        object.__setattr__(self, "patterns", patterns)


def document_of(tree: Tree, surroundings: Surroundings) -> tuple[Document | None, list[PolicyProblem]]:
    """Return the document a file is, or what is wrong with it."""
    reader = Reader(tree)
    content = {} if tree.content is None else tree.content
    if not isinstance(content, dict):
        reader.complain((), "a policy file is a mapping; begin with `tools:`")
        return None, reader.problems
    settings = reader.check(Settings, content, ())
    if settings is None:
        settings = Settings.model_construct(**_salvaged(content))  # so that entries are looked at as well
    return _Assembly(reader, surroundings, settings).run(content), reader.problems


def _salvaged(content: dict[str, Any]) -> dict[str, Any]:
    """What is left of a file whose settings are wrong: its entries, to find what else is wrong."""
    return {name: content[name] for name in ("tools", "categories") if isinstance(content.get(name), dict)}


class _Assembly:
    """Puts one document together, noting every problem on the way."""

    def __init__(self, reader: Reader, surroundings: Surroundings, settings: Settings) -> None:
        self.reader = reader
        self.surroundings = surroundings
        self.settings = settings

    def run(self, content: dict[str, Any]) -> Document:
        settings, reader = self.settings, self.reader
        share = None
        if settings.hosts is not None:
            share = hosts.build(settings.hosts, self._site(("hosts",)), self.surroundings)
        return Document(
            name=reader.tree.name,
            layer=settings.layer,
            content=content,
            includes=tuple(settings.include),
            default=None if settings.default is None else Default(settings.default),
            single_person=settings.single_person,
            protected=tuple(self._patterns()),
            hosts=None if settings.hosts is None else hosts.rules_of(settings.hosts),
            hosts_share=share,
            scoring=settings.scoring,
            tools=self._entries("tools"),
            categories=self._entries("categories"),
            commands=self._commands(),
            tool_directories=self._tool_directories(),
        )

    def _site(self, path: Path) -> Site:
        tree = self.reader.tree
        return Site(self.settings.layer, tree.name, ".".join(map(str, path)), tree.place(path, key=True).line)

    def _patterns(self) -> list[str]:
        found = []
        for number, pattern in enumerate(self.settings.protected):
            try:
                found.append(real(pattern, self.surroundings))
            except ValueError as error:
                self.reader.complain(("protected", number), str(error))
        return found

    def _tool_directories(self) -> tuple[str, ...] | None:
        named = self.settings.tool_directories
        if named is None:
            return None
        found = []
        for number, text in enumerate(named):
            try:
                found.append(tool_directory(text, self.surroundings))
            except ValueError as error:
                self.reader.complain(("tool_directories", number), str(error))
        return tuple(found)

    def _commands(self) -> dict[str, Command]:
        found: dict[str, Command] = {}
        specs = {name: spec or CommandSpec() for name, spec in self.settings.commands.items()}
        for name, spec in specs.items():
            try:
                found[name] = grammar_of(name, spec, self.surroundings)
            except ValueError as error:
                self.reader.complain(("commands", name), str(error))
        for name, spec in specs.items():
            try:
                check_examples(name, spec, found)
            except ValueError as error:
                self.reader.complain(("commands", name, "examples"), str(error))
        return found

    def _entries(self, section: str) -> dict[str, Entry]:
        found: dict[str, Entry] = {}
        for name, raw in getattr(self.settings, section).items():
            path = (section, name)
            if section == "tools" and not NAME_PATTERN.match(name.replace("*", "x")):
                self.reader.complain(path, "this is not a tool's name: use letters, digits and `_ . - / :`", key=True)
            elif isinstance(raw, dict):
                found[name] = self._entry(raw, path)
            elif raw is not None:
                self.reader.complain(path, "an entry is a mapping of keys such as `decision` or `allowed_in_modes`")
        return found

    def _entry(self, raw: dict[str, Any], path: Path) -> Entry:
        """Check every key of an entry; those spelled in another way join the key they belong to."""
        values: dict[str, Any] = {}
        spelled: dict[str, dict[str, str]] = {}
        for name, value in raw.items():
            if name in aliases():
                key, field_name = aliases()[name]
                spelled.setdefault(key, {})[field_name] = name
                values.setdefault(key, {})
                if key in raw:
                    self.reader.complain(
                        (*path, name),
                        f"`{name}` is another spelling of `{key}: {field_name}`; write all under `{key}`",
                        key=True,
                    )
                else:
                    values[key][field_name] = value
            elif name in keys():
                values[name] = value
            elif name not in META or (name == "category" and path[0] == "categories"):
                self.reader.unknown((*path, name), {*keys(), *aliases(), *META})
        meta = {name: self.reader.check(META[name], raw[name], (*path, name)) for name in META if name in raw}
        shares = [self._share(name, values[name], (*path, name), spelled.get(name)) for name in sorted(values)]
        return Entry(
            site=self._site(path),
            shares=tuple(share for share in shares if share is not None),
            category=meta.get("category"),
            examples=tuple(meta.get("examples") or ()),
        )

    def _share(self, name: str, value: Any, path: Path, spelled: Mapping[str, str] | None) -> Share | None:
        spec = self.reader.check(keys()[name].spec, value, path, spelled)
        if spec is None:
            return None
        at = path if not spelled else (*path[:-1], next(iter(spelled.values())))
        tree = self.reader.tree
        section = ".".join(map(str, path[:-1]))
        site = Site(self.settings.layer, tree.name, section, tree.place(at, key=True).line)
        try:
            return keys()[name].build(spec, site, self.surroundings)
        except ValueError as error:
            self.reader.complain(at, str(error))
            return None
