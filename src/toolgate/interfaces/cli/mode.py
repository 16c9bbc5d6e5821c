"""`toolgate mode`: which brakes are pulled, and pulling and releasing them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from toolgate.interfaces.cli.backend import backend_on
from toolgate.interfaces.cli.session import By, Database, Json
from toolgate.interfaces.cli.show import as_json, printable, table

if TYPE_CHECKING:
    from toolgate.wire.brakes import BrakeRecord, BrakesAnswer, ModeName

MODES: tuple[ModeName, ...] = ("NORMAL", "ALERT", "DEGRADED", "LOCKDOWN", "RECOVERY")


def set_or_show(
    database: Database,
    mode: Annotated[str | None, typer.Argument(help="The mode to set; without one, show what is set.")] = None,
    project: Annotated[str | None, typer.Option("--project", help="For this project; without it, everybody.")] = None,
    agent: Annotated[str | None, typer.Option("--agent", help="For this agent in the project.")] = None,
    run: Annotated[str | None, typer.Option("--run", help="For this run in the project.")] = None,
    everybody: Annotated[
        bool,
        typer.Option("--everybody", help="For everybody; on a server, name a project you are an admin of."),
    ] = False,
    reason: Annotated[str, typer.Option("--reason", help="Why; everybody is shown it.")] = "",
    by: By = None,
    json: Json = False,
) -> None:
    """Show what is stopped, and stop or release it.

    A project, an agent or a run can have a mode of its own; NORMAL releases it. LOCKDOWN stops everything of its scope
    at once. A call answers to every mode over it.
    """
    if project is None and (agent or run):
        raise typer.BadParameter("An agent or a run is braked in a project: say which with --project.")
    if bool(agent) + bool(run) + everybody > 1:
        raise typer.BadParameter("A brake is pulled over one thing: give one of --everybody, --agent, --run.")
    if mode is None and (agent or run or reason or everybody):
        raise typer.BadParameter("Say which mode to set: " + ", ".join(MODES) + ".")
    named = None if mode is None else _mode(mode)
    with backend_on(database, project=project, by=by) as backend:
        if named is None:
            found = backend.brakes()
        else:
            found = backend.set_mode(
                named, reason=reason, everybody=everybody or project is None, agent=agent or None, run=run or None
            )
    if json:
        as_json(found.model_dump(mode="json", exclude={"success"}))
    else:
        _tell(found)


def _mode(given: str) -> ModeName:
    for name in MODES:
        if given.upper() == name:
            return name
    raise typer.BadParameter(f"{given[:40]!r} is not a mode; modes are: {', '.join(MODES)}.")


def _tell(found: BrakesAnswer) -> None:
    if found.fault is not None:
        typer.echo(found.fault)
    typer.echo(f"Everybody is in {found.mode}.")
    if found.brakes:
        rows = [(one.mode, _scope(one), one.by, f"{one.at:%Y-%m-%d %H:%M}" if one.at else "", one.reason)
                for one in found.brakes]  # fmt: skip
        table(("mode", "over", "by", "since (UTC)", "why"), rows)


def _scope(one: BrakeRecord) -> str:
    from toolgate.kernel.brake import Scope

    return printable(str(Scope(one.project, one.agent, one.run)))
