"""Explain why a value is refused by a schema, without repeating the value.

The validator's own error listing collects every nested failure first, which for recursive alternatives
takes exponential time and quotes values. This walk asks the fast yes-or-no question at each subschema,
follows only what fails and stops at the limit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

import jsonschema_rs
import orjson

from toolgate.kernel.text.schema.guards import REFERENCES, UNIONS, escape, guard_of

# The engine may keep every state of a pattern alive at once: a small program bounds the time per byte.
PATTERNS: Final = jsonschema_rs.RegexOptions(size_limit=50_000)

_SHOWN: Final = 100
_MAX_QUESTIONS: Final = 1_000_000
_LEAVES: Final = {
    "type": "is not of type {}",
    "enum": "is not one of the allowed values",
    "const": "is not the allowed value",
    "minimum": "is less than {}",
    "maximum": "is greater than {}",
    "exclusiveMinimum": "is not greater than {}",
    "exclusiveMaximum": "is not less than {}",
    "multipleOf": "is not a multiple of {}",
    "minLength": "is shorter than {} characters",
    "maxLength": "is longer than {} characters",
    "pattern": "does not match the pattern {}",
    "format": "is not a valid {}",
    "minItems": "has fewer than {} items",
    "maxItems": "has more than {} items",
    "uniqueItems": "has items that are equal",
    "minProperties": "has fewer than {} keys",
    "maxProperties": "has more than {} keys",
    "dependentRequired": "has a key that requires another key",
}


class Violation(NamedTuple):
    """One reason for a refusal: where (a JSON Pointer), what in words, and the schema's keyword."""

    location: str
    message: str
    keyword: str


class _Task(NamedTuple):
    pointer: str
    value: Any
    location: str


_Finding = Violation | _Task


class Parts(NamedTuple):
    """A compiled schema taken apart: its positions, where references lead, a validator per position."""

    nodes: Mapping[str, Any]
    targets: Mapping[str, str]
    validators: jsonschema_rs.ValidatorMap


class _EnoughError(Exception):
    """The walk has asked as many questions as one explanation is worth."""


