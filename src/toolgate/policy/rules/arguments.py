"""Conditions on arguments: where all tests of an item hold, it says `then`.

`field` names an argument; dots go deeper and `*` stands for every item of a list. Patterns are RE2, take time
linear in the text, and must match all of it. A test that cannot be made (a text compared with a number) denies.
So that leaving an argument out helps nobody, one that is left out counts as the default its tool's schema names;
without a default it fulfils the negative tests (`not_in`, `not_matches`, `differs`) of an `ask` or `deny`, and every
test of an item with `approval`. `allow` needs every value to pass every test.

`approval` says who must approve the calls that an `ask` holds for. Where several items hold, what all of them and
the entry's own `approval` demand counts: the highest level, the largest quorum, every list of roles.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import Field, model_validator

from toolgate.errors import DefinitionError
from toolgate.guards.grammar import compiled
from toolgate.kernel.call import Call
from toolgate.kernel.policy import Facts, Verdict, Word
from toolgate.kernel.terms import ApprovalTerms
from toolgate.kernel.tool import ToolDefinition
from toolgate.policy.approvals import ApprovalSettings
from toolgate.policy.values import Name, Share, Site, Spec, Surroundings, WordName

Scalar = str | int | float | bool | None


class Examples(Spec):
    match: list[dict[str, Any]] = Field(default=[], description="Arguments for which the condition must hold.")
    no_match: list[dict[str, Any]] = Field(default=[], description="Arguments for which it must not hold.")


class Condition(Spec):
    field: Name = Field(description="The argument, such as `amount`, `to.address` or `items.*.price`.")
    then: WordName = Field(description="What the condition says where it holds.")
    equals: Scalar = Field(default=None, description="The value is this one.")
    differs: Scalar = Field(default=None, description="The value is another one.")
    above: float | None = Field(default=None, description="The number is greater.")
    at_least: float | None = Field(default=None, description="The number is this or greater.")
    below: float | None = Field(default=None, description="The number is smaller.")
    at_most: float | None = Field(default=None, description="The number is this or smaller.")
    one_of: list[Scalar] | None = Field(default=None, alias="in", description="The value is one of these.")
    not_in: list[Scalar] | None = Field(default=None, description="The value is none of these.")
    matches: str | None = Field(default=None, description="The whole text matches this pattern.")
    not_matches: str | None = Field(default=None, description="The text does not match this pattern.")
    longer_than: int | None = Field(default=None, ge=0, description="The text has more bytes, or the list more items.")
    shorter_than: int | None = Field(
        default=None, ge=0, description="The text has fewer bytes, or the list fewer items."
    )
    approval: ApprovalSettings | None = Field(
        default=None, description="Who must approve where it holds, with `then: ask`; keys as in `approval`."
    )
    reason: Name | None = Field(default=None, description="What people are told.")
    examples: Examples | None = Field(default=None, description="Checked whenever the file is loaded.")

    @model_validator(mode="after")
    def _usable(self) -> Condition:
        if not self.tests():
            raise ValueError("a condition needs a test, such as `above`, `in` or `matches`")
        if self.approval is not None and self.then != "ask":
            raise ValueError(f"`approval` goes with `then: ask`; nobody is asked where this says `{self.then}`")
        for pattern in (self.matches, self.not_matches):
            if pattern is not None:
                try:
                    compiled(pattern)
                except DefinitionError as error:
                    raise ValueError(str(error)) from None
        return self

    def tests(self) -> tuple[Test, ...]:
        """Return the tests this condition makes."""
        given = self.model_fields_set & TESTS.keys()
        return tuple((name, TESTS[name], getattr(self, name)) for name in sorted(given))


SPEC = list[Condition]
Test = tuple[str, Callable[[Any, Any], bool], Any]


class CannotTellError(Exception):
    """A test cannot be made on a value of this type."""


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise CannotTellError
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise CannotTellError
    return value


def _size(value: Any) -> int:
    if isinstance(value, str):
        return len(value.encode("utf-8", "surrogatepass"))
    if isinstance(value, list | dict):
        return len(value)
    raise CannotTellError


def _same(value: Any, other: Any) -> bool:
    """Equal as JSON is: a number is never a truth value."""
    return isinstance(value, bool) == isinstance(other, bool) and bool(value == other)


TESTS: dict[str, Callable[[Any, Any], bool]] = {
    "equals": _same,
    "differs": lambda value, other: not _same(value, other),
    "above": lambda value, limit: _number(value) > limit,
    "at_least": lambda value, limit: _number(value) >= limit,
    "below": lambda value, limit: _number(value) < limit,
    "at_most": lambda value, limit: _number(value) <= limit,
    "one_of": lambda value, listed: any(_same(value, item) for item in listed),
    "not_in": lambda value, listed: not any(_same(value, item) for item in listed),
    "matches": lambda value, pattern: compiled(pattern).fullmatch(_text(value)) is not None,
    "not_matches": lambda value, pattern: compiled(pattern).fullmatch(_text(value)) is None,
    "longer_than": lambda value, limit: _size(value) > limit,
    "shorter_than": lambda value, limit: _size(value) < limit,
}
_NEGATIVE = frozenset({"differs", "not_in", "not_matches"})
_MISSING = object()
"""Stands where an argument, or what a path leads to in it, is not there."""


@dataclass(frozen=True, slots=True)
class ArgumentRule:
    """Say `word` where the condition holds."""

    path: tuple[str, ...]
    word: Word
    tests: tuple[Test, ...]
    reason: str
    site: Site
    terms: ApprovalTerms | None = None
    name: str = "arguments"

    @property
    def asks(self) -> bool:
        """Whether a person is asked about some arguments."""
        return self.word is Word.ASK

    def __call__(self, _call: Call, tool: ToolDefinition, facts: Facts, /) -> Verdict | None:
        try:
            holds = self.holds(_with_default(facts.arguments, self.path[0], tool))
        except CannotTellError:
            reason = f"argument '{'.'.join(self.path)}' is not of a type that the policy can compare"
            return Verdict(Word.DENY, reason, self.name, "argument_type")
        if not holds:
            return None
        return Verdict(self.word, self.reason, self.name, f"argument_{self.word}", terms=self.terms)

    def holds(self, arguments: Mapping[str, Any]) -> bool:
        """Whether the condition holds; raise CannotTellError where an ask or deny cannot be told."""
        name = self.path[0]
        if len(self.path) == 1:
            values = [arguments.get(name, _MISSING)]
        else:
            values = list(_values(arguments, self.path)) or [_MISSING]
        if self.word is Word.ALLOW:
            return all(value is not _MISSING and self._passes(value) for value in values)
        return any(self._is_met(value) for value in values)

    def _is_met(self, value: Any) -> bool:
        if value is _MISSING:
            return self.terms is not None or all(name in _NEGATIVE for name, _, _ in self.tests)
        return all(test(value, other) for _, test, other in self.tests)

    def _passes(self, value: Any) -> bool:
        try:
            return all(test(value, other) for _, test, other in self.tests)
        except CannotTellError:
            return False


def _with_default(arguments: Mapping[str, Any], name: str, tool: ToolDefinition) -> Mapping[str, Any]:
    """Return the arguments with the default the tool's schema names for one that was left out."""
    if name in arguments:
        return arguments
    schema = (tool.input_schema.get("properties") or {}).get(name)
    if not isinstance(schema, Mapping) or "default" not in schema:
        return arguments
    return {**arguments, name: schema["default"]}


