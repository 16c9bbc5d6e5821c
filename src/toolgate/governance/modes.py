"""Who knows the operator's mode: the manager a layer asks before every call."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol

from toolgate.errors import UsageError
from toolgate.kernel.context import Mode
from toolgate.kernel.misuse import explained_class


class ModeSource(Protocol):
    """What a layer needs of a mode manager."""

    def get_current_mode(self) -> Mode | str: ...


@explained_class
class ModeManager:
    """Holds the mode. Those who listen hear of every change, in the thread that made it."""

    def __init__(self, mode: Mode | str = Mode.NORMAL) -> None:
        self._mode = read_mode(mode)
        self._lock = threading.Lock()
        self._listeners: list[Callable[[Mode, Mode, str], None]] = []

    def get_current_mode(self) -> Mode:
        """Return the mode that holds now."""
        return self._mode

    def set_mode(self, mode: Mode | str, reason: str = "") -> None:
        """Change the mode; `reason` is recorded."""
        wanted = read_mode(mode)
        with self._lock:
            before, self._mode = self._mode, wanted
        if wanted is not before:
            for listener in tuple(self._listeners):
                listener(before, wanted, reason)

    def listen(self, listener: Callable[[Mode, Mode, str], None]) -> None:
        """Have a function called with the mode before, the mode after and the reason."""
        self._listeners.append(listener)

    def unlisten(self, listener: Callable[[Mode, Mode, str], None]) -> None:
        """Stop calling a function."""
        if listener not in self._listeners:
            raise UsageError("This function does not listen; `unlisten` takes one that was given to `listen`.")
        self._listeners.remove(listener)


def read_mode(mode: object) -> Mode:
    """Return a mode however it is spelled: a Mode, its name, or an object whose `value` or `name` is one."""
    for spelled in (mode, getattr(mode, "value", None), getattr(mode, "name", None)):
        if isinstance(spelled, str) and spelled.upper() in Mode.__members__:
            return Mode[spelled.upper()]
    raise UsageError(f"{str(mode)[:40]!r} is not a mode; modes are: {', '.join(Mode)}.")
