"""Say which name was meant where one is unknown: a misspelt keyword is told with the nearest one there is."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection, Iterable
from typing import Any, ParamSpec, TypeVar, cast

from toolgate.errors import UnknownKeywordError

P = ParamSpec("P")
T = TypeVar("T")
_ALIKE = 0.6
"""How alike two names are that may be meant for one another, from 0 to 1."""


def nearest(name: str, known: Collection[str]) -> str | None:
    """Return the known name that was probably meant: one that begins or ends with it, else the most similar."""
    parts = [one for one in known if one.startswith(f"{name}_") or one.endswith(f"_{name}")]
    if parts:
        return min(parts, key=len)
    from difflib import SequenceMatcher  # here: only a mistake needs it

    ranked = sorted(((SequenceMatcher(None, name, one).ratio(), one) for one in known), reverse=True)
    return ranked[0][1] if ranked and ranked[0][0] >= _ALIKE else None


def unknown_name(what: str, name: str, known: Collection[str]) -> str:
    """Say that `what` takes no such name, and which one was meant or which there are."""
    meant = nearest(name, known)
    hint = f"Did you mean `{meant}`?" if meant is not None else f"It takes: {', '.join(known)}."
    return f"`{what}` takes no `{name[:64]}`. {hint}"


def spelled_fields(cls: type[T]) -> type[T]:
    """Have a class say which field was meant where one is unknown."""
    init = cast(Callable[..., Any], cls.__init__)
    setattr(cls, "__init__", _checked(init, cls.__name__))  # noqa: B010  # mypy refuses the assignment
    return cls


def names_of(function: Callable[..., Any]) -> tuple[str, ...]:
    """Return the keywords a function takes; none where it takes any."""
    parameters = inspect.signature(function).parameters.values()
    if any(one.kind is inspect.Parameter.VAR_KEYWORD for one in parameters):
        return ()
    named = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return tuple(one.name for one in parameters if one.kind in named and one.name not in ("self", "cls"))


def check_names(what: str, given: Iterable[str], known: Collection[str]) -> None:
    """Raise UnknownKeywordError for a name that is not known; where none is, any will do."""
    for name in given:
        if name not in known and known:
            raise UnknownKeywordError(unknown_name(what, name, known))


def check_fields(what: str, given: Iterable[object], known: Collection[str]) -> None:
    """Raise ValueError, which Pydantic tells as its own, for a field that is not known."""
    for name in given:
        if name not in known:
            raise ValueError(unknown_name(what, str(name), known))


def _checked(function: Callable[P, T], what: str) -> Callable[P, T]:
    known = names_of(function)

    @functools.wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> T:
        check_names(what, kwargs, known)
        return function(*args, **kwargs)

    return checked
