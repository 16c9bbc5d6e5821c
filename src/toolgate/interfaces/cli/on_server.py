"""`--server`: a command for a database works on a server instead, whose address takes the database's place."""

from __future__ import annotations

from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from toolgate.interfaces.cli.credentials import TOKEN


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


def _options(
    server: Annotated[str | None, typer.Option(help="A server's address, instead of the database.")] = None,
    token_file: Annotated[
        Path | None, typer.Option(help=f"A file that holds the token, instead of the variable {TOKEN}.")
    ] = None,
    plain_http: Annotated[
        bool, typer.Option("--plain-http", help="Send the token unencrypted to another machine.")
    ] = False,
    ca_file: Annotated[Path | None, typer.Option(help="Certificates to trust instead of the system's.")] = None,
) -> None:
    """Only its parameters are used."""


def _declared() -> list[Any]:
    only = typer.Typer(add_completion=False)
    only.command()(_options)
    return [one for one in typer.main.get_command(only).params if one.name != "help"]


class OnServer(TyperCommand):
    """A command whose first argument is a database or, with `--server`, that server."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.params = [*self.params, *_declared()]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, [*_addresses(args), *args])

    def invoke(self, ctx: Any) -> Any:
        given = {name: ctx.params.pop(name) for name in Remote.__dataclass_fields__}
        before = REMOTE.set(Remote(**given))
        try:
            return super().invoke(ctx)
        finally:
            REMOTE.reset(before)


def _addresses(args: list[str]) -> Iterator[str]:
    """The address that `--server` names, to stand where the database would."""
    for number, word in enumerate(args):
        if word == "--":
            return
        if word.startswith("--server="):
            yield word.removeprefix("--server=")
            return
        if word == "--server" and number + 1 < len(args):
            yield args[number + 1]
            return
