"""What arguments point at: which of them are paths, command lines or URLs, and what the guards say these are.

Inspectors run before the rules, change nothing and record what they saw; rules only compare.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, NamedTuple

from toolgate.guards import Refused
from toolgate.guards.argv import Parsed
from toolgate.guards.files import Access, PathFact, Workspace
from toolgate.guards.grammar import Command
from toolgate.guards.line import read_command, with_network
from toolgate.guards.net import Target, parse_url
from toolgate.guards.unknown import read_argv
from toolgate.kernel.call import Call
from toolgate.kernel.pin import Changed
from toolgate.kernel.tool import Effects, ToolDefinition
from toolgate.policy.programs import Programs, shown_change

PATH_NAMES = frozenset(
    "path paths file files filename filenames filepath directory directories dir dirs folder folders src dst source "
    "destination target cwd workdir root".split()
)
PATH_ENDINGS = ("_path", "_paths", "_file", "_files", "_filename", "_dir", "_dirs", "_directory", "_folder")
URL_NAMES = frozenset("url urls uri uris href link endpoint".split())
URL_ENDINGS = ("_url", "_urls", "_uri", "_uris")
Mask = Callable[[str], str]
COMMAND_NAMES = ("argv", "command", "cmd")
LINE_FORMAT = "shell-line"
"""The format of an argument that may hold a whole shell line, where no arguments stand beside it."""
LINK_FORMAT = "link-path"
"""The format of a path that stands for a link itself, where its last name is one."""
_PATH_FORMATS = frozenset(("path", "file-path", "directory-path", LINK_FORMAT))
_URL_FORMATS = frozenset(("uri", "url", "iri"))


class PathTarget(NamedTuple):
    """A path among the arguments: where it stands, what is done to it, and what it is, or why it can be none."""

    argument: str
    given: str
    access: Access
    fact: PathFact | None
    refused: str = ""


class CommandTarget(NamedTuple):
    """A command line: what the grammars made of each command in it, the paths they touch, or why it is refused.

    `place` is where it would run, in words, where that is another machine: nothing is prepared of it here.
    `changed` are the programs it starts that are not what they were.
    """

    given: str
    parsed: tuple[Parsed, ...]
    paths: tuple[PathTarget, ...] = ()
    refused: str = ""
    place: str = ""
    changed: tuple[Changed, ...] = ()


class UrlTarget(NamedTuple):
    """A URL: its parts, or why it is refused."""

    argument: str
    given: str
    target: Target | None
    refused: str = ""


@lru_cache(maxsize=1024)
def looks_like_path(name: str) -> bool:
    low = name.lower()
    return low in PATH_NAMES or low.endswith(PATH_ENDINGS)


@lru_cache(maxsize=1024)
def looks_like_url(name: str) -> bool:
    low = name.lower()
    return low in URL_NAMES or low.endswith(URL_ENDINGS)


def declared(tool: ToolDefinition, formats: frozenset[str], looks: Callable[[str], bool]) -> dict[str, Any]:
    """Return the properties of a tool's schema that hold such values, each with its default (None: none)."""
    properties = tool.input_schema.get("properties") or {}
    return {
        name: schema.get("default") if isinstance(schema, Mapping) else None
        for name, schema in properties.items()
        if looks(name) or _formats(schema) & formats
    }


def _formats(schema: object) -> set[str]:
    if not isinstance(schema, Mapping):
        return set()
    inner = [schema.get("items"), *(schema.get("anyOf") or ())]
    return {str(schema.get("format"))}.union(*(_formats(one) for one in inner))


def declares_paths(tool: ToolDefinition) -> bool:
    """Whether a tool's schema says by its formats, not only by names, that it takes paths."""
    properties = tool.input_schema.get("properties") or {}
    return any(_formats(schema) & _PATH_FORMATS for schema in properties.values())


def path_names(tool: ToolDefinition) -> dict[str, Any]:
    return declared(tool, _PATH_FORMATS, looks_like_path)


def unfollowed_names(tool: ToolDefinition) -> frozenset[str]:
    """Return the arguments that stand for a link itself, where they name one."""
    properties = tool.input_schema.get("properties") or {}
    return frozenset(name for name, schema in properties.items() if LINK_FORMAT in _formats(schema))


def takes_lines(tool: ToolDefinition, argument: str) -> bool:
    """Whether a tool's schema says that an argument may hold a whole shell line, which the tool splits as we do."""
    properties = tool.input_schema.get("properties") or {}
    return LINE_FORMAT in _formats(properties.get(argument))


def url_names(tool: ToolDefinition) -> dict[str, Any]:
    return declared(tool, _URL_FORMATS, looks_like_url)


