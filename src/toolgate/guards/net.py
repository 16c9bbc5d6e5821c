"""Read a URL strictly, and say whether a rule lets it be fetched. Resolution and connecting are the fetcher's."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address
from typing import Final, NoReturn

from toolgate.errors import DefinitionError
from toolgate.guards import Refused
from toolgate.guards.addresses import Address, Network, forbidden, network, unwrapped
from toolgate.kernel.policy import Word

MAX_URL_BYTES = 8192
_PORTS = {"http": 80, "https": 443}
_SHAPE = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(//)?([^/?#]*)([^?#]*)(\?[^#]*)?(#.*)?\Z", re.DOTALL)
_AUTHORITY = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^:\[\]@]*)(?::([0-9]{1,5}))?\Z")
_LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)\Z")
_IPV4 = re.compile(r"(?:0|[1-9]\d{0,2})(?:\.(?:0|[1-9]\d{0,2})){3}\Z")
# A last label like these is read as a number by resolvers: octal, hexadecimal, short and plain integer forms.
_NUMERIC = re.compile(r"(?:0x[0-9a-f]*|[0-9]+)\Z")
_DOTS = re.compile("[.\u3002\uff0e\uff61]")  # what UTS 46 reads as a full stop
_ESCAPED = re.compile(r"%(?![0-9A-Fa-f]{2})")


class UrlRefused(Refused):
    """The URL is not one that can be fetched safely."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A URL taken apart. `host` is lower-case ASCII; `path` holds the query; `address` where the host is one."""

    scheme: str
    host: str
    port: int
    path: str
    url: str
    address: Address | None = None


def parse_url(text: str) -> Target:
    """Return the parts of an absolute http or https URL; raise UrlRefused for anything odd."""
    _check_characters(text)
    shape = _SHAPE.match(text)
    if shape is None or shape[2] is None:
        _refuse("scheme", "it is not absolute, such as https://example.com/page")
    scheme = shape[1].lower()
    if scheme not in _PORTS:
        _refuse("scheme", f"the scheme {scheme[:20]!r} is not http or https")
    if "@" in shape[3]:
        _refuse("userinfo", "it carries a user name or password")
    authority = _AUTHORITY.match(shape[3])
    if authority is None or not authority[1]:
        _refuse("host", "its host is missing or malformed")
    port = int(authority[2]) if authority[2] else _PORTS[scheme]
    if not 0 < port < 65536:
        _refuse("port", f"{port} is no port")
    host, address = _host(authority[1])
    path = _encoded(shape[4] or "/") + _encoded(shape[5] or "")
    shown = f"[{host}]" if isinstance(address, IPv6Address) else host
    suffix = "" if port == _PORTS[scheme] else f":{port}"
    return Target(
        scheme=scheme, host=host, port=port, path=path, url=f"{scheme}://{shown}{suffix}{path}", address=address
    )


def _check_characters(text: object) -> None:
    if not isinstance(text, str) or not text:
        _refuse("characters", "it must be a text that is not empty")
    if len(text.encode(errors="replace")) > MAX_URL_BYTES:
        _refuse("too_long", f"it is longer than {MAX_URL_BYTES} bytes")
    if any(char <= " " or char == "\x7f" or char == "\\" or "\ud800" <= char <= "\udfff" for char in text):
        _refuse("characters", "it holds a blank, a control character or a backslash; write them as %xx")
    if _ESCAPED.search(text):
        _refuse("characters", "it holds a '%' that is not followed by two hexadecimal digits")


def _encoded(text: str) -> str:
    return "".join(char if char < "\x7f" else "".join(f"%{byte:02X}" for byte in char.encode()) for char in text)


def _host(text: str) -> tuple[str, Address | None]:
    if text.startswith("["):
        try:
            address: Address = IPv6Address(text[1:-1])
        except ValueError:
            _refuse("host", "its IPv6 address is malformed")
        return str(address), address
    if "%" in text:
        _refuse("host", "its host holds a '%'")
    name = _ascii(text)
    if _IPV4.match(name):
        try:
            address = IPv4Address(name)
        except ValueError:
            _refuse("host", "its IPv4 address is malformed")
        return name, address
    labels = name.split(".")
    if len(name) > 253 or not all(_LABEL.match(label) for label in labels):
        _refuse("host", "its host is no host name")
    if _NUMERIC.match(labels[-1]):
        _refuse("host", "its host is a number written in a way that hides an address")
    return name, None


def _ascii(text: str) -> str:
    """Return a host name in ASCII, as browsers have it (UTS 46, where `ß` is not `ss`).

    A name that is ASCII after all (circled digits, full-width letters, other full stops) hides another: refused.
    """
    if text.isascii():  # asked first: in lower case the sign of the kelvin is a `k`
        return text.lower().removesuffix(".")
    labels = [_ascii_label(label) for label in _DOTS.split(text)]
    if labels[-1] == "":
        labels.pop()
    if not any(label.startswith("xn--") for label in labels):
        _refuse("host", "its host holds characters that stand for others")
    return ".".join(labels)


