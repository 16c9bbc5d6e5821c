"""`toolgate call`: call one tool through a server, which asks whom it must."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolgate.interfaces.cli.on_server import CA_FILE_HELP, PLAIN_HTTP_HELP, SERVER, SERVER_HELP, TOKEN_FILE_HELP
from toolgate.interfaces.cli.session import Json
from toolgate.interfaces.cli.show import as_json, printable
from toolgate.kernel.context import DEFAULT_PROJECT

if TYPE_CHECKING:
    from toolgate.kernel.output import Result

Server = Annotated[str, typer.Option(envvar=SERVER, show_envvar=False, help=SERVER_HELP)]
InProject = Annotated[str, typer.Option("--project", show_default=False, help="The project; `default` by default.")]
TokenFile = Annotated[Path | None, typer.Option(help=TOKEN_FILE_HELP)]
PlainHttp = Annotated[bool, typer.Option("--plain-http", help=PLAIN_HTTP_HELP)]
CaFile = Annotated[Path | None, typer.Option(help=CA_FILE_HELP)]


def call(
    server: Server,
    tool: Annotated[str, typer.Argument(help="Name of the tool.")],
    arguments: Annotated[str, typer.Argument(help="Its arguments as JSON, or @FILE to read them from.")] = "{}",
    project: InProject = DEFAULT_PROJECT,
    call_id: Annotated[
        str | None,
        typer.Option("--id", metavar="ID", help="An id of your own for the call; the same id never runs twice."),
    ] = None,
    session: Annotated[str | None, typer.Option("--session", help="The chat session the call belongs to.")] = None,
    run: Annotated[
        str | None, typer.Option("--run", help="The run it belongs to; the same call that waits there is joined.")
    ] = None,
    step: Annotated[
        str | None, typer.Option("--step", help="The step of the run; two alike in one step are two calls.")
    ] = None,
    distinct: Annotated[bool, typer.Option("--distinct", help="Join no earlier call: this is another one.")] = False,
    repeat_of: Annotated[
        str | None,
        typer.Option("--repeat-of", help="A call that has ended, to have its effect again; a person is asked."),
    ] = None,
    no_wait: Annotated[bool, typer.Option("--no-wait", help="Do not wait for approval or for the result.")] = False,
    token_file: TokenFile = None,
    plain_http: PlainHttp = False,
    ca_file: CaFile = None,
    json: Json = False,
) -> None:
    """Call a tool through a server and print its result.

    Waits for whoever must approve it. Exit code 1 if it was refused or failed.
    """
    from toolgate.interfaces.cli.backend_remote import client_at
    from toolgate.interfaces.cli.on_server import Remote
    from toolgate.interfaces.cli.people import read_words
    from toolgate.kernel.call import Status
    from toolgate.kernel.text.canonical import read_arguments

    given = read_arguments(read_words(arguments)).value
    remote = Remote(server, token_file, plain_http, ca_file)
    with client_at(server, remote, project) as client:
        made = client.call(
            tool,
            given,
            call_id=call_id,
            session_id=session,
            run_id=run,
            step_id=step,
            distinct=distinct,
            repeat_of=repeat_of,
            wait=False,
        )
        is_joined = made.joined
        if is_joined:
            typer.echo(f"Joined call {printable(made.call_id)}, which was made before.", err=True)
        if not made.is_final and not no_wait:
            if made.status is Status.AWAITING_APPROVAL:
                typer.echo(f"{made.call_id} waits for approval {made.approval_id}.", err=True)
            made = client.wait(made.call_id)
    if json:
        as_json(_shown(made) | {"joined": is_joined})
    else:
        typer.echo(_told(made))
    if made.is_final and not made.success:
        raise typer.Exit(1)


def _told(made: Result) -> str:
    if made.success:
        import orjson

        return orjson.dumps(made.data, option=orjson.OPT_INDENT_2).decode()
    more = f": {made.error}" if made.error else ""
    return printable(f"{made.tool_name} ({made.call_id}) is {made.status.lower()}{more}")


def _shown(made: Result) -> dict[str, object]:
    """The result by the names the wire has for it."""
    from toolgate.interfaces.server.views import ROW_STATUS, error_type

    return {
        "success": made.success,
        "tool_id": made.call_id,
        "tool_name": made.tool_name,
        "status": ROW_STATUS[made.status],
        "result": made.data,
        "error": made.error,
        "error_type": error_type(made.status, made.error_code),
        "approval_id": made.approval_id,
    }