def strings(arguments: Mapping[str, Any], wanted: Callable[[str], bool]) -> Iterator[tuple[str, Any]]:
    """Yield every value under a wanted name, at any depth, with where it stands; lists give each of theirs."""
    for name, value in arguments.items():
        if wanted(name):
            yield from _leaves(name, value, wanted)
        elif isinstance(value, dict | list):
            yield from _inside(name, value, wanted)


def _inside(where: str, value: dict[str, Any] | list[Any], wanted: Callable[[str], bool]) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for at, found in strings(value, wanted):
            yield f"{where}.{at}", found
        return
    for number, item in enumerate(value):
        if isinstance(item, dict | list):
            yield from _inside(f"{where}.{number}", item, wanted)


def _leaves(where: str, value: Any, wanted: Callable[[str], bool]) -> Iterator[tuple[str, Any]]:
    if isinstance(value, list):
        for number, item in enumerate(value):
            yield from _leaves(f"{where}.{number}", item, wanted)
    elif isinstance(value, dict):
        for at, found in strings(value, wanted):
            yield f"{where}.{at}", found
    elif value is not None:
        yield where, value


def access_of(tool: ToolDefinition) -> Access:
    """What a tool does to the paths it is given: one that only reads reads them."""
    return "read" if tool.effects is Effects.READ or tool.category == "read_only" else "write"


@dataclass(frozen=True)
class PathInspector:
    """Looks at every path among the arguments. `named` are arguments the policy says hold paths.

    unfollowed: arguments of which a link, as their last name, is looked at itself.
    """

    workspace: Callable[[], Workspace]
    named: frozenset[str]
    defaults: Mapping[str, Any]
    access: Access
    unfollowed: frozenset[str] = frozenset()
    name: str = "paths"

    def __call__(self, call: Call, _tool: ToolDefinition, arguments: Mapping[str, Any], /) -> tuple[PathTarget, ...]:
        look = _eyes(self.workspace(), call)
        omitted = self._omitted(arguments) if self.defaults else None
        given = {**arguments, **omitted} if omitted else arguments
        return tuple(self._look_at(look, where, value) for where, value in strings(given, self._is_path))

    def _look_at(self, look: Callable[..., PathFact], where: str, value: Any) -> PathTarget:
        if where in self.unfollowed:
            look = partial(look, follow=False)
        return look_at(look, where, value, self.access)

    def recall(self, arguments: Mapping[str, Any], kept: list[dict[str, Any]]) -> tuple[PathTarget, ...]:
        """Return what was found when a recorded call was made; a path nobody looked at then is looked at now."""
        known = {one["argument"]: one for one in kept}
        found = []
        for where, value in strings({**self._omitted(arguments), **arguments}, self._is_path):
            one = known.get(where)
            if one is None or not isinstance(value, str):
                found.append(self._look_at(self.workspace().look, where, value))
            elif "path" not in one:
                found.append(PathTarget(where, value, self.access, None, one["refused"]))
            else:
                fact = PathFact(given=value, path=one["path"], root=one["root"], kind=one["kind"], size=one["size"])
                found.append(PathTarget(where, value, self.access, fact))
        return tuple(found)

    def _omitted(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in self.defaults.items() if value is not None and name not in arguments}

    def _is_path(self, name: str) -> bool:
        return name in self.named or name in self.defaults or looks_like_path(name)

    def shown(self, finding: tuple[PathTarget, ...], mask: Mask, /) -> list[dict[str, Any]]:
        return [_shown_path(target, mask) for target in finding]


REMOTE_PLACEMENTS = ("client", "worker")


def _eyes(workspace: Workspace, call: Call) -> Callable[..., PathFact]:
    """How paths of a call are looked at: where it runs on another machine, by their words; that machine looks again."""
    return workspace.spell if call.placement in REMOTE_PLACEMENTS else workspace.look


def look_at(
    look: Callable[..., PathFact], where: str, value: Any, access: Access, base: str | None = None
) -> PathTarget:
    """Return what a path argument points at; what can be no path is refused."""
    if not isinstance(value, str):
        return PathTarget(where, str(value)[:80], access, None, f"argument '{where}' must be a path")
    try:
        return PathTarget(where, value, access, look(value, base=base))
    except Refused as error:
        return PathTarget(where, value, access, None, str(error))


def _shown_path(target: PathTarget, mask: Mask) -> dict[str, Any]:
    fact, where = target.fact, mask(target.argument)
    if fact is None:
        return {"argument": where, "access": target.access, "refused": mask(target.refused)}
    return {
        "argument": where,
        "access": target.access,
        "path": mask(fact.path),
        "root": fact.root,
        "kind": fact.kind,
        "size": fact.size,
    }


