"""`toolgate runner`: do on this machine what a server signals."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from toolgate.interfaces.cli.calling import CaFile, PlainHttp, Server, TokenFile
from toolgate.interfaces.cli.credentials import token_of
from toolgate.interfaces.cli.setup import Profile
from toolgate.kernel.context import DEFAULT_PROJECT


def runner(
    server: Server,
    project: Annotated[
        str, typer.Option(show_default=False, help="The project whose calls run here; `default` by default.")
    ] = DEFAULT_PROJECT,
    workspace: Annotated[
        Path, typer.Option(show_default=False, help="Folder the tools work in; this one by default.")
    ] = Path(),
    policy: Annotated[
        Path | None, typer.Option(help="This machine's policy; by default toolgate.yaml in the workspace.")
    ] = None,
    profile: Annotated[
        Profile | None, typer.Option(help="A built-in policy instead: developer, readonly or locked.")
    ] = None,
    confirm: Annotated[bool, typer.Option("--confirm", help="Also ask on this terminal before every call.")] = False,
    trust_approvals: Annotated[
        bool,
        typer.Option("--trust-approvals", help="Where the policy asks, accept an approval given on the server."),
    ] = False,
    only: Annotated[
        list[str] | None, typer.Option(metavar="TOOL", help="Offer only this tool; may be repeated.")
    ] = None,
    tools: Annotated[
        list[str] | None, typer.Option(help="Your own tools, such as my_app.tools:TOOLS; may be repeated.")
    ] = None,
    state: Annotated[
        Path | None, typer.Option(help="Folder for its journal; by default below ~/.local/state/toolgate.")
    ] = None,
    token_file: TokenFile = None,
    grace: Annotated[float, typer.Option(help="Seconds that running calls get to finish when it stops.")] = 10.0,
    plain_http: PlainHttp = False,
    ca_file: CaFile = None,
    plain: Annotated[bool, typer.Option("--plain", help="Print lines instead of a live screen.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object per line, for each event.")] = False,
) -> None:
    """Run a project's calls on this machine, under its own policy.

    Ctrl-C or SIGTERM ends it when the running calls are done; a second one ends it at once.
    """
    from toolgate.bootstrap import tools_at
    from toolgate.interfaces.runner.run import Options, serve
    from toolgate.interfaces.runner.view import view_for

    if confirm and trust_approvals:
        raise typer.BadParameter("--confirm asks about every call here, so --trust-approvals has no effect with it.")
    token = token_of(token_file, kind="runner")
    options = Options(
        server=server,
        project=project,
        workspace=workspace,
        token=token,
        policy=policy,
        profile=None if profile is None else profile.value,
        state=state,
        only=tuple(only or ()),
        tools=tuple(tool for where in tools or () for tool in tools_at(where).values()),
        private=() if token_file is None else (token_file.absolute(),),
        confirm=confirm,
        trust_approvals=trust_approvals,
        grace_s=max(0.0, grace),
        plain_http=plain_http,
        ca_file=ca_file,
    )
    view = view_for(f"toolgate runner · {project}", json=json, plain=plain)
    try:
        asyncio.run(serve(options, view))
    finally:
        view.close()
