"""Where a command works: on a database, or on a server whose address takes the database's place.

A database is the first argument or `--database`; without either it is the variable `TOOLGATE_DATABASE`, and without
that this folder's own (`guards/state.py`). A command that can work on a server takes `--server`, or the variable
`TOOLGATE_SERVER`, which comes before a database that only a variable names.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from toolgate import workspace_database
from toolgate.guards.state import database_of
from toolgate.interfaces.cli.credentials import TOKEN
from toolgate.interfaces.cli.help import ON_SERVER, Command

DATABASE = "TOOLGATE_DATABASE"
SERVER = "TOOLGATE_SERVER"
DATABASE_HELP = f"Path or URL of the database; by default ${DATABASE}, or else this folder's own."
DatabaseOption = Annotated[
    str | None, typer.Option(envvar=DATABASE, show_envvar=False, show_default=False, help=DATABASE_HELP)
]
SERVER_HELP = f"Address of the server, such as http://127.0.0.1:8642; or set {SERVER}."
TOKEN_FILE_HELP = f"File that holds your token; or set {TOKEN}."
PLAIN_HTTP_HELP = "Allow sending the token to another machine unencrypted."
CA_FILE_HELP = "CA certificates to trust instead of the system's."


@dataclass(frozen=True, slots=True)
class Remote:
    """How to speak to a server."""

    server: str | None = None
    token_file: Path | None = None
    plain_http: bool = False
    ca_file: Path | None = None


LOCAL = Remote()
REMOTE: ContextVar[Remote] = ContextVar("toolgate_remote", default=LOCAL)
"""What the command that runs was given."""


def is_address(where: str) -> bool:
    """Whether this is a server's address, and no database."""
    return where.startswith(("http://", "https://"))


def database_here(named: str | None = None, folder: Path = Path()) -> str:
    """Return the database that is named, or else the folder's own, which need not be there yet."""
    return named or str(database_of(folder) or workspace_database(folder))


def _naming(
    named: Annotated[str | None, typer.Option("--database", help="The same as the argument DATABASE.")] = None,
) -> None:
    """Only its parameters are used."""


def _reaching(
    server: Annotated[str | None, typer.Option(help=SERVER_HELP, rich_help_panel=ON_SERVER)] = None,
    token_file: Annotated[Path | None, typer.Option(help=TOKEN_FILE_HELP, rich_help_panel=ON_SERVER)] = None,
    plain_http: Annotated[bool, typer.Option("--plain-http", help=PLAIN_HTTP_HELP, rich_help_panel=ON_SERVER)] = False,
    ca_file: Annotated[Path | None, typer.Option(help=CA_FILE_HELP, rich_help_panel=ON_SERVER)] = None,
) -> None:
    """Only its parameters are used."""


def _declared(options: Callable[..., None]) -> list[Any]:
    only = typer.Typer(add_completion=False)
    only.command()(options)
    return [one for one in typer.main.get_command(only).params if one.name != "help"]


class OnDatabase(Command):
    """A command whose first argument, `database`, may be left out."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.params = [*self.params, *_declared(_naming)]
        next(one for one in self.params if one.name == "database").required = False
        self.name_values()

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        told, left, _ = self.make_parser(ctx).parse_args(args=list(args))
        named = self._named(ctx, told)
        others = [one for one in self.params if one.param_type_name == "argument" and one.name != "database"]
        words = [told[one.name] for one in self.params if one.param_type_name == "argument" and _is_given(told, one)]
        has_first = _has_first([*words, *left], others)
        if named is not None and has_first:
            ctx.fail(f"The database is named twice: {words[0]!r} and {named!r}. Leave one out.")
        if not has_first:
            args = [named or self._usual(ctx), *args]
        return super().parse_args(ctx, args)

    def _named(self, ctx: Any, told: dict[str, Any]) -> str | None:
        """What an option names."""
        named: str | None = told.get("named")
        return named

    def _usual(self, ctx: Any) -> str:
        """Where it works when nothing is named."""
        return database_here(os.environ.get(DATABASE))

    def invoke(self, ctx: Any) -> Any:
        ctx.params.pop("named", None)
        return super().invoke(ctx)


class OnNewDatabase(OnDatabase):
    """A command that makes a database where there is none, and the place for this folder's own."""

    def _usual(self, ctx: Any) -> str:
        return os.environ.get(DATABASE) or str(workspace_database())


def _is_given(told: dict[str, Any], argument: Any) -> bool:
    return isinstance(told.get(argument.name), str)


def _has_first(words: list[str], others: list[Any]) -> bool:
    """Whether the first of the words is a database: where they are as many as it takes, or, in doubt, by its look."""
    if len(words) > len(others):
        return True
    is_doubtful = len(words) > sum(one.required for one in others)
    return is_doubtful and ("://" in words[0] or words[0].endswith(".db") or Path(words[0]).exists())


class OnServer(OnDatabase):
    """A command that works on a database or, with `--server`, on that server."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.params = [*self.params, *_declared(_reaching)]
        self.name_values()

    def _named(self, ctx: Any, told: dict[str, Any]) -> str | None:
        database, server = super()._named(ctx, told), told.get("server")
        if database is not None and server is not None:
            ctx.fail("Give --database or --server, not both.")
        return database or (None if server is None else _address(ctx, server, "--server"))

    def _usual(self, ctx: Any) -> str:
        server = os.environ.get(SERVER)
        return _address(ctx, server, SERVER) if server else super()._usual(ctx)

    def invoke(self, ctx: Any) -> Any:
        given = {name: ctx.params.pop(name) for name in Remote.__dataclass_fields__}
        before = REMOTE.set(Remote(**given))
        try:
            return super().invoke(ctx)
        finally:
            REMOTE.reset(before)


def _address(ctx: Any, server: str, origin: str) -> str:
    if not is_address(server):
        ctx.fail(f"A server's address begins with http:// or https://, and {origin} does not.")
    return server
