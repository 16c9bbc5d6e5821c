"""Own an open descriptor in one place. A number that was closed belongs to whoever opens next: it is forgotten."""

from __future__ import annotations

import errno
import os
from types import TracebackType
from typing import Self


class Descriptor:
    """One open descriptor. Closing it twice, or from two threads at once, closes it once."""

    __slots__ = ("_held",)

    def __init__(self, number: int) -> None:
        self._held = [number]

    @property
    def number(self) -> int:
        """The number, for the system call that follows; OSError (EBADF) once it is closed."""
        try:
            return self._held[0]
        except IndexError:
            raise OSError(errno.EBADF, "the descriptor was closed") from None

    @property
    def is_open(self) -> bool:
        return bool(self._held)

    def close(self) -> None:
        """Close it, unless that was done: the number is forgotten first, whatever the system says of the closing."""
        try:
            number = self._held.pop()  # one thread alone gets it
        except IndexError:
            return
        os.close(number)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def pipe() -> tuple[Descriptor, Descriptor]:
    """Return the end to read from and the end to write to of a new pipe."""
    reading, writing = os.pipe()
    return Descriptor(reading), Descriptor(writing)
