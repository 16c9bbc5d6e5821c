"""Compile a JSON Schema once and check arguments against it in bounded time.

The draft is 2020-12 (`DRAFT`) without coercion; draft-07 is taken where it says the same. Formats the
validator knows are asserted (`date`, `date-time`, `uuid`, `ipv4`, `email`, `uri` and the other standard
ones); unknown formats say nothing, as the draft has it. Patterns run on a linear engine. Nothing is ever
fetched: references stay in the schema.

This file compiles and answers; `kernel.schema_bounds` refuses what could run without end, and
`kernel.schema_violations` explains a refusal.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NoReturn
from urllib.parse import unquote

import jsonschema_rs

from toolgate.errors import DefinitionError, ToolInputError
from toolgate.kernel.text.canonical import Limits, read_arguments
from toolgate.kernel.text.schema.bounds import Refusal, bound
from toolgate.kernel.text.schema.draft7 import DRAFT_7, differences, is_draft_7, leftovers
from toolgate.kernel.text.schema.guards import REFERENCES, escape, positions
from toolgate.kernel.text.schema.violations import PATTERNS, Explainer, Parts, Violation

__all__ = ["DRAFT", "Schema", "Violation", "compile_schema"]

DRAFT: Final = "https://json-schema.org/draft/2020-12/schema"
"""The one draft schemas are read as; `$schema` may be absent, this, or draft-07 with words that mean the same."""

_LIMITS: Final = Limits(max_bytes=262_144, max_depth=64)
_INLINE: Final = "put the schema under `$defs` and refer to it by '#/$defs/...'"


class Schema:
    """A compiled schema. `source` is its own copy and must not be changed; `canonical` identifies it."""

    __slots__ = ("_compiled", "_parts", "canonical", "is_valid", "source")

    def __init__(self, source: dict[str, Any], canonical: bytes, compiled: dict[str, Any]) -> None:
        self.source = source
        self.canonical = canonical
        self._compiled = compiled
        self._parts: Parts | None = None
        # Bound directly: the hot path pays for no extra Python call.
        self.is_valid = jsonschema_rs.Draft202012Validator(
            compiled, validate_formats=True, pattern_options=PATTERNS, retriever=_refuse_fetch
        ).is_valid

    def violations(self, value: object, *, limit: int = 8) -> list[Violation]:
        """Return up to `limit` reasons why the value is refused; none exactly when it is valid.

        Locations are JSON Pointers into the value. Messages name keys and schema words, never values.
        """
        if self.is_valid(value):
            return []
        if self._parts is None:
            self._parts = _take_apart(self._compiled)
        return Explainer(self._parts, limit).explain(value)


def compile_schema(schema: Mapping[str, Any], *, what: str = "input_schema") -> Schema:
    """Return the compiled schema, or raise `DefinitionError` naming the place that is refused.

    An `input_schema` must admit an object. `{}` admits any.
    """
    try:
        source, form = read_arguments(_as_mapping(schema, what), limits=_LIMITS)
    except ToolInputError as error:
        raise DefinitionError(f"The {what} is not plain JSON. {error}") from None
    read_as = _in_draft(source, what)
    try:
        jsonschema_rs.meta.validate(read_as)
    except jsonschema_rs.ValidationError as error:
        _refuse_invalid(what, error)
    for pointer, why, remedy in leftovers(read_as):
        _refuse(what, pointer, why, remedy)
    _check_admits_object(read_as, what)
    try:
        return Schema(source, form, bound(read_as, _targets(read_as)))
    except Refusal as refusal:
        _refuse(what, refusal.pointer, refusal.why, refusal.remedy)
    except jsonschema_rs.ValidationError as error:
        _refuse_invalid(what, error)
    except ValueError:
        _refuse(what, "", "the validator cannot compile it", "simplify it")


def _as_mapping(schema: object, what: str) -> Mapping[str, Any]:
    if not isinstance(schema, Mapping):
        _refuse(what, "", f"it is a Python {type(schema).__name__}, not an object", "write a JSON object")
    return schema


def _in_draft(source: dict[str, Any], what: str) -> dict[str, Any]:
    """Return the schema in draft 2020-12; one of draft-07 as it is, if every word of it means the same."""
    dialect = source.get("$schema", DRAFT)
    if is_draft_7(dialect):
        _check_draft_7({**source, "$schema": DRAFT_7}, what)
        return {**source, "$schema": DRAFT}
    if not isinstance(dialect, str) or dialect.rstrip("#") != DRAFT:
        why = "only draft 2020-12, and draft-07 where it means the same, are supported"
        _refuse(what, "/$schema", why, f"remove it or set it to {DRAFT}")
    return source


def _check_draft_7(source: dict[str, Any], what: str) -> None:
    try:
        jsonschema_rs.meta.validate(source)
    except jsonschema_rs.ValidationError as error:
        _refuse_invalid(what, error, draft="draft-07")
    for pointer, why, remedy in differences(source):
        _refuse(what, pointer, why, f"{remedy} and set `$schema` to {DRAFT}")


def _check_admits_object(source: dict[str, Any], what: str) -> None:
    types = source.get("type", "object")
    if what == "input_schema" and "object" not in ([types] if isinstance(types, str) else types):
        _refuse(what, "/type", "arguments are always an object", "include 'object' in the type")


def _targets(root: dict[str, Any]) -> dict[str, str]:
    """Return where the reference at each position leads; raise `Refusal` for one that leaves the schema."""
    nodes = positions(root)
    anchors = _anchors(nodes)
    found = {}
    for pointer, node in nodes.items():
        named = [node[word] for word in REFERENCES if isinstance(node, dict) and word in node]
        if len(named) > 1:
            raise Refusal(pointer, "`$ref` and `$dynamicRef` stand side by side", "keep one")
        for reference in named:
            if not reference.startswith("#"):
                raise Refusal(pointer, "the reference leaves the schema, and nothing is fetched", _INLINE)
            fragment = unquote(reference[1:])
            target = fragment if fragment[:1] in ("", "/") else anchors.get(fragment)
            if target not in nodes:
                raise Refusal(pointer, "the reference leads to no schema", _INLINE)
            found[pointer] = target
    return found


def _anchors(nodes: Mapping[str, Any]) -> dict[str, str]:
    """Return the position of each anchor. One schema is one resource, so dynamic anchors are plain ones."""
    anchors: dict[str, str] = {}
    for pointer, node in nodes.items():
        if not isinstance(node, dict):
            continue
        if pointer and ("$id" in node or "$schema" in node):
            raise Refusal(pointer, "`$id` and `$schema` are allowed only at the top", "remove them here")
        for name in {node[word] for word in ("$anchor", "$dynamicAnchor") if word in node}:
            if name in anchors:
                raise Refusal(pointer, "the anchor is defined twice", "rename one")
            anchors[name] = pointer
    return anchors


def _take_apart(compiled: dict[str, Any]) -> Parts:
    validators = jsonschema_rs.validator_map_for(
        compiled, validate_formats=True, pattern_options=PATTERNS, retriever=_refuse_fetch
    )
    return Parts(positions(compiled), _targets(compiled), validators)


def _refuse_fetch(uri: str) -> NoReturn:
    raise ValueError("references outside the schema are never fetched")


def _refuse_invalid(what: str, error: jsonschema_rs.ValidationError, *, draft: str = "2020-12") -> NoReturn:
    pointer = "".join(f"/{escape(step)}" for step in error.instance_path)
    if pointer.endswith(("/pattern", "/patternProperties")):
        why = "the pattern is invalid, too large or needs backtracking"
        _refuse(what, pointer, why, "avoid look-around and back-references, and use maxLength for long counts")
    _refuse(what, pointer, f"JSON Schema {draft} does not allow it (`{error.kind.name}`)", "correct it")


def _refuse(what: str, pointer: str, why: str, remedy: str) -> NoReturn:
    raise DefinitionError(f"The {what} is refused at '#{pointer[:100]}': {why}; {remedy}.") from None
