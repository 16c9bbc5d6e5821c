"""What other processes wrote to the file, for the bus that watches it."""

from __future__ import annotations

from collections.abc import Callable

from toolgate.adapters.sqlite.read import Reader


class News:
    """Reads which calls the latest events tell of, unless this store wrote all of them itself.

    `own` says which positions those are: the first and the last of the latest run of own events.
    """

    def __init__(
        self, shared: Reader, *, open_reader: Callable[[], Reader], own: Callable[[], tuple[int, int]]
    ) -> None:
        self._shared = shared
        self._open_reader = open_reader
        self._opened: Reader | None = None
        self._own = own

    def position(self) -> int:
        """The position of the last event."""
        return self._shared.position()

    @property
    def _reader(self) -> Reader:
        """A connection of its own, opened by the thread that watches so that nobody waits for it."""
        if self._opened is None:
            self._opened = self._open_reader()
        return self._opened

    def data_version(self) -> int:
        """A number that changes whenever another connection has written, this store's own included."""
        return self._reader.data_version()

    def news(self, position: int) -> tuple[int, list[tuple[str, str, str]]]:
        """Return the last event position, and (project, call id, status) of every call told of after `position`."""
        last = self._reader.position()
        first_own, last_own = self._own()
        if first_own <= position + 1 and last <= last_own:
            return last, []
        return last, self._reader.told_of(position + 1, last)

    def close(self) -> None:
        if self._opened is not None:
            self._opened.close()
