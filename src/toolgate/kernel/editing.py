"""Arguments that a person changed: what they left masked stays what it is, and what changed is told, masked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from toolgate.errors import UsageError
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
