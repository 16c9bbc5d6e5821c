"""The text of tokens: made here, shown once, and known afterwards only by its digest."""

from __future__ import annotations

import base64
import hashlib
import hmac
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


def csrf_of(session: str) -> str:
    """The value a page must send in a header beside the session's cookie, which it cannot read."""
    mac = hmac.new(session.encode(), b"toolgate-csrf", hashlib.sha256).digest()
    return base64.urlsafe_b64encode(mac).decode().rstrip("=")


def is_csrf_of(shown: str, session: str) -> bool:
    return hmac.compare_digest(shown.encode(), csrf_of(session).encode())
