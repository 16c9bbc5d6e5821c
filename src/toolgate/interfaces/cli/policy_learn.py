"""`toolgate policy learn`: the narrowest change of the policy that would have allowed a call, as a diff."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolgate.errors import NotFoundError, UsageError
from toolgate.interfaces.cli.on_server import DatabaseOption, database_here
from toolgate.interfaces.cli.policy import Json, Projects, Tools, Workspace, answering, known_tools, load
from toolgate.interfaces.cli.show import as_json, printable, store_url

if TYPE_CHECKING:
    from toolgate.kernel.call import Call
    from toolgate.policy.compile import FilePolicy
    from toolgate.policy.learn import Proposal

Written = Annotated[
    bool, typer.Option("--write", help="Ask, then change the file. Only at a terminal, and only the gate's own policy.")
]


@answering
def learn(
    call_id: Annotated[str, typer.Argument(help="The call, as `toolgate history` shows it.")],
    policy: Annotated[Path, typer.Option(help="The policy: a file, or a folder with toolgate.yaml.")] = Path("."),
    database: DatabaseOption = None,
    project: Annotated[str, typer.Option(help="The project the call was made in.")] = "default",
    tools: Tools = None,
    workspace: Workspace = None,
    project_policies: Projects = None,
    write: Written = False,
    json: Json = False,
) -> None:
    """Show the policy change that allows an unknown command.

    It is the narrowest one: that line to the letter, and no other. Nothing changes without --write.
    """
    from toolgate.policy.learn import propose, question_about
    from toolgate.policy.writing import write_texts

    found = load(policy, workspace, project_policies)
    call, followed = asyncio.run(_recorded(database_here(database), project, call_id))
    own = found.in_project(project)
    proposal = propose(own, question_about(call, known_tools(found, tools)))
    if write:
        _check_writable(own, call, followed)
    if json:
        as_json(proposal.as_json())
    else:
        _tell(proposal, is_written=write)
    if write:
        typer.confirm("Change the policy so?", abort=True, err=True)
        write_texts(own, proposal.texts)
        typer.echo(f"Changed: {', '.join(proposal.texts)}", err=True)


async def _recorded(database: str, project: str, call_id: str) -> tuple[Call, set[str]]:
    """Return a call, and the revisions that the gate of this database went over to."""
    from toolgate.bootstrap import connect
    from toolgate.interfaces.cli.policy_change import changes_in
    from toolgate.kernel.context import SYSTEM_PROJECT

    store, bus = connect(store_url(database))
    try:
        call = await store.call(project, call_id)
        if call is None:
            raise NotFoundError(
                f"There is no call {call_id!r} in project {project!r} of {database}: `toolgate history` lists them; "
                "name another place with --database and --project."
            )
        events = [event for each in (SYSTEM_PROJECT, project) for event in await changes_in(store, each)]
        return call, {event.data["to"] for event in events if event.type == "policy.changed"}
    finally:
        await store.close()
        bus.close()


def _check_writable(policy: FilePolicy, call: Call, followed: set[str]) -> None:
    """Refuse to write where nobody sits, and what the gate of this database does not read."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("--write is for a person at a terminal. Leave it out, and apply the diff yourself.")
    if policy.revision not in {call.policy_revision, *followed}:
        raise UsageError(
            f"The gate of this database has not read this policy (revision {policy.revision}); the call was judged by "
            f"{call.policy_revision}. Name the gate's own with --policy, or let the gate read this one first."
        )


def _tell(proposal: Proposal, *, is_written: bool) -> None:
    for line in proposal.diff.splitlines():
        typer.echo(printable(line))
    said = f"Then the same call is decided: {proposal.then}"
    typer.echo(f"{said}." if proposal.then == "allow" else f"{said} ({printable(proposal.because)}).", err=True)
    if not is_written:
        typer.echo("Nothing was changed. Add --write to change the file, or apply the diff yourself.", err=True)
