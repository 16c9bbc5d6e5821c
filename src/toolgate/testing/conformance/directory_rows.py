"""What every directory in a database must do with rows that somebody wrote there who has no key."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from toolgate.errors import ConflictError
from toolgate.ports.directory import Directory, TokenUse
from toolgate.testing.clock import NOON
from toolgate.testing.conformance.directory import ANN, SOON, a_digest, a_token

Write = Callable[[str], Awaitable[None]]
"""Writes to the database past the directory. `DIGEST` in a statement stands for the digest of the token `mine`."""

ACCOUNT = ("kind", "acts_for", "roles", "told", "mark")
TOKEN = (
    "account", "digest", "used_as", "label", "scope", "created_at", "expires_at", "revoked_at", "parent", "told",
    "mark",
)  # fmt: skip
ON_ACCOUNT = {
    "another kind": "kind='admin'",
    "a role more": """roles='{"p": ["finance", "lead"]}'""",
    "every project": """roles='{"*": ["finance"]}'""",
    "acts for somebody": "acts_for='eve'",
    "another event": "told=told + 1",
    "no event": "told=NULL",
    "no mark": "mark=NULL",
    "an empty mark": "mark=''",
    "roles that are none": "roles='[]'",
    "a kind there is not": "kind='god'",
}
ON_TOKEN = {
    "another account": "account='eve'",
    "another text": "digest=DIGEST",
    "another use": "used_as='session'",
    "another note": "label='mine'",
    "wider": """scope='{"projects": null, "abilities": null}'""",
    "made later": "created_at='2026-01-01 13:00:00'",
    "valid for longer": "expires_at=NULL",
    "ended": "revoked_at='2026-01-01 13:00:00'",
    "hung on another": "parent='t2'",
    "another event": "told=told + 1",
    "no mark": "mark=NULL",
    "a scope that is none": "scope='{}'",
}


async def fill(directory: Directory) -> None:
    """An account with a narrow token, and another one's token."""
    await directory.put_account(ANN)
    await directory.put_account(replace(ANN, name="eve"))
    await directory.put_token(a_token("t1", projects=frozenset({"p"}), abilities=frozenset(), expires_at=SOON))
    await directory.put_token(a_token("t2", account="eve"))


class DirectoryRowsConformance:
    """Subclass it with a fixture `directory`, as for `DirectoryConformance`, and one `write` to the same database."""

    @pytest.mark.parametrize("forged", ON_ACCOUNT.values(), ids=ON_ACCOUNT)
    async def test_a_forged_account_counts_as_absent(self, directory: Directory, write: Write, forged: str) -> None:
        await fill(directory)
        assert await directory.find(a_digest("t1"), now=NOON) is not None
        await write(f"UPDATE accounts SET {forged} WHERE name='ann'")
        assert await directory.account("ann") is None
        assert [one.name for one in await directory.accounts()] == ["eve"]
        assert await directory.find(a_digest("t1"), now=NOON) is None
        with pytest.raises(ConflictError, match="no account"):
            await directory.put_token(a_token("t3"))

    @pytest.mark.parametrize("forged", ON_TOKEN.values(), ids=ON_TOKEN)
    async def test_a_forged_token_counts_as_absent(self, directory: Directory, write: Write, forged: str) -> None:
        await fill(directory)
        await write(f"UPDATE tokens SET {forged} WHERE id='t1'")
        for text in ("t1", "mine"):
            assert await directory.find(a_digest(text), now=NOON) is None
        assert await directory.token("t1") is None
        assert [one.id for one in await directory.tokens()] == ["t2"]

    async def test_rows_that_somebody_added_count_as_absent(self, directory: Directory, write: Write) -> None:
        await fill(directory)
        for columns, values in (("told, mark", "1, 'x:y'"), ("told, mark", "NULL, NULL")):
            await write("DELETE FROM accounts WHERE name='mallory'")
            added = f"'mallory', 'admin', '{{\"*\": []}}', {values}"
            await write(f"INSERT INTO accounts (name, kind, roles, {columns}) VALUES ({added})")
            assert await directory.account("mallory") is None
        await write(
            "INSERT INTO tokens (id, account, digest, used_as, label, scope, created_at, told, mark) SELECT "
            "'t9', account, DIGEST, used_as, label, scope, created_at, told, mark FROM tokens WHERE id='t1'"
        )
        assert await directory.find(a_digest("mine"), now=NOON) is None

    async def test_a_row_from_before_a_demotion_counts_as_absent(self, directory: Directory, write: Write) -> None:
        await fill(directory)
        await write("DROP TABLE IF EXISTS kept")
        await write("CREATE TABLE kept AS SELECT * FROM accounts")
        await directory.put_account(replace(ANN, roles={"p": frozenset({"viewer"})}))
        put_back = ", ".join(f"{name}=(SELECT k.{name} FROM kept AS k WHERE k.name='ann')" for name in ACCOUNT)
        await write(f"UPDATE accounts SET {put_back} WHERE name='ann'")
        await write("DROP TABLE kept")
        assert await directory.account("ann") is None
        await directory.put_account(ANN)
        assert await directory.account("ann") == ANN

    @pytest.mark.parametrize("use", [TokenUse.BEARER, TokenUse.SESSION])
    async def test_a_row_from_before_a_revocation_counts_as_absent(
        self, directory: Directory, write: Write, use: TokenUse
    ) -> None:
        await fill(directory)
        await directory.put_token(a_token("t3", use=use, parent="t1"))
        await write("DROP TABLE IF EXISTS kept")
        await write("CREATE TABLE kept AS SELECT * FROM tokens")
        await directory.revoke("t3", now=NOON)
        put_back = ", ".join(f"{name}=(SELECT k.{name} FROM kept AS k WHERE k.id='t3')" for name in TOKEN)
        await write(f"UPDATE tokens SET {put_back} WHERE id='t3'")
        await write("DROP TABLE kept")
        assert await directory.token("t3") is None
        assert await directory.find(a_digest("t3"), now=NOON) is None

    async def test_what_hangs_on_a_forged_token_counts_as_absent(self, directory: Directory, write: Write) -> None:
        await fill(directory)
        await directory.put_token(a_token("s1", use=TokenUse.SESSION, parent="t1"))
        assert await directory.find(a_digest("s1"), now=NOON) is not None
        await write("UPDATE tokens SET expires_at=NULL WHERE id='t1'")
        assert await directory.find(a_digest("s1"), now=NOON) is None

    async def test_a_forged_token_can_be_revoked_and_stays_absent(self, directory: Directory, write: Write) -> None:
        await fill(directory)
        await write("UPDATE tokens SET expires_at=NULL WHERE id='t1'")
        assert await directory.revoke("t1", now=NOON)
        assert await directory.token("t1") is None

    async def test_a_spent_ticket_that_somebody_writes_back_is_spent(self, directory: Directory, write: Write) -> None:
        await fill(directory)
        ticket = a_token("k1", use=TokenUse.TICKET, expires_at=NOON + timedelta(minutes=1))
        await directory.put_token(ticket)
        assert await directory.find(ticket.digest, now=NOON, spend=True) is not None
        await write("UPDATE tokens SET revoked_at=NULL WHERE id='k1'")
        assert await directory.find(ticket.digest, now=NOON, spend=True) is None
