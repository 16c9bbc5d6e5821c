"""Work on code in the sandbox: `git_status`, `run_linter` and `run_tests`, and what every command is confined by.

Every command line goes through the policy's grammar, every path in it through the policy's rules; what runs sees
the workspace without its secrets, and no network unless the grammar grants one. What Git needs besides is in
`catalog/git.py`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from toolgate.catalog import git
from toolgate.errors import ToolExecutionError, ToolTimeoutError
from toolgate.guards.argv import Parsed, denied, parse
from toolgate.guards.edges import Edges, EdgeSource, edges_of
from toolgate.guards.grammar import Command, Flag, Limits, Positional, Value, pin
from toolgate.guards.hidden import kept_in
from toolgate.guards.pins import look, started
from toolgate.guards.programs import CommandTable, lies_in
from toolgate.guards.reach import HostReach
from toolgate.guards.run_later import told
from toolgate.kernel.context import Mode
from toolgate.kernel.input import ToolInput
from toolgate.kernel.output import ToolOutput
from toolgate.kernel.policy import Word
from toolgate.kernel.tool import Prepared, ToolDefinition
from toolgate.ports.confinement import Confined, Finished, Reached

EVERY_MODE = tuple(mode.value for mode in Mode)
MAX_TIMEOUT_S = 3600
PATH = {"type": "string", "format": "path", "minLength": 1, "default": "."}
TIMEOUT = {
    "type": "integer",
    "minimum": 1,
    "maximum": MAX_TIMEOUT_S,
    "default": 30,
    "description": "Seconds until it is stopped.",
}
PYTHON_ENVIRONMENT = {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONNOUSERSITE": "1"}
PYTEST_ENVIRONMENT = {"PYTEST_ADDOPTS": "-p no:cacheprovider"}


def tools(edges: EdgeSource) -> list[ToolDefinition]:
    """Return the tools that look at code with programs of their own."""
    return [
        definition(
            GitStatus(edges),
            _schema({"path": {**PATH, "description": "The repository; the workspace by default."}}),
            "Get the status of a Git repository: branch and changed files.",
            category="read_only",
            risk_level="low",
            effects="read",
            allowed_modes=EVERY_MODE,
        ),
        definition(
            RunLinter(edges),
            _schema(
                {
                    "path": {**PATH, "description": "What to look at; the workspace by default."},
                    "linter": {"type": "string", "enum": ["ruff", "mypy"], "default": "ruff"},
                    "timeout": {**TIMEOUT, "default": 120},
                }
            ),
            "Run a linter (ruff or mypy) on code.",
            category="read_only",
            risk_level="low",
            effects="read",
            requires_sandbox=True,
            timeout_seconds=float(MAX_TIMEOUT_S),
        ),
        definition(
            RunTests(edges),
            _schema(
                {
                    "path": {**PATH, "description": "Which tests; the workspace's by default."},
                    "keyword": {"type": "string", "maxLength": 200, "description": "Only tests that match (-k)."},
                    "timeout": {**TIMEOUT, "default": 300},
                }
            ),
            "Run tests with pytest, in a sandbox in which the workspace is read-only.",
            category="read_only",
            risk_level="medium",
            effects="read",
            requires_sandbox=True,
            timeout_seconds=float(MAX_TIMEOUT_S),
        ),
    ]


def _schema(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "additionalProperties": False}


def definition(hook: Confining, schema: dict[str, Any], description: str, **options: Any) -> ToolDefinition:
    if isinstance(hook, Choosing):
        options["prepare"] = hook.prepare
    return ToolDefinition(hook.name, schema, hook, description=description, placement="sandbox", **options)


class Confining:
    """A hook that plans a command line. It is run by the sandbox, and nowhere else."""

    name = ""

    def __init__(self, edges: EdgeSource) -> None:
        self._edges = edges

    async def __call__(self, given: ToolInput) -> ToolOutput:
        raise ToolExecutionError(f"`{self.name}` runs in the sandbox alone; this gate has no sandbox runner.")

    def _confine(
        self,
        edges: Edges,
        parsed: Parsed,
        *,
        cwd: str = ".",
        timeout_s: float,
        extra: Mapping[str, str] | None = None,
    ) -> Confined:
        """Return what runs, with every path of the command line judged."""
        start = self._judged(edges, parsed, cwd)
        return self._confined(edges, parsed, start=start, timeout_s=timeout_s, extra=extra, is_written=parsed.writes)

    def _confined(
        self,
        edges: Edges,
        parsed: Parsed,
        *,
        start: str,
        timeout_s: float,
        is_written: bool,
        extra: Mapping[str, str] | None = None,
    ) -> Confined:
        """Return what runs, judged already. is_written: the workspace is writable, if only for a redirection."""
        roots = roots_of(edges)
        kept = kept_in(edges)
        environment = environment_of(parsed) | dict(extra or {}) | dict(parsed.environment)
        confined = Confined(
            argv=parsed.argv,
            cwd=start,
            readable=() if is_written else roots,
            writable=roots if is_written else (),
            hidden=kept.hidden,
            locked=kept.locked if is_written else (),
            tools=tools_of(edges, parsed),
            programs=look(started((parsed,), edges.commands), edges.commands, roots),
            environment=environment,
            reach=HostReach(edges.hosts) if parsed.network else None,
            timeout_s=timeout_s,
            output_bytes=parsed.limits.output_bytes,
        )
        return git.fitted(confined, parsed, kept.locked) if is_git(parsed, roots) else confined

    def _judged(self, edges: Edges, parsed: Parsed, cwd: str) -> str:
        """Return the directory a command starts in, where the policy denies neither it nor any path in it."""
        if parsed.word is Word.DENY:
            raise denied(parsed)
        start = edges.look(self.name, cwd, "list")
        if start.kind != "directory":
            raise ToolExecutionError(f"{cwd!r} is not a directory.")
        for use in parsed.paths:
            edges.look(self.name, use.path, use.access, base=start.path)
        return start.path


class Choosing(Confining):
    """A hook that chooses its program itself; no argument names it."""

    def line(self, edges: Edges, asked: Mapping[str, Any]) -> Parsed:
        """Return the command line for these arguments."""
        raise NotImplementedError

    def started_programs(self, arguments: Mapping[str, Any]) -> list[str]:
        """Return the files it would start; the policy asks about one that is not what it was."""
        return [self.line(edges_of(self._edges), arguments).executable]

    def prepare(self, given: ToolInput) -> Prepared:
        """Say which programs a yes rests on: those of the workspace, as they are now."""
        edges = edges_of(self._edges)
        found = look(self.started_programs(given.payload), edges.commands, roots_of(edges))
        return Prepared(preconditions={program.path: program.identity for program in found} or None)


def roots_of(edges: Edges) -> tuple[str, ...]:
    """Return what commands may write."""
    return tuple(root.path for root in edges.workspace.roots)


def is_git(parsed: Parsed, roots: Sequence[str]) -> bool:
    """Whether a command is Git itself, and no file of that name that an agent can write.

    Git is asked for its settings outside the sandbox, and sees protected files that it tracks.
    """
    return parsed.command == "git" and not lies_in(parsed.executable, roots)


def tools_of(edges: Edges, parsed: Parsed) -> tuple[str, ...]:
    """Return the directories whose programs a command finds by name.

    The workspace's own are not among them where it has a network, or is Git: what such a command starts by name (`ssh`,
    a pager) is never what an agent wrote.
    """
    if not isinstance(edges.commands, CommandTable):
        return ()
    own, others = edges.commands.places()
    return tuple(others) if parsed.network or parsed.command == "git" else (*own, *others)


def environment_of(parsed: Parsed) -> dict[str, str]:
    """Return the variables a command gets besides those its caller may set."""
    names = (parsed.command, *parsed.subcommands)
    if "pytest" in names:
        return PYTHON_ENVIRONMENT | PYTEST_ENVIRONMENT
    return dict(PYTHON_ENVIRONMENT) if parsed.command.startswith("python") else {}


def result_of(finished: Finished) -> dict[str, Any]:
    """Return the end of a command as data; what is no text is shown with marks."""
    found: dict[str, Any] = {
        "stdout": finished.stdout.decode(errors="replace"),
        "stderr": finished.stderr.decode(errors="replace"),
        "exit_code": finished.exit_code,
        "duration_ms": round(finished.duration_s * 1000, 1),
        "sandbox": finished.backend,
    }
    if finished.run_later:
        found |= {"run_later": list(finished.run_later), "note": told(finished.run_later)}
    if finished.network:
        found["network"] = [_reached(one) for one in finished.network]
    return found if finished.ending == "exited" else found | {"stopped": finished.ending}


def _reached(one: Reached) -> dict[str, Any]:
    found: dict[str, Any] = {"host": one.host, "port": one.port, "bytes": one.bytes}
    return found if one.refused is None else found | {"refused": one.refused}


def _ended(finished: Finished, what: str) -> dict[str, Any]:
    if finished.ending == "timeout":
        raise ToolTimeoutError(f"{what} timed out and was stopped.")
    if finished.ending != "exited":
        reasons = {"memory": "it used too much memory", "disk": "it wrote more to the disk than it may"}
        reason = reasons.get(finished.ending, "stopped")
        raise ToolExecutionError(f"{what} was stopped: {reason}.")
    return result_of(finished)


_PATHS = (Positional(name="path", value=Value(kind="path"), maximum=None),)


class GitStatus(Confining):
    name = "git_status"

    def plan(self, given: ToolInput) -> Confined:
        edges = edges_of(self._edges)
        flags = (Flag(names=("--porcelain=v2",)), Flag(names=("--branch",)), Flag(names=("-z",)))
        status = Command(name="status", flags=flags)
        command = pin(Command(name="git", subcommands=(status,)))
        parsed = parse({"git": command}, ["git", "status", "--porcelain=v2", "--branch", "-z"])
        return self._confine(edges, parsed, cwd=given.payload.get("path", "."), timeout_s=30)

    def conclude(self, given: ToolInput, finished: Finished) -> ToolOutput:
        found = _ended(finished, "git status")
        if finished.exit_code != 0:
            return ToolOutput.fail(f"git status failed: {found['stderr'].strip()[:500]}", data=found)
        return ToolOutput.ok(git.parse_status(found["stdout"]))


def _tool_line(edges: Edges, name: str, arguments: Sequence[str], flags: Sequence[Flag]) -> Parsed:
    """Return the line that runs a program of Python's: the workspace's own, the system's, or the one beside us.

    The workspace's is no more to be trusted than the code it looks at, and no less confined.
    """
    own = [os.path.join(edges.workspace.path, directory, "bin") for directory in (".venv", "venv")]
    command = Command(name=name, flags=tuple(flags), positionals=_PATHS, limits=Limits(timeout_s=MAX_TIMEOUT_S))
    parsed = parse({name: pin(command, also=own)}, [name, *arguments])
    if os.path.dirname(parsed.executable) == os.path.dirname(sys.executable):
        return replace(parsed, executable=sys.executable, argv=(sys.executable, "-m", name, *parsed.argv[1:]))
    return parsed


class RunLinter(Choosing):
    name = "run_linter"

    def line(self, edges: Edges, asked: Mapping[str, Any]) -> Parsed:
        linter, path = asked.get("linter", "ruff"), asked.get("path", ".")
        if linter == "ruff":
            line = ["--no-cache", "--output-format=json", "--", path]
            flags = [Flag(names=("--no-cache",)), Flag(names=("--output-format",), value=Value())]
            parsed = _tool_line(edges, "ruff", line, flags)
            argv = (*parsed.argv[: -len(line)], "check", *line)
            return replace(parsed, argv=argv)
        line = ["--cache-dir=/dev/null", "--no-error-summary", "--no-color-output", "--", path]
        names = ("--cache-dir", "--no-error-summary", "--no-color-output")
        flags = [Flag(names=(name,), value=Value(), optional=True) for name in names]
        return _tool_line(edges, "mypy", line, flags)

    def plan(self, given: ToolInput) -> Confined:
        edges, asked = edges_of(self._edges), given.payload
        return self._confine(
            edges,
            self.line(edges, asked),
            timeout_s=float(asked.get("timeout", 120)),
            extra=PYTHON_ENVIRONMENT | {"RUFF_NO_CACHE": "true"},
        )

    def conclude(self, given: ToolInput, finished: Finished) -> ToolOutput:
        linter = given.payload.get("linter", "ruff")
        found = _ended(finished, linter)
        if finished.exit_code not in (0, 1):
            return ToolOutput.fail(f"{linter} could not run: {found['stderr'].strip()[-500:]}", data=found)
        return ToolOutput.ok({"linter": linter, "clean": finished.exit_code == 0, **found})


class RunTests(Choosing):
    name = "run_tests"

    def line(self, edges: Edges, asked: Mapping[str, Any]) -> Parsed:
        line = ["-q", "-p", "no:cacheprovider", *(["-k", asked["keyword"]] if asked.get("keyword") else [])]
        flags = [Flag(names=("-q",)), Flag(names=("-p",), value=Value()), Flag(names=("-k",), value=Value())]
        return _tool_line(edges, "pytest", [*line, "--", asked.get("path", ".")], flags)

    def plan(self, given: ToolInput) -> Confined:
        edges, asked = edges_of(self._edges), given.payload
        return self._confine(
            edges,
            self.line(edges, asked),
            timeout_s=float(asked.get("timeout", 300)),
            extra=PYTHON_ENVIRONMENT,
        )

    def conclude(self, given: ToolInput, finished: Finished) -> ToolOutput:
        found = _ended(finished, "pytest")
        if finished.exit_code not in (0, 1, 5):
            said = (found["stdout"] + found["stderr"]).strip()[-500:]
            return ToolOutput.fail(f"pytest could not run: {said}", data=found)
        return ToolOutput.ok({"passed": finished.exit_code == 0, **found})
