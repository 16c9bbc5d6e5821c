"""`toolgate policy test`, `simulate` and `diff`: what a policy must do, would have done, and does differently."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from toolgate.errors import UsageError
from toolgate.interfaces.cli.duration import seconds_of
from toolgate.interfaces.cli.on_server import DatabaseOption, database_here
from toolgate.interfaces.cli.policy import (
    Calls,
    File,
    Json,
    JsonOfCalls,
    Projects,
    Tools,
    Workspace,
    answering,
    as_line,
    explained,
    known_tools,
    lines_of,
    load,
)
from toolgate.interfaces.cli.show import as_json, store_url, table

if TYPE_CHECKING:
    from toolgate.kernel.event import Event
    from toolgate.policy.simulate import Simulation
    from toolgate.ports.store import Store

PAGE = 1000
Old = Annotated[Path, typer.Argument(help="The old policy: a file, or a folder with toolgate.yaml.")]
New = Annotated[Path, typer.Argument(help="The new policy: a file, or a folder with toolgate.yaml.")]


@answering
def check_calls(
    file: File,
    calls: Calls = None,
    tools: Tools = None,
    workspace: Workspace = None,
    project_policies: Projects = None,
    json: JsonOfCalls = False,
) -> None:
    """Run a policy's examples and a file of expected verdicts.

    Exit code 1 if a call is decided differently than expected.
    """
    from toolgate.policy.explain import question_of

    found = load(file, workspace, project_policies)  # which runs the examples
    known = known_tools(found, tools)
    documents = {one.name: one for each in (found, *found.projects.values()) for one in each.documents}
    passed = sum(
        len(entry.examples) for one in documents.values() for entry in (*one.tools.values(), *one.categories.values())
    )
    failed = 0
    for number, data in enumerate(lines_of(calls) if calls is not None else (), start=1):
        question = question_of(data, known)
        if question.expect not in ("allow", "ask", "deny"):
            raise UsageError(f"Call {number} must `expect` allow, ask or deny.")
        explanation = explained(found, question)
        said = explanation.unexpected()
        ok = said is None
        passed, failed = passed + ok, failed + (not ok)
        if json:
            as_line({"number": number, "ok": ok, "expect": question.expect, **explanation.as_json()})
        elif not ok:
            typer.echo(f"call {number}: {question.tool.name}: expected {question.expect}, got {said}")
    if not json:
        typer.echo(f"{passed} passed, {failed} failed")
    if failed:
        raise typer.Exit(1)


@answering
def simulate(
    new: New,
    database: DatabaseOption = None,
    since: Annotated[str, typer.Option(help="How far to go back, such as 12h or 30d.")] = "30d",
    against: Annotated[
        Path | None, typer.Option(help="Compare with this policy, not with what was decided then.")
    ] = None,
    tools: Tools = None,
    workspace: Workspace = None,
    project_policies: Projects = None,
    json: Json = False,
) -> None:
    """Replay recorded calls under a new policy; show what changes.

    Exit code 1 if any verdict changes. Nothing runs, and the database stays as it is.
    """
    from toolgate.policy.simulate import Simulation

    policy = load(new, workspace, project_policies)
    old = None if against is None else load(against, workspace)
    start = datetime.now(UTC) - timedelta(seconds=seconds_of(since))

    async def run() -> Simulation:
        from toolgate.bootstrap import connect
        from toolgate.kernel.context import SYSTEM_PROJECT
        from toolgate.policy.simulate import Timeline

        store, bus = connect(store_url(database_here(database)))
        try:
            simulation = Simulation(
                policy, Timeline(await changes_in(store, SYSTEM_PROJECT)), tools=known_tools(policy, tools), old=old
            )
            await _replay(store, simulation, start)
            return simulation
        finally:
            await store.close()
            bus.close()

    simulation = asyncio.run(run())
    if json:
        as_json(simulation.as_json())
    else:
        _tell(simulation)
    if simulation.changed:
        raise typer.Exit(1)


async def changes_in(store: Store, project: str) -> list[Event]:
    """Return all events of a project."""
    found: list[Event] = []
    while page := await store.events(project, after=found[-1].seq if found else 0, limit=PAGE):
        found += page
    return found


async def _replay(store: Store, simulation: Simulation, start: datetime) -> None:
    """Page through the calls, showing on a terminal how far it is."""
    from rich.console import Console
    from rich.progress import Progress

    from toolgate.ports.store import CallQuery

    end = datetime.now(UTC)
    span = max((end - start).total_seconds(), 1.0)
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        bar = progress.add_task("replaying", total=span)
        last = None
        while page := await store.calls(CallQuery(since=start, after=last, limit=PAGE)):
            simulation.replay(page)
            last = page[-1]
            progress.update(bar, completed=min(span, (last.created_at - start).total_seconds()))


def _tell(simulation: Simulation) -> None:
    told = simulation.as_json()
    typer.echo(f"{told['calls']:,} calls replayed, {told['changed']:,} would be decided differently")
    if told["groups"]:
        rows = [
            (group["count"], group["tool"], f"{group['from']} -> {group['to']}", group["reasons"][0]["reason"])
            for group in told["groups"]
        ]
        table(("calls", "tool", "verdict", "because"), rows)
    for why, count in told["skipped"].items():
        typer.echo(f"skipped {count:,}: {why}")
    if told["tools_not_registered_here"]:
        names = ", ".join(told["tools_not_registered_here"][:10])
        typer.echo(f"Without --tools, these were judged by what was recorded of them: {names}")


@answering
def diff(old: Old, new: New, workspace: Workspace = None, json: Json = False) -> None:
    """Show the differences between two policies.

    Exit code 1 if there are any.
    """
    from toolgate.policy.diff import diff as diff_of

    found = diff_of(load(old, workspace), load(new, workspace))
    if json:
        as_json(found.as_json())
    else:
        for difference in found.differences:
            typer.echo(f"{difference.path}: {_short(difference.old)} -> {_short(difference.new)}")
        for shift in found.shifts:
            effect = "stricter" if shift.is_stricter else "looser"
            typer.echo(f"{shift.tool} in {shift.mode}: {shift.old} -> {shift.new} ({effect})")
        if not found.differences:
            typer.echo("The policies say the same.")
    if found.differences:
        raise typer.Exit(1)


def _short(value: Any) -> str:
    text = "absent" if value is None else str(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
