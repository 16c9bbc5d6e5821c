"""Connect to what host rules allow: a name is resolved once, every address vetted, and a vetted one connected to."""

from __future__ import annotations

import ipaddress
import socket
from dataclasses import dataclass, replace

from toolgate.errors import ToolExecutionError
from toolgate.guards.addresses import Address
from toolgate.guards.net import HostRules, Target, UrlRefused, parse_url
from toolgate.kernel.policy import Word
from toolgate.ports.confinement import Opened

CONNECT_S = 15.0
"""How long one address may take to answer."""


def resolve(target: Target, hosts: HostRules) -> list[Address]:
    """Return the addresses of a host, all of them vetted; one bad address refuses the host."""
    if target.address is not None:
        found: list[Address] = [target.address]
    else:
        try:
            told = socket.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
        except OSError as error:
            raise ToolExecutionError(f"The host '{target.host}' cannot be found: {error.strerror or error}.") from error
        found = [ipaddress.ip_address(str(item[4][0])) for item in dict.fromkeys(told)]
    for address in found:
        why = hosts.refuse_address(address)
        if why is not None:
            raise UrlRefused("address", f"The host '{target.host}' is refused: {why}.")
    return list(dict.fromkeys(found))


@dataclass(frozen=True, slots=True)
class HostReach:
    """What a command reaches: the hosts that rules allow. Where they ask, it is refused: it is too late to ask."""

    hosts: HostRules

    @property
    def sees_this_machine(self) -> bool:
        """Whether the rules let it connect to services of this machine."""
        return self.hosts.refuse_address(ipaddress.IPv4Address("127.0.0.1")) is None

    def name(self, url: str) -> tuple[str, int]:
        """Return the host and port of a URL; UrlRefused for one that is odd."""
        target = parse_url(url)
        return target.host, target.port

    def open(self, url: str) -> Opened:
        """Return a connection to the host of a URL; UrlRefused, or ToolExecutionError where it does not answer."""
        target = parse_url(url)
        word, reason = self.hosts.judge(target)
        if word is Word.ASK:
            reason += ", where the policy asks; a command that runs cannot wait for an answer"
        if word is not Word.ALLOW:
            raise UrlRefused("denied", f"The connection is refused: {reason}.")
        return _connected(target, self.hosts)


def _connected(target: Target, hosts: HostRules) -> Opened:
    failure: OSError | None = None
    for address in resolve(target, hosts):
        try:
            made = socket.create_connection((str(address), target.port), timeout=CONNECT_S)
        except OSError as error:
            failure = error
            continue
        return Opened(socket=made, path=target.path, authority=_authority(target))
    raise ToolExecutionError(f"'{target.host}' cannot be reached: {failure}.") from failure


@dataclass(frozen=True, slots=True)
class PlaceReach:
    """What a command reaches that is for one place alone: its host, if the rules allow it, at its port."""

    hosts: HostRules
    host: str
    port: int

    @property
    def sees_this_machine(self) -> bool:
        return False

    def name(self, url: str) -> tuple[str, int]:
        """Return the host and port of a URL; UrlRefused for one that is odd."""
        target = parse_url(url)
        return target.host, target.port

    def open(self, url: str) -> Opened:
        """Return a connection to the place; UrlRefused for any other, and where the rules do not allow the host."""
        target = parse_url(url)
        if (target.host, target.port) != (self.host.lower(), self.port):
            raise UrlRefused("denied", f"The connection is refused: only {self.host}:{self.port} was agreed to.")
        if not self.hosts.schemes or not self.hosts.ports:
            raise UrlRefused("denied", "The connection is refused: the policy's `hosts:` allow none at all.")
        # Names are asked for, not ports: this one stands in the URL that a person agreed to.
        word, reason = self.hosts.judge(replace(target, scheme=self.hosts.schemes[0], port=self.hosts.ports[0]))
        if word is Word.DENY:
            raise UrlRefused("denied", f"The connection is refused: {reason}.")
        return _connected(target, self.hosts)


def _authority(target: Target) -> str:
    host = f"[{target.host}]" if ":" in target.host else target.host
    return host if target.port == {"http": 80, "https": 443}[target.scheme] else f"{host}:{target.port}"
