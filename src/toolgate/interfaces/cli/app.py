"""The tree of commands."""

from __future__ import annotations

from collections.abc import Callable

import typer

from toolgate.interfaces.cli import (
    audit,
    calling,
    chat,
    db,
    db_place,
    delegations,
    demo,
    grants,
    history,
    inbox,
    mode,
    people,
    policy,
    policy_accept,
    policy_change,
    policy_learn,
    programs,
    recover,
    runner,
    serve,
    setup,
    token,
    undoing,
    worker,
)
from toolgate.interfaces.cli.examples import EXAMPLES
from toolgate.interfaces.cli.help import Command, Group, Panel
from toolgate.interfaces.cli.on_server import OnNewDatabase, OnServer

EXIT_CODES = "Exit codes: 0 done, 1 failed, 2 wrong usage, 130 Ctrl-C, 143 SIGTERM.\n"

app = typer.Typer(
    name="toolgate",
    cls=Group,
    rich_markup_mode=None,  # plain help: loading what draws boxes takes longer than everything else
    help="Governed tool execution for AI agents.",
    epilog=f"{EXAMPLES['']}\n{EXIT_CODES}",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _add(panel: Panel, name: str, command: Callable[..., None], *, on: type[Command] = Command, help: str = "") -> None:
    app.command(name, cls=on, rich_help_panel=panel, epilog=EXAMPLES[name], help=help or None)(command)


def _add_group(panel: Panel, name: str, group: typer.Typer, *, help: str) -> None:
    app.add_typer(group, name=name, cls=Group, rich_help_panel=panel, epilog=EXAMPLES[name], help=help)


_add(Panel.START, "demo", demo.demo)
_add(Panel.START, "init", setup.init)
_add(Panel.START, "doctor", setup.doctor)

_add(Panel.PEOPLE, "inbox", inbox.inbox, on=OnServer)
_add(Panel.PEOPLE, "show", people.show, on=OnServer)
_add(Panel.PEOPLE, "approve", people.approve, on=OnServer)
_add(Panel.PEOPLE, "deny", people.deny, on=OnServer)
_add(Panel.PEOPLE, "reject", people.deny, on=OnServer, help="The same as `deny`.")
_add(Panel.PEOPLE, "edit", people.edit, on=OnServer)
_add(Panel.PEOPLE, "mode", mode.set_or_show, on=OnServer)
_add_group(Panel.PEOPLE, "grants", grants.app, help="List and revoke remembered approvals.")
_add_group(Panel.PEOPLE, "delegations", delegations.app, help="Lend your vote to another person for a while.")

_add(Panel.CALLS, "call", calling.call)
_add(Panel.CALLS, "chat", chat.chat)
_add(Panel.CALLS, "history", history.history, on=OnServer)
_add(Panel.CALLS, "watch", history.watch, on=OnServer)
_add(Panel.CALLS, "undo", undoing.undo, on=OnServer)
_add(Panel.CALLS, "undo-run", undoing.undo_run, on=OnServer)

_add_group(Panel.POLICY, "policy", policy.app, help="Check, test, explain and compare policies.")

_add_group(Panel.POLICY, "programs", programs.app, help="List, accept and forget pinned programs.")

_add(Panel.SERVER, "serve", serve.serve, on=OnNewDatabase)
_add(Panel.SERVER, "worker", worker.worker, on=OnNewDatabase)
_add(Panel.SERVER, "runner", runner.runner)
_add_group(Panel.SERVER, "token", token.app, help="Manage accounts and their tokens.")

_add(Panel.CALLS, "recover", recover.recover, on=OnServer)
_add_group(Panel.DATABASE, "audit", audit.app, help="Verify the audit log.")
_add_group(Panel.DATABASE, "db", db.app, help="Manage a database: status, upgrades, backups, retention, keys.")
db.app.command("move", cls=Command, epilog=EXAMPLES["db move"])(db_place.move)
db.app.command("list", cls=Command, epilog=EXAMPLES["db list"])(db_place.list_kept)
policy.app.command("accept", cls=Command, epilog=EXAMPLES["policy accept"])(policy_accept.accept)
policy.app.command("test", cls=Command, epilog=EXAMPLES["policy test"])(policy_change.check_calls)
policy.app.command("simulate", cls=Command, epilog=EXAMPLES["policy simulate"])(policy_change.simulate)
policy.app.command("diff", cls=Command, epilog=EXAMPLES["policy diff"])(policy_change.diff)
policy.app.command("learn", cls=Command, epilog=EXAMPLES["policy learn"])(policy_learn.learn)


@app.callback(invoke_without_command=True)
def root(version: bool = typer.Option(False, "--version", help="Print the version and exit.", is_eager=True)) -> None:
    """Governed tool execution for AI agents."""
    if version:
        from toolgate import __version__

        typer.echo(__version__)
        raise typer.Exit
