"""Which network addresses are public, by explicit tables. Nothing here resolves a name.

`ipaddress.is_global` is not asked: it calls addresses global that reach this machine or its cloud's metadata
service through a translation (mapped, NAT64, 6to4, Teredo).
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

_V4 = (
    ("0.0.0.0/8", "this network"),
    ("10.0.0.0/8", "private"),
    ("100.64.0.0/10", "shared address space"),
    ("127.0.0.0/8", "loopback"),
    ("169.254.169.254/32", "metadata"),
    ("169.254.170.2/32", "metadata"),
    ("169.254.170.23/32", "metadata"),
    ("169.254.0.0/16", "link-local"),
    ("168.63.129.16/32", "metadata"),
    ("172.16.0.0/12", "private"),
    ("192.0.0.0/24", "protocol assignments"),
    ("192.0.2.0/24", "documentation"),
    ("192.31.196.0/24", "AS112"),
    ("192.52.193.0/24", "AMT"),
    ("192.88.99.0/24", "6to4 relay"),
    ("192.168.0.0/16", "private"),
    ("192.175.48.0/24", "AS112"),
    ("198.18.0.0/15", "benchmarking"),
    ("198.51.100.0/24", "documentation"),
    ("203.0.113.0/24", "documentation"),
    ("224.0.0.0/4", "multicast"),
    ("240.0.0.0/4", "reserved"),
)
_V6 = (
    ("fd00:ec2::/32", "metadata"),
    ("fd20:ce::254/128", "metadata"),
    ("::/128", "unspecified"),
    ("::1/128", "loopback"),
    ("100::/64", "discard"),
    ("100:0:0:1::/64", "dummy prefix"),
    ("2001::/23", "protocol assignments"),
    ("2001:db8::/32", "documentation"),
    ("2620:4f:8000::/48", "AS112"),
    ("3fff::/20", "documentation"),
    ("5f00::/16", "segment routing"),
    ("64:ff9b:1::/48", "local-use translation"),
    ("fc00::/7", "unique local"),
    ("fe80::/10", "link-local"),
    ("fec0::/10", "site-local"),
    ("ff00::/8", "multicast"),
)
_GLOBAL_UNICAST = IPv6Network("2000::/3")
_TABLE_V4 = tuple((IPv4Network(text), why) for text, why in _V4)
_TABLE_V6 = tuple((IPv6Network(text), why) for text, why in _V6)
_MAPPED = IPv6Network("::ffff:0:0/96")
_TRANSLATED = IPv6Network("::ffff:0:0:0/96")
_COMPATIBLE = IPv6Network("::/96")
_NAT64 = IPv6Network("64:ff9b::/96")
_6TO4 = IPv6Network("2002::/16")
_TEREDO = IPv6Network("2001::/32")
_ISATAP = (0x00005EFE, 0x02005EFE)
_LOW_32 = 0xFFFFFFFF


def forbidden(address: Address | str) -> str | None:
    """Return why an address is not public, or None. Addresses inside addresses are looked at as well."""
    found = ip_address(address) if isinstance(address, str) else address
    if isinstance(found, IPv4Address):
        return next((why for network, why in _TABLE_V4 if found in network), None)
    if found.scope_id is not None:
        return "scoped"
    for form, inner in carried(found):
        why = forbidden(inner)
        if why is not None:
            return f"{form} of {why}"
    why = next((why for network, why in _TABLE_V6 if found in network and found not in _TEREDO), None)
    if why is not None:
        return why
    return None if found in _GLOBAL_UNICAST or found in _NAT64 or found in _MAPPED else "unassigned"


def carried(address: IPv6Address) -> list[tuple[str, IPv4Address]]:
    """Return the IPv4 addresses that an IPv6 address carries, each with the form it is carried in."""
    number = int(address)
    low = IPv4Address(number & _LOW_32)
    found: list[tuple[str, IPv4Address]] = []
    for network, form in ((_MAPPED, "mapped"), (_TRANSLATED, "translated"), (_NAT64, "NAT64")):
        if address in network:
            found.append((form, low))
    if address in _COMPATIBLE and number > 1:
        found.append(("IPv4-compatible", low))
    if address in _6TO4:
        found.append(("6to4", IPv4Address((number >> 80) & _LOW_32)))
    if address in _TEREDO:
        found.append(("Teredo server", IPv4Address((number >> 64) & _LOW_32)))
        found.append(("Teredo", IPv4Address(~number & _LOW_32)))
    if (number >> 32) & _LOW_32 in _ISATAP:
        found.append(("ISATAP", low))
    return found


def unwrapped(address: Address) -> tuple[Address, ...]:
    """Return an address and every address it carries."""
    if isinstance(address, IPv4Address):
        return (address,)
    return (address, *(inner for _, inner in carried(address)))


def network(text: str) -> Network:
    """Return a network of CIDR text, host bits allowed; ValueError for anything else."""
    return ip_network(text, strict=False)
