"""The base of wide frozen records. It owns cheap creation and change, nothing else.

`dataclasses.replace` on a frozen record of twenty-odd fields costs ten times what the rest of a
state change does, so records are changed with `evolve`, which copies the instance dictionary.
Fields left at their default are not stored at all: the class attribute serves them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self, TypeVar

_new = object.__new__
_set = object.__setattr__
_NO_DEFAULT = object()


class Record:
    """Mix-in for `@dataclass(frozen=True, kw_only=True)` classes without slots."""

    @classmethod
    def make(cls, **fields: Any) -> Self:
        """Return an instance with these fields; the caller vouches for names and required fields."""
        new = _new(cls)
        stored = {name: value for name, value in fields.items() if value is not getattr(cls, name, _NO_DEFAULT)}
        _set(new, "__dict__", stored)
        return new

    def evolve(self, **changes: Any) -> Self:
        """Return a copy with these fields changed."""
        new = _new(self.__class__)
        _set(new, "__dict__", {**self.__dict__, **changes})
        return new


R = TypeVar("R", bound=Record)
_put: Callable[[Record, dict[str, Any]], None] = Record.__dict__["__dict__"].__set__  # past the frozen __setattr__


def build(kind: type[R], fields: dict[str, Any]) -> R:
    """Return a record that owns this dictionary of its fields; the caller vouches for it and keeps no reference.

    It does what `make` does, for what is made on every call's way: no keyword arguments, nothing left out.
    """
    new = _new(kind)
    _put(new, fields)
    return new
