"""The examples a policy carries, checked whenever it is loaded: a rule that does not do what its author meant is
found before it decides anything."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import orjson

from toolgate.errors import PolicyProblem
from toolgate.kernel.call import Call
from toolgate.kernel.context import Context, Mode
from toolgate.kernel.policy import Policy
from toolgate.kernel.ruling import Ruling, look, rule_on, rules_over
from toolgate.kernel.tool import ToolDefinition
from toolgate.policy.compile import FilePolicy
from toolgate.policy.document import Document, Entry, Example


def stand_in(
    name: str, *, category: str | None = None, risk: str | None = None, effects: str | None = None
) -> ToolDefinition:
    """Return a definition of a tool nobody has registered here, to judge calls of it."""
    return ToolDefinition(name=name, handler=_never, category=category, risk_level=risk, effects=effects)


def _never(_given: object) -> None:
    raise AssertionError("a stand-in is never run")


def a_call(tool: ToolDefinition, arguments: Mapping[str, Any], context: Context) -> Call:
    """Return a call that nobody makes."""
    now = datetime.now(UTC)
    return Call(
        id="example",
        project=context.project,
        tool_name=tool.name,
        placement=tool.runs_in.value,
        context=context,
        created_at=now,
        arguments=orjson.dumps(arguments),
    )


def ruling_of(
    policy: Policy, tool: ToolDefinition, arguments: Mapping[str, Any], context: Context, mode: Mode
) -> Ruling:
    """Return what a policy says of a call that nobody makes."""
    stance = policy.stance(tool)
    call = a_call(tool, arguments, context)
    facts = look(call, tool, stance, arguments, mode=mode, now=call.created_at)
    return rule_on(call, tool, stance, rules_over(tool, stance), facts)


def check_examples(policy: FilePolicy, documents: Iterable[Document]) -> list[PolicyProblem]:
    """Return a problem for every example of these documents that the policy does not decide as it expects."""
    found: list[PolicyProblem] = []
    for document in documents:
        for section, entries in (("tools", document.tools), ("categories", document.categories)):
            for name, entry in entries.items():
                for number, example in enumerate(entry.examples):
                    message = _failure(policy, section, name, entry, example)
                    if message is not None:
                        path = f"{section}.{name}.examples.{number}"
                        found.append(PolicyProblem(document.name, entry.site.line, 1, path, message))
    return found


def _failure(policy: FilePolicy, section: str, name: str, entry: Entry, example: Example) -> str | None:
    category = name if section == "categories" else entry.category
    tool_name = example.tool or (name.replace("*", "example") if section == "tools" else "example")
    tool = stand_in(tool_name, category=category)
    context = Context(principal=example.principal, roles=frozenset(example.roles), behavior=example.behavior)
    ruling = ruling_of(policy, tool, example.arguments, context, Mode(example.mode))
    said = unexpected(ruling, example.expect, example.level, example.quorum)
    if said is None:
        return None
    why = "; ".join(ruling.reasons) or "no rule speaks"
    return f"the example expects {example.expect}, but the policy says {said}: {why}"


def unexpected(ruling: Ruling, expect: str, level: str | None, quorum: int | None) -> str | None:
    """Say what a ruling is where it is not what was expected; None where it is. None expects nothing."""
    if ruling.word != expect:
        return ruling.word
    assessment = ruling.assessment
    if assessment is None or (level in (None, assessment.level) and quorum in (None, assessment.terms.quorum)):
        return None
    return f"{ruling.word} at level {assessment.level}, {assessment.terms.who()}"
