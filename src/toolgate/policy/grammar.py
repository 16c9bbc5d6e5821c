"""What stands under `commands:` in a policy file, and the grammar it becomes.

A command lists what is known of it; what is not listed is refused.
"""

from __future__ import annotations

import glob
import os
import shlex
from dataclasses import replace
from typing import Literal

from pydantic import Field, model_validator

from toolgate.errors import DefinitionError
from toolgate.guards import Refused
from toolgate.guards.argv import parse
from toolgate.guards.grammar import Command, ExactLine, Flag, Limits, Positional, Runs, Value
from toolgate.kernel.policy import Word
from toolgate.policy.values import Duration, Expression, Name, Positive, Spec, Surroundings, WordName

Kind = Literal["str", "int", "path", "rev", "glob", "enum", "path_or_rev"]


class ValueSpec(Spec):
    type: Kind = Field(default="str", description="`str`, `int`, `path`, `rev`, `glob`, `enum` or `path_or_rev`.")
    choices: list[Name] = Field(default=[], description="What an `enum` may be.")
    minimum: int | None = Field(default=None, description="The least an `int` may be.")
    maximum: int | None = Field(default=None, description="The most an `int` may be.")
    matches: Expression | None = Field(default=None, description="A pattern (RE2) that the whole of it must match.")
    excludes: Expression | None = Field(default=None, description="A pattern (RE2) that must not be found in it.")
    access: Literal["read", "write", "list"] = Field(default="read", description="What is done to a `path`.")

    def value(self) -> Value:
        return Value(
            kind=self.type,
            choices=tuple(self.choices),
            minimum=self.minimum,
            maximum=self.maximum,
            matches=self.matches,
            excludes=self.excludes,
            access=self.access,
        )


class FlagSpec(Spec):
    value: ValueSpec | Kind | None = Field(default=None, description="The value it takes; none for a switch.")
    optional: bool = Field(default=False, description="Its value comes attached (`--color=always`) or not at all.")
    decision: WordName = Field(default="allow", description="What using it leads to.")
    reason: str = Field(default="", description="Why, where it asks or denies.")
    also: list[Name] = Field(default=[], description="Its other names, such as `--lines` for `-n`.")
    fills: Name | None = Field(default=None, description="The positional it supplies, as grep's `-e` does its pattern.")
    spares: Name | None = Field(
        default=None, description="The positional that need not be there with it, as grep's files with `-r`."
    )
    ends: bool = Field(default=False, description="What follows it belongs to another program, as after `python -c`.")
    runs: bool = Field(default=False, description="Its value names a command of this table, which takes the rest.")
    executes: list[Name] = Field(
        default=[],
        description="What follows it, as far as `;` or `{} +`, is one of these commands, judged by its own grammar, as "
        "after `find -exec`.",
    )
    writes: bool = Field(default=False, description="The workspace is writable with it.")
    calms: bool = Field(
        default=False,
        description="With it the command's own `decision`, `network` and `writes` do not count, as with "
        "`black --check`; a denial does.",
    )


class PositionalSpec(Spec):
    name: Name = Field(description="What it is called in messages.")
    value: ValueSpec | Kind = Field(default="str", description="What it may be.")
    at_least: int = Field(default=0, ge=0, description="How many there must be.")
    at_most: Positive | Literal["any"] = Field(default=1, description="How many there may be.")


class LimitsSpec(Spec):
    timeout: Duration = Field(default=30.0, description="How long a run may take.")
    max_args: Positive = Field(default=256, description="How many arguments.")
    max_bytes: Positive = Field(default=65_536, description="How many bytes of arguments.")
    output_bytes: Positive = Field(default=1_000_000, description="How much output is kept.")


class LineSpec(Spec):
    args: list[str] = Field(default=[], description="Every argument, in this order and to the letter.")
    environment: dict[Name, str] = Field(default={}, description="The variables it is given, no more and no fewer.")
    input: bool = Field(default=False, description="Something is piped or redirected into it.")
    writes: bool = Field(default=False, description="The workspace is writable for it.")

    def line(self) -> ExactLine:
        return ExactLine(
            args=tuple(self.args),
            environment=tuple(self.environment.items()),
            input=self.input,
            writes=self.writes,
        )


