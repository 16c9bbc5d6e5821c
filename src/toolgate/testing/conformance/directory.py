"""What every directory must do with accounts and tokens."""

from __future__ import annotations

import asyncio
import hashlib
from datetime import timedelta
from typing import Any

import pytest

from toolgate.errors import ConflictError
from toolgate.kernel.context import PrincipalKind
from toolgate.ports.directory import Ability, Account, Directory, Token, TokenUse
from toolgate.testing.clock import NOON

SOON = NOON + timedelta(seconds=30)


def a_digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def a_token(id: str = "t1", **fields: Any) -> Token:
    known: dict[str, Any] = {"id": id, "account": "ann", "digest": a_digest(id), "created_at": NOON}
    return Token(**(known | fields))


ANN = Account(name="ann", kind=PrincipalKind.PERSON, roles={"p": frozenset({"finance"})})
BOT = Account(name="bot", kind=PrincipalKind.AGENT, roles={"*": frozenset()}, acts_for="ann")


class DirectoryConformance:
    """Subclass it with a fixture `directory` that gives an empty directory and closes it."""

    async def test_a_changed_account_and_a_revoked_token_are_noticed(self, directory: Directory) -> None:
        seen = [await directory.revision()]
        await directory.put_account(Account(name="rev", kind=PrincipalKind.PERSON))
        seen.append(await directory.revision())
        await directory.put_account(Account(name="rev", kind=PrincipalKind.AGENT))
        seen.append(await directory.revision())
        token = a_token("rev-token", account="rev")
        await directory.put_token(token)
        await directory.revoke(token.id, now=NOON)
        seen.append(await directory.revision())
        assert len(set(seen)) == len(seen)

    async def test_accounts_are_kept_and_replaced(self, directory: Directory) -> None:
        await directory.put_account(ANN)
        await directory.put_account(BOT)
        assert await directory.account("ann") == ANN
        assert await directory.account("nobody") is None
        moved = Account(name="ann", kind=PrincipalKind.ADMIN, roles={"q": frozenset()})
        await directory.put_account(moved)
        assert await directory.accounts() == [moved, BOT]
        assert await directory.accounts(project="p") == [BOT]

    async def test_a_token_is_found_by_its_digest_with_its_account(self, directory: Directory) -> None:
        await directory.put_account(ANN)
        token = a_token(label="editor", projects=frozenset({"p"}), abilities=frozenset({Ability.READ}), expires_at=SOON)
        await directory.put_token(token)
        assert await directory.find(token.digest, now=NOON) == (token, ANN)
        assert await directory.find(a_digest("other"), now=NOON) is None
        assert await directory.tokens() == [token]
        assert await directory.tokens(account="bot") == []

    async def test_an_expired_or_revoked_token_is_not_found(self, directory: Directory) -> None:
        await directory.put_account(ANN)
        await directory.put_token(a_token("t1", expires_at=SOON))
        await directory.put_token(a_token("t2"))
        assert await directory.find(a_digest("t1"), now=SOON) is None
        assert await directory.revoke("t2", now=NOON)
        assert await directory.find(a_digest("t2"), now=NOON) is None
        assert not await directory.revoke("t3", now=NOON)
        await directory.revoke("t2", now=SOON)
        assert [token.revoked_at for token in await directory.tokens()] == [None, NOON]

    async def test_what_was_made_with_a_token_ends_with_it(self, directory: Directory) -> None:
        await directory.put_account(ANN)
        await directory.put_token(a_token("t1", expires_at=SOON))
        await directory.put_token(a_token("s1", use=TokenUse.SESSION, parent="t1"))
        await directory.put_token(a_token("s2", use=TokenUse.SESSION, parent="gone"))
        assert await directory.find(a_digest("s1"), now=NOON) is not None
        assert await directory.find(a_digest("s1"), now=SOON) is None
        assert await directory.find(a_digest("s2"), now=NOON) is None
        await directory.revoke("t1", now=NOON)
        assert await directory.find(a_digest("s1"), now=NOON) is None
        assert [token.id for token in await directory.tokens()] == ["t1"]

    async def test_what_hangs_on_a_session_ends_with_the_token_it_was_made_with(self, directory: Directory) -> None:
        await directory.put_account(ANN)
        await directory.put_token(a_token("t1"))
        await directory.put_token(a_token("s1", use=TokenUse.SESSION, parent="t1"))
        await directory.put_token(a_token("k1", use=TokenUse.KEY, parent="s1"))
        assert await directory.find(a_digest("k1"), now=NOON) is not None
        await directory.revoke("t1", now=NOON)
        assert await directory.find(a_digest("k1"), now=NOON) is None
        found = await directory.token("s1")
        assert found is not None
        assert (found.use, found.parent, found.revoked_at) == (TokenUse.SESSION, "t1", NOON)
        assert await directory.token("t2") is None

    async def test_a_ticket_is_spent_once_however_many_try(self, directory: Directory) -> None:
        await directory.put_account(ANN)
        await directory.put_token(a_token("k1", use=TokenUse.TICKET, expires_at=SOON))
        tries = [directory.find(a_digest("k1"), now=NOON, spend=True) for _ in range(10)]
        assert sum(found is not None for found in await asyncio.gather(*tries)) == 1

    async def test_only_a_ticket_is_spent(self, directory: Directory) -> None:
        await directory.put_account(ANN)
        await directory.put_token(a_token("t1"))
        assert await directory.find(a_digest("t1"), now=NOON, spend=True) is None
        assert await directory.find(a_digest("t1"), now=NOON) is not None

    async def test_the_same_token_is_not_kept_twice(self, directory: Directory) -> None:
        await directory.put_account(ANN)
        await directory.put_token(a_token("t1"))
        for twin in (a_token("t1", digest=a_digest("x")), a_token("t2", digest=a_digest("t1"))):
            with pytest.raises(ConflictError):
                await directory.put_token(twin)
        with pytest.raises(ConflictError, match="no account"):
            await directory.put_token(a_token("t3", account="nobody"))

    async def test_tickets_and_sessions_are_freed_after_their_end(self, directory: Directory) -> None:
        await directory.put_account(ANN)
        await directory.put_token(a_token("k1", use=TokenUse.TICKET, expires_at=SOON))
        await directory.put_token(a_token("t1", expires_at=SOON))
        much_later = NOON + timedelta(days=1)
        await directory.put_token(a_token("k2", use=TokenUse.TICKET, created_at=much_later))
        assert not await directory.revoke("k1", now=much_later)
        assert await directory.revoke("t1", now=much_later)
