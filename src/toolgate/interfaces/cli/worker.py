"""`toolgate worker`: run tools with the placement `worker` for any number of servers."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from toolgate.interfaces.cli.on_server import DATABASE_HELP


def worker(
    database: Annotated[str, typer.Argument(help=DATABASE_HELP)],
    queue: Annotated[
        list[str] | None, typer.Option(help="A queue to work on; `default` by default; may be repeated.")
    ] = None,
    tools: Annotated[
        list[str] | None, typer.Option(help="Your tools, such as my_app.tools:TOOLS; may be repeated.")
    ] = None,
    policy: Annotated[
        Path | None, typer.Option(help="Policy file or folder; by default toolgate.yaml in this folder.")
    ] = None,
    project_policies: Annotated[
        Path | None, typer.Option(help="Folder with policies of single projects, PROJECT.yaml each.")
    ] = None,
    workspace: Annotated[
        str | None, typer.Option(help="Folder that relative paths start in; this one by default.")
    ] = None,
    accept_policy: Annotated[
        str | None,
        typer.Option(
            metavar="REVISION", help="Policy revision to follow although a sandboxed run may have written it."
        ),
    ] = None,
    redis: Annotated[str | None, typer.Option(help="URL of the Redis that the servers use, if they use one.")] = None,
    concurrency: Annotated[int, typer.Option(min=1, max=1000, help="How many calls to run at the same time.")] = 8,
    lease_s: Annotated[
        float,
        typer.Option("--lease", min=1.0, help="Seconds without a heartbeat after which another worker takes over."),
    ] = 10.0,
    drain_s: Annotated[
        float, typer.Option("--drain", min=0.0, help="Seconds that running calls get to finish on SIGTERM.")
    ] = 30.0,
    plain: Annotated[bool, typer.Option("--plain", help="Print lines instead of a live table.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object per line.")] = False,
) -> None:
    """Run calls of tools with the placement `worker`.

    Give it the same database, tools and policy as the servers. Each call runs once, on one worker; if that worker is
    killed, the call is run again where that is harmless, and is UNKNOWN otherwise. Ctrl-C or SIGTERM ends it when
    the running calls are done.
    """
    import asyncio

    from toolgate import bootstrap
    from toolgate.bootstrap import tools_at
    from toolgate.errors import UsageError
    from toolgate.interfaces.cli.serve import settings_of
    from toolgate.interfaces.worker.worker import Worker
    from toolgate.kernel.text.canonical import Limits
    from toolgate.policy.loader import find_policy

    bootstrap.require("worker", "pydantic_settings")
    settings = settings_of(
        database=database,
        policy=policy,
        project_policies=project_policies,
        tools=None if tools is None else tuple(tools),
        workspace=workspace,
        redis=redis,
        accept_policy=accept_policy,
    )
    if settings.database.startswith("postgres"):
        bootstrap.require("worker", "asyncpg", "pgqueuer")
    if settings.policy is None:
        find_policy(".")  # says what to do where there is none
    found = {name: tool for where in settings.tools for name, tool in tools_at(where).items()}
    wanted = set(queue or ["default"])
    if not any(tool.runs_in == "worker" and tool.queue in wanted for tool in found.values()):
        raise UsageError(
            f"No tool has the placement `worker` and a queue of {', '.join(sorted(wanted))}: name such tools with "
            "--tools."
        )
    gate = bootstrap.open(
        settings.database,
        tools=found.values(),
        policy=settings.policy or ".",
        project_policies=settings.project_policies,
        workspace=settings.workspace,
        limits=Limits(max_bytes=settings.max_argument_bytes),
        redis=None if settings.redis is None else settings.redis.get_secret_value(),
        workers=True,
        accept_policy=settings.accept_policy,
    )
    runner: Any = gate.host.runner("worker")
    one = Worker(
        gate,
        runner.dispatcher,
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
