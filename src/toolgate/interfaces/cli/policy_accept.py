"""`toolgate policy accept`: a person's word on policy files that a sandboxed run may have written."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from toolgate.interfaces.cli.on_server import DatabaseOption, database_here
from toolgate.interfaces.cli.policy import Json, Projects, Workspace, answering
from toolgate.interfaces.cli.session import By, person
from toolgate.interfaces.cli.show import as_json, printable, store_url

Revision = Annotated[
    str | None, typer.Argument(help="What to accept, as it was shown; without it, what waits is only shown.")
]


@answering
def accept(
    revision: Revision = None,
    policy: Annotated[Path, typer.Option(help="Policy file or folder; this folder by default.")] = Path(),
    database: DatabaseOption = None,
    workspace: Workspace = None,
    project_policies: Projects = None,
    by: By = None,
    json: Json = False,
) -> None:
    """Show, or accept, a policy that changed during a sandboxed run.

    Exit code 1 if one waits that was not accepted.
    """
    from toolgate.bootstrap import held_policy
    from toolgate.policy.loader import PolicySource

    who = person(by)
    source = PolicySource(policy, workspace=workspace, projects=project_policies)
    held = asyncio.run(held_policy(store_url(database_here(database)), source, accept=revision, by=who))
    if json:
        accepted = held is not None and revision is not None
        as_json({"held": None if held is None else held.as_json(), "accepted": accepted})
    elif held is None:
        typer.echo("No policy waits for a word.")
    else:
        typer.echo(printable(held.diff), nl=False)
        word = f"accept it with `toolgate policy accept {held.revision[:12]}`" if revision is None else "accepted"
        typer.echo(f"revision {held.revision[:12]}, before {held.kept[:12]}: {word}")
    if held is not None and revision is None:
        raise typer.Exit(1)
