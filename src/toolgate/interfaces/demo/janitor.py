"""Cleans up after the demo however it ends: a process of its own, so that not even kill -9 leaves anything behind.

It is told what there is in lines (`pid 123`, `folder /tmp/...`). When its input ends, the demo has ended: what runs is
stopped, then the folder is removed. Only the standard library, and run as a file: it must not fail with the rest.
"""

from __future__ import annotations

import os
import select
import shutil
import signal
import sys
import time
from collections.abc import Iterable

GRACE_S = 5.0
"""How long what runs has to end by itself."""
PREFIX = "toolgate-demo-"
"""How a folder's name begins that may be removed."""


def stop(running: Iterable[int]) -> None:
    """End processes, given by their descriptors: politely, then not."""
    left = set(running)
    for number in (signal.SIGTERM, signal.SIGKILL):
        for one in left:
            _send(one, number)
        until = time.monotonic() + GRACE_S
        while left and (wait := until - time.monotonic()) > 0:
            left -= set(select.select(list(left), [], [], wait)[0])  # readable: it has ended


def _send(descriptor: int, number: signal.Signals) -> None:
    try:
        signal.pidfd_send_signal(descriptor, number)
    except ProcessLookupError:
        return


def main(lines: Iterable[str]) -> None:
    """Note what is told, and when no more comes, clean up."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # a Ctrl-C is for the demo
        signal.signal(number, signal.SIG_IGN)
    running, folders = list[int](), list[str]()
    for line in lines:
        word, _, value = line.strip().partition(" ")
        if word == "pid":
            try:
                running.append(os.pidfd_open(int(value)))  # stays this process, whoever gets its number next
            except ProcessLookupError:
                continue
        elif word == "folder" and os.path.basename(value).startswith(PREFIX):
            folders.append(value)
    stop(running)
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main(sys.stdin)
