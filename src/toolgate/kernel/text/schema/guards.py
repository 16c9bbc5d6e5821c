"""Walk the positions of a schema, and tell alternatives apart cheaply.

A guard is a small schema in front of an `anyOf` or `oneOf` alternative that looks only at the type and at
constant required keys. It changes no answer, because whatever the alternative accepts the guard accepts;
it makes sure that of alternatives excluding each other only one is followed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import quote, unquote

import orjson

UNIONS: Final = ("anyOf", "oneOf")
REFERENCES: Final = ("$ref", "$dynamicRef")

_ONE: Final = frozenset(
    "additionalProperties unevaluatedProperties propertyNames items contains unevaluatedItems not if then"
    " else contentSchema".split()
)
_LISTS: Final = frozenset(["allOf", "anyOf", "oneOf", "prefixItems"])
_MAPS: Final = frozenset(
    ["$defs", "definitions", "properties", "patternProperties", "dependentSchemas", "dependencies"]
)
_MOST_COMPARED: Final = 400


def escape(step: object) -> str:
    """Return one step of a JSON Pointer."""
    return str(step).replace("~", "~0").replace("/", "~1")


def subschemas(node: Any) -> Iterator[tuple[str, str, Any]]:
    """Yield keyword, relative pointer and schema of each direct subschema."""
    for keyword, value in node.items() if isinstance(node, dict) else ():
        if keyword in _ONE:
            yield keyword, f"/{keyword}", value
        elif keyword in _LISTS:
            for index, item in enumerate(value):
                yield keyword, f"/{keyword}/{index}", item
        elif keyword in _MAPS:
            for name, item in value.items():
                if isinstance(item, dict | bool):
                    yield keyword, f"/{keyword}/{escape(name)}", item


def positions(root: dict[str, Any]) -> dict[str, Any]:
    """Return every schema position of the document by JSON Pointer."""
    found: dict[str, Any] = {"": root}
    todo = [""]
    for pointer in todo:
        for _, step, child in subschemas(found[pointer]):
            found[pointer + step] = child
            todo.append(pointer + step)
    return found


def guard_of(node: Any) -> dict[str, Any]:
    """Return the guard of one schema; `{}` where there is nothing to tell it by."""
    if not isinstance(node, dict):
        return {}
    guard: dict[str, Any] = {"type": node["type"]} if "type" in node else {}
    if guard.get("type") != "object":
        return guard
    fields = node.get("properties", {})
    tags = {name: {"enum": _constants(fields.get(name))} for name in node.get("required", ())}
    tags = {name: tag for name, tag in tags.items() if tag["enum"]}
    return {**guard, "required": list(tags), "properties": tags} if tags else guard


def _constants(field: Any) -> list[Any]:
    if not isinstance(field, dict):
        return []
    values: list[Any] = [field["const"]] if "const" in field else field.get("enum", [])
    return [] if any(isinstance(value, dict | list) for value in values) else values


def find_guards(nodes: Mapping[str, Any], targets: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """Return the guard of each alternative that has one, looking through plain references."""
    guards = {}
    for pointer, node in nodes.items():
        for keyword, step, branch in subschemas(node):
            if keyword in UNIONS:
                guard = guard_of(branch) or guard_of(nodes.get(targets.get(pointer + step, pointer + step)))
                if guard:
                    guards[pointer + step] = guard
    return guards


class _Marks(NamedTuple):
    """What a guard compares: the types it lets pass, and the values of each constant key."""

    types: frozenset[str]
    tags: Mapping[str, frozenset[bytes]]

    @classmethod
    def of(cls, guard: Mapping[str, Any]) -> _Marks:
        named = guard["type"]
        types = {named} if isinstance(named, str) else set(named)
        if "number" in types:
            types.add("integer")
        tags = {name: frozenset(map(orjson.dumps, tag["enum"])) for name, tag in guard.get("properties", {}).items()}
        return cls(frozenset(types), tags)

    def excludes(self, that: _Marks) -> bool:
        if self.types.isdisjoint(that.types):
            return True
        return any(key in that.tags and self.tags[key].isdisjoint(that.tags[key]) for key in self.tags)


def exclusive_groups(branches: list[str], guards: Mapping[str, dict[str, Any]]) -> list[list[str]]:
    """Split alternatives into groups so that any value passes the guards of at most one group.

    An alternative without a guard may always apply and is in every group.
    """
    if not guards or len(branches) > _MOST_COMPARED:
        return [branches]
    always = [branch for branch in branches if branch not in guards]
    marks = {branch: _Marks.of(guards[branch]) for branch in branches if branch in guards}
    groups: list[list[str]] = []
    for branch, mark in marks.items():
        apart = [group for group in groups if all(mark.excludes(marks[other]) for other in group)]
        joined = [other for group in groups if group not in apart for other in group]
        groups = [*apart, [*joined, branch]]
    return [always + group for group in groups] or [always]


def with_guards(root: dict[str, Any], guards: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """Return the schema with each guard in front of its alternative, and references moved along."""
    return _guarded(root, "", guards)  # type: ignore[no-any-return]  # the root is no alternative


def _guarded(node: Any, pointer: str, guards: Mapping[str, dict[str, Any]]) -> Any:
    if not isinstance(node, dict):
        return node
    new = dict(node)
    for keyword, value in node.items():
        here = f"{pointer}/{keyword}"
        if keyword in _ONE:
            new[keyword] = _guarded(value, here, guards)
        elif keyword in _LISTS:
            new[keyword] = [_guarded(item, f"{here}/{index}", guards) for index, item in enumerate(value)]
        elif keyword in _MAPS:
            new[keyword] = {name: _guarded(item, f"{here}/{escape(name)}", guards) for name, item in value.items()}
        elif keyword in REFERENCES and value.startswith("#/"):
            new[keyword] = "#" + quote(_moved(unquote(value[1:]), guards), safe="/~$")
    return {"if": guards[pointer], "then": new, "else": False} if pointer in guards else new


def _moved(pointer: str, guards: Mapping[str, dict[str, Any]]) -> str:
    """Return where a position is once the alternatives around it stand behind their guards."""
    passed = moved = ""
    for step in pointer.split("/")[1:]:
        passed += f"/{step}"
        moved += f"/{step}/then" if passed in guards else f"/{step}"
    return moved
