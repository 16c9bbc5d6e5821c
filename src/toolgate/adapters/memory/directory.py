"""The directory of a single process, gone when it ends."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import datetime, timedelta

from toolgate.errors import ConflictError
from toolgate.ports.directory import EVERY_PROJECT, HOST, Account, Token, TokenUse

KEPT_S = 60.0
"""How long after its end a ticket or session is remembered."""


class MemoryDirectory:
    """Keeps every guarantee of the Directory port but durability and the record: it ends with the process, and has no
    rows that others could write."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._accounts: dict[str, Account] = {}
        self._tokens: dict[str, Token] = {}
        self._by_digest: dict[bytes, str] = {}
        self._revision = 0

    async def put_account(self, account: Account, *, by: str = HOST) -> None:
        with self._lock:
            self._accounts[account.name] = account
            self._revision += 1

    async def accounts(self, *, project: str | None = None) -> list[Account]:
        found = sorted(self._accounts.values(), key=lambda account: account.name)
        return [one for one in found if project is None or project in one.roles or EVERY_PROJECT in one.roles]

    async def put_token(self, token: Token, *, by: str = HOST) -> None:
        with self._lock:
            if token.account not in self._accounts:
                raise ConflictError(f"There is no account {token.account[:64]} to make a token for.")
            if token.id in self._tokens or token.digest in self._by_digest:
                raise ConflictError(f"Token {token.id} exists already.")
            self._tokens[token.id] = token
            self._by_digest[token.digest] = token.id
            self._free(token.created_at)

    def _free(self, now: datetime) -> None:
        cut = now - timedelta(seconds=KEPT_S)
        for token in tuple(self._tokens.values()):
            ended = token.revoked_at or token.expires_at
            if token.use is not TokenUse.BEARER and ended is not None and ended < cut:
                del self._tokens[token.id], self._by_digest[token.digest]

    async def find(self, digest: bytes, *, now: datetime, spend: bool = False) -> tuple[Token, Account] | None:
        with self._lock:
            token = self._tokens.get(self._by_digest.get(digest, ""))
            if token is None or not token.is_valid(now) or (spend and token.use is not TokenUse.TICKET):
                return None
            if token.parent is not None:
                parent = self._tokens.get(token.parent)
                if parent is None or not parent.is_valid(now):
                    return None
            account = self._accounts.get(token.account)
            if account is None:
                return None
            if spend:
                self._tokens[token.id] = replace(token, revoked_at=now)
            return token, account

    async def account(self, name: str) -> Account | None:
        return self._accounts.get(name)

    async def token(self, token_id: str) -> Token | None:
        return self._tokens.get(token_id)

    async def tokens(self, *, account: str | None = None) -> list[Token]:
        found = [token for token in self._tokens.values() if token.use is TokenUse.BEARER]
        found.sort(key=lambda token: (token.created_at, token.id))
        return [token for token in found if account is None or token.account == account]

    async def revoke(self, token_id: str, *, now: datetime, by: str = HOST) -> bool:
        with self._lock:
            if token_id not in self._tokens:
                return False
            for token in tuple(self._tokens.values()):
                if token_id in (token.id, token.parent) and token.revoked_at is None:
                    self._tokens[token.id] = replace(token, revoked_at=now)
            self._revision += 1
            return True

    async def revision(self) -> int:
        return self._revision

    async def close(self) -> None:
        """Nothing to close."""
