"""`toolgate policy accept`: a person's word on policy files that a sandboxed run may have written."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolgate.interfaces.cli.on_server import DATABASE, DATABASE_HELP, DEFAULT_DATABASE
from toolgate.interfaces.cli.policy import Json, Projects, Workspace, answering
from toolgate.interfaces.cli.session import By, person
from toolgate.interfaces.cli.show import as_json, printable, store_url

if TYPE_CHECKING:
    from toolgate.gate.windows import Held
    from toolgate.policy.loader import PolicySource

Revision = Annotated[
    str | None, typer.Argument(help="What to accept, as it was shown; without it, what waits is only shown.")
]


@answering
def accept(
    revision: Revision = None,
    policy: Annotated[Path, typer.Option(help="Policy file or folder; this folder by default.")] = Path(),
    database: Annotated[
        str, typer.Option(envvar=DATABASE, show_envvar=False, show_default=False, help=DATABASE_HELP)
    ] = DEFAULT_DATABASE,
    workspace: Workspace = None,
    project_policies: Projects = None,
    by: By = None,
    json: Json = False,
) -> None:
    """Show, or accept, a policy that changed during a sandboxed run.

    Exit code 1 if one waits that was not accepted.
    """
    from toolgate.authority import check_accepting

    who = person(by)
    check_accepting(who)
    from toolgate.policy.loader import PolicySource

    source = PolicySource(policy, workspace=workspace, projects=project_policies)
    held = asyncio.run(waiting(source, store_url(database), revision, who.name))
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


async def waiting(source: PolicySource, url: str, revision: str | None = None, by: str = "") -> Held | None:
    """Return what waits, or waited until the revision that is named was accepted here; without one, only look."""
    from toolgate.bootstrap import connect, policy_windows
    from toolgate.kernel.text.masking import Masker

    found = source.load()
    store, bus = connect(url)
    try:
        windows = policy_windows(url, store, source, mask=Masker().text)
        if revision is None:
            return await windows.held(found)
        await windows.settle()
        held = await windows.held(found)
        if held is not None:
            await windows.accept(found, revision, by=by)
        return held
    finally:
        bus.close()
        await store.close()
