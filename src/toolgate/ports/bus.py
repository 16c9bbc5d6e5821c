"""Bus: wakes those who wait. It may lose messages; the store is the truth."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, Protocol

from toolgate.kernel.call import Status


class Hint(NamedTuple):
    """Something changed about this call; read the store to learn what.

    `tool_name`, the `version` the call's row has since, and its `owner`, who is to go on with it, are told where they
    are at hand.
    """

    project: str
    call_id: str
    status: Status
    tool_name: str | None = None
    version: int | None = None
    owner: str | None = None


LOOK_AGAIN: Final = Hint("", "", Status.PENDING)
"""Hints may have been lost: whoever waits for anything looks at the store again."""

Listener = Callable[[Hint], None]


class Bus(Protocol):
    """Listeners are called on any thread and must return at once."""

    def publish(self, hint: Hint) -> None: ...

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call `listener` for every hint from now on; the returned function ends it."""
        ...

    def close(self) -> None: ...
