"""Run a command in the sandbox: `execute_command`. What it would do is prepared, and shown to whoever is asked."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from toolgate.catalog import credentials, git, remotes, ssh
from toolgate.catalog.code import MAX_TIMEOUT_S, PATH, TIMEOUT, Confining, definition, is_git, result_of, roots_of
from toolgate.catalog.overlay import (
    STOPPED,
    Rehearsal,
    Rehearsed,
    TakingBack,
    applied,
    fingerprint,
    must_be_rehearsed,
    reconcile,
)
from toolgate.errors import ToolExecutionError
from toolgate.guards.argv import Parsed, denied
from toolgate.guards.edges import Edges, EdgeSource, edges_of
from toolgate.guards.line import NETWORK_ASKED, Line, LineStep, Part, read_command, with_network
from toolgate.guards.pins import look, started
from toolgate.guards.words import ArgvRefused
from toolgate.kernel.input import ToolInput
from toolgate.kernel.output import ToolOutput
from toolgate.kernel.policy import Word
from toolgate.kernel.tool import Prepared, ToolDefinition
from toolgate.ports.confinement import Confined, ConfinedLine, ConfinedStep, Finished, InPlace, Piped

COMMAND_SCHEMA = {
    "type": "object",
    "properties": {
        "command": {
            "type": "string",
            "minLength": 1,
            "format": "shell-line",
            "description": "A command's bare name, or, without `args`, a whole line: `cd src && pytest -q | tail -5`.",
        },
        "args": {"type": "array", "items": {"type": "string"}, "default": [], "description": "Its arguments."},
        "timeout": TIMEOUT,
        "cwd": {**PATH, "description": "Where it starts; the workspace by default."},
        "environment": {
            "type": "object",
            "additionalProperties": {"type": "string"},
            "default": {},
            "description": "Variables that the policy lets a caller set.",
        },
        "network": {
            "type": "boolean",
            "default": False,
            "description": "Ask for a network, through the gate's proxy to hosts that the policy allows, for commands "
            "that have none. A person decides.",
        },
    },
    "required": ["command"],
    "additionalProperties": False,
}

_SETTLED = frozenset("add commit status diff log show rm mv restore stash fetch rev-parse ls-files".split())
"""Git commands that leave the remotes and the branch as they are."""
_TMP_NOTE = "/tmp is this call's own: what it left there is gone, and the next call does not find it."


def tools(edges: EdgeSource) -> list[ToolDefinition]:
    """Return the tool that runs any command the policy knows or a person agrees to.

    Only what ran in an overlay can be undone: other calls leave nothing to undo them with.
    """
    hook = ExecuteCommand(edges)
    return [
        definition(
            hook,
            COMMAND_SCHEMA,
            "Run a command, or a line of commands joined by `&&`, `||`, `;` and `|`, in the sandbox.",
            category="system_write",
            risk_level="medium",
            timeout_seconds=float(MAX_TIMEOUT_S),
            prepare=Rehearsal(hook),
            undoable=True,
            undo_handler=TakingBack(),
            fingerprint=fingerprint,
            reconcile=reconcile,
        )
    ]


class ExecuteCommand(Confining):
    name = "execute_command"

    @property
    def edges(self) -> EdgeSource:
        return self._edges

    def described(self, given: ToolInput) -> Prepared:
        """Say what would run, from which file, where, and what the sandbox allows it. Nothing runs."""
        edges = edges_of(self._edges)
        line = self._read(edges, given.payload)
        parts = [part for step in line.steps for part in step.parts]
        starts = [self._checked(edges, part) for part in parts]
        urls = [self._urls(edges, part.command, start) for part, start in zip(parts, starts, strict=True)]
        shown = [preview(*each) for each in zip(parts, starts, urls, strict=True)]
        for number, (part, where) in enumerate(zip(parts, urls, strict=True)):
            lent = _lent(part, where) if _may_be_lent(part, parts[:number]) else None
            if lent is not None:
                shown[number]["acts as"] = lent
        whole: Any = shown[0] if len(shown) == 1 and not line.text else {"line": line.text, "commands": shown}
        if line.expanded:
            whole["patterns"] = {pattern: " ".join(words) for pattern, words in line.expanded}
        return Prepared(preview=whole, preconditions=_pinned(edges, line, urls))

    def _urls(self, edges: Edges, parsed: Parsed, start: str) -> tuple[str, ...]:
        """Return where a Git command would connect to."""
        roots = [root.path for root in edges.workspace.roots]
        return git.remote_urls(parsed, start, roots) if parsed.network and is_git(parsed, roots) else ()

    def writes(self, given: ToolInput) -> bool:
        """Whether some command of the line may write in the workspace."""
        line = self._read(edges_of(self._edges), given.payload)
        return any(part.writes for step in line.steps for part in step.parts)

    def plan(self, given: ToolInput) -> Confined | ConfinedLine | InPlace:
        """Return what is to run; where it ran in an overlay before, its changes are applied instead."""
        kept = Rehearsed.of(given)
        if kept is not None:
            return InPlace(writable=kept.roots, timeout_s=float(MAX_TIMEOUT_S))
        planned = self.planned(given)
        if planned.writable and edges_of(self._edges).overlay(self.name) is not None:
            raise must_be_rehearsed(self.name)
        return planned

    def planned(self, given: ToolInput) -> Confined | ConfinedLine:
        """Return the programs of a line, confined."""
        edges, asked = edges_of(self._edges), given.payload
        line = self._read(edges, asked)
        self._check_unchanged(edges, line, given)
        parts = [part for step in line.steps for part in step.parts]
        limit_s = max(part.command.limits.timeout_s for part in parts)
        timeout_s = min(float(asked["timeout"]), max(limit_s, 1.0)) if "timeout" in asked else limit_s
        before: list[Part] = []
        steps: list[ConfinedStep] = []
        for step in line.steps:
            steps.append(self._step(edges, given, step, timeout_s, before))
            before += step.parts
        if len(parts) == len(steps) == 1 and not parts[0].redirects:
            return steps[0].piped[0].confined
        room = max(part.command.limits.output_bytes for part in parts)
        return ConfinedLine(steps=tuple(steps), timeout_s=timeout_s, output_bytes=room)

    def _check_unchanged(self, edges: Edges, line: Line, given: ToolInput) -> None:
        """Refuse a line that ran unasked for other words of its patterns than those it has now."""
        is_asked = any(parsed.word is not Word.ALLOW for parsed in line.judged)
        if line.expanded and is_asked and given.approver is None and edges.judges_commands(self.name):
            pattern = line.expanded[0][0]
            raise ArgvRefused(
                "changed",
                f"The pattern {pattern!r} stands for other files now, so a person must be asked about this very line; "
                "no grant covers it. Try again, or name the files.",
            )

    def _with_login(
        self, edges: Edges, given: ToolInput, part: Part, confined: Confined, before: Sequence[Part]
    ) -> Confined:
        """Return a Git command with the user's login for the URL that a person said yes to; others as they are."""
        urls = self._urls(edges, part.command, confined.cwd)
        if any(map(ssh.is_ssh, urls)):
            return self._with_agent(edges, given, part, confined, before)
        place = credentials.place_of(part.command, urls)
        if place is None or given.approver is None or not _may_be_lent(part, before):
            return confined
        return credentials.given_to(confined, part.command.executable, urls[0], place)

    def _with_agent(
        self, edges: Edges, given: ToolInput, part: Part, confined: Confined, before: Sequence[Part]
    ) -> Confined:
        urls = self._urls(edges, part.command, confined.cwd)
        place = ssh.place_of(urls)
        if part.command.unknown or place is None:
            why = "it is not one plain place of ssh, or no grammar knows the command. Name one remote"
        elif given.approver is None:
            why = "your ssh agent is used only after a person's yes to this very call. Set `decision: ask` for it"
        elif not _may_be_lent(part, before):
            why = (
                "something before it in the line, or a file it writes to, could change where it goes. Run it by itself"
            )
        else:
            return ssh.given_to(confined, place, edges.hosts)
        shown = ", ".join(map(remotes.shown, urls))
        raise ArgvRefused("ssh", f"'{part.command.command}' is refused for '{shown}': {why}, or run it yourself.")

    def _read(self, edges: Edges, asked: dict[str, Any]) -> Line:
        start = edges.look(self.name, asked.get("cwd", "."), "list")
        if start.kind != "directory":
            raise ToolExecutionError(f"{asked['cwd']!r} is not a directory.")
        args, environment = asked.get("args", []), asked.get("environment", {})
        line = read_command(edges.commands, asked["command"], args, environment, start.path, edges.workspace)
        unknown = next((parsed.unknown for parsed in line.judged if parsed.unknown), None)
        if unknown is not None and not edges.asks_unknown(self.name):
            raise ArgvRefused(
                "unknown",
                f"{unknown} Add it under `commands:` in the policy, or write `commands: {{unknown: ask}}` there.",
            )
        if not line.judged:
            raise ArgvRefused(
                "empty",
                f"The line {line.text[:80]!r} goes to a directory and runs nothing. Add the command: `cd x && make`.",
            )
        return self._with_network(edges, line) if asked.get("network") is True else line

    def _with_network(self, edges: Edges, line: Line) -> Line:
        if not edges.judges_commands(self.name):
            raise ArgvRefused(
                "network",
                "A network is refused: the policy has no `commands:` rule for this tool, so nobody would be asked. "
                f"Write `tools: {{{self.name}: {{commands: {{}}}}}}`, or leave `network` out.",
            )
        return with_network(line)

    def _checked(self, edges: Edges, part: Part) -> str:
        """Return the directory a command starts in, with every path of it and of its redirections judged."""
        for parsed in part.judged:
            if parsed.word is Word.DENY:
                raise denied(parsed)
            for use in parsed.paths:
                edges.look(self.name, use.path, use.access, base=part.start)
        return edges.look(self.name, part.start, "list").path

    def _step(
        self, edges: Edges, given: ToolInput, step: LineStep, timeout_s: float, before: Sequence[Part]
    ) -> ConfinedStep:
        if step.directory is not None:
            place = edges.look(self.name, step.directory, "list").path
            return ConfinedStep(connector=step.connector, directory=place)
        found: list[Piped] = []
        for number, part in enumerate(step.parts):
            plain = self._piped(edges, part, timeout_s)
            lent = self._with_login(edges, given, part, plain.confined, (*before, *step.parts[:number]))
            found.append(replace(plain, confined=lent))
        return ConfinedStep(connector=step.connector, piped=tuple(found))

    def _piped(self, edges: Edges, part: Part, timeout_s: float) -> Piped:
        start = self._checked(edges, part)
        confined = self._confined(edges, part.command, start=start, timeout_s=timeout_s, is_written=part.writes)
        redirects = tuple((each.descriptor, each.kind, each.target) for each in part.redirects)
        return Piped(confined=confined, redirects=redirects)

    def conclude(self, given: ToolInput, finished: Finished | None) -> ToolOutput:
        kept = Rehearsed.of(given)
        if kept is not None:
            return applied(kept)
        if finished is None:
            raise must_be_rehearsed(self.name)
        found = result_of(finished)
        if "/tmp/" in " ".join((given.payload["command"], *given.payload.get("args", ()))):
            found["note"] = " ".join(filter(None, (found.get("note"), _TMP_NOTE)))
        if finished.ending == "exited":
            return ToolOutput.ok(found)
        return ToolOutput.fail(STOPPED.get(finished.ending, "Command was stopped"), data=found)


