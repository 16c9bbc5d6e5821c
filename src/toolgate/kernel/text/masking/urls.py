"""Hide secrets in URLs and database addresses, and find them after `Bearer` and `Basic`."""

from __future__ import annotations

import base64
import binascii
import re
from typing import Final

from toolgate.kernel.text.lazy_pattern import lazy_pattern
from toolgate.kernel.text.masking.keys import MASK, Span, is_placeholder

_PORT: Final = r"(?!\d{1,5}(?![^/?#\s]))"
# The usual password, letters and digits, is replaced without a look at each; `xxx` may stand for one.
_USUAL: Final = lazy_pattern(
    r"(//(?<=://)[^\s:@\"'`<>/?#\\]{0,64}):(?!xxx|XXX)[A-Za-z0-9][A-Za-z0-9_\-]{0,127}@(?=[\w.\-\[])"
    r"(?![^\s@\"'`<>/?#\\]{0,256}@)"
)
# Bounded where it may go beyond a slash: the next URL begins with two.
_CREDENTIALS: Final = lazy_pattern(r"//(?<=://)(?:[^\s@\"'`<>/?#\\]*+@|[^\s@\"'<>]{0,193}@)")
_HIDDEN: Final = f":{MASK}@"
_HALF_HIDDEN: Final = lazy_pattern(r"//(?<=://)[^\s:@\"'`<>/?#\\]{0,64}+:(?!\*\*\*@)[^\s@\"'<>]{1,128}@")
_URL: Final = lazy_pattern(r"//(?<=://)[^\s@\"'`<>/?#\\]*+(?:@[^\s@\"'`<>/?#\\]*+)*")
_SPILLED: Final = lazy_pattern(
    rf"//(?<=://)(?P<user>[^\s:@\"'<>/?#\\]{{0,64}}):{_PORT}[^\s@\"'<>]{{1,128}}@(?=[\w.\-\[])"
)
_TOKEN_USER: Final = lazy_pattern(r"(?=[^@:]*[0-9])(?=[^@:]*[A-Za-z])[A-Za-z0-9_\-]{20,}")
_DRIVER_USER: Final = lazy_pattern(r"[\w.\-]{1,64}(?![\w:])")
_DRIVER_SECRET: Final = lazy_pattern(r"[^\s:@/\"']{1,128}")
_ORACLE: Final = lazy_pattern(r":thin:[\w.$]{1,64}/([^\s@\"']{1,128})@")
# After a `=` everything is hidden that is not a credential of its own.
_BEARER: Final = lazy_pattern(
    r"(?<![\w\-])(?i:bearer)[ \t]+"
    r"([A-Za-z0-9._~+/\-]{8,}(?:=(?!(?i:bearer|basic)\b)[^\s\"'`<>,;&|()\[\]{}\\]*)?)"
)
_BASIC: Final = lazy_pattern(r"(?<![\w\-])(?i:basic)[ \t]+([A-Za-z0-9+/_\-]{8,}={0,2})")
_DASHED_WORDS: Final = lazy_pattern(r"[A-Za-z]?[a-z]*(?:[-_./][A-Za-z]?[a-z]*)*[.]?|[A-Z_]+")
DRIVERS: Final = ("@tcp(", "@unix(", "@udp(")


def mask_urls(text: str) -> str:
    """Replace the password, or the token used as a user name, in every URL."""
    if "@" not in text or "://" not in text or not _is_open(text) or _CREDENTIALS.search(text) is None:
        return text
    masked = _mask_usual(text)
    if masked is not text and not _is_open(masked):
        return masked
    return _URL.sub(_mask_authority, _SPILLED.sub(_mask_spilled, masked))


def _mask_usual(text: str) -> str:
    # Split, not substituted: a substitution is asked for anew for every match.
    pieces = _USUAL.split(text)
    if len(pieces) == 1:
        return text
    pieces[1::2] = [name + _HIDDEN for name in pieces[1::2]]
    return "".join(pieces)


def _is_open(text: str) -> bool:
    """Whether some `@` does not follow a password that is hidden already."""
    return _HIDDEN not in text or text.count("@") > text.count(_HIDDEN) or _HALF_HIDDEN.search(text) is not None


def _mask_spilled(match: re.Match[str]) -> str:
    # A password holding `/`, `?` or `#` ends the authority early; what precedes the `@` is still a password.
    secret = match.group()[len(match["user"]) + 3 : -1]
    return match.group() if is_placeholder(secret) else f"//{match['user']}:{MASK}@"


def _mask_authority(match: re.Match[str]) -> str:
    authority = match.group()
    userinfo, at, host = authority.rpartition("@")
    if not at:
        return authority
    user, colon, secret = userinfo[2:].partition(":")
    if colon:
        return authority if not secret or is_placeholder(secret) else f"//{user}:{MASK}@{host}"
    return f"//{MASK}@{host}" if _TOKEN_USER.fullmatch(user) else authority


def driver_span(text: str, at: int) -> Span | None:
    """Return where the password lies before an address such as `@tcp(` at this place."""
    colon = text.rfind(":", max(0, at - 129), at)
    if colon < 0 or not _DRIVER_SECRET.fullmatch(text, colon + 1, at):
        return None
    user = _DRIVER_USER.match(text[max(0, colon - 65) : colon][::-1])
    return (colon + 1, at) if user else None


def oracle_span(text: str, at: int) -> Span | None:
    """Return where the password lies in an address whose `:thin:` stands at this place."""
    match = _ORACLE.match(text, at)
    return match.span(1) if match else None


def bearer_span(text: str, at: int) -> Span | None:
    """Return where the credentials lie after a `Bearer` at this place, without any header name."""
    match = _BEARER.match(text, at)
    if match is None or (len(match[1]) < 32 and _DASHED_WORDS.fullmatch(match[1])):
        return None
    return match.span(1)


def basic_span(text: str, at: int) -> Span | None:
    """Return where the credentials lie after a `Basic` at this place, without any header name."""
    match = _BASIC.match(text, at)
    if match is None:
        return None
    blob = match[1].rstrip("=")
    try:
        decoded = base64.b64decode(blob + "=" * (-len(blob) % 4), altchars=b"-_")
    except binascii.Error:
        return None
    return match.span(1) if b":" in decoded and decoded.isascii() else None
