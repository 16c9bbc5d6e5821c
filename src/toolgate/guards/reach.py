"""Connect to what host rules allow: a name is resolved once, every address vetted, and a vetted one connected to."""

from __future__ import annotations

import ipaddress
import socket
from dataclasses import dataclass

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
        failure: OSError | None = None
        for address in resolve(target, self.hosts):
            try:
                made = socket.create_connection((str(address), target.port), timeout=CONNECT_S)
            except OSError as error:
                failure = error
                continue
            return Opened(socket=made, path=target.path, authority=_authority(target))
        raise ToolExecutionError(f"'{target.host}' cannot be reached: {failure}.") from failure


def _authority(target: Target) -> str:
    host = f"[{target.host}]" if ":" in target.host else target.host
    return host if target.port == {"http": 80, "https": 443}[target.scheme] else f"{host}:{target.port}"
