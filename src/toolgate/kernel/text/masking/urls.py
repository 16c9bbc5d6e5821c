"""Hide secrets in URLs, database addresses and after `Bearer` and `Basic`. Which texts are read is up to `masking`."""

from __future__ import annotations

import base64
import binascii
import re
from typing import Final

from toolgate.kernel.text.lazy_pattern import lazy_pattern
from toolgate.kernel.text.masking.keys import MASK, is_placeholder

_URL: Final = lazy_pattern(r"(?<=://)[^\s@\"'`<>/?#\\]*+(?:@[^\s@\"'`<>/?#\\]*+)*")
_SPILLED: Final = lazy_pattern(
    r"(?<=://)(?P<user>[^\s:@\"'<>/?#\\]{0,64}):(?!\d{1,5}(?![^/?#\s]))[^\s@\"'<>]{1,128}@(?=[\w.\-\[])"
)
_TOKEN_USER: Final = lazy_pattern(r"(?=[^@:]*[0-9])(?=[^@:]*[A-Za-z])[A-Za-z0-9_\-]{20,}")
_DRIVER: Final = lazy_pattern(r"(?<![\w:])([\w.\-]{1,64}):([^\s:@/\"']{1,128})@(?=(?:tcp|unix|udp)\()")
_ORACLE: Final = lazy_pattern(r"(:thin:[\w.$]{1,64}/)([^\s@\"']{1,128})(?=@)")
_BEARER: Final = lazy_pattern(r"(?<![\w\-])(bearer[ \t]+)([A-Za-z0-9._~+/\-]{8,}=*)", re.IGNORECASE)
_BASIC: Final = lazy_pattern(r"(?<![\w\-])(basic[ \t]+)([A-Za-z0-9+/_\-]{8,}={0,2})", re.IGNORECASE)
_DASHED_WORDS: Final = lazy_pattern(r"[A-Za-z]?[a-z]*(?:[-_./][A-Za-z]?[a-z]*)*[.]?|[A-Z_]+")


def mask_urls(text: str) -> str:
    """Replace the password, or the token used as a user name, in every URL and database address."""
    if "@" not in text:
        return text
    if "://" in text:
        text = _SPILLED.sub(_mask_spilled, text)
        text = _URL.sub(_mask_authority, text)
    if "@tcp(" in text or "@unix(" in text:
        text = _DRIVER.sub(rf"\1:{MASK}@", text)
    if ":thin:" in text:
        text = _ORACLE.sub(rf"\1{MASK}", text)
    return text


def _mask_spilled(match: re.Match[str]) -> str:
    # A password holding `/`, `?` or `#` ends the authority early; what precedes the `@` is still a password.
    secret = match.group()[len(match["user"]) + 1 : -1]
    return match.group() if is_placeholder(secret) else f"{match['user']}:{MASK}@"


def _mask_authority(match: re.Match[str]) -> str:
    authority = match.group()
    userinfo, at, host = authority.rpartition("@")
    if not at:
        return authority
    user, colon, secret = userinfo.partition(":")
    if colon:
        return authority if not secret or is_placeholder(secret) else f"{user}:{MASK}@{host}"
    return f"{MASK}@{host}" if _TOKEN_USER.fullmatch(user) else authority


def mask_schemes(text: str) -> str:
    """Replace credentials that follow a `Bearer` or `Basic` scheme without any header name."""
    if "earer " in text or "EARER " in text:
        text = _BEARER.sub(_mask_bearer, text)
    if "asic " in text or "ASIC " in text:
        text = _BASIC.sub(_mask_basic, text)
    return text


def _mask_bearer(match: re.Match[str]) -> str:
    if _DASHED_WORDS.fullmatch(match[2]) and len(match[2]) < 32:
        return match.group()
    return f"{match[1]}{MASK}"


def _mask_basic(match: re.Match[str]) -> str:
    blob = match[2].rstrip("=")
    try:
        decoded = base64.b64decode(blob + "=" * (-len(blob) % 4), altchars=b"-_")
    except binascii.Error:
        return match.group()
    return f"{match[1]}{MASK}" if b":" in decoded and decoded.isascii() else match.group()
