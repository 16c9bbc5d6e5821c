"""How help is laid out: commands under headings, parameters by what they hold, examples at the end.

Plain text: what typer draws its boxes with takes longer to load than everything else.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from typer.core import TyperCommand, TyperGroup


class Panel(StrEnum):
    """The headings of `toolgate --help`, in order."""

    START = "Get started"
    PEOPLE = "People and approvals"
    CALLS = "Calls and history"
    POLICY = "Policy"
    SERVER = "Server and machines"
    DATABASE = "Database and audit log"


LONGEST = 1000
"""How long the summary of a command may be: it is wrapped, never cut off."""

ON_SERVER = "On a server, instead of a database"
"""The heading of the options that reach a server."""

_HOLDS = {
    "account": "NAME", "acts_for": "NAME", "after": "NUMBER", "against": "FILE", "agent": "NAME", "arguments": "JSON",
    "by": "NAME",
    "ca_file": "FILE", "call": "JSON", "call_id": "ID", "calls": "FILE", "concurrency": "N", "count": "N",
    "database": "NAME", "digest": "HEX", "drain_s": "SECONDS", "expires": "DURATION", "grace": "SECONDS",
    "host": "ADDRESS", "kind": "KIND", "label": "TEXT", "lease_s": "SECONDS", "limit": "N", "named": "NAME",
    "older_than": "DURATION", "only_project": "NAME", "policy": "PATH", "port": "N", "profile": "NAME",
    "project": "NAME", "project_policies": "FOLDER", "queue": "NAME", "reason": "TEXT", "redis": "URL",
    "remember": "USES", "remember_for": "DURATION", "repeat_of": "ID", "role": "ROLE", "run": "ID", "server": "URL",
    "session": "ID", "since": "DURATION",
    "state": "FOLDER", "step": "ID", "token_file": "FILE", "tools": "MODULE:NAME", "url": "URL", "workspace": "FOLDER",
}  # fmt: skip
"""What the value of an option is, by the name of its parameter: the same name means the same in every command."""


def examples(*lines: str) -> str:
    """The end of a help screen: lines to copy, each explained by a `#` line above it."""
    return "\n".join(["Examples:", *(f"  {line}" for line in lines), ""])


class Command(TyperCommand):
    """A command whose help says what a value is (`--by NAME`), not which Python type it has."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.name_values()

    def name_values(self) -> None:
        """Say of every parameter what it holds. A name that is not known here shows up in help as a type."""
        for one in self.params:
            if one.param_type_name == "argument":
                one.metavar = one.metavar or one.name.upper()
            elif not getattr(one, "is_flag", False):
                one.metavar = one.metavar or _HOLDS.get(one.name)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        parameters = self.get_params(ctx)
        arguments = [_typed(one) for one in parameters if one.param_type_name == "argument"]
        needed = [f"{one.opts[0]} {one.metavar}" for one in parameters if one.opts[0].startswith("-") and one.required]
        return [*arguments, *needed, "[OPTIONS]"]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        sections: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for one in self.get_params(ctx):
            record = one.get_help_record(ctx)
            if record is not None and one.param_type_name == "argument":
                sections["Arguments"].append((one.metavar or one.name, record[1]))
            elif record is not None:
                sections.setdefault(getattr(one, "rich_help_panel", None) or "Options", []).append(record)
        for heading, rows in sections.items():
            if rows:
                with formatter.section(heading):
                    formatter.write_dl(rows)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        _write(self.epilog, formatter)


class Group(TyperGroup):
    """A command with commands, listed under the headings they name."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        widest = max(map(len, self.commands))
        for panel in (*Panel, None):
            members = {name: one for name, one in self.commands.items() if _panel(one) == panel}
            if members:
                with formatter.section(panel or "Commands"):
                    formatter.write_dl(
                        [(name.ljust(widest), one.get_short_help_str(LONGEST)) for name, one in members.items()]
                    )

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        _write(self.epilog, formatter)


def _panel(command: Any) -> str | None:
    found = getattr(command, "rich_help_panel", None)
    return found if isinstance(found, str) else None


def _typed(argument: Any) -> str:
    name: str = argument.metavar or argument.name
    return name if argument.required else f"[{name}]"


def _write(epilog: str | None, formatter: Any) -> None:
    """Write it as it stands: a wrapped example could not be copied."""
    if epilog:
        formatter.write_paragraph()
        formatter.write(epilog)
