"""`toolgate runner`: do on this machine what a server signals."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from toolgate.errors import UsageError
from toolgate.interfaces.cli.calling import Server
from toolgate.interfaces.cli.credentials import TOKEN, token_of
from toolgate.interfaces.cli.setup import Profile
from toolgate.kernel.context import DEFAULT_PROJECT


def runner(
    server: Server,
    project: Annotated[str, typer.Option(help="The project whose calls run here.")] = DEFAULT_PROJECT,
    workspace: Annotated[Path, typer.Option(help="The folder tools work in; paths outside it are refused.")] = Path(),
    policy: Annotated[
        Path | None, typer.Option(help="This machine's policy; toolgate.yaml in the workspace by default.")
    ] = None,
    profile: Annotated[
        Profile | None, typer.Option(help="A built-in policy instead: developer, readonly or locked.")
    ] = None,
    confirm: Annotated[bool, typer.Option("--confirm", help="Ask here before everything, too.")] = False,
    trust_approvals: Annotated[
        bool,
        typer.Option(
            "--trust-approvals", help="Where the policy asks, take the yes of a person at the server for the answer."
        ),
    ] = False,
    only: Annotated[list[str] | None, typer.Option(help="Offer only this tool; may be repeated.")] = None,
    tools: Annotated[
        list[str] | None, typer.Option(help="Where further tools are, such as my_app.tools:TOOLS.")
    ] = None,
    state: Annotated[
        Path | None, typer.Option(help="The folder of the journal; beneath ~/.local/state/toolgate by default.")
    ] = None,
    token_file: Annotated[
        Path | None, typer.Option(help=f"A file that holds the token, instead of the variable {TOKEN}.")
    ] = None,
    grace: Annotated[float, typer.Option(help="Seconds that what runs has to end when the runner stops.")] = 10.0,
    plain_http: Annotated[
        bool, typer.Option("--plain-http", help="Send the token unencrypted to another machine.")
    ] = False,
    ca_file: Annotated[Path | None, typer.Option(help="Certificates to trust instead of the system's.")] = None,
    plain: Annotated[bool, typer.Option("--plain", help="Print lines instead of a live screen.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object per line for what happens.")] = False,
) -> None:
    """Run a project's calls on this machine, as far as this machine's own policy allows them.

    Ends on SIGTERM or Ctrl-C, after what runs is done; a second one ends it at once.
    """
    from toolgate.bootstrap import tools_at
    from toolgate.interfaces.runner.run import Options, serve
    from toolgate.interfaces.runner.view import view_for

    if confirm and trust_approvals:
        raise UsageError("--confirm asks here about everything, so --trust-approvals has no meaning beside it.")
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
