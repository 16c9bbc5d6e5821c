"""Tell whether a draft-07 schema says the same in draft 2020-12, word by word. `kernel.schema` compiles it as that.

`dependencies` is no word of 2020-12, but the validator honours it in every draft.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from toolgate.kernel.text.schema.guards import positions

DRAFT_7: Final = "http://json-schema.org/draft-07/schema"

_NEWER: Final = frozenset(
    "dependentRequired dependentSchemas prefixItems unevaluatedItems unevaluatedProperties minContains maxContains"
    " $anchor $dynamicAnchor $dynamicRef $recursiveAnchor $recursiveRef".split()
)
"""Words that draft-07 does not know and passes over, and that count in 2020-12."""
_COUNTING: Final = frozenset(
    "type enum const multipleOf maximum exclusiveMaximum minimum exclusiveMinimum maxLength minLength pattern format"
    " items maxItems minItems uniqueItems contains maxProperties minProperties required properties patternProperties"
    " additionalProperties propertyNames if then else allOf anyOf oneOf not".split()
)
"""Words of draft-07 that decide whether a value is valid."""


def is_draft_7(dialect: object) -> bool:
    """Whether `$schema` names draft-07, in any of the ways it is written."""
    if not isinstance(dialect, str):
        return False
    return dialect.removesuffix("#").replace("https://", "http://", 1) == DRAFT_7


def differences(source: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield where a valid draft-07 schema means something else in 2020-12: the place, why, and what to write."""
    for pointer, node in positions(source).items():
        if isinstance(node, dict):
            yield from ((pointer, why, remedy) for why, remedy in _of_node(node))


def leftovers(source: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield the words of older drafts that a schema of 2020-12 would be read without: the place, why, what to write."""
    for pointer, node in positions(source).items():
        if not isinstance(node, dict):
            continue
        if "$recursiveRef" in node:
            yield pointer, "`$recursiveRef` says nothing in draft 2020-12", "write `$ref`"
        if "additionalItems" in node and "prefixItems" in node:
            yield pointer, "`additionalItems` says nothing in draft 2020-12", "write `items` beside `prefixItems`"


def _of_node(node: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if isinstance(node.get("items"), list):
        yield "`items` as a list is `prefixItems` in draft 2020-12", "write `prefixItems`"
    if "additionalItems" in node:
        yield "`additionalItems` of draft-07 says nothing in draft 2020-12", "write `prefixItems` with `items`"
    for word in sorted(_NEWER.intersection(node)):
        yield f"`{word}` says nothing in draft-07 and counts in draft 2020-12", "leave it out"
    beside = sorted(_COUNTING.intersection(node)) if "$ref" in node else []
    if beside:
        why = f"`{beside[0]}` beside `$ref` says nothing in draft-07 and counts in draft 2020-12"
        yield why, "leave it out, or put both under `allOf`"
