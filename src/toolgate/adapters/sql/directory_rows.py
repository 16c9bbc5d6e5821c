"""How accounts and tokens become rows and rows become them again, for every SQL directory.

A row carries a mark, under a key that is not in the database, over all it says and the number of the event that gave
it. It counts where the mark holds and no later event tells of the same account or token, so that neither a row written
by hand nor one of yesterday put back gives anybody anything.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import orjson

from toolgate.kernel.context import SYSTEM_PROJECT, PrincipalKind
from toolgate.kernel.event import Draft
from toolgate.kernel.marks import Marks
from toolgate.ports.directory import Ability, Account, Token, TokenUse, account_subject, token_subject

KEPT_S = 60.0
"""How long after its end a ticket or session is remembered."""

COUNT_CHANGE = (
    "INSERT INTO settings (name, value) VALUES ('directory_revision', '1') ON CONFLICT (name) "
    "DO UPDATE SET value=CAST(CAST(settings.value AS INTEGER) + 1 AS TEXT)"
)
"""Says that an account was changed or a token revoked: who holds a connection open looks again."""
REVISION = "SELECT coalesce((SELECT value FROM settings WHERE name='directory_revision'), '0')"
ACCOUNT_NAMES = ("name", "kind", "acts_for", "roles", "told", "mark")
TOKEN_NAMES = (
    "id", "account", "digest", "used_as", "label", "scope", "created_at", "expires_at", "revoked_at", "parent",
    "told", "mark",
)  # fmt: skip
MOST_READ = 10_000
RECORDED = frozenset({TokenUse.BEARER, TokenUse.SESSION})
"""The tokens whose making and end are events. Tickets and keys hang on one of these, and soon end by themselves."""

log = logging.getLogger("toolgate.directory")


def _last(subject: str) -> str:
    """The number of the last event that tells of a row; the sum and the join keep planners on the index of subjects."""
    return (
        f"(SELECT max(e.seq + 0) FROM events AS e WHERE e.call_id={subject} AND e.project_id || ''='{SYSTEM_PROJECT}' "
        "AND (e.type LIKE 'account.%' OR e.type LIKE 'token.%' OR e.type LIKE 'session.%'))"
    )


def _columns(table: str, names: Sequence[str], subject: str) -> str:
    return ", ".join([*(f"{table}.{name}" for name in names), _last(f"'{subject}:' || {table}.{names[0]}")])


ACCOUNTS = f"SELECT {_columns('a', ACCOUNT_NAMES, 'account')} FROM accounts AS a"
TOKENS = f"SELECT {_columns('t', TOKEN_NAMES, 'token')} FROM tokens AS t"
_A, _T = len(ACCOUNT_NAMES) + 1, len(TOKEN_NAMES) + 1
FIND = (
    f"SELECT {_columns('t', TOKEN_NAMES, 'token')}, {_columns('a', ACCOUNT_NAMES, 'account')}, "
    f"{_columns('p', TOKEN_NAMES, 'token')} FROM tokens AS t JOIN accounts AS a ON a.name=t.account "
    "LEFT JOIN tokens AS p ON p.id=t.parent WHERE t.digest="
)
"""A token with its account and the token it hangs on, each with the last event about it."""

Found = tuple[Token, Account, Token | None]


def text_of(at: datetime | None) -> str | None:
    """A time as its column holds it where times are text."""
    return None if at is None else at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")


def _time(kept: str | datetime | None) -> datetime | None:
    return datetime.fromisoformat(kept + "+00:00") if isinstance(kept, str) else kept


class Rows:
    """Writes and reads rows with marks. What does not carry a good one counts as absent, and is told of once."""

    def __init__(self, marks: Marks) -> None:
        self._marks = marks
        self._told: set[tuple[str, str]] = set()
        self._read: dict[str, tuple[tuple[Any, ...], Found]] = {}
        """What was last read of a token, so that the same row need not be taken apart and checked again."""

    def account_row(self, account: Account, told: int) -> tuple[Any, ...]:
        """An account as ACCOUNT_NAMES, given by the event of this number."""
        roles = orjson.dumps(_roles(account)).decode()
        mark = self._marks.make(_of_account(account, told))
        return account.name, account.kind.value, account.acts_for, roles, told, mark

    def token_row(self, token: Token, told: int) -> tuple[Any, ...]:
        """A token as TOKEN_NAMES, with times as they are."""
        scope = orjson.dumps(_scope(token)).decode()
        mark = self._marks.make(_of_token(token, told))
        return (
            token.id, token.account, token.digest, token.use.value, token.label, scope, token.created_at,
            token.expires_at, token.revoked_at, token.parent, told, mark,
        )  # fmt: skip

    def account(self, row: Sequence[Any]) -> Account | None:
        """The account of a row selected as ACCOUNTS; None where it does not count."""
        account = read_account(row)
        if account is not None and self.holds(row, account):
            return account
        self._refuse("account", str(row[0]))
        return None

    def token(self, row: Sequence[Any]) -> Token | None:
        """The token of a row selected as TOKENS; None where it does not count."""
        token = read_token(row)
        if token is not None and self.holds(row, token):
            return token
        self._refuse("token", str(row[0]))
        return None

    def found(self, row: Sequence[Any]) -> Found | None:
        """What a row selected as FIND holds; None where one of its parts does not count."""
        columns = tuple(row)
        known = self._read.get(columns[0])
        if known is not None and known[0] == columns:
            return known[1]
        found = self._found(columns)
        if found is not None:
            if len(self._read) >= MOST_READ:
                self._read.clear()
            self._read[columns[0]] = (columns, found)
        return found

    def _found(self, row: tuple[Any, ...]) -> Found | None:
        token, account = self.token(row[:_T]), self.account(row[_T : _T + _A])
        if token is None or account is None or token.account != account.name:
            return None
        if token.parent is None:
            return token, account, None
        hangs_on = row[_T + _A :]
        parent = None if hangs_on[0] is None else self.token(hangs_on)
        return None if parent is None else (token, account, parent)

    def is_old(self, row: Sequence[Any], current: str) -> bool:
        """Whether the mark of a row selected as ACCOUNTS or TOKENS holds, and is under another key than this one."""
        is_account = len(row) == _A
        record = read_account(row) if is_account else read_token(row)
        if record is None or str(row[-2]).startswith(f"{current}:"):
            return False
        return self.holds(row, record)

    def marked_anew(self, row: Sequence[Any]) -> str:
        """The mark of such a row under the newest key."""
        record = read_account(row) if len(row) == _A else read_token(row)
        assert record is not None
        return self._marks.make(_of(record, row[-3]))

    def holds(self, row: Sequence[Any], record: Account | Token) -> bool:
        """Whether a row selected as ACCOUNTS or TOKENS, which says this, is the last that was given and marked."""
        told, mark, last = row[-3:]
        try:
            return isinstance(told, int) and told == (last or 0) and self._marks.match(mark, _of(record, told))
        except _UNREADABLE:
            return False

    def _refuse(self, kind: str, id: str) -> None:
        if (kind, id) in self._told or len(self._told) >= 1000:
            return
        self._told.add((kind, id))
        log.warning("%s %r counts as absent: %s", kind, id[:128], UNMARKED)


UNMARKED = (
    "its row does not carry the mark of this gate, or is an older one put back. `toolgate audit verify` lists such "
    "rows; where they are from a version before marks, `toolgate db upgrade` takes them over."
)


def is_valid(found: Found, now: datetime, *, spend: bool) -> bool:
    """Whether a token and what it hangs on are neither revoked nor expired; only a ticket can be spent."""
    token, _, parent = found
    if not token.is_valid(now) or (spend and token.use is not TokenUse.TICKET):
        return False
    return parent is None or parent.is_valid(now)


def told_account(account: Account, *, by: str, **more: Any) -> Draft:
    """Draft the event that tells what an account is now."""
    facts = {"account": account.name, "kind": account.kind.value, "acts_for": account.acts_for}
    return "account.changed", account_subject(account.name), {**facts, "roles": _roles(account), "by": by, **more}, None


def told_token(token: Token, *, by: str, **more: Any) -> Draft:
    """Draft the event that tells of a new token or session. Neither its text nor its digest is in it."""
    name = "session.begun" if token.use is TokenUse.SESSION else "token.created"
    facts = {"token_id": token.id, "account": token.account, **_scope(token), "expires_at": token.expires_at}
    return name, token_subject(token.id), {**facts, "parent": token.parent, "by": by, **more}, None


def told_end(token: Token, *, by: str) -> Draft:
    """Draft the event that tells of a revoked token or an ended session."""
    name = "session.ended" if token.use is TokenUse.SESSION else "token.revoked"
    return name, token_subject(token.id), {"token_id": token.id, "account": token.account, "by": by}, None


def _roles(account: Account) -> dict[str, list[str]]:
    return {project: sorted(names) for project, names in sorted(account.roles.items())}


def _scope(token: Token) -> dict[str, list[str] | None]:
    projects = None if token.projects is None else sorted(token.projects)
    abilities = None if token.abilities is None else sorted(map(str, token.abilities))
    return {"projects": projects, "abilities": abilities}


def _of(record: Account | Token, told: int) -> tuple[Any, ...]:
    return _of_account(record, told) if isinstance(record, Account) else _of_token(record, told)


def _of_account(account: Account, told: int) -> tuple[Any, ...]:
    return "account", account.name, account.kind, account.acts_for, _roles(account), told


def _of_token(token: Token, told: int) -> tuple[Any, ...]:
    return (
        "token", token.id, token.account, token.digest.hex(), token.use, token.label, _scope(token),
        text_of(token.created_at), text_of(token.expires_at), text_of(token.revoked_at), token.parent, told,
    )  # fmt: skip


_UNREADABLE = (AttributeError, KeyError, TypeError, ValueError)
"""What a row raises into which somebody wrote what we never do."""


def read_token(row: Sequence[Any]) -> Token | None:
    """The token of a row selected as TOKENS, whatever its mark; None where no token is in it."""
    try:
        return _token_of(row)
    except _UNREADABLE:
        return None


def _token_of(row: Sequence[Any]) -> Token:
    id, account, digest, used_as, label, scope, created_at, expires_at, revoked_at, parent = row[:10]
    limits, made = orjson.loads(scope), _time(created_at)
    if made is None or not isinstance(digest, bytes):
        raise ValueError("no token has such columns")
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


def read_account(row: Sequence[Any]) -> Account | None:
    """The account of a row selected as ACCOUNTS, whatever its mark; None where no account is in it."""
    name, kind, acts_for, roles = row[:4]
    try:
        by_project = {project: frozenset(names) for project, names in orjson.loads(roles).items()}
        return Account(name=name, kind=PrincipalKind(kind), acts_for=acts_for, roles=by_project)
    except _UNREADABLE:
        return None