class CommandExamples(Spec):
    match: list[str | list[str]] = Field(default=[], description="Command lines the grammar must know and not deny.")
    no_match: list[str | list[str]] = Field(default=[], description="Command lines it must refuse or deny.")


class CommandSpec(Spec):
    decision: WordName = Field(default="allow", description="What running it leads to.")
    reason: str = Field(default="", description="Why, where it asks or denies.")
    executable: Name | None = Field(
        default=None,
        description="Its absolute path; by default it is looked for in `tool_directories` and the system's own.",
    )
    switches: str = Field(
        default="", description="Flags that take no value, with blanks between; other names follow a slash: `-a/--all`."
    )
    flags: dict[Name, FlagSpec | Kind | None] = Field(
        default={}, description="By name; nothing for a switch, a type, or the settings of a flag."
    )
    positionals: list[PositionalSpec] = Field(default=[], description="What may follow that is no flag.")
    subcommands: dict[Name, CommandSpec | None] = Field(
        default={}, description="By name; each a command of its own. Names with blanks between share one."
    )
    needs_subcommand: bool = Field(default=False, description="A subcommand must follow.")
    dashes: Literal["allowed", "refused"] = Field(default="allowed", description="Whether `--` may end the flags.")
    after_dashes: PositionalSpec | None = Field(default=None, description="What follows `--`, if not the positionals.")
    combined: bool = Field(default=True, description="`-la` is `-l -a`; false for commands with flags like `-name`.")
    numbers: bool = Field(default=False, description="`-5` is a flag.")
    interspersed: bool = Field(default=True, description="Flags may follow positionals.")
    environment: list[Name] = Field(default=[], description="Variables a caller may set.")
    network: bool = Field(default=False, description="It reaches hosts, through the proxy: those that `hosts:` allows.")
    writes: bool = Field(default=False, description="The workspace is writable for it.")
    from_workspace: bool = Field(
        default=False,
        description="The program of this name in one of the workspace's `tool_directories` comes before the system's.",
    )
    lines: list[LineSpec] = Field(
        default=[],
        description="Whole lines that run unasked, to the letter and without network, though the rest does not know "
        "them. `toolgate policy learn` writes them.",
    )
    only_lines: bool = Field(default=False, description="It is known by its `lines` alone.")
    calms: bool = Field(
        default=False,
        description="As a subcommand: the `decision`, `network` and `writes` of the command it belongs to do not "
        "count; a denial does.",
    )
    runs: Runs | None = Field(
        default=None,
        description="What follows the positionals is another command of this table, judged by its own grammar. "
        "`command` runs its program, `project` the project's own of that name, `alone` only it, with variables "
        "before it. `interspersed: false` must stand beside it.",
    )
    run_only: list[Name] = Field(default=[], description="Which commands `runs` may run; any by default.")
    limits: LimitsSpec = Field(default=LimitsSpec(), description="What a run may take.")
    examples: CommandExamples | None = Field(default=None, description="Checked whenever the file is loaded.")

    @model_validator(mode="after")
    def _usable(self) -> CommandSpec:
        try:
            self.command("command", None)
        except DefinitionError as error:
            raise ValueError(str(error)) from None
        return self

    def command(self, name: str, surroundings: Surroundings | None) -> Command:
        """Return the grammar this is."""
        executable = self.executable
        if executable is not None and surroundings is not None:
            executable = surroundings.expand(executable)
        limits = self.limits
        return Command(
            name=name,
            executable=executable if surroundings is not None else None,
            word=Word(self.decision),
            reason=self.reason,
            flags=(
                *(Flag(names=tuple(switch.split("/"))) for switch in self.switches.split()),
                *(_flag(each, spec) for each, spec in self.flags.items()),
            ),
            positionals=tuple(map(_positional, self.positionals)),
            subcommands=tuple(
                (spec or CommandSpec()).command(each, surroundings)
                for names, spec in self.subcommands.items()
                for each in names.split()
            ),
            needs_subcommand=self.needs_subcommand,
            dashes=self.dashes,
            after_dashes=None if self.after_dashes is None else _positional(self.after_dashes),
            combined=self.combined,
            numbers=self.numbers,
            interspersed=self.interspersed,
            environment=tuple(self.environment),
            limits=Limits(
                timeout_s=limits.timeout,
                max_args=limits.max_args,
                max_bytes=limits.max_bytes,
                output_bytes=limits.output_bytes,
            ),
            network=self.network,
            writes=self.writes,
            from_workspace=self.from_workspace,
            lines=tuple(each.line() for each in self.lines),
            only_lines=self.only_lines,
            calms=self.calms,
            runs=self.runs,
            run_only=tuple(self.run_only),
        )


