"""Say in words what is wrong with how one of our functions was called, in the place of a bare error from its inside.

Arguments are compared with their annotations only where a call failed, or where an object is made: what works is left
alone. Objects of other people's classes always fit, for they may do what ours do; only Python's own plainly wrong
types do not.
"""

from __future__ import annotations

import collections.abc
import enum
import functools
import inspect
import types
import typing
from collections.abc import Callable, Iterator
from typing import Any, ParamSpec, TypeVar, cast

from toolgate.errors import ToolgateError, UsageError
from toolgate.kernel.spelling import check_names, names_of

P = ParamSpec("P")
T = TypeVar("T")
_BARE = (TypeError, AttributeError, KeyError, ValueError)
_WORDS: dict[Any, str] = {
    str: "text",
    bytes: "bytes",
    int: "a whole number",
    float: "a number",
    bool: "True or False",
    types.NoneType: "None",
    dict: "a mapping",
    collections.abc.Mapping: "a mapping",
    collections.abc.Callable: "a function",
    list: "a list",
    tuple: "a tuple",
}
_LISTS = (list, tuple, set, frozenset)


def explained(function: Callable[P, T]) -> Callable[P, T]:
    """Have a function, plain or async, say which of its arguments is of the wrong type or has an unknown name."""
    named = _Named(function, function.__name__)
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def waited(*args: P.args, **kwargs: P.kwargs) -> Any:
            check_names(named.what, kwargs, named.known)
            try:
                return await function(*args, **kwargs)
            except _BARE as error:
                named.explain(error, args, kwargs)
                raise

        return cast(Callable[P, T], waited)

    @functools.wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> T:
        check_names(named.what, kwargs, named.known)
        try:
            return function(*args, **kwargs)
        except _BARE as error:
            named.explain(error, args, kwargs)
            raise

    return called


def explained_class(cls: type[T]) -> type[T]:
    """Have all public methods of a class do so, and its making refuse arguments of plainly wrong types."""
    for name, member in tuple(vars(cls).items()):
        if name == "__init__":
            setattr(cls, name, _made(member, cls.__name__))
        elif name.startswith("_"):
            continue
        elif isinstance(member, classmethod):
            setattr(cls, name, classmethod(explained(member.__func__)))
        elif inspect.isfunction(member) and not inspect.isasyncgenfunction(member):
            setattr(cls, name, explained(member))
    return cls


def _made(init: Callable[P, None], what: str) -> Callable[P, None]:
    named = _Named(init, what)

    @functools.wraps(init)
    def made(*args: P.args, **kwargs: P.kwargs) -> None:
        check_names(what, kwargs, named.known)
        named.refuse(args, kwargs)
        init(*args, **kwargs)

    return made


class _Named:
    """A function with the words for its arguments. Annotations are looked up when something is wrong, or once."""

    def __init__(self, function: Callable[..., Any], what: str) -> None:
        self._function = function
        self.what = what
        self.known = names_of(function)

    @functools.cached_property
    def _hints(self) -> dict[str, Any]:
        try:
            return typing.get_type_hints(self._function)
        except NameError:  # names that only a type checker imports
            return {}

    def explain(self, error: Exception, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Raise UsageError in the place of a bare error, where an argument explains it."""
        if not isinstance(error, ToolgateError) and not type(error).__module__.startswith("pydantic"):
            self.refuse(args, kwargs, error)

    def refuse(self, args: tuple[Any, ...], kwargs: dict[str, Any], error: Exception | None = None) -> None:
        """Raise UsageError for the first argument that does not fit its annotation."""
        for name, value in self._given(args, kwargs):
            hint = self._hints.get(name, Any)
            if not fits(value, hint):
                raise UsageError(f"`{self.what}` takes {described(hint)} as `{name}`, not {_kind(value)}.") from error
            closed = next((one for one in _parts(hint) if _is_enum(one)), None)
            if closed is not None and value is not None and not _is_member(value, closed):
                allowed = ", ".join(str(one.value) for one in closed)
                text = f"`{self.what}` knows no `{name}` {str(value)[:40]!r}; it is one of: {allowed}."
                raise UsageError(text) from error

    def _given(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[tuple[str, Any]]:
        try:
            bound = inspect.signature(self._function).bind(*args, **kwargs)
        except TypeError:  # too few or too many: Python's own words say so
            return
        yield from bound.arguments.items()


def fits(value: object, hint: Any) -> bool:
    """Whether a value may be what an annotation asks for. Only values of Python's own types can fail."""
    if type(value).__module__ != "builtins":
        return True
    return any(_fits(value, one) for one in _parts(hint))


def _parts(hint: Any) -> tuple[Any, ...]:
    """The alternatives of an annotation."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return tuple(part for one in typing.get_args(hint) for part in _parts(one))
    return (hint,)


def _fits(value: object, hint: Any) -> bool:
    if hint is Any or hint is None or isinstance(hint, TypeVar | str):
        return hint is not None or value is None
    origin = typing.get_origin(hint) or hint
    if origin is typing.Literal:
        return value in typing.get_args(hint)
    if origin is collections.abc.Callable:
        return callable(value)
    if not isinstance(origin, type):
        return True
    if getattr(origin, "_is_protocol", False) and origin.__module__ != "collections.abc":
        return all(hasattr(value, name) for name in vars(origin) if not name.startswith("_"))
    if origin is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if isinstance(value, _LISTS):  # one will do for the other
        return origin in _LISTS or (origin.__module__ == "collections.abc" and isinstance(value, origin))
    return isinstance(value, origin)


def described(hint: Any) -> str:
    """An annotation in words."""
    words = dict.fromkeys(_described(one) for one in _parts(hint))
    return " or ".join(words)


def _described(hint: Any) -> str:
    origin = typing.get_origin(hint) or hint
    if origin is typing.Literal:
        return " or ".join(repr(one) for one in typing.get_args(hint))
    name = getattr(origin, "__name__", str(origin))
    return _WORDS.get(origin, f"an {name}" if name[:1] in "AEIOU" else f"a {name}")


def _is_enum(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, enum.Enum)


def _is_member(value: object, closed: Any) -> bool:
    try:
        closed(value)
    except (ValueError, TypeError):
        return False
    return True


def _kind(value: object) -> str:
    return "None" if value is None else type(value).__name__