class Explainer:
    """One explanation of one value."""

    def __init__(self, parts: Parts, limit: int) -> None:
        self._nodes, self._targets, self._validators = parts
        self._limit = limit
        self._questions = 0
        self._found: dict[Violation, None] = {}

    def explain(self, value: object) -> list[Violation]:
        """Return violations of a value known to be invalid, at least one."""
        try:
            self._walk(value)
        except _EnoughError:
            self._found.setdefault(Violation("", "is refused; not every reason was looked for", "schema"))
        return list(self._found)[: self._limit]

    def _walk(self, value: object) -> None:
        todo = [_Task("", value, "")]
        seen: set[tuple[str, str]] = set()
        while todo and len(self._found) < self._limit:
            task = todo.pop()
            if (task.pointer, task.location) in seen:
                continue
            seen.add((task.pointer, task.location))
            tasks = []
            for finding in self._findings(task):
                if isinstance(finding, Violation):
                    self._found[finding] = None
                else:
                    tasks.append(finding)
            todo += reversed(tasks)

    def _accepts(self, pointer: str, value: Any) -> bool:
        self._ask()
        return self._validators["#" + pointer].is_valid(value)

    def _ask(self, times: int = 1) -> None:
        self._questions += times
        if self._questions > _MAX_QUESTIONS:
            raise _EnoughError

    def _findings(self, task: _Task) -> Iterator[_Finding]:
        """Yield what is wrong with a value its schema refuses, or where to look further."""
        node = self._nodes[task.pointer]
        if not isinstance(node, dict):
            yield Violation(task.location, "is not allowed", "false")
            return
        count = 0
        for keyword, argument in node.items():
            check = _CHECKS.get(keyword)
            for finding in check(self, keyword, argument, task) if check else ():
                yield finding
                count += 1
                if count == self._limit:
                    return
        if not count:
            keyword = next((word for word in _LAST if word in node), "schema")
            yield Violation(task.location, "has parts that the schema does not allow", keyword)

    def _leaf(self, keyword: str, argument: Any, task: _Task) -> Iterator[_Finding]:
        if not _holds({keyword: argument}, task.value):
            yield Violation(task.location, _LEAVES[keyword].format(_shown(argument)), keyword)

    def _required(self, keyword: str, argument: list[str], task: _Task) -> Iterator[_Finding]:
        for name in argument if isinstance(task.value, dict) else ():
            if name not in task.value:
                yield Violation(task.location, f"lacks the key '{_shown(name)}', which is required", keyword)

    def _reference(self, keyword: str, argument: str, task: _Task) -> Iterator[_Finding]:
        yield from self._here(self._targets[task.pointer], task)

    def _all_of(self, keyword: str, argument: list[Any], task: _Task) -> Iterator[_Finding]:
        for index in range(len(argument)):
            yield from self._here(f"{task.pointer}/allOf/{index}", task)

    def _union(self, keyword: str, argument: list[Any], task: _Task) -> Iterator[_Finding]:
        """Point into the one alternative that was meant, where the guards show which."""
        steps = [f"{task.pointer}/{keyword}/{index}" for index in range(len(argument))]
        fitting = sum(self._accepts(step, task.value) for step in steps)
        if fitting > 1 and keyword == "oneOf":
            yield Violation(task.location, "matches more than one alternative", keyword)
        if fitting:
            return
        possible = [step for step in steps if self._nodes[step] is not False]
        meant = [step for step in possible if _holds(self._guard(step), task.value)]
        if len(meant) == 1:
            yield task._replace(pointer=meant[0])
        else:
            yield Violation(task.location, "matches none of the alternatives", keyword)

    def _guard(self, pointer: str) -> dict[str, Any]:
        node = self._nodes[pointer]
        if isinstance(node, dict) and node.get("else") is False:
            return guard_of(node.get("if"))
        return guard_of(node) or guard_of(self._nodes[self._targets.get(pointer, pointer)])

    def _not(self, keyword: str, argument: Any, task: _Task) -> Iterator[_Finding]:
        if self._accepts(f"{task.pointer}/not", task.value):
            yield Violation(task.location, "is what the schema excludes", keyword)

    def _condition(self, keyword: str, argument: Any, task: _Task) -> Iterator[_Finding]:
        follow = "then" if self._accepts(f"{task.pointer}/if", task.value) else "else"
        yield from self._here(f"{task.pointer}/{follow}", task)

    def _dependent(self, keyword: str, argument: dict[str, Any], task: _Task) -> Iterator[_Finding]:
        for name, needed in argument.items() if isinstance(task.value, dict) else ():
            if name not in task.value:
                continue
            if isinstance(needed, list):
                yield from self._required(keyword, needed, task)
            else:
                yield from self._here(f"{task.pointer}/{keyword}/{escape(name)}", task)

    def _properties(self, keyword: str, argument: dict[str, Any], task: _Task) -> Iterator[_Finding]:
        for name in argument if isinstance(task.value, dict) else ():
            if name in task.value:
                yield from self._below(f"/properties/{escape(name)}", name, task)

    def _patterns(self, keyword: str, argument: dict[str, Any], task: _Task) -> Iterator[_Finding]:
        for pattern in argument if isinstance(task.value, dict) else ():
            admits = _compile({"patternProperties": {pattern: False}})
            for name in task.value:
                self._ask()
                if not admits({name: None}):
                    yield from self._below(f"/patternProperties/{escape(pattern)}", name, task)

    def _additional(self, keyword: str, argument: Any, task: _Task) -> Iterator[_Finding]:
        if not isinstance(task.value, dict):
            return
        node = self._nodes[task.pointer]
        known = {word: dict.fromkeys(node.get(word, {}), True) for word in ("properties", "patternProperties")}
        admits = _compile({**known, "additionalProperties": False})
        for name in task.value:
            self._ask(1 + len(known["patternProperties"]))
            if admits({name: None}):
                continue
            if argument is False:
                text = f"has the key '{_shown(name)}', which is not allowed"
                yield Violation(task.location, text, keyword)
            else:
                yield from self._below("/additionalProperties", name, task)

    def _property_names(self, keyword: str, argument: Any, task: _Task) -> Iterator[_Finding]:
        for name in task.value if isinstance(task.value, dict) else ():
            if not self._accepts(f"{task.pointer}/propertyNames", name):
                text = f"has the key '{_shown(name)}', which is not an allowed name"
                yield Violation(task.location, text, keyword)

    def _prefix_items(self, keyword: str, argument: list[Any], task: _Task) -> Iterator[_Finding]:
        for index in range(min(len(argument), len(task.value))) if isinstance(task.value, list) else ():
            yield from self._below(f"/prefixItems/{index}", index, task)

    def _items(self, keyword: str, argument: Any, task: _Task) -> Iterator[_Finding]:
        first = len(self._nodes[task.pointer].get("prefixItems", ()))
        for index in range(first, len(task.value)) if isinstance(task.value, list) else ():
            yield from self._below("/items", index, task)

    def _contains(self, keyword: str, argument: Any, task: _Task) -> Iterator[_Finding]:
        if not isinstance(task.value, list):
            return
        node = self._nodes[task.pointer]
        count = sum(self._accepts(f"{task.pointer}/contains", item) for item in task.value)
        if count < node.get("minContains", 1):
            yield Violation(task.location, "has too few items of the kind it must contain", keyword)
        elif count > node.get("maxContains", count):
            yield Violation(task.location, "has too many items of a kind it may contain", keyword)

    def _here(self, pointer: str, task: _Task) -> Iterator[_Finding]:
        if pointer in self._nodes and not self._accepts(pointer, task.value):
            yield task._replace(pointer=pointer)

    def _below(self, step: str, key: Any, task: _Task) -> Iterator[_Finding]:
        if not self._accepts(task.pointer + step, task.value[key]):
            yield _Task(task.pointer + step, task.value[key], f"{task.location}/{escape(key)}")


def _compile(schema: dict[str, Any]) -> Callable[[Any], bool]:
    return jsonschema_rs.Draft202012Validator(schema, validate_formats=True, pattern_options=PATTERNS).is_valid


def _holds(schema: dict[str, Any], value: Any) -> bool:
    return _compile(schema)(value)


def _shown(argument: Any) -> str:
    """Return a word of the schema or a key, in a form that is safe to print and not too long."""
    text = argument if isinstance(argument, str) else orjson.dumps(argument).decode()
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


_Check = Callable[[Explainer, str, Any, _Task], Iterator[_Finding]]
_CHECKS: Final[dict[str, _Check]] = {
    **dict.fromkeys(_LEAVES, Explainer._leaf),
    **dict.fromkeys(REFERENCES, Explainer._reference),
    **dict.fromkeys(UNIONS, Explainer._union),
    "required": Explainer._required,
    "allOf": Explainer._all_of,
    "not": Explainer._not,
    "if": Explainer._condition,
    "dependentSchemas": Explainer._dependent,
    "dependencies": Explainer._dependent,
    "properties": Explainer._properties,
    "patternProperties": Explainer._patterns,
    "additionalProperties": Explainer._additional,
    "propertyNames": Explainer._property_names,
    "prefixItems": Explainer._prefix_items,
    "items": Explainer._items,
    "contains": Explainer._contains,
}
_LAST: Final = ("unevaluatedProperties", "unevaluatedItems")
