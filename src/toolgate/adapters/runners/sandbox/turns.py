"""Let programs that write in a workspace take turns, across processes.

What is protected in a workspace is looked for before a sandbox is made, and mounted by name. A program that writes
there meanwhile could put a link in the place of a folder just found, and have what lies outside mounted. So the search,
the mounts and the run are one turn; whoever comes next looks again. Runs in overlays, which write elsewhere, share one.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator, Sequence

from toolgate.adapters.runners.sandbox.streams import is_readable
from toolgate.errors import SandboxError
from toolgate.guards.descriptor import Descriptor

POLL_S = 0.02


@contextlib.contextmanager
def turn(roots: Sequence[str], *, timeout_s: float, stop: Descriptor, shared: bool = False) -> Iterator[None]:
    """Hold the turn in these folders; SandboxError where it does not come in time, or nobody waits any more.

    shared: others who only read what is there, and write elsewhere, may have it at the same time.
    """
    deadline = time.monotonic() + timeout_s
    with contextlib.ExitStack() as held:
        for root in sorted(set(roots)):  # in one order, so that two never wait for each other
            folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            held.callback(os.close, folder)
            _wait(folder, root, deadline, stop, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
        yield


def _wait(folder: int, root: str, deadline: float, stop: Descriptor, how: int) -> None:
    while True:
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(folder, how | fcntl.LOCK_NB)
            return
        if is_readable(stop, POLL_S):
            raise SandboxError("Nobody waits for this any more; nothing ran.")
        if time.monotonic() > deadline:
            raise SandboxError(
                f"Nothing ran: another command was writing in {root} all the time this one had. Commands that write in "
                "a workspace take turns; try again when that one has ended."
            )
