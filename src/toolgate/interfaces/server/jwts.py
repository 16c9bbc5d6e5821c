"""JWTs of an OIDC issuer as bearer tokens: they say who somebody is; the directory says what they may do."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import jwt

from toolgate.interfaces.server.settings import ServerSettings

LEEWAY_S = 30
log = logging.getLogger("toolgate.server")


class OidcReader:
    """Checks signature, issuer, audience and times of a JWT with the issuer's public key."""

    def __init__(self, settings: ServerSettings) -> None:
        self._settings = settings
        url = settings.jwt_jwks_url
        self._keys = None if url is None else jwt.PyJWKClient(url, cache_keys=True, timeout=5)

    async def account_of(self, text: str) -> str | None:
        """Return the name of the account, or None where the JWT is not valid here."""
        try:
            claims = self._decode(text, await self._key(text))
        except jwt.PyJWTError as error:
            log.info("a JWT was refused: %s", type(error).__name__)
            return None
        name = claims.get(self._settings.jwt_account_claim)
        return name if isinstance(name, str) and name else None

    async def _key(self, text: str) -> Any:
        if self._keys is not None:
            return (await asyncio.to_thread(self._keys.get_signing_key_from_jwt, text)).key
        assert self._settings.jwt_key is not None
        return self._settings.jwt_key.get_secret_value()

    def _decode(self, text: str, key: Any) -> dict[str, Any]:
        claims: dict[str, Any] = jwt.decode(
            text,
            key,
            algorithms=list(self._settings.jwt_algorithms),
            issuer=self._settings.jwt_issuer,
            audience=self._settings.jwt_audience,
            leeway=LEEWAY_S,
            options={"require": ["exp", "iss", "aud", self._settings.jwt_account_claim]},
        )
        return claims
