"""The tree of commands."""

from __future__ import annotations

import typer

from toolgate.interfaces.cli import (
    audit,
    calling,
    chat,
    db,
    demo,
    grants,
    history,
    inbox,
    people,
    policy,
    policy_change,
    recover,
    runner,
    serve,
    setup,
    token,
    undoing,
    worker,
)
from toolgate.interfaces.cli.on_server import OnDatabase, OnServer

app = typer.Typer(
    name="toolgate",
    rich_markup_mode=None,  # plain help: loading what draws boxes takes longer than everything else
    help="Governed tool execution for AI agents.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(audit.app, name="audit", help="Check the audit log.")
app.add_typer(db.app, name="db", help="Look after a database.")
app.add_typer(grants.app, name="grants", help="List and revoke remembered approvals.")
policy.app.command("test")(policy_change.check_calls)
policy.app.command("simulate")(policy_change.simulate)
policy.app.command("diff")(policy_change.diff)
app.add_typer(policy.app, name="policy", help="Check, test, explain and replay a policy.")
app.add_typer(token.app, name="token", help="Look after who may use the server.")
app.command("init")(setup.init)
app.command("doctor")(setup.doctor)
app.command("recover", cls=OnDatabase)(recover.recover)
app.command("demo")(demo.demo)
app.command("serve", cls=OnDatabase)(serve.serve)
app.command("worker", cls=OnDatabase)(worker.worker)
app.command("runner")(runner.runner)
app.command("call")(calling.call)
app.command("chat")(chat.chat)
app.command("inbox", cls=OnServer)(inbox.inbox)
app.command("show", cls=OnServer)(people.show)
app.command("approve", cls=OnServer)(people.approve)
app.command("deny", cls=OnServer)(people.deny)
app.command("reject", cls=OnServer, help="The same as deny.")(people.deny)
app.command("edit", cls=OnServer)(people.edit)
app.command("undo", cls=OnServer)(undoing.undo)
app.command("undo-run", cls=OnServer)(undoing.undo_run)
app.command("history", cls=OnServer)(history.history)
app.command("watch", cls=OnServer)(history.watch)


@app.callback(invoke_without_command=True)
def root(version: bool = typer.Option(False, "--version", help="Print the version and exit.", is_eager=True)) -> None:
    """Governed tool execution for AI agents."""
    if version:
        from toolgate import __version__

        typer.echo(__version__)
        raise typer.Exit