def _ascii_label(label: str) -> str:
    if label.isascii():
        return label.lower()
    import idna  # only few names need its tables

    try:
        encoded = idna.encode(label, uts46=True, std3_rules=True).decode("ascii")
    except idna.IDNAError:
        _refuse("host", "its international host name is not valid; write the host in its xn-- form")
    if not encoded.startswith("xn--"):
        _refuse("host", "its host holds characters that stand for others")
    return encoded


def _refuse(kind: str, problem: str) -> NoReturn:
    raise UrlRefused(kind, f"The URL is refused: {problem}.")


@dataclass(frozen=True, slots=True, kw_only=True)
class HostRules:
    """What may be fetched: schemes, ports, names (`example.com`, `*.example.com`, `*`) and networks.

    A name that several lists hold gets the strictest word; one that none holds is denied. `*` under `ask` and
    `allow` stands for the names that no other entry there covers; under `deny`, for all. Addresses that are
    not public are denied wherever `allow_networks` does not hold them, and those in `deny_networks` always.
    """

    schemes: tuple[str, ...] = ("https", "http")
    ports: tuple[int, ...] = (80, 443)
    allow: tuple[str, ...] = ("*",)
    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    allow_networks: tuple[str, ...] = ()
    deny_networks: tuple[str, ...] = ()
    _allowed: tuple[Network, ...] = field(init=False, repr=False, compare=False)
    _denied: tuple[Network, ...] = field(init=False, repr=False, compare=False)
    _order: tuple[tuple[Word, tuple[str, ...]], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_allowed", _networks(self.allow_networks))
        object.__setattr__(self, "_denied", _networks(self.deny_networks))
        for what in ("allow", "ask", "deny"):
            object.__setattr__(self, what, tuple(map(_checked_name, getattr(self, what))))
        named = [(word, tuple(name for name in names if name != "*")) for word, names in self._lists()]
        others = [(word, tuple(name for name in names if name == "*")) for word, names in self._lists()]
        object.__setattr__(self, "_order", ((Word.DENY, self.deny), *named, *others))

    def _lists(self) -> tuple[tuple[Word, tuple[str, ...]], ...]:
        return (Word.ASK, self.ask), (Word.ALLOW, self.allow)

    def judge(self, target: Target) -> tuple[Word, str]:
        """Return what the rules say of a URL, before anything is resolved."""
        if target.scheme not in self.schemes:
            return Word.DENY, f"scheme '{target.scheme}' is not allowed ({', '.join(self.schemes) or 'none'})"
        if target.port not in self.ports:
            return Word.DENY, f"port {target.port} is not allowed ({', '.join(map(str, self.ports)) or 'none'})"
        if target.address is not None and (why := self.refuse_address(target.address)) is not None:
            return Word.DENY, why
        if _is_this_machine(target.host) and all(whys := [self.refuse_address(one) for one in _LOOPBACK]):
            return Word.DENY, f"host '{target.host}' is this machine: {whys[0]}"
        for word, names in self._order:
            name = next((name for name in names if _covers(name, target.host)), None)
            if name is not None:
                return word, f"host '{target.host}' is covered by '{name}'"
        return Word.DENY, f"host '{target.host}' is not in the policy"

    def told(self) -> str:
        """Say for people which hosts a command reaches: where the rules ask, it does not."""
        names = "any public host" if "*" in self.allow else ", ".join(self.allow) or "no host"
        others = sorted({*self.ask, *self.deny})
        but = f" but {', '.join(others)}" if others and names != "no host" else ""
        nets = f", and the networks {', '.join(self.allow_networks)}" if self.allow_networks else ""
        return f"{names}{but}{nets} (ports {', '.join(map(str, self.ports)) or 'none'})"

    def refuse_address(self, address: Address) -> str | None:
        """Return why an address may not be connected to, or None."""
        if any(inner in known for inner in unwrapped(address) for known in self._denied):
            return f"address {address} is in a denied network"
        why = forbidden(address)
        if why is None or any(address in known for known in self._allowed):
            return None
        return f"address {address} is not public ({why})"


_LOOPBACK: Final = (IPv4Address("127.0.0.1"), IPv6Address("::1"))


def _is_this_machine(host: str) -> bool:
    """Whether a name always leads here, whatever a resolver says (RFC 6761)."""
    return host == "localhost" or host.endswith(".localhost")


def _networks(texts: Sequence[str]) -> tuple[Network, ...]:
    try:
        return tuple(network(text) for text in texts)
    except ValueError as error:
        raise DefinitionError(f"A network is written like 10.0.0.0/8: {error}.") from None


def _checked_name(name: str) -> str:
    bare = name.removeprefix("*.")
    if name == "*":
        return name
    try:
        host, _ = _host(f"[{bare}]" if ":" in bare else bare)
    except UrlRefused:
        raise DefinitionError(f"{name!r} is not a host name; write example.com, *.example.com or *.") from None
    return f"*.{host}" if name.startswith("*.") else host


def _covers(name: str, host: str) -> bool:
    if name.startswith("*."):
        return host.endswith(name[1:])
    return name in ("*", host)