def _value(spec: ValueSpec | Kind) -> Value:
    return (spec if isinstance(spec, ValueSpec) else ValueSpec(type=spec)).value()


def _flag(name: str, spec: FlagSpec | Kind | None) -> Flag:
    if not isinstance(spec, FlagSpec):
        return Flag(names=(name,), value=None if spec is None else _value(spec))
    return Flag(
        names=(name, *spec.also),
        value=None if spec.value is None else _value(spec.value),
        optional=spec.optional,
        word=Word(spec.decision),
        reason=spec.reason,
        fills=spec.fills,
        spares=spec.spares,
        ends=spec.ends,
        runs=spec.runs,
        executes=tuple(spec.executes),
        writes=spec.writes,
        calms=spec.calms,
    )


def _positional(spec: PositionalSpec) -> Positional:
    maximum = None if spec.at_most == "any" else spec.at_most
    return Positional(name=spec.name, value=_value(spec.value), minimum=spec.at_least, maximum=maximum)


def grammar_of(name: str, spec: CommandSpec, surroundings: Surroundings) -> Command:
    """Return a command's grammar; ValueError where it is wrong."""
    try:
        return spec.command(name, surroundings)
    except DefinitionError as error:
        raise ValueError(str(error)) from None


def tool_directory(text: str, surroundings: Surroundings) -> str:
    """Return a directory with programs, as a pattern; ValueError where it is none that could be named."""
    found = surroundings.expand(text).rstrip("/")
    if not os.path.isabs(found) or os.path.normpath(found) != found:
        raise ValueError("a tool directory is an absolute path without `..`, such as ${WORKSPACE}/.venv/bin")
    if any(f"{place}/".startswith(f"{found}/") for place in surroundings) or "*" in os.path.basename(found):
        raise ValueError("a tool directory holds programs and nothing else; name the folder they are in")
    if any(odd in text for odd in ("**", "?", "[")):
        raise ValueError("in a tool directory, `*` stands for one name; `**`, `?` and `[` cannot be used")
    return Surroundings(*map(glob.escape, surroundings)).expand(text).rstrip("/")


def check_examples(name: str, spec: CommandSpec, commands: dict[str, Command]) -> None:
    """Raise ValueError where an example is not decided as the file says it must be."""
    if spec.examples is None:
        return
    # An example must hold wherever the file is read, also where the program is not installed.
    known = {each: command if command.executable else _anywhere(command) for each, command in commands.items()}
    for wanted, listed in ((True, spec.examples.match), (False, spec.examples.no_match)):
        for line in listed:
            argv = shlex.split(line) if isinstance(line, str) else line
            why = _refusal(argv, known)
            if wanted and why is not None:
                raise ValueError(f"the example `{' '.join(argv)}` is refused: {why}")
            if not wanted and why is None:
                raise ValueError(f"the example `{' '.join(argv)}` is not refused")


def _anywhere(command: Command) -> Command:
    return replace(command, executable=f"/usr/bin/{command.name}")


def _refusal(argv: list[str], commands: dict[str, Command]) -> str | None:
    try:
        parsed = parse(commands, argv)
    except Refused as error:
        return str(error)
    return "it is denied" if parsed.word is Word.DENY else None
