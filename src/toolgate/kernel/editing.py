"""Arguments that a person changed: what they left masked stays what it is, and what changed is told, masked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from toolgate.errors import UsageError
from toolgate.kernel.approval import Approval
from toolgate.kernel.text.masking import MASK


def restore(edited: Any, shown: Any, real: Any) -> Any:
    """Return what was edited, with everything that is still as it was shown replaced by what it really is.

    Raises UsageError where a masked value was changed in part, or put where there was none: nobody can tell what
    was meant.
    """
    if edited == shown:
        return real
    if isinstance(edited, dict):
        was, truth = (shown, real) if isinstance(shown, dict) else ({}, {})
        return {key: restore(item, was.get(key), truth.get(key)) for key, item in edited.items()}
    if isinstance(edited, list):
        is_same = isinstance(shown, list) and len(shown) == len(edited)
        pairs = zip(shown, real, strict=True) if is_same else [(None, None)] * len(edited)
        return [restore(item, *pair) for item, pair in zip(edited, pairs, strict=True)]
    if isinstance(edited, str) and MASK in edited:
        raise UsageError(
            f"The edited arguments hold {MASK}; leave a hidden value as it was shown, or give a whole new one."
        )
    return edited


def takes_network(schema: Any) -> bool:
    """Whether a tool runs command lines, and can be told to give them a network."""
    known = schema.get("properties") if isinstance(schema, Mapping) else None
    if not isinstance(known, Mapping):
        return False
    line, network = known.get("command"), known.get("network")
    is_line = isinstance(line, Mapping) and line.get("format") == "shell-line"
    return is_line and isinstance(network, Mapping) and network.get("type") == "boolean"


def with_network(approval: Approval) -> dict[str, Any]:
    """Return the arguments of a question as they were shown, but with a network for what would run.

    Raises UsageError where its tool has none to give, or where a plain yes grants it already.
    """
    shown = approval.arguments
    if not takes_network(approval.input_schema) or not isinstance(shown, dict):
        raise UsageError(f"A network cannot be granted to `{approval.tool_name}`: it runs no commands in a sandbox.")
    if shown.get("network") is True:
        raise UsageError("This call asks for a network itself: a plain yes grants it, and a no refuses it.")
    return {**shown, "network": True}


def difference(before: Mapping[str, Any], after: Mapping[str, Any], mask: Callable[[object], Any]) -> dict[str, Any]:
    """Return each argument that changed with its masked value before and after; a missing one is left out."""
    was, now = mask(before), mask(after)
    changed = [name for name in {**before, **after} if _missing(before, name) != _missing(after, name)]
    return {
        name: {
            **({"before": was[name]} if name in before else {}),
            **({"after": now[name]} if name in after else {}),
        }
        for name in changed
    }


def _missing(arguments: Mapping[str, Any], name: str) -> tuple[bool, Any]:
    return name in arguments, arguments.get(name)
