"""`toolgate worker`: run tools with the placement `worker` for any number of servers."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from toolgate.interfaces.cli.on_server import DATABASE_HELP


def worker(
    database: Annotated[str, typer.Argument(help=DATABASE_HELP)],
    queue: Annotated[list[str] | None, typer.Option(help="A queue to work on; may be repeated.")] = None,
    tools: Annotated[list[str] | None, typer.Option(help="Where tools are, such as my_app.tools:TOOLS.")] = None,
    policy: Annotated[
        Path | None, typer.Option(help="Policy file or folder; toolgate.yaml in this folder by default.")
    ] = None,
    workspace: Annotated[str | None, typer.Option(help="The folder relative paths begin in.")] = None,
    redis: Annotated[str | None, typer.Option(help="URL of the Redis the servers share, if they do.")] = None,
    concurrency: Annotated[int, typer.Option(min=1, max=1000, help="How many calls at a time.")] = 8,
    lease_s: Annotated[
        float, typer.Option("--lease", min=1.0, help="Seconds without a sign of life after which others take over.")
    ] = 10.0,
    drain_s: Annotated[float, typer.Option("--drain", min=0.0, help="Seconds calls get to end on SIGTERM.")] = 30.0,
    plain: Annotated[bool, typer.Option("--plain", help="Print lines instead of a live table.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object per line.")] = False,
) -> None:
    """Run calls that wait for a worker, until SIGTERM or Ctrl-C. Give it the same tools and policy as the servers.

    Each call is run by one worker and once: what a killed worker left is offered again where that is harmless, and
    is UNKNOWN otherwise.
    """
    import asyncio

    from toolgate import bootstrap
    from toolgate.bootstrap import tools_at
    from toolgate.errors import UsageError
    from toolgate.interfaces.cli.serve import settings_of
    from toolgate.interfaces.worker.crew import Worker
    from toolgate.kernel.text.canonical import Limits
    from toolgate.policy.loader import find_policy

    bootstrap.require("worker", "pydantic_settings")
    settings = settings_of(
        database=database,
        policy=policy,
        tools=None if tools is None else tuple(tools),
        workspace=workspace,
        redis=redis,
    )
    if settings.database.startswith("postgres"):
        bootstrap.require("worker", "asyncpg", "pgqueuer")
    if settings.policy is None:
        find_policy(".")  # says what to do where there is none
    found = {name: tool for where in settings.tools for name, tool in tools_at(where).items()}
    wanted = set(queue or ["default"])
    if not any(tool.runs_in == "worker" and tool.queue in wanted for tool in found.values()):
        raise UsageError(
            f"None of the tools runs at a worker of {', '.join(sorted(wanted))}: give --tools whose placement is "
            "`worker` and whose queue is one of these."
        )
    gate = bootstrap.open(
        settings.database,
        tools=found.values(),
        policy=settings.policy or ".",
        workspace=settings.workspace,
        limits=Limits(max_bytes=settings.max_argument_bytes),
        redis=None if settings.redis is None else settings.redis.get_secret_value(),
        workers=True,
    )
    crew: Any = gate.host.runner("worker")
    one = Worker(
        gate,
        crew.dispatcher,
        _view(plain, json),
        name=f"worker:{gate.host.owner}",
        concurrency=concurrency,
        lease_s=lease_s,
    )
    asyncio.run(one.run(wanted, drain_s=drain_s))


def _view(plain: bool, json: bool) -> Any:
    from toolgate.interfaces.worker.views import JsonLines, Lines, Live

    if json:
        return JsonLines(typer.echo)
    if plain or not sys.stdout.isatty():
        return Lines(typer.echo)
    from rich.console import Console

    return Live(Console())
