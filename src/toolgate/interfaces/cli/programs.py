"""`toolgate programs`: what is on record of the programs that commands started, and a person's word on changed ones."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from toolgate.errors import UsageError
from toolgate.interfaces.cli.examples import EXAMPLES
from toolgate.interfaces.cli.help import Command
from toolgate.interfaces.cli.on_server import DatabaseOption, database_here
from toolgate.interfaces.cli.session import By, Json, person
from toolgate.interfaces.cli.show import as_json, printable, store_url, table

if TYPE_CHECKING:
    from toolgate.gate.programs import ProgramPins
    from toolgate.kernel.pin import Pin, Program

T = TypeVar("T")
Paths = Annotated[list[str] | None, typer.Argument(metavar="PATHS", show_default=False, help="Programs, as listed.")]

app = typer.Typer(no_args_is_help=True)


@app.callback()
def programs() -> None:
    """List, accept and forget pinned programs."""


@app.command("list", cls=Command, epilog=EXAMPLES["programs list"])
def list_programs(
    database: DatabaseOption = None,
    changed: Annotated[bool, typer.Option("--changed", help="Only those that are not what they were.")] = False,
    json: Json = False,
) -> None:
    """List the programs on record, and whether each is what it was.

    Programs of the workspace and of the policy's tool directories are pinned when they are first used.
    """

    async def look(pins: ProgramPins) -> Mapping[str, Pin]:
        return pins.book.pins

    found = asyncio.run(_with_pins(database_here(database), look))
    rows = [(pin, *_state(pin)) for _, pin in sorted(found.items())]
    rows = [row for row in rows if row[2] == "changed" or not changed]
    if json:
        as_json({"programs": [{**pin.as_json(), "state": state, "now": _told(now)} for pin, now, state in rows]})
    elif not rows:
        typer.echo("No program is on record." if not changed else "Every program is what it was.")
    else:
        cells = [
            (pin.program.path, _short(pin.program), f"{pin.at:%Y-%m-%d %H:%M}", pin.by, state) for pin, _, state in rows
        ]
        table(("program", "was", "pinned (UTC)", "by", "state"), cells)


@app.command(cls=Command, epilog=EXAMPLES["programs accept"])
def accept(
    paths: Paths = None,
    everything: Annotated[bool, typer.Option("--all", help="All that changed.")] = False,
    database: DatabaseOption = None,
    by: By = None,
    json: Json = False,
) -> None:
    """Agree to what changed programs are now, so that they run again."""
    who = person(by)

    async def agree(pins: ProgramPins) -> list[tuple[Pin, Program]]:
        from toolgate.authority import check_accepting

        check_accepting(who)
        named = _named(pins.book.pins, paths, everything)
        found = [(pin, now) for pin in named for now, state in (_state(pin),) if now is not None and state == "changed"]
        await pins.accept([now for _, now in found], by=who.name)
        return found

    accepted = asyncio.run(_with_pins(database_here(database), agree))
    if json:
        as_json({"accepted": [{**pin.as_json(), "now": _told(now)} for pin, now in accepted]})
    elif not accepted:
        typer.echo("Nothing to accept: every program named is what it was.")
    for pin, now in accepted if not json else ():
        typer.echo(f"{printable(now.path)}: accepted. It was {pin.program.words}; it is {now.words}")


@app.command(cls=Command, epilog=EXAMPLES["programs forget"])
def forget(
    paths: Paths = None,
    everything: Annotated[bool, typer.Option("--all", help="Every program.")] = False,
    database: DatabaseOption = None,
    by: By = None,
    json: Json = False,
) -> None:
    """Take programs off the record: the next use of each is its first."""
    who = person(by)

    async def drop(pins: ProgramPins) -> list[str]:
        from toolgate.authority import check_accepting

        check_accepting(who)
        named = [pin.program.path for pin in _named(pins.book.pins, paths, everything)]
        await pins.forget(named, by=who.name)
        return named

    forgotten = asyncio.run(_with_pins(database_here(database), drop))
    if json:
        as_json({"forgotten": forgotten})
    else:
        typer.echo(f"{len(forgotten)} forgotten.")


async def _with_pins(database: str, work: Callable[[ProgramPins], Awaitable[T]]) -> T:
    from toolgate.bootstrap import pinned_programs

    async with pinned_programs(store_url(database)) as pins:
        return await work(pins)


def _named(known: Mapping[str, Pin], paths: list[str] | None, everything: bool) -> list[Pin]:
    if bool(paths) == everything:
        raise UsageError("Name the programs, or say --all.")
    if everything:
        return [*known.values()]
    wanted = [os.path.abspath(path) for path in paths or ()]
    unknown = next((path for path in wanted if path not in known), None)
    if unknown is not None:
        raise UsageError(f"{unknown!r} is not on record; `toolgate programs list` shows what is.")
    return [known[path] for path in wanted]


def _state(pin: Pin) -> tuple[Program | None, str]:
    from toolgate.guards.pins import look_again

    now = look_again(pin.program)
    if now is None:
        return None, "gone"
    return now, "as it was" if now.identity == pin.program.identity else "changed"


def _short(program: Program) -> str:
    return f"-> {program.target}" if program.sha256 is None else f"{program.sha256[:12]} {program.size:,} bytes"


def _told(program: Program | None) -> dict[str, Any] | None:
    return None if program is None else program._asdict()
