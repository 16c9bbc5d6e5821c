"""`toolgate token`: accounts and their tokens."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from toolgate.errors import UsageError
from toolgate.interfaces.cli.examples import EXAMPLES
from toolgate.interfaces.cli.on_server import DATABASE_HELP, SERVER, OnDatabase
from toolgate.interfaces.cli.session import login_name
from toolgate.interfaces.cli.show import as_json, store_url, table

if TYPE_CHECKING:
    from toolgate.ports.directory import Account, Directory

app = typer.Typer(no_args_is_help=True)
Database = Annotated[str, typer.Argument(help=DATABASE_HELP)]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


@app.callback()
def token() -> None:
    """Manage accounts and their tokens."""


def _with(url: str, work: Any) -> Any:
    """Do some work with the directory of a file."""
    from toolgate import bootstrap

    async def run() -> Any:
        directory = bootstrap.directory(url)
        try:
            return await work(directory)
        finally:
            await directory.close()

    running: Coroutine[Any, Any, Any] = run()
    return asyncio.run(running)


@app.command(cls=OnDatabase, epilog=EXAMPLES["token create"])
def create(
    database: Database,
    account: Annotated[str, typer.Argument(help="Whose token it is, such as ann or agent:builder.")],
    kind: Annotated[
        str | None, typer.Option(help="person, agent, runner or admin; required for a new account.")
    ] = None,
    project: Annotated[
        list[str] | None,
        typer.Option(
            help="A project the account may use, with its roles: shop or shop=finance,lead; `*` is every project; may "
            "be repeated. By default a new account may use `default`.",
            metavar="NAME[=ROLES]",
        ),
    ] = None,
    acts_for: Annotated[str | None, typer.Option(help="The person an agent acts for.")] = None,
    only_project: Annotated[
        list[str] | None, typer.Option(help="Limit the token to this project; may be repeated.")
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="ABILITY", help="Limit the token to read, ask, decide, run or admin; may be repeated."),
    ] = None,
    expires: Annotated[
        str | None, typer.Option(help="How long it is valid, such as 90d; by default until revoked.")
    ] = None,
    label: Annotated[str, typer.Option(help="A note on what it is for.")] = "",
    json: Json = False,
) -> None:
    """Create a token and print it, this one time.

    Only its digest is stored. The account is created if it is new.
    """
    from toolgate.interfaces.cli.duration import seconds_of
    from toolgate.interfaces.server.tokens import new_token
    from toolgate.ports.directory import Ability

    try:
        abilities = None if not only else frozenset(Ability(word) for word in only)
    except ValueError:
        raise typer.BadParameter(f"A token is limited to some of: {', '.join(Ability)}.") from None
    text, made = new_token(
        account,
        now=datetime.now(UTC),
        lifetime_s=None if expires is None else seconds_of(expires),
        label=label,
        projects=frozenset(only_project) if only_project else None,
        abilities=abilities,
    )

    async def make(directory: Directory) -> None:
        known = await directory.account(account)
        wanted = _account(account, known, kind, project or [], acts_for)
        if known is None:
            await _check_apart(directory, account)
        if wanted != known:
            await directory.put_account(wanted, by=login_name())
        await directory.put_token(made, by=login_name())

    _with(store_url(database), make)
    if json:
        as_json({"token": text, "id": made.id, "account": account, "expires_at": made.expires_at})
    else:
        typer.echo(text)
        typer.echo("Keep it: it is shown this once.", err=True)


async def _check_apart(directory: Directory, name: str) -> None:
    """Refuse a name that would be taken for somebody else's client: calls that `ann` makes are asked by `agent:ann`."""
    other = name.removeprefix("agent:") if name.startswith("agent:") else f"agent:{name}"
    if await directory.account(other) is not None:
        raise UsageError(
            f"There is an account {other}, and what it or its clients ask for could not be told from what {name} does; "
            "choose another name."
        )


