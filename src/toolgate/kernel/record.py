"""How wide frozen records are made and changed cheaply, with every field name and type still checked.

A frozen dataclass of forty fields takes ten times as long to make or `replace` as the rest of a state change takes.
`@record` gives it a constructor that keeps its keyword arguments as they are, and `evolve` copies the instance
dictionary; type checkers read them as an ordinary dataclass and as `dataclasses.replace`, so a misspelt field or a
value of a wrong type does not pass. Fields left at their default are not stored: the class attribute serves them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar, dataclass_transform

R = TypeVar("R")
_new = object.__new__
_set = object.__setattr__  # past the frozen one


@dataclass_transform(frozen_default=True, kw_only_default=True)
def record(kind: type[R]) -> type[R]:
    """Make a class a frozen, keyword-only dataclass whose constructor checks nothing at run time."""
    made = dataclass(frozen=True, kw_only=True)(kind)
    made.__init__ = _keep  # type: ignore[method-assign]  # the same signature, as far as a type checker can tell
    return made


def _keep(self: object, **fields: Any) -> None:
    _set(self, "__dict__", fields)


def build(kind: type[R], fields: dict[str, Any]) -> R:
    """Return a record that owns this dictionary of its fields; the caller vouches for it and keeps no reference."""
    new = _new(kind)
    _set(new, "__dict__", fields)
    return new


def slim(record: R) -> R:
    """Return a record without what its class says anyway, for many of them may be kept for hours."""
    kind = record.__class__
    said = kind.__dict__.get
    fields = {name: value for name, value in record.__dict__.items() if said(name, record) is not value}
    return build(kind, fields)


if TYPE_CHECKING:
    from dataclasses import replace as evolve
else:

    def evolve(record, /, **changes):
        """Return a copy of a record with these fields changed."""
        new = _new(record.__class__)
        _set(new, "__dict__", {**record.__dict__, **changes})
        return new


__all__ = ["build", "evolve", "record", "slim"]
