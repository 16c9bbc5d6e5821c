"""From what a type check refuses to what a person can act on: where it stands, what is wrong, what was meant."""

from __future__ import annotations

import types
from collections.abc import Iterable, Mapping
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, TypeAdapter, ValidationError

from toolgate.errors import PolicyProblem
from toolgate.policy.strict_yaml import Path, Tree

_UNKNOWN_KEY = "extra_forbidden"


class Reader:
    """Checks parts of one file against types, collecting problems instead of stopping at the first."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.problems: list[PolicyProblem] = []

    def complain(self, path: Path, message: str, *, key: bool = False) -> None:
        """Note a problem with the value at this path, or with its key."""
        place = self.tree.place(path, key=key)
        shown = ".".join(map(str, path))
        self.problems.append(PolicyProblem(self.tree.name, place.line, place.column, shown, message))

    def unknown(self, path: Path, known: Iterable[str]) -> None:
        """Note a key that does not exist, and the one that may have been meant."""
        self.complain(path, f"unknown key `{path[-1]}`{meant(str(path[-1]), known)}", key=True)

    def check(self, kind: Any, value: Any, path: Path, spelled: Mapping[str, str] | None = None) -> Any:
        """Return the value as this type has it, or None after noting what is wrong with it.

        `spelled` says by what other key a field was written.
        """
        try:
            return TypeAdapter(kind).validate_python(value)
        except ValidationError as error:
            found = [(self._path(path, item["loc"], spelled), item) for item in error.errors(include_url=False)]
            deepest = [entry for entry in found if not any(_is_above(entry[0], other) for other, _ in found)]
            for at, item in deepest:
                self._tell(kind, path, at, item, spelled)
            return None

    def _path(self, path: Path, loc: tuple[str | int, ...], spelled: Mapping[str, str] | None) -> Path:
        """The path in the file of a location in a type: names of union members are no part of it."""
        for number, part in enumerate(loc):
            named = spelled.get(str(part), part) if spelled and number == 0 else part
            parent = path[:-1] if spelled and number == 0 and named is not part else path
            if (*parent, named) in self.tree.values or (*parent, named) in self.tree.keys:
                path = (*parent, named)
        return path

    def _tell(self, kind: Any, base: Path, at: Path, item: Any, spelled: Mapping[str, str] | None) -> None:
        if item["type"] == _UNKNOWN_KEY:
            self.unknown(at, keys_at(kind, at[len(base) : -1]))
        elif item["type"] == "missing":
            self.complain(at, f"`{item['loc'][-1]}` is missing")
        else:
            self.complain(at, _worded(item))


def _worded(item: Any) -> str:
    if item["type"] == "value_error":
        return str(item["ctx"]["error"])
    text = item["msg"].replace(" dictionary or instance of FlagSpec", " mapping").replace("valid dictionary", "mapping")
    given = "" if isinstance(item["input"], dict | list) else f", not {str(item['input'])[:60]!r}"
    return f"{text[:1].lower()}{text[1:]}{given}"


def _is_above(path: Path, other: Path) -> bool:
    return len(path) < len(other) and other[: len(path)] == path


def meant(name: str, known: Iterable[str]) -> str:
    """Return a hint at the nearest known name, or at all of them where none is near."""
    from rapidfuzz import process

    names = sorted(known)
    best = process.extractOne(name, names, score_cutoff=60)
    if best is not None:
        return f"; did you mean `{best[0]}`?"
    return f"; known here: {', '.join(names)}" if names else "; no keys are known here"


def keys_at(kind: Any, path: Path) -> set[str]:
    """Return the keys a mapping at this path inside a type may have."""
    kinds = _models(kind)
    for part in path:
        kinds = [inner for one in kinds for inner in _models(_inside(one, part))]
    return {
        field.alias or name
        for one in kinds
        if isinstance(one, type) and issubclass(one, BaseModel)
        for name, field in one.model_fields.items()
    }


def _models(kind: Any) -> list[Any]:
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        return [inner for one in get_args(kind) for inner in _models(one)]
    return [] if kind is None or origin is Literal else [kind]


def _inside(kind: Any, part: str | int) -> Any:
    origin = get_origin(kind)
    if origin in (list, dict):
        return get_args(kind)[-1]
    if not (isinstance(kind, type) and issubclass(kind, BaseModel)):
        return None
    return next(field.annotation for name, field in kind.model_fields.items() if part in (name, field.alias))