def _account(name: str, known: Account | None, kind: str | None, projects: list[str], acts_for: str | None) -> Account:
    from toolgate.kernel.context import DEFAULT_PROJECT, PrincipalKind
    from toolgate.ports.directory import Account

    if known is None and kind is None:
        raise UsageError(f"There is no account {name} yet; say what it is with --kind person, agent, runner or admin.")
    try:
        wanted = PrincipalKind(kind) if kind is not None else known.kind if known is not None else None
    except ValueError:
        wanted = None
    if wanted is None or wanted is PrincipalKind.POLICY:
        raise typer.BadParameter("An account is a person, an agent, a runner or an admin.")
    if known is not None and known.kind is not wanted:
        raise UsageError(f"{name} is a {known.kind}; make another account for a {wanted}.")
    if not 0 < len(name) <= 128 or not name.isprintable():
        raise UsageError("The name of an account has 1 to 128 printable characters.")
    roles = dict(known.roles) if known is not None else {}
    if known is None and not projects and wanted is not PrincipalKind.ADMIN:
        projects = [DEFAULT_PROJECT]
    for entry in projects:
        project, _, listed = entry.partition("=")
        roles[project] = frozenset(word.strip() for word in listed.split(",") if word.strip())
    return Account(
        name=name, kind=wanted, roles=roles, acts_for=acts_for or (known.acts_for if known is not None else None)
    )


@app.command(cls=OnDatabase, epilog=EXAMPLES["token link"])
def link(
    database: Database,
    account: Annotated[str, typer.Argument(help="The account to sign in; it must exist.")],
    url: Annotated[
        str,
        typer.Option(
            "--server",
            "--url",
            envvar=SERVER,
            show_envvar=False,
            help=f"Address of the server, as browsers see it; or set {SERVER}.",
        ),
    ] = "http://127.0.0.1:8642",
    expires: Annotated[str, typer.Option(help="How long the session lasts at most, such as 8h.")] = "12h",
    json: Json = False,
) -> None:
    """Print a link that signs a browser in to the console.

    It works once, within ten minutes.
    """
    from toolgate.interfaces.cli.duration import seconds_of
    from toolgate.interfaces.server.sessions import login_link

    async def make(directory: Directory) -> str:
        if await directory.account(account) is None:
            raise UsageError(f"There is no account {account[:64]}; make one with `toolgate token create`.")
        now, lasts = datetime.now(UTC), seconds_of(expires)
        return await login_link(directory, account, now=now, session_s=lasts, by=login_name())

    address = url.rstrip("/") + _with(store_url(database), make)
    if json:
        as_json({"url": address, "account": account})
    else:
        typer.echo(address)
        typer.echo("It works once, within ten minutes.", err=True)


@app.command("list", cls=OnDatabase, epilog=EXAMPLES["token list"])
def list_tokens(
    database: Database,
    account: Annotated[str | None, typer.Option(help="Only this account and its tokens.")] = None,
    json: Json = False,
) -> None:
    """List accounts and tokens, never a token's text."""

    async def look(directory: Directory) -> Any:
        accounts = [one for one in await directory.accounts() if account in (None, one.name)]
        return accounts, await directory.tokens(account=account)

    accounts, tokens = _with(store_url(database), look)
    now = datetime.now(UTC)
    rows = [
        {
            "id": one.id,
            "account": one.account,
            "label": one.label,
            "state": "valid" if one.is_valid(now) else "revoked" if one.revoked_at is not None else "expired",
            "projects": None if one.projects is None else sorted(one.projects),
            "abilities": None if one.abilities is None else sorted(one.abilities),
            "created_at": one.created_at,
            "expires_at": one.expires_at,
        }
        for one in tokens
    ]
    if json:
        people = [
            {
                "name": one.name,
                "kind": one.kind.value,
                "acts_for": one.acts_for,
                "roles": {project: sorted(names) for project, names in one.roles.items()},
            }
            for one in accounts
        ]
        as_json({"accounts": people, "tokens": rows})
        return
    for one in accounts:
        held = [name + (f"={'+'.join(sorted(roles))}" if roles else "") for name, roles in sorted(one.roles.items())]
        places = ", ".join(held)
        typer.echo(f"{one.name}: {one.kind}, {places or 'no project'}")
    table(("token", "account", "state", "label"), [(r["id"], r["account"], r["state"], r["label"]) for r in rows])


@app.command(cls=OnDatabase, epilog=EXAMPLES["token revoke"])
def revoke(
    database: Database,
    token_id: Annotated[str, typer.Argument(help="The id of the token, from `toolgate token list`.")],
    json: Json = False,
) -> None:
    """Revoke a token and end its sessions, at once."""

    async def end(directory: Directory) -> bool:
        return await directory.revoke(token_id, now=datetime.now(UTC), by=login_name())

    if not _with(store_url(database), end):
        raise UsageError(f"There is no token {token_id[:64]}; `toolgate token list` lists them.")
    if json:
        as_json({"id": token_id, "revoked": True})
    else:
        typer.echo(f"{token_id} is revoked.")
