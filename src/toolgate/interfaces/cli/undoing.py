"""`toolgate undo` and `undo-run`: take back what a call or a whole run did, where its tools can be loaded."""

from __future__ import annotations

from typing import Annotated

import typer

from toolgate.interfaces.cli.backend import backend_on
from toolgate.interfaces.cli.session import By, Database, InProject, Json, Tools
from toolgate.interfaces.cli.show import as_json, printable, table
from toolgate.kernel.context import DEFAULT_PROJECT

Force = Annotated[bool, typer.Option("--force", help="Undo even if the state has changed since.")]
UNSEEN = "nobody can see whether the state had changed"


def undo(
    database: Database,
    call_id: Annotated[str, typer.Argument(help="Id of the call, from `toolgate history`.")],
    tools: Tools = None,
    by: By = None,
    force: Force = False,
    project: InProject = DEFAULT_PROJECT,
    json: Json = False,
) -> None:
    """Undo one call.

    The tool's own code does it: on a database, name it with --tools. Exit code 1 if it was not undone.
    """
    with backend_on(database, project=project, by=by, tools=tools) as backend:
        result = backend.undo(call_id, force=force)
    if json:
        told = {"call_id": call_id, "undo_call_id": result.call_id, "undone": result.success}
        as_json({**told, "status": result.status.value, "error": result.error, "unchecked": result.unchecked})
    elif result.success:
        typer.echo(f"{call_id} was undone{', unchecked: ' + UNSEEN if result.unchecked else ''}.")
    else:
        typer.echo(printable(result.error or result.status))
    if not result.success:
        raise typer.Exit(1)


def undo_run(
    database: Database,
    run_id: Annotated[str, typer.Argument(help="Id of the run.")],
    tools: Tools = None,
    preview: Annotated[bool, typer.Option("--preview", help="Change nothing; show what would be undone.")] = False,
    skip: Annotated[bool, typer.Option("--skip", help="Continue where a call cannot be undone.")] = False,
    by: By = None,
    force: Force = False,
    project: InProject = DEFAULT_PROJECT,
    json: Json = False,
) -> None:
    """Undo every call of a run, the last one first.

    Exit code 1 if an effect is left, or there is no such run.
    """
    with backend_on(database, project=project, by=by, tools=tools) as backend:
        report = backend.undo_run(run_id, force=force, skip_failures=skip, preview=preview)
    steps = [
        {
            "call_id": step.tool_id,
            "tool": step.tool_name,
            "step": step.step,
            "reason": step.reason,
            "unchecked": step.unchecked,
        }
        for step in report.steps
    ]
    if json:
        as_json({"run_id": run_id, "preview": preview, "success": report.success, "steps": steps})
    elif not steps:
        typer.echo(f"Run {printable(run_id)} has no call that did anything.")
    else:
        rows = [
            (one.tool_id, one.tool_name, one.step, f"unchecked: {UNSEEN}" if one.unchecked else one.reason)
            for one in report.steps
        ]
        table(("call", "tool", "outcome", "why"), rows)
    if not report.success:
        raise typer.Exit(1)
