"""How accounts and tokens become rows and rows become them again, for every SQL directory."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import orjson

from toolgate.kernel.context import PrincipalKind
from toolgate.ports.directory import Ability, Account, Token, TokenUse

KEPT_S = 60.0
"""How long after its end a ticket or session is remembered."""

COUNT_CHANGE = (
    "INSERT INTO settings (name, value) VALUES ('directory_revision', '1') ON CONFLICT (name) "
    "DO UPDATE SET value=CAST(CAST(settings.value AS INTEGER) + 1 AS TEXT)"
)
"""Says that an account was changed or a token revoked: who holds a connection open looks again."""
REVISION = "SELECT coalesce((SELECT value FROM settings WHERE name='directory_revision'), '0')"
TOKEN_COLUMNS = "id, account, digest, used_as, label, scope, created_at, expires_at, revoked_at, parent"


def roles_of(account: Account) -> str:
    """The roles of an account by project, as JSON."""
    return orjson.dumps({project: sorted(names) for project, names in account.roles.items()}).decode()


def text_of(at: datetime | None) -> str | None:
    """A time as its column holds it where times are text."""
    return None if at is None else at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")


def _time(kept: str | datetime | None) -> datetime | None:
    return datetime.fromisoformat(kept + "+00:00") if isinstance(kept, str) else kept


def scope_of(token: Token) -> str:
    """What a token is limited to, as JSON."""
    projects = None if token.projects is None else sorted(token.projects)
    abilities = None if token.abilities is None else sorted(token.abilities)
    return orjson.dumps({"projects": projects, "abilities": abilities}).decode()


def token_of(row: Sequence[Any]) -> Token:
    """The token of a row selected as TOKEN_COLUMNS."""
    id, account, digest, used_as, label, scope, created_at, expires_at, revoked_at, parent = row
    limits = orjson.loads(scope)
    made = _time(created_at)
    assert made is not None
    return Token(
        id=id,
        account=account,
        digest=digest,
        use=TokenUse(used_as),
        label=label,
        projects=None if limits["projects"] is None else frozenset(limits["projects"]),
        abilities=None if limits["abilities"] is None else frozenset(map(Ability, limits["abilities"])),
        created_at=made,
        expires_at=_time(expires_at),
        revoked_at=_time(revoked_at),
        parent=parent,
    )


def account_of(row: Sequence[Any]) -> Account:
    """The account of a row selected as name, kind, acts_for, roles."""
    name, kind, acts_for, roles = row
    by_project = {project: frozenset(names) for project, names in orjson.loads(roles).items()}
    return Account(name=name, kind=PrincipalKind(kind), acts_for=acts_for, roles=by_project)
