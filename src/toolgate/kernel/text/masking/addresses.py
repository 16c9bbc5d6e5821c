"""Show where a database is without its password: a connection string loses that alone where all of it is known."""

from __future__ import annotations

from itertools import pairwise
from typing import Final

from toolgate.kernel.text.lazy_pattern import lazy_pattern
from toolgate.kernel.text.masking.keys import MASK, words_of

_ADDRESS_WORDS: Final = frozenset({"dsn", "connstr"})
_ADDRESS_PAIRS: Final = frozenset(
    {("connection", "string"), ("conn", "string"), ("conn", "str"), ("connection", "str")}
)
_ADDRESS: Final = lazy_pattern(r"[A-Za-z][A-Za-z0-9+.\-]{1,40}://[^\s/]+(?:/\S*)?")
_ADDRESS_PARTS: Final = frozenset(
    "server host hostname hostaddr port database dbname db user uid username userid datasource source initialcatalog "
    "catalog endpoint protocol driver timeout connecttimeout connectiontimeout connect_timeout encrypt pooling sslmode "
    "charset defaultendpointsprotocol accountname endpointsuffix entitypath trusted_connection trustservercertificate "
    "integratedsecurity applicationname application_name persistsecurityinfo multipleactiveresultsets".split()
)


def names_address(key: str) -> bool:
    """Whether a key names a text that says where a database is, a password among it."""
    words = words_of(key)
    return not _ADDRESS_WORDS.isdisjoint(words) or not _ADDRESS_PAIRS.isdisjoint(pairwise(words))


def is_shown_address(address: str, masked: str) -> bool:
    """Whether an address may be shown with its secrets masked: some were found, and the rest is known to be none."""
    if MASK not in masked:
        return False
    if _ADDRESS.fullmatch(address):
        return True
    parts = masked.split(";") if ";" in masked else masked.split()
    return all(map(_is_shown_part, parts))


def _is_shown_part(part: str) -> bool:
    name, equals, value = part.partition("=")
    known = name.replace(" ", "").lower() in _ADDRESS_PARTS
    return (bool(equals) and (known or value == MASK)) or not part.strip()
