"""Check a command before a client runs it: by grammar, never by looking for odd characters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

from toolgate.agent_tools.validation import Validation
from toolgate.guards.argv import Parsed, parse
from toolgate.guards.edges import Edges
from toolgate.guards.files import PathRefused, Workspace
from toolgate.guards.grammar import Command
from toolgate.guards.words import ArgvRefused
from toolgate.kernel.misuse import explained_class
from toolgate.kernel.policy import Word


@cache
def developer_commands() -> Mapping[str, Command]:
    """Return the commands of the `developer` profile; one that is not installed here keeps its usual place."""
    from dataclasses import replace

    from toolgate.policy import read_policy
    from toolgate.policy.profiles import commands

    found = read_policy(commands("developer"), name="commands").commands
    # The client runs them, on another machine: what matters is the shape of the line.
    return {name: replace(each, executable=each.executable or f"/usr/bin/{name}") for name, each in found.items()}


@explained_class
class CommandValidator:
    """Checks command lines by a table of grammars, the `developer` profile's where none is given.

    `root` is where relative paths begin; with one, every path of a line is checked too.
    """

    def __init__(self, commands: Mapping[str, Command] | None = None, *, root: str | None = None) -> None:
        self._commands = commands
        self._edges = None if root is None else Edges(workspace=Workspace(root))

    def read(self, command: str, args: Sequence[str] = ()) -> Parsed:
        """Return what a command line means; ArgvRefused or PathRefused where it may not run at all."""
        commands = developer_commands() if self._commands is None else self._commands
        parsed = parse(commands, [command, *args])
        if self._edges is not None:
            for use in parsed.paths:
                self._edges.look("execute_command", use.path, use.access)
        return parsed

    def validate_command(self, command: str, args: Sequence[str] = ()) -> Validation:
        """Whether a command line is known and not denied; it may still need approval."""
        try:
            parsed = self.read(command, args)
        except (ArgvRefused, PathRefused) as refused:
            return Validation.no(str(refused))
        if parsed.word is Word.DENY:
            return Validation.no(f"The command is denied: {'; '.join(parsed.reasons)}.")
        return Validation.yes(parsed)

    def validate_command_safety(self, command: str, args: Sequence[str] = ()) -> Validation:
        """Whether a command line may run without asking anybody."""
        known = self.validate_command(command, args)
        if not known.valid or known.value.word is Word.ALLOW:
            return known
        return Validation.no(f"The command needs approval: {'; '.join(known.value.reasons)}.")