def _lent(part: Part, urls: Sequence[str]) -> str | None:
    """Say what of the user's a command acts with, if a person says yes."""
    agent = None if part.command.unknown else ssh.place_of(urls)
    if agent is not None:
        return f"you at {agent}, with your ssh agent, in this call alone"
    place = credentials.place_of(part.command, tuple(urls))
    return None if place is None else f"you at {place}, with what your Git has for it, in this call alone"


def _may_be_lent(part: Part, before: Sequence[Part]) -> bool:
    """Whether a login goes where the card says: nothing before it can lead it elsewhere, and no file gets its output.

    Commands that are not Git's cannot change a repository's settings in the sandbox.
    """
    leads = (one.command for one in before if one.command.command == "git")
    is_settled = all(_SETTLED.issuperset(one.subcommands[:1] or ("",)) for one in leads)
    return is_settled and all(each.kind == "same" or each.target == "/dev/null" for each in part.redirects)


def preview(part: Part, start: str, urls: Sequence[str] = ()) -> dict[str, Any]:
    """Return what a person sees of a command: the exact words, the program, the place and what it may touch."""
    parsed = part.command
    shown: dict[str, Any] = {
        "argv": [parsed.command, *parsed.argv[1:]],
        "program": parsed.executable,
        "starts in": start,
        "workspace": "writable" if part.writes else "read-only",
        "network": "through the proxy, to hosts that the policy allows" if parsed.network else "none",
    }
    if urls:
        shown["connects to"] = [remotes.shown(url) for url in urls]
    if parsed.environment:
        shown["variables"] = dict(parsed.environment)
    if part.redirects:
        shown["redirections"] = [f"{each.descriptor} {each.kind} {each.target}" for each in part.redirects]
    because = [each.unknown for each in part.judged if each.unknown]
    because += [f"{NETWORK_ASKED.capitalize()}."] if NETWORK_ASKED in parsed.reasons else []
    if because:
        shown["asked because"] = " ".join(because)
    return shown


def _pinned(edges: Edges, line: Line, urls: Sequence[Sequence[str]]) -> dict[str, str | None]:
    """Return what a yes rests on: the programs, and the content of those without grammar or that can be replaced, what
    patterns stand for, and where Git connects to."""
    found: dict[str, str | None] = {}
    if any(urls):
        text = "\0".join(url for each in urls for url in (*each, ""))
        found["urls"] = hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()
    if line.expanded:
        text = "\0\0".join("\0".join((pattern, *words)) for pattern, words in line.expanded)
        found["patterns"] = hashlib.sha256(text.encode()).hexdigest()
    for parsed in line.judged:
        for program in (parsed.executable, *parsed.programs):
            found.setdefault(program, None)
            if parsed.unknown:
                with open(program, "rb") as file:
                    found[program] = hashlib.file_digest(file, "sha256").hexdigest()
    pinned = look(started(line.judged, edges.commands), edges.commands, roots_of(edges))
    return found | {program.path: program.identity for program in pinned}
