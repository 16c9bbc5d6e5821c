"""Git over ssh, for one command after a person's yes: the user's agent signs, and nothing else of theirs is lent.

The sandbox has a fixed ssh with settings of ours alone, the keys that the user's own `known_hosts` has for this one
host, and a socket at which the agent answers two questions: which keys there are, and to sign with one. Where it
connects to is the host and port of the URL that the person was shown, through the proxy.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from toolgate.errors import ToolExecutionError
from toolgate.guards.grammar import TRUSTED_DIRECTORIES
from toolgate.guards.net import HostRules
from toolgate.guards.reach import PlaceReach
from toolgate.ports.confinement import AGENT_SOCKET, Confined

_FOLDER = "/tmp/.toolgate-ssh"
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}\Z")
_HOST = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]{0,252}[A-Za-z0-9])?\Z")
_SHORT = re.compile(r"(?:([^@:/\s]+)@)?([^@:/\s]+):(?![:/]/?)(.+)\Z", re.DOTALL)
KNOWN_HOSTS = ("~/.ssh/known_hosts", "~/.ssh/known_hosts2", "/etc/ssh/ssh_known_hosts")
CONFIG = f"""\
Host *
  BatchMode yes
  StrictHostKeyChecking yes
  UserKnownHostsFile {_FOLDER}/known_hosts
  GlobalKnownHostsFile /dev/null
  UpdateHostKeys no
  VerifyHostKeyDNS no
  IdentityAgent {AGENT_SOCKET}
  IdentityFile none
  PreferredAuthentications publickey
  ForwardAgent no
  ForwardX11 no
  ClearAllForwardings yes
  PermitLocalCommand no
  ControlMaster no
  ControlPath none
  ConnectTimeout 30
  ProxyCommand {sys.executable} -I -S {_FOLDER}/tunnel %h %p
"""
TUNNEL = """\
import os, socket, sys, threading
host, port = os.environ["https_proxy"].removeprefix("http://").split(":")
there = socket.create_connection((host, int(port)))
place = ":".join(sys.argv[1:3])
there.sendall(f"CONNECT {place} HTTP/1.1\\r\\nHost: {place}\\r\\n\\r\\n".encode())
head = b""
while b"\\r\\n\\r\\n" not in head:
    piece = there.recv(1)
    if not piece:
        sys.exit("the proxy hung up")
    head += piece
if b" 200 " not in head.split(b"\\r\\n")[0]:
    sys.exit((head + there.recv(4096)).decode(errors="replace").split("\\r\\n\\r\\n", 1)[1].strip())
def send():
    while data := os.read(0, 65536):
        there.sendall(data)
    there.shutdown(socket.SHUT_WR)
threading.Thread(target=send, daemon=True).start()
while data := there.recv(65536):
    os.write(1, data)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Whom a URL of ssh leads to."""

    user: str
    host: str
    port: int

    def __str__(self) -> str:
        return f"ssh://{self.user}@{self.host}" + ("" if self.port == 22 else f":{self.port}")


def is_ssh(url: str) -> bool:
    """Whether Git would start ssh for a URL, or for what it takes for a place on another machine."""
    return url.startswith(("ssh://", "git+ssh://", "ssh+git://")) or ("://" not in url and bool(_SHORT.match(url)))


def place_of(urls: Sequence[str]) -> Place | None:
    """Return the one place of ssh that a command connects to; None where there is none, or it cannot be told."""
    if len(urls) != 1 or not is_ssh(urls[0]):
        return None
    short = _SHORT.match(urls[0]) if "://" not in urls[0] else None
    try:
        parts = urlsplit(urls[0])
        user, host, port = (short[1], short[2], 22) if short else (parts.username, parts.hostname, parts.port or 22)
        has_password = short is None and parts.password is not None
    except ValueError:
        return None
    is_fit = bool(host and _HOST.match(host) and _USER.match(user or "git")) and not has_password
    is_plain = short is not None or urls[0].startswith("ssh://")
    return Place(user=user or "git", host=host or "", port=port) if is_fit and is_plain else None


def given_to(confined: Confined, place: Place, hosts: HostRules) -> Confined:
    """Return a Git command that may use the user's agent at one place; ToolExecutionError where that cannot be."""
    agent = os.environ.get("SSH_AUTH_SOCK", "")
    if not agent or not os.path.exists(agent):
        raise ToolExecutionError(
            f"{place} is reached by ssh, and this gate knows no ssh agent (SSH_AUTH_SOCK). Start the gate where "
            "`ssh-add -l` lists your keys, give the remote an https URL, or run this command yourself."
        )
    program = _program("ssh", place)
    known = _known(place)
    files = (
        (f"{_FOLDER}/config", CONFIG.encode()),
        (f"{_FOLDER}/known_hosts", known),
        (f"{_FOLDER}/tunnel", TUNNEL.encode()),
    )
    own = {"GIT_SSH_COMMAND": f"{program} -F {_FOLDER}/config", "GIT_SSH_VARIANT": "ssh"}
    return replace(
        confined,
        environment={**confined.environment, **own},
        tools=(),
        agent=agent,
        files=files,
        reach=PlaceReach(hosts, place.host, place.port),
    )


def _known(place: Place) -> bytes:
    """Return the keys that the user has accepted for a host, and of no other."""
    name = place.host if place.port == 22 else f"[{place.host}]:{place.port}"
    program, found = _program("ssh-keygen", place), b""
    for file in map(os.path.expanduser, KNOWN_HOSTS):
        if os.path.isfile(file):
            line = [program, "-F", name, "-f", file]
            done = subprocess.run(line, stdin=subprocess.DEVNULL, capture_output=True, timeout=10, check=False)
            found += b"".join(each + b"\n" for each in done.stdout.splitlines() if not each.startswith(b"#"))
    if not found:
        raise ToolExecutionError(
            f"The keys of {place} are not known to you, so nobody could say who answers there. Connect once by "
            f"yourself, with `ssh -p {place.port} {place.user}@{place.host}`, and accept its key."
        )
    return found


def _program(name: str, place: Place) -> str:
    found = shutil.which(name, path=os.pathsep.join(TRUSTED_DIRECTORIES))
    if found is None:
        raise ToolExecutionError(f"{place} is reached by ssh, and `{name}` is not installed. Install OpenSSH's client.")
    return found
