"""`toolgate serve`: run the HTTP server."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from toolgate.errors import UsageError
from toolgate.interfaces.cli.on_server import DATABASE_HELP

if TYPE_CHECKING:
    from toolgate.interfaces.server.settings import ServerSettings


def serve(
    database: Annotated[str, typer.Argument(help=DATABASE_HELP)],
    policy: Annotated[
        Path | None, typer.Option(help="Policy file or folder; by default toolgate.yaml in this folder.")
    ] = None,
    project_policies: Annotated[
        Path | None, typer.Option(help="Folder with policies of single projects, PROJECT.yaml each.")
    ] = None,
    host: Annotated[str | None, typer.Option(help="Address to listen on; 127.0.0.1 by default.")] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on; 8642 by default, 0 takes a free one.")] = None,
    tools: Annotated[
        list[str] | None, typer.Option(help="Your own tools, such as my_app.tools:TOOLS; may be repeated.")
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
) -> None:
    """Run the HTTP server for agents, approvers and clients.

    It does not start without a policy; `toolgate init` writes one. Other settings are environment variables that
    begin with TOOLGATE_. Ctrl-C or SIGTERM stops it; calls that wait for approval are kept.
    """
    from toolgate.bootstrap import role_warning
    from toolgate.interfaces.server.serve import is_exposed, run

    settings = settings_of(
        database=database,
        policy=policy,
        project_policies=project_policies,
        host=host,
        port=port,
        tools=None if tools is None else tuple(tools),
        workspace=workspace,
        accept_policy=accept_policy,
    )
    if is_exposed(settings):
        typer.echo("toolgate: others can reach this server; put a proxy with TLS in front of it.", err=True)
    if settings.cookie_suffices:
        typer.echo("toolgate: cookie_suffices is set: whoever serves a port of this host can act for you.", err=True)
    if (told := role_warning(settings.database)) is not None:
        typer.echo(f"toolgate: {told}", err=True)
    if not run(settings, said=lambda url: typer.echo(f"Serving on {url}")):
        raise typer.Exit(1)


def settings_of(**given: Any) -> ServerSettings:
    """Return the settings with these options; those that are None come from the environment."""
    from pydantic import ValidationError

    from toolgate.interfaces.server.settings import ServerSettings

    try:
        return ServerSettings(**{name: value for name, value in given.items() if value is not None})
    except ValidationError as error:
        problems = "; ".join(
            f"{'.'.join(map(str, one['loc'])) or 'settings'}: {one['msg']}"
            for one in error.errors(include_url=False, include_input=False)
        )
        raise UsageError(f"These settings are wrong: {problems}.") from None