@dataclass(frozen=True)
class CommandInspector:
    """Reads the command line among the arguments by its grammar, and looks at every path in it."""

    workspace: Callable[[], Workspace]
    commands: Callable[[], Mapping[str, Command]]
    argument: str | None
    programs: Programs
    name: str = "commands"

    def __call__(self, call: Call, tool: ToolDefinition, arguments: Mapping[str, Any], /) -> CommandTarget:
        where = self.argument or next((name for name in COMMAND_NAMES if name in arguments), COMMAND_NAMES[0])
        argv, extra = arguments.get(where), arguments.get("args")
        shown = str(argv) if not isinstance(argv, list) else " ".join(map(str, argv))
        given = [arguments[name] for name in ("env", "environment") if arguments.get(name) is not None]
        if not all(isinstance(one, dict) for one in given):
            return CommandTarget(shown, (), (), "the environment must be an object of names and texts")
        environment = {name: value for one in given for name, value in one.items()}
        workspace, base = self.workspace(), arguments.get("cwd")
        home = os.path.join(workspace.path, base) if isinstance(base, str) else workspace.path
        try:
            if isinstance(argv, str) and isinstance(extra, list | None):
                # A name alone is a whole command line; `git status` is no name, unless the tool takes lines.
                words = [argv, *(extra or ())]
                shown = " ".join(map(str, words))
                if takes_lines(tool, where):
                    # Names of another machine are not known here; that machine reads the line again.
                    here = None if call.placement in REMOTE_PLACEMENTS else workspace
                    line = read_command(self.commands(), argv, words[1:], environment, home, here)
                    line = with_network(line) if arguments.get("network") is True else line
                    return self._target(shown, call, line.judged, None, _place(call, base))
                argv = words
            parsed = (read_argv(self.commands(), argv, environment=environment, home=home),)  # type: ignore[arg-type]  # it refuses others
        except Refused as error:
            return CommandTarget(shown, (), (), str(error))
        return self._target(shown, call, parsed, base, _place(call, base))

    def _target(
        self, shown: str, call: Call, parsed: tuple[Parsed, ...], base: str | None, place: str
    ) -> CommandTarget:
        look = _eyes(self.workspace(), call)
        uses = (use for one in parsed for use in one.paths)
        paths = tuple(look_at(look, use.argument, use.path, use.access, base) for use in uses)
        changed = () if place else self.programs.changed_in(parsed)
        return CommandTarget(shown, parsed, paths, place=place, changed=changed)

    def shown(self, finding: CommandTarget, mask: Mask, /) -> dict[str, Any]:
        if not finding.parsed:
            return {"refused": mask(finding.refused)}
        first, *others = [_shown_command(one, mask, is_away=bool(finding.place)) for one in finding.parsed]
        more: dict[str, Any] = {"runs": mask(finding.place)} if finding.place else {}
        if others:
            more["with"] = others
        if finding.changed:
            more["changed_programs"] = [shown_change(one, mask) for one in finding.changed]
        return {**first, **more, "paths": [_shown_path(target, mask) for target in finding.paths]}


def _place(call: Call, base: Any) -> str:
    """Say where a command runs that is not run on this machine."""
    if call.placement not in REMOTE_PLACEMENTS:
        return ""
    start = "its workspace" if base is None else f"{base} of its workspace"
    return f"at its {call.placement}, from {start}, in the sandbox and under the policy of that machine"


def _shown_command(parsed: Parsed, mask: Mask, *, is_away: bool) -> dict[str, Any]:
    """Return a command for people. What its sandbox allows is told here where no tool can prepare it here."""
    reach = "through the proxy, to hosts that the policy allows" if parsed.network else "none"
    allows = {"workspace": "writable" if parsed.writes else "read-only", "network": reach}
    return {
        "argv": [mask(word) for word in parsed.argv],
        "word": parsed.word.value,
        **({"unknown": mask(parsed.unknown)} if parsed.unknown else {}),
        **(allows if is_away else {}),
    }


@dataclass(frozen=True)
class UrlInspector:
    """Takes every URL among the arguments apart. Nothing is resolved or fetched."""

    named: frozenset[str]
    name: str = "hosts"

    def __call__(self, _call: Call, _tool: ToolDefinition, arguments: Mapping[str, Any], /) -> tuple[UrlTarget, ...]:
        return tuple(_parse(where, value) for where, value in strings(arguments, self._is_url))

    def _is_url(self, name: str) -> bool:
        return name in self.named or looks_like_url(name)

    def shown(self, finding: tuple[UrlTarget, ...], mask: Mask, /) -> list[dict[str, Any]]:
        return [
            {"argument": mask(url.argument), "refused": mask(url.refused)}
            if url.target is None
            else {"argument": mask(url.argument), "host": mask(url.target.host), "port": url.target.port}
            for url in finding
        ]


def _parse(where: str, value: Any) -> UrlTarget:
    try:
        return UrlTarget(where, str(value), parse_url(value))
    except Refused as error:
        return UrlTarget(where, str(value), None, str(error))
