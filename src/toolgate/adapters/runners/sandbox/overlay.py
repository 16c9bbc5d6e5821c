"""Run programs over a copy-on-write layer of the folders they may write, and find out what they wrote (`layer`)."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from toolgate.adapters.runners.sandbox import layer as program
from toolgate.adapters.runners.sandbox.backend import User
from toolgate.adapters.runners.sandbox.layout import within
from toolgate.errors import SandboxError
from toolgate.ports.confinement import TooMuch, Written

MAX_BYTES = 64 << 20
"""How much a change set holds at most: it is kept with the call."""
MAX_NAMES = 10_000
_NAMES_IN_MEMORY = 200_000
_ANSWER_S = 30.0
"""How long the layer's process may take to answer, on a busy machine too."""


def outermost(roots: Sequence[str]) -> tuple[str, ...]:
    """Return the folders that lie in no other of them: a layer covers what lies beneath it."""
    return tuple(root for root in dict.fromkeys(roots) if not any(within(root, one) for one in {*roots} - {root}))


class Overlay:
    """A layer over some folders, in a mount namespace that programs are started in. Leaving it throws it away."""

    def __init__(self, roots: Sequence[str], *, place: str, user: User, size: int, enterer: str) -> None:
        self.roots = outermost(roots)
        self._enterer = enterer
        self._ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", program.__file__, str(theirs.fileno())],
                env={},
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
            )
        self._ours.settimeout(_ANSWER_S)
        self._talk = self._ours.makefile("rwb")
        self._is_ready = False
        asked = {"roots": self.roots, "place": place, "user": user, "bytes": size, "names": _NAMES_IN_MEMORY}
        self._say(asked)

    def __enter__(self) -> Overlay:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):  # what could not be sent is wanted by nobody any more
            self._talk.close()
        self._ours.close()
        self._process.kill()
        self._process.wait()

    def command(self, line: Sequence[str], user: User | None) -> list[str]:
        """Return the command that runs another one over the layer; as a user, where this process is root."""
        self.wait()
        home = f"/proc/{self._process.pid}/ns"
        if os.geteuid() != 0:
            return [self._enterer, f"--user={home}/user", f"--mount={home}/mnt", "--preserve-credentials", "--", *line]
        becoming = [] if user is None else [f"--setuid={user.uid}", f"--setgid={user.gid}"]
        return [self._enterer, f"--mount={home}/mnt", *becoming, "--", *line]

    def wait(self) -> None:
        """Return when the layer is there; SandboxError where it cannot be made."""
        if self._is_ready:
            return
        told = self._heard()
        if "error" in told:
            raise SandboxError(
                f"Nothing ran: the overlay cannot be made ({told['error']}). It needs a kernel with overlayfs for user "
                "namespaces and extended attributes in memory (Linux 6.6), and nothing may be mounted inside the "
                "workspace. Run `toolgate doctor`, or write `overlay: false` under `commands:` in the policy."
            )
        self._is_ready = True

    def is_folder(self, path: str) -> bool:
        """Whether there is a folder at a path by now."""
        self.wait()
        self._say({"look": path})
        return self._heard() is True

    def collect(self) -> tuple[tuple[Written, ...], TooMuch]:
        """Return all that was written; what is too much to be told is not told at all."""
        self.wait()
        self._say({"most_bytes": MAX_BYTES, "most_names": MAX_NAMES})
        found: list[Written] = []
        files: dict[str, bytes] = {}
        while (told := self._heard())["kind"] not in ("end", "names", "bytes", "disk"):
            found.append(self._written(told, files))
        return (tuple(found), "") if told["kind"] == "end" else ((), told["kind"])

    def _written(self, told: dict[str, Any], files: dict[str, bytes]) -> Written:
        path = bytes.fromhex(told["path"])
        first = files.setdefault(told["inode"], path) if told["kind"] == "file" else path
        return Written(
            root=told["root"],
            path=path,
            kind=told["kind"],
            mode=told.get("mode", 0),
            mtime_ns=told.get("mtime", 0),
            content=self._bytes(told["size"]) if told["size"] else b"",
            target=bytes.fromhex(told.get("target", "")),
            is_whole=told.get("whole", False),
            same_as=None if first == path else first,
            has_attributes=told.get("attributes", False),
        )

    def _say(self, asked: object) -> None:
        try:
            self._talk.write(json.dumps(asked).encode() + b"\n")
            self._talk.flush()
        except OSError as error:
            raise self._lost() from error

    def _heard(self) -> Any:
        try:
            line = self._talk.readline()
        except OSError as error:
            raise self._lost() from error
        if not line.endswith(b"\n"):
            raise self._lost()
        return json.loads(line)

    def _bytes(self, size: int) -> bytes:
        try:
            data = self._talk.read(size)
        except OSError as error:
            raise self._lost() from error
        if len(data) != size:
            raise self._lost()
        return data

    def _lost(self) -> SandboxError:
        return SandboxError("The overlay's process ended or does not answer; nothing was applied. Try again.")
