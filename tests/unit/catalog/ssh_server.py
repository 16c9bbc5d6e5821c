"""A real sshd on this machine's loopback, for one user with one key that an agent of its own holds."""

from __future__ import annotations

import contextlib
import getpass
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SSHD = shutil.which("sshd", path="/usr/sbin:/usr/bin:/usr/local/sbin")
SETTINGS = """\
ListenAddress 127.0.0.1
Port {port}
HostKey {folder}/host
AuthorizedKeysFile {folder}/key.pub
PidFile none
UsePAM no
StrictModes no
PasswordAuthentication no
PermitRootLogin prohibit-password
"""


@dataclass(frozen=True, kw_only=True)
class Server:
    """Where it listens, as whom it lets in, the line of its key for `known_hosts`, and the agent's socket."""

    port: int
    user: str
    known: str
    agent: str


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@contextlib.contextmanager
def serving(folder: Path) -> Iterator[Server]:
    """Serve until the end of `with`."""
    assert SSHD is not None
    for name in ("host", "key"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)], check=True)
    port = _free_port()
    (folder / "sshd_config").write_text(SETTINGS.format(port=port, folder=folder))
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)
    line = [SSHD, "-D", "-e", "-f", str(folder / "sshd_config")]
    agent = str(folder / "agent")
    with (
        open(folder / "log", "wb") as log,
        subprocess.Popen(line, stderr=log) as server,
        subprocess.Popen(["ssh-agent", "-D", "-a", agent], stdout=subprocess.DEVNULL) as keeper,
    ):
        try:
            _wait_for(port, agent)
            subprocess.run(
                ["ssh-add", "-q", str(folder / "key")], env={**os.environ, "SSH_AUTH_SOCK": agent}, check=True
            )
            host_key = " ".join((folder / "host.pub").read_text().split()[:2])
            yield Server(port=port, user=getpass.getuser(), known=f"[127.0.0.1]:{port} {host_key}\n", agent=agent)
        finally:
            server.terminate()
            keeper.terminate()


def _wait_for(port: int, agent: str) -> None:
    until = time.monotonic() + 30
    while time.monotonic() < until:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            if os.path.exists(agent):
                return
        time.sleep(0.02)
    raise TimeoutError("sshd did not answer")
