"""Which errors may be gone a moment later: a connection that broke or was refused, a network that was slow."""

from __future__ import annotations

import errno
from typing import Final

_NO_NAME_YET: Final = -3
"""What the resolver of names answers where it may know later (EAI_AGAIN); errors of the system are above zero."""
_PASSING: Final = frozenset(
    (
        errno.EAGAIN,
        errno.EHOSTUNREACH,
        errno.ENETDOWN,
        errno.ENETRESET,
        errno.ENETUNREACH,
        errno.ETIMEDOUT,
        _NO_NAME_YET,
    )
)
_DEPTH: Final = 5
"""How many causes are looked at: libraries wrap the error of the system in their own, one upon the other."""


def is_transient(error: BaseException | None) -> bool:
    """Whether trying again may help, by the error or by what caused it.

    An error of any class says so itself with an attribute `is_transient`, True or False.
    """
    for _ in range(_DEPTH):
        if error is None:
            return False
        said = _said(error)
        if isinstance(said, bool):
            return said
        if _passes(error):
            return True
        error = error.__cause__
    return False


def _said(error: BaseException) -> object:
    """Return what an error says of itself; looking may run anything, and what fails says nothing."""
    try:
        return getattr(error, "is_transient", None)
    except Exception:  # noqa: BLE001  # an error of somebody else's: how it is looked at must not replace it
        return None


def _passes(error: BaseException) -> bool:
    if isinstance(error, ConnectionError | TimeoutError):
        return True
    return isinstance(error, OSError) and error.errno in _PASSING
