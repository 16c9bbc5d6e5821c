"""Where the server is, and whether a token may be sent there."""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import quote, urlsplit

from toolgate.errors import UsageError
from toolgate.kernel.ids import check_id

_SCHEMES = ("http", "https")


def checked_url(url: str) -> str:
    """Return the server's address without a slash at its end; refuse one that cannot be a server's."""
    try:
        parts = urlsplit(url)
        host, _port = parts.hostname, parts.port
    except ValueError:
        raise UsageError("The server's address is not a URL; write it like http://127.0.0.1:8642.") from None
    if parts.scheme not in _SCHEMES or not host or not url.isprintable() or " " in url:
        raise UsageError("The server's address must be an http or https URL, like http://127.0.0.1:8642.")
    if parts.username is not None or parts.password is not None:
        raise UsageError("Give no name or password in the server's address; give a token.")
    if parts.query or parts.fragment:
        raise UsageError("The server's address has no `?` or `#` part; give the address alone.")
    return url.rstrip("/")


def checked_token(token: str | None) -> str | None:
    """Return the token; refuse one that no header can carry, without repeating it."""
    if token is None:
        return None
    text = token.strip()
    if not text or not text.isascii() or not text.isprintable() or " " in text:
        raise UsageError("The token is empty or has characters no token has; copy it again.")
    return text


def check_is_private(url: str, token: str | None, *, allow_plain_http: bool) -> None:
    """Refuse to send a token in the clear to another machine, unless that was asked for."""
    parts = urlsplit(url)
    if token is None or allow_plain_http or parts.scheme == "https" or is_loopback(parts.hostname or ""):
        return
    raise UsageError(
        f"The token would go to {parts.hostname} unencrypted, where others can read it. Use https, or allow it with "
        "allow_plain_http=True (--plain-http) if the network between is yours alone."
    )


def is_loopback(host: str) -> bool:
    """Whether a host name can only mean this machine."""
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def segment(value: str) -> str:
    """One part of a path. An id that would change which path it is part of is refused."""
    check_id(value)
    return quote(value, safe="")
