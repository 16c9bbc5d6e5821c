"""What the commands for people share: opening a database as somebody."""

from __future__ import annotations

import getpass
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from toolgate.errors import UsageError
from toolgate.interfaces.cli.on_server import DATABASE_HELP
from toolgate.interfaces.cli.show import existing, is_postgres, store_url

if TYPE_CHECKING:
    from toolgate.gate import Gate
    from toolgate.kernel.context import Principal
    from toolgate.kernel.tool import ToolDefinition

Database = Annotated[str, typer.Argument(help=DATABASE_HELP)]
ApprovalId = Annotated[str, typer.Argument(help="The approval's id, or the beginning of it.")]
By = Annotated[str | None, typer.Option("--by", help="Your name; your login name by default.")]
Role = Annotated[list[str] | None, typer.Option("--role", help="A role you have; may be repeated.")]
Project = Annotated[
    str | None, typer.Option("--project", help="The project; by default all of them, on a server `default`.")
]
InProject = Annotated[str, typer.Option("--project", show_default=False, help="The project; `default` by default.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Tools = Annotated[
    list[str] | None, typer.Option("--tools", help="The tools, such as my_app.tools:TOOLS; may be repeated.")
]


@contextmanager
def gate_on(database: str, *, tools: Iterable[ToolDefinition] = ()) -> Iterator[Gate]:
    """Open an existing database for the time of one command."""
    import toolgate

    gate = toolgate.open(store_url(database), tools=tools)
    try:
        yield gate
    finally:
        gate.close()


def check_project(database: str, project: str) -> None:
    """Refuse a project the database knows nothing of, and say which there are. In an empty one any may begin."""
    from toolgate.kernel.context import SYSTEM_PROJECT

    known = _projects(database)
    others = [name for name in known if name != SYSTEM_PROJECT]
    if others and project not in known:
        there = ", ".join(map(repr, others))
        raise UsageError(
            f"There is no project {project[:64]!r} in this database; there is {there}. Say which with --project."
        )


def _projects(database: str) -> list[str]:
    if is_postgres(database):
        from toolgate.adapters.postgres.upkeep import projects_of as projects_on_server

        return projects_on_server(database)
    from toolgate.adapters.sqlite.upkeep import projects_of

    return projects_of(existing(database))


def login_name() -> str:
    """The operating system's user who gives a command: what a change of the database is recorded as done by."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user need not have a name
        return f"uid:{os.getuid()}"


def person(by: str | None, roles: list[str] | None = None) -> Principal:
    """Return the person who gives a command."""
    from toolgate.kernel.context import Principal

    named = Principal.of(by or login_name())
    return Principal(name=named.name, kind=named.kind, roles=frozenset(roles or ()))
