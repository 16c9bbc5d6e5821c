"""From documents to one immutable policy: what holds for a tool is put together once, when it is first asked about."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, reduce
from typing import Any

from toolgate.guards.edges import Edges, RunLater, unfit
from toolgate.guards.files import Access, PathFact, Workspace
from toolgate.guards.grammar import Command
from toolgate.guards.net import HostRules, Target
from toolgate.guards.programs import CommandTable
from toolgate.kernel.pin import PinBook
from toolgate.kernel.policy import Default, Inspector, OnError, Policy, Rule, Stance, Word
from toolgate.kernel.terms import NO_TERMS, SandboxTerms, least
from toolgate.kernel.text.canonical import canonical
from toolgate.kernel.tool import Placement, Thresholds, ToolDefinition
from toolgate.policy.document import RANKS, Document, Entry
from toolgate.policy.edge import EdgeRule, Protection, protection
from toolgate.policy.programs import ProgramInspector, ProgramRule, Programs
from toolgate.policy.rules.commands import CommandsRule
from toolgate.policy.rules.paths import PathsRule
from toolgate.policy.rules.sizes import SizesRule
from toolgate.policy.scoring import Scorer
from toolgate.policy.targets import (
    CommandInspector,
    PathInspector,
    UrlInspector,
    access_of,
    declares_paths,
    path_names,
    unfollowed_names,
    url_names,
)
from toolgate.policy.values import Limit, Share, Surroundings

LANGUAGE = 1
NOWHERE = Surroundings("/", "/")
_DEFAULTS = (Default.BY_RISK, Default.ASK, Default.DENY)
_ON_ERROR = (OnError.FAILED, OnError.UNKNOWN)
_RUN_LATER: tuple[RunLater, ...] = ("report", "ask", "deny")
_PLACEMENTS = (Placement.INLINE, Placement.WORKER, Placement.CLIENT, Placement.SANDBOX)


@dataclass(frozen=True, kw_only=True)
class FilePolicy(Policy):
    """A policy read from files. `documents` are its layers, the highest first; `revision` is their hash.

    `pins` is what the gate that follows it knows of programs; nothing, where none does.
    """

    documents: tuple[Document, ...] = ()
    projects: Mapping[str, FilePolicy] = field(default_factory=dict, compare=False)
    surroundings: Surroundings = NOWHERE
    commands: Mapping[str, Command] = field(default_factory=dict)
    pins: PinBook = field(default_factory=PinBook, compare=False, repr=False)
    _known: dict[str, Stance] = field(default_factory=dict, compare=False, repr=False)

    @property
    def table(self) -> CommandTable:
        """The commands, each with the program that its name stands for."""
        named = [document.tool_directories for document in self.documents if document.tool_directories is not None]
        first, *others = named or [()]
        directories = tuple(one for one in first if all(one in other for other in others))
        return CommandTable(self.commands, directories, tuple(root.path for root in self.workspace.roots))

    @cached_property
    def workspace(self) -> Workspace:
        """The roots relative paths and allowed patterns begin at, opened when first needed."""
        bases = {_base(pattern) for pattern in self._allowed_patterns()}
        own = os.path.realpath(self.surroundings.workspace)
        extra = sorted(base for base in bases if base is not None and base not in ("/", own) and os.path.isdir(base))
        return Workspace(self.surroundings.workspace, extra_roots=extra)

    def close(self) -> None:
        """Let go of the roots it opened; for a policy that was only tried, or never came into force."""
        if "workspace" in self.__dict__:
            self.workspace.close()

    def in_project(self, project: str) -> FilePolicy:
        return self.projects.get(project, self)

    def _allowed_patterns(self) -> Iterable[str]:
        for document in self.documents:
            for entry in (*document.tools.values(), *document.categories.values()):
                for rule in _rules(entry.shares):
                    if isinstance(rule, PathsRule) and rule.allowed is not None:
                        yield from rule.allowed.patterns

    def stance(self, tool: ToolDefinition) -> Stance:
        """Return what all layers together say about this tool."""
        entries = list(self.entries(tool))
        shares = [share for entry in entries for share in entry.shares]
        found = _Stance(self, tool, shares, [entry.category for entry in entries if entry.category])
        stance = self._known[tool.name] = found.build()
        return stance

    def entries(self, tool: ToolDefinition) -> Iterable[Entry]:
        """Yield the entries that speak of a tool: by its name, by a pattern, and by its categories."""
        named = [entry for document in self.documents for entry in _named(document, tool.name)]
        yield from named
        categories: set[str | None] = {entry.category for entry in named if entry.category} or {tool.category}
        for document in self.documents:
            for name, entry in document.categories.items():
                if name in categories:
                    yield entry

    @property
    def hosts(self) -> HostRules:
        """What all layers together say of hosts."""
        rules = tuple(document.hosts for document in self.documents if document.hosts is not None)
        return rules[0] if len(rules) == 1 else AllHosts(parts=rules) if rules else HostRules()

    def edges(self) -> Edges:
        """Return what the policy says of files, commands and hosts, in the form tools and runners apply it."""
        return Edges(
            workspace=self.workspace,
            commands=self.table,
            hosts=self.hosts,
            judge_path=self._refuse_path,
            max_file_bytes=self._max_file_bytes,
            hidden=self._protection.always,
            locked=self._protection.writing or self._protection.always,
            asks_unknown=self._asks_unknown,
            judges_commands=lambda tool: bool(self._command_rules(tool)),
            overlay=self._overlay,
            policy_files=tuple(self.texts()),
        )

    def texts(self) -> Mapping[str, str]:
        """Return what the files it was read from say, those of projects and what they include among them."""
        policies = (self, *self.projects.values())
        return {os.path.abspath(one.name): one.text for policy in policies for one in policy.documents}

    def _refuse_path(self, tool: str, fact: PathFact, access: Access) -> str | None:
        """Why a tool may not touch a file, judged again on the open file itself."""
        problem = unfit(fact)
        if problem is not None:
            return problem
        stance = self._known.get(tool)
        for rule in () if stance is None else stance.rules:
            if isinstance(rule, PathsRule):
                if rule.forbidden is not None and rule.forbidden.match_fact(fact) is not None:
                    return f"Path {fact.given} is forbidden"
                if rule.allowed is not None and rule.allowed.match(fact.path) is None:
                    return f"Path {fact.given} not in allowed paths"
        return self._protection.refusal(fact, access)

    def _asks_unknown(self, tool: str) -> bool:
        """Whether every rule about the tool's commands has a person asked about those without grammar."""
        rules = self._command_rules(tool)
        return bool(rules) and all(rule.unknown is Word.ASK for rule in rules)

    def _overlay(self, tool: str) -> RunLater | None:
        """What a changed file that runs later leads to, where any rule wants an overlay: the strictest word."""
        rules = self._command_rules(tool)
        if not any(rule.overlay for rule in rules):
            return None
        return max((rule.run_later for rule in rules), key=_RUN_LATER.index)

    def _command_rules(self, tool: str) -> list[CommandsRule]:
        stance = self._known.get(tool)
        return [rule for rule in (stance.rules if stance else ()) if isinstance(rule, CommandsRule)]

    @cached_property
    def _protection(self) -> Protection:
        base = os.path.realpath(self.surroundings.workspace)
        return protection(self._protected(), base, built_in=True)

    @cached_property
    def _protection_named(self) -> Protection:
        base = os.path.realpath(self.surroundings.workspace)
        return protection(self._protected(), base, built_in=False)

    def _protected(self) -> tuple[str, ...]:
        return tuple(pattern for document in self.documents for pattern in document.protected)

    def _max_file_bytes(self, tool: str) -> int | None:
        stance = self._known.get(tool)
        sizes = [rule.file_bytes for rule in (stance.rules if stance else ()) if isinstance(rule, SizesRule)]
        return min((size for size in sizes if size is not None), default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class AllHosts(HostRules):
    """The host rules of several layers: the strictest word counts."""

    parts: tuple[HostRules, ...] = ()

    def judge(self, target: Target) -> tuple[Word, str]:
        said = [part.judge(target) for part in self.parts]
        return next(one for word in (Word.DENY, Word.ASK, Word.ALLOW) for one in said if one[0] is word)

    def told(self) -> str:
        return "; of these only ".join(part.told() for part in self.parts)

    def refuse_address(self, address: Any) -> str | None:
        return next((why for part in self.parts if (why := part.refuse_address(address)) is not None), None)


class _Stance:
    """Puts the shares of all layers together: every rule counts, and of settings the strictest."""

    def __init__(self, policy: FilePolicy, tool: ToolDefinition, shares: list[Share], categories: list[str]) -> None:
        self.policy = policy
        self.tool = tool
        self.shares = shares
        self.categories = categories

    def build(self) -> Stance:
        policy, shares, tool = self.policy, self.shares, self.tool
        urls = url_names(tool)
        general = [document.hosts_share for document in policy.documents if document.hosts_share is not None]
        if urls or any(share.url_arguments for share in shares):
            shares = self.shares = shares + general
        inspectors, edge = self._inspectors()
        scores = tuple(document.scoring for document in policy.documents if document.scoring is not None)
        sandboxes = [share.sandbox for share in shares if share.sandbox is not None]
        placements = [share.placement for share in shares if share.placement is not None]
        return Stance(
            rules=(*_rules(shares), *edge),
            inspectors=inspectors,
            meters=_lowest(meter for share in shares for meter in share.meters),
            default=policy.default,
            thresholds=_thresholds(shares),
            score=Scorer(scores) if scores else None,
            undo_asks=any(share.undo_asks for share in shares),
            refuses_unchecked_undo=any(share.refuses_unchecked_undo for share in shares),
            approved_for_s=reduce(least, (share.approved_for_s for share in shares), None),
            undo_ttl_s=reduce(least, (share.undo_ttl_s for share in shares), None),
            terms=reduce(lambda one, other: one.stricter(other), _terms(shares), NO_TERMS),
            modes_settled=any(share.settles_modes for share in shares),
            asks=any(self._asks(rule) for rule in _rules(shares)),
            reads_arguments=bool(inspectors) or any(share.reads_arguments for share in shares),
            placement=max(placements, key=_PLACEMENTS.index, default=None),
            sandbox=reduce(SandboxTerms.stricter, sandboxes) if sandboxes else None,
            may_retry=_all_agree(share.may_retry for share in shares),
            on_error=max((share.on_error for share in shares if share.on_error), key=_ON_ERROR.index, default=None),
            nothing_happened=_in_all(share.nothing_happened for share in shares),
            effect=next((share.effect for share in shares if share.effect is not None), None),
        )

    def _asks(self, rule: Rule) -> bool:
        """Whether a rule that looks at arguments asks about some of them."""
        if not isinstance(rule, CommandsRule):
            return bool(getattr(rule, "asks", False))
        if rule.unknown is Word.ASK:
            return True
        known = self.policy.commands
        return any(known[name].asks for name in known if rule.allowed is None or name in rule.allowed)

    def _inspectors(self) -> tuple[tuple[Inspector, ...], tuple[Rule, ...]]:
        policy, tool, shares = self.policy, self.tool, self.shares
        found: list[Inspector] = []
        edge: tuple[Rule, ...] = ()
        paths = path_names(tool)
        is_file_tool = any(share.judges_paths for share in shares) or declares_paths(tool)
        if is_file_tool or (paths and policy._protected()):
            named = frozenset(name for share in shares for name in share.path_arguments)
            unfollowed = unfollowed_names(tool)
            found.append(PathInspector(lambda: policy.workspace, named, paths, self._access(), unfollowed))
            listed = any(isinstance(rule, PathsRule) and rule.allowed is not None for rule in _rules(shares))
            guard = policy._protection if is_file_tool else policy._protection_named
            edge = (EdgeRule(guard, is_file_tool, is_file_tool and not listed),)
        arguments = [share.command_argument for share in shares if share.command_argument is not None]
        programs = Programs(lambda: policy.workspace, lambda: policy.table, policy.pins)
        starts = getattr(tool.handler, "started_programs", None)
        if arguments:
            chosen = next((argument for argument in arguments if argument), None)
            found.append(CommandInspector(lambda: policy.workspace, lambda: policy.table, chosen, programs))
            edge = (*edge, ProgramRule("commands"))
        elif starts is not None:
            found.append(ProgramInspector(programs, starts))
            edge = (*edge, ProgramRule("programs"))
        if any(share.url_arguments for share in shares):
            named = frozenset(name for share in shares for name in share.url_arguments if name)
            found.append(UrlInspector(named | frozenset(url_names(tool))))
        return tuple(found), edge

    def _access(self) -> Access:
        return "read" if "read_only" in self.categories else access_of(self.tool)


def _lowest(meters: Iterable[Limit]) -> tuple[Limit, ...]:
    """Return the meters without those that another one, on the same uses, makes superfluous."""
    kept: list[Limit] = []
    for meter in sorted(meters, key=lambda one: one.limit):
        if not any(meter.shares_with(other) for other in kept):
            kept.append(meter)
    return tuple(kept)


def _all_agree(said: Iterable[bool | None]) -> bool | None:
    """Return whether all who say anything say yes; None where nobody does."""
    words = [word for word in said if word is not None]
    return all(words) if words else None


def _in_all(said: Iterable[frozenset[str] | None]) -> frozenset[str]:
    """Return what all who say anything name."""
    named = [names for names in said if names is not None]
    return frozenset.intersection(*named) if named else frozenset()


def _terms(shares: list[Share]) -> list[Any]:
    return [share.terms for share in shares if share.terms is not None]


def _thresholds(shares: list[Share]) -> Thresholds | None:
    found = [share.thresholds for share in shares if share.thresholds is not None]
    if not found:
        return None
    return Thresholds(auto=max(one.auto for one in found), quick=max(one.quick for one in found))


def _rules(shares: Iterable[Share]) -> list[Rule]:
    return [rule for share in shares for rule in share.rules]


def _named(document: Document, tool: str) -> Iterable[Entry]:
    if tool in document.tools:
        yield document.tools[tool]
    for name, entry in document.patterns:
        if re.fullmatch(re.escape(name).replace(r"\*", ".*"), tool):
            yield entry


def _base(pattern: str) -> str | None:
    """The directory an absolute pattern begins in, without its wildcards."""
    if not pattern.startswith("/"):
        return None
    literal = re.split(r"[*?\[{\\]", pattern, maxsplit=1)[0]
    whole = literal == pattern
    return pattern if whole and os.path.isdir(pattern) else os.path.dirname(literal) or "/"


def compile_policy(
    documents: Iterable[Document], surroundings: Surroundings, pins: PinBook | None = None
) -> FilePolicy:
    """Return the policy that these layers make together. Their order does not matter."""
    ordered = tuple(sorted(documents, key=lambda one: (-RANKS.index(one.layer), one.name)))
    defaults = [document.default for document in ordered if document.default is not None]
    content = {
        "language": LANGUAGE,
        "layers": sorted(canonical({"layer": one.layer, "says": one.content}).decode() for one in ordered),
        "home": surroundings.home,
        "workspace": surroundings.workspace,
    }
    return FilePolicy(
        documents=ordered,
        surroundings=surroundings,
        default=max(defaults, key=_DEFAULTS.index, default=Default.BY_RISK),
        single_person=bool(_all_agree(document.single_person for document in ordered)),
        revision=hashlib.sha256(canonical(content)).hexdigest()[:32],
        commands={name: command for document in ordered for name, command in document.commands.items()},
        pins=pins or PinBook(),
    )
