"""Directory: who there is, which projects they belong to, and the tokens they show.

A token's text is never kept, only its digest. What a token may do is what its account may do, narrowed by the
token's own projects and abilities.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Protocol

from toolgate.kernel.context import Principal, PrincipalKind

EVERY_PROJECT = "*"
VIEWER = "viewer"
"""A role that takes everything but reading away in its project."""


class Ability(StrEnum):
    """What somebody may do in a project."""

    READ = "read"
    ASK = "ask"
    DECIDE = "decide"
    RUN = "run"
    ADMIN = "admin"


_READ = frozenset({Ability.READ})
ABILITIES: dict[PrincipalKind, frozenset[Ability]] = {
    PrincipalKind.PERSON: frozenset({Ability.READ, Ability.ASK, Ability.DECIDE, Ability.RUN}),
    PrincipalKind.AGENT: frozenset({Ability.READ, Ability.ASK}),
    PrincipalKind.RUNNER: frozenset({Ability.READ, Ability.RUN}),
    PrincipalKind.ADMIN: frozenset(Ability),
    PrincipalKind.POLICY: frozenset(),
}
"""What each kind of principal may do at most. An agent never decides."""


HOST = "host"
"""Who changed something where nobody is named: the program that holds the directory."""


def account_subject(name: str) -> str:
    """What events that tell of an account have as their `call_id`."""
    return f"account:{name}"


def token_subject(token_id: str) -> str:
    """What events that tell of a token or a session have as their `call_id`."""
    return f"token:{token_id}"


class TokenUse(StrEnum):
    """How a token is shown: in a header for as long as it lives, in a cookie, beside that cookie, or once in a URL."""

    BEARER = "bearer"
    SESSION = "session"
    KEY = "key"
    TICKET = "ticket"


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """Somebody who may use the server. `roles` are by project; `*` stands for every project.

    `acts_for` is the person an agent works for: its calls are that person's too.
    """

    name: str
    kind: PrincipalKind
    roles: Mapping[str, frozenset[str]] = field(default_factory=lambda: MappingProxyType({}))
    acts_for: str | None = None

    def roles_in(self, project: str) -> frozenset[str] | None:
        """The roles in a project, None for a stranger there. An admin belongs to every project."""
        found = self.roles.get(project, self.roles.get(EVERY_PROJECT))
        if found is None and self.kind is PrincipalKind.ADMIN:
            return frozenset()
        return found

    def abilities_in(self, project: str) -> frozenset[Ability]:
        """What the account may do in a project: nothing where it is a stranger."""
        roles = self.roles_in(project)
        if roles is None:
            return frozenset()
        return _READ if VIEWER in roles else ABILITIES[self.kind]

    def principal_in(self, project: str) -> Principal:
        """The account as a principal with its roles in this project."""
        return Principal(name=self.name, kind=self.kind, roles=self.roles_in(project) or frozenset())


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """Proof of being an account. None in `projects` and `abilities` means: all of the account's."""

    id: str
    account: str
    digest: bytes
    created_at: datetime
    use: TokenUse = TokenUse.BEARER
    label: str = ""
    projects: frozenset[str] | None = None
    abilities: frozenset[Ability] | None = None
    expires_at: datetime | None = None
    revoked_at: datetime | None = None
    parent: str | None = None

    def is_valid(self, now: datetime) -> bool:
        """Whether it is neither revoked nor expired."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


class Directory(Protocol):
    """Safe to use from several event loops and threads at once; raises StoreError where it cannot be read or written.

    A write is durable when it returns. Cancelling one leaves it wholly done or wholly not. Where the directory is kept
    with a store, each change is an event of the project `_system`, in the same transaction, which says `by` whom; and
    a row that was not written so counts as absent.
    """

    async def put_account(self, account: Account, *, by: str = HOST) -> None:
        """Add an account, or replace the one of this name."""
        ...

    async def accounts(self, *, project: str | None = None) -> list[Account]:
        """Every account, or those that belong to a project, by name."""
        ...

    async def put_token(self, token: Token, *, by: str = HOST) -> None:
        """Keep a new token; ConflictError where its id or digest is taken or its account unknown.

        Tickets, sessions and their keys that ended long ago are freed on the way.
        """
        ...

    async def find(self, digest: bytes, *, now: datetime, spend: bool = False) -> tuple[Token, Account] | None:
        """Return a valid token, whose parent is valid too, with its account.

        With `spend` only a ticket is found, by one of those who look for it: it is valid no more.
        """
        ...

    async def account(self, name: str) -> Account | None: ...

    async def token(self, token_id: str) -> Token | None:
        """Return a token by its id, ended or not; None where there is none, or no more."""
        ...

    async def tokens(self, *, account: str | None = None) -> list[Token]:
        """Bearer tokens, oldest first, the revoked and expired ones too."""
        ...

    async def revoke(self, token_id: str, *, now: datetime, by: str = HOST) -> bool:
        """End a token and what was made with it; False where there is no such token. Ended tokens stay ended."""
        ...

    async def revision(self) -> int:
        """A number that is another one after every change of an account and every revoked token. Quick to ask for."""
        ...

    async def close(self) -> None: ...