def _values(value: Any, path: tuple[str, ...]) -> Iterator[Any]:
    """Yield what a path leads to, and that something is missing wherever it leads nowhere."""
    if not path:
        yield value
    elif isinstance(value, Mapping):
        yield from _values(value[path[0]], path[1:]) if path[0] in value else (_MISSING,)
    else:
        for item in _chosen(value, path[0]):
            yield from _values(item, path[1:]) if item is not _MISSING else (_MISSING,)


def _chosen(value: Any, name: str) -> list[Any]:
    """The items of a list that a name stands for: all for `*`, one for a number; nothing of anything else."""
    if not isinstance(value, list):
        return [_MISSING]
    if name == "*":
        return value
    return (value[int(name) : int(name) + 1] if name.isdecimal() else []) or [_MISSING]


def build(spec: list[Condition], site: Site, _surroundings: Surroundings) -> Share:
    share = Share(reads_arguments=True)
    for condition in spec:
        path = tuple(condition.field.split("."))
        reason = condition.reason or f"argument '{condition.field}' {_told(condition)}"
        terms = None if condition.approval is None else condition.approval.terms()
        rule = ArgumentRule(path, Word(condition.then), condition.tests(), reason, site, terms)
        _check_examples(condition, rule)
        share.rules.append(rule)
    return share


def _told(condition: Condition) -> str:
    return " and ".join(
        f"{name.replace('one_of', 'in').replace('_', ' ')} {other}" for name, _, other in condition.tests()
    )


def _check_examples(condition: Condition, rule: ArgumentRule) -> None:
    examples = condition.examples or Examples()
    for wanted, listed in ((True, examples.match), (False, examples.no_match)):
        for arguments in listed:
            try:
                holds = rule.holds(arguments)
            except CannotTellError:
                raise ValueError(f"the example {arguments} cannot be compared") from None
            if holds is not wanted:
                raise ValueError(f"the example {arguments} {'does not match' if wanted else 'matches'}")
