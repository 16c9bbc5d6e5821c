"""Refuse schemas whose validation could take unbounded time, whatever the arguments.

This file only looks at schemas; `kernel.schema` compiles them. A schema that passes `bound` takes at most
`MAX_WORK` steps at any one place of the arguments, so validation time is linear in their size.

`bound` computes for each schema position the most steps that one evaluation of it can cause at one place
of the arguments, there or at any depth below. Subschemas that look at the same place add up. Children add
up only where they can be the same child: the names of `properties` are different children, but a pattern
or another subschema may look at the same name. A recursion that reaches itself twice through the same
child doubles with every level and runs into the limit.

Alternatives that exclude each other do not add up, provided the validator looks at the difference first.
Where the limit needs that, `bound` returns the schema with guards (`kernel.schema_guards`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import orjson

from toolgate.kernel.text.schema.guards import (
    UNIONS,
    escape,
    exclusive_groups,
    find_guards,
    positions,
    subschemas,
    with_guards,
)

MAX_WORK: Final = 5_000
"""Steps allowed at one place of the arguments."""
MAX_CHAIN: Final = 64
"""Subschemas that may lie behind each other at one place of the arguments: they share one stack."""

_LEVELS: Final = 64
_HERE: Final = frozenset(["allOf", "not", "if", "then", "else", "dependentSchemas", "dependencies"])
_PATTERN_WORK: Final = 25
_SIMPLIFY: Final = "refer to each part once, or tell alternatives apart by a required constant"


class Refusal(Exception):
    """The schema position that is refused, why, and what to do."""

    def __init__(self, pointer: str, why: str, remedy: str) -> None:
        super().__init__(pointer, why, remedy)
        self.pointer = pointer
        self.why = why
        self.remedy = remedy


def bound(root: dict[str, Any], targets: Mapping[str, str]) -> dict[str, Any]:
    """Return the schema to compile, equal in what it accepts, or raise `Refusal`.

    `targets` maps each position that has a reference to the position it leads to.
    """
    nodes = positions(root)
    shapes = {pointer: _Shape.of(pointer, node, targets) for pointer, node in nodes.items()}
    order = _in_place_order(shapes)
    if _exceeds(shapes, order, {}) is None:
        return root
    guards = find_guards(nodes, targets)
    pointer = _exceeds(shapes, order, guards)
    if pointer is not None:
        raise Refusal(pointer, f"checking one value could take more than {MAX_WORK} steps", _SIMPLIFY)
    return with_guards(root, guards)


class _Reach(NamedTuple):
    """The most steps one evaluation causes at its own place and at each kind of child."""

    here: int = 0
    names: Mapping[str, int] = {}
    other: int = 0
    indices: Mapping[int, int] = {}
    rest: int = 0
    keys: int = 0

    def worst(self) -> int:
        return max(self.here, self.other, self.rest, self.keys, *self.names.values(), *self.indices.values())

    def join(self, that: _Reach, how: Callable[[int, int], int]) -> _Reach:
        names = {
            name: how(self.names.get(name, self.other), that.names.get(name, that.other))
            for name in {**self.names, **that.names}
        }
        indices = {
            index: how(self.indices.get(index, self.rest), that.indices.get(index, that.rest))
            for index in {**self.indices, **that.indices}
        }
        here, other = how(self.here, that.here), how(self.other, that.other)
        return _Reach(here, names, other, indices, how(self.rest, that.rest), how(self.keys, that.keys))


def _add(left: int, right: int) -> int:
    return left + right


class _Shape(NamedTuple):
    """The positions one schema position evaluates: at its own place, as alternatives, at its children."""

    own: int
    here: list[str]
    unions: list[list[str]]
    properties: dict[str, str]
    patterns: list[str]
    prefix: list[str]
    single: dict[str, str]

    @classmethod
    def of(cls, pointer: str, node: Any, targets: Mapping[str, str]) -> _Shape:
        here = [targets[pointer]] if pointer in targets else []
        lists: dict[str, list[str]] = {}
        for keyword, step, _ in subschemas(node):
            lists.setdefault(keyword, []).append(pointer + step)
        for keyword in _HERE:
            here += lists.get(keyword, ())
        names = node.get("properties", {}) if isinstance(node, dict) else {}
        return cls(
            own=_own_work(node),
            here=here,
            unions=[lists[keyword] for keyword in UNIONS if keyword in lists],
            properties={name: f"{pointer}/properties/{escape(name)}" for name in names},
            patterns=lists.get("patternProperties", []),
            prefix=lists.get("prefixItems", []),
            single={keyword: steps[0] for keyword, steps in lists.items()},
        )

    def in_place(self) -> list[str]:
        return [*self.here, *(branch for union in self.unions for branch in union)]

    def children(self, worst: Mapping[str, int]) -> _Reach:
        def below(keyword: str) -> int:
            return worst[self.single[keyword]] if keyword in self.single else 0

        matching = len(self.patterns) + sum(worst[pattern] for pattern in self.patterns)
        left_over = below("unevaluatedProperties")
        any_item = below("unevaluatedItems") + below("contains")
        return _Reach(
            here=self.own,
            names={name: worst[place] + matching + left_over for name, place in self.properties.items()},
            other=max(matching, below("additionalProperties") + len(self.patterns)) + left_over,
            indices={index: worst[place] + any_item for index, place in enumerate(self.prefix)},
            rest=below("items") + any_item,
            keys=below("propertyNames"),
        )


def _own_work(node: Any) -> int:
    """Return the steps of a position's own assertions, counting what grows with the schema."""
    if not isinstance(node, dict):
        return 1
    compared = [*([node["const"]] if "const" in node else ()), *node.get("enum", ())]
    deep = sum(len(orjson.dumps(item)) // 16 + 1 for item in compared if isinstance(item, dict | list))
    listed = sum(len(node.get(word, ())) for word in ("required", "properties", "dependentRequired"))
    return 1 + deep + listed // 8 + (_PATTERN_WORK if "pattern" in node or "format" in node else 0)


def _in_place_order(shapes: Mapping[str, _Shape]) -> list[str]:
    """Return all positions, each after those it evaluates at its own place; refuse cycles among them."""
    height: dict[str, int] = {}
    entered: set[str] = set()
    stack = list(shapes)
    while stack:
        pointer = stack[-1]
        needed = shapes[pointer].in_place()
        missing = [place for place in needed if place not in height]
        if not missing or pointer in height:
            stack.pop()
            height.setdefault(pointer, 1 + max((height[place] for place in needed), default=0))
            if height[pointer] > MAX_CHAIN:
                raise Refusal(pointer, f"more than {MAX_CHAIN} subschemas lie behind each other", _SIMPLIFY)
            continue
        if pointer in entered:
            why = "a reference leads back to itself without descending into the value"
            raise Refusal(pointer, why, "remove the cycle")
        entered.add(pointer)
        stack += missing
    return list(height)


def _exceeds(shapes: Mapping[str, _Shape], order: list[str], guards: Mapping[str, dict[str, Any]]) -> str | None:
    """Return the first position found to exceed `MAX_WORK` within the deepest arguments, if any."""
    groups = {union[0]: exclusive_groups(union, guards) for shape in shapes.values() for union in shape.unions}
    worst = dict.fromkeys(order, 0)
    for _ in range(_LEVELS):
        reaches: dict[str, _Reach] = {}
        for pointer in order:
            reach = shapes[pointer].children(worst)
            for place in shapes[pointer].here:
                reach = reach.join(reaches[place], _add)
            for union in shapes[pointer].unions:
                reach = reach.join(_union(groups[union[0]], reaches), _add)
            if reach.worst() > MAX_WORK:
                return pointer
            reaches[pointer] = reach
        previous, worst = worst, {pointer: reach.worst() for pointer, reach in reaches.items()}
        if worst == previous:
            break
    return None


def _union(groups: list[list[str]], reaches: Mapping[str, _Reach]) -> _Reach:
    """Add up alternatives that can apply together; take the worst of those that cannot."""
    union = _Reach()
    for group in groups:
        together = _Reach()
        for branch in group:
            together = together.join(reaches[branch], _add)
        union = union.join(together, max)
    return union._replace(here=union.here + 2 * sum(map(len, groups)))
