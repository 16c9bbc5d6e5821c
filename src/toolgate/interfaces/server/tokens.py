"""The text of tokens: made here, shown once, and known afterwards only by its digest."""

from __future__ import annotations

import hashlib
import secrets
from datetime import datetime, timedelta

import uuid_utils

from toolgate.ports.directory import Ability, Token, TokenUse

PREFIX = "tg_"


def digest_of(text: str) -> bytes:
    """What is kept of a token. Its text is 256 random bits, so one plain hash is enough."""
    return hashlib.sha256(text.encode()).digest()


def new_token(
    account: str,
    *,
    now: datetime,
    use: TokenUse = TokenUse.BEARER,
    lifetime_s: float | None = None,
    label: str = "",
    projects: frozenset[str] | None = None,
    abilities: frozenset[Ability] | None = None,
    parent: str | None = None,
) -> tuple[str, Token]:
    """Return the text of a new token and what is kept of it."""
    text = PREFIX + secrets.token_urlsafe(32)
    token = Token(
        id=str(uuid_utils.uuid7()),
        account=account,
        digest=digest_of(text),
        created_at=now,
        use=use,
        label=label,
        projects=projects,
        abilities=abilities,
        expires_at=None if lifetime_s is None else now + timedelta(seconds=lifetime_s),
        parent=parent,
    )
    return text, token
