"""What a PostgreSQL URL says: where the database is, and how this store is to use it.

Besides libpq's own parameters a URL may carry `pooler=transaction` (behind PgBouncer and its like) and `key=PATH`
(the file with the sealing keys). A password in a URL is never shown.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from toolgate.errors import UsageError

SCHEMES = ("postgresql", "postgres")
_POOLERS = ("none", "transaction")


@dataclass(frozen=True, slots=True)
class Address:
    """Where to connect. `dsn` may hold a password and is shown nowhere; `shown` is for people."""

    dsn: str = field(repr=False)
    shown: str
    pooled: bool = False
    key: Path | None = None


def read(url: str) -> Address:
    """Return what a URL says; UsageError where it cannot be meant, without repeating it."""
    try:
        parts = urlsplit(url)
        given = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
        _ = parts.port if "," not in parts.netloc else None
    except ValueError:
        raise UsageError(_EXPECTED) from None
    if parts.scheme not in SCHEMES or len(parts.path) < 2 or "@" in parts.path:  # a password with a slash in it
        raise UsageError(_EXPECTED)
    own = {name: value for name, value in given if name in ("pooler", "key")}
    pooler = own.get("pooler", "none")
    if pooler not in _POOLERS:
        raise UsageError(f"`pooler` in a PostgreSQL URL is one of: {', '.join(_POOLERS)}.")
    rest = [(name, value) for name, value in given if name not in own]
    where = parts.netloc.rpartition("@")[2]
    return Address(
        dsn=urlunsplit(("postgresql", parts.netloc, parts.path, urlencode(rest), "")),
        shown=f"postgresql://{where}{parts.path}",
        pooled=pooler == "transaction",
        key=Path(own["key"]) if own.get("key") else None,
    )


_EXPECTED = "A PostgreSQL URL is postgresql://user@host:port/database; special characters in it are percent-encoded."
