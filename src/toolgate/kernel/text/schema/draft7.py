"""Tell whether a draft-07 schema says the same in draft 2020-12, word by word. `kernel.schema` compiles it as that."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from toolgate.kernel.text.schema.guards import positions

DRAFT_7: Final = "http://json-schema.org/draft-07/schema"

_GONE: Final = {
    "additionalItems": "`prefixItems` with `items`",
    "dependencies": "`dependentRequired` or `dependentSchemas`",
}
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


def _of_node(node: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if isinstance(node.get("items"), list):
        yield "`items` as a list is `prefixItems` in draft 2020-12", "write `prefixItems`"
    for word in (word for word in _GONE if word in node):
        yield f"`{word}` of draft-07 says nothing in draft 2020-12", f"write {_GONE[word]}"
    for word in sorted(_NEWER.intersection(node)):
        yield f"`{word}` says nothing in draft-07 and counts in draft 2020-12", "leave it out"
    beside = sorted(_COUNTING.intersection(node)) if "$ref" in node else []
    if beside:
        why = f"`{beside[0]}` beside `$ref` says nothing in draft-07 and counts in draft 2020-12"
        yield why, "leave it out, or put both under `allOf`"
