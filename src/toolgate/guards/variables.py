"""The variables that a command line may set: plain ones for any command, others where its grammar lists them."""

from __future__ import annotations

import re

from toolgate.guards.grammar import Command

PLAIN_VARIABLES = frozenset(
    "CI COLUMNS DEBUG FORCE_COLOR LANG LC_ALL LINES LOG_LEVEL NODE_ENV NO_COLOR PYTHONDONTWRITEBYTECODE "
    "PYTHONHASHSEED PYTHONUNBUFFERED RUST_BACKTRACE RUST_LOG TERM TZ".split()
)
"""Variables that any command may be given, with a plain value: they choose words and colours, never code or files."""
DIRECTORY_VARIABLES = frozenset(("PYTHONPATH",))
"""Variables that name directories with code: only such of the workspace."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_PLAIN_VALUE = re.compile(r"[A-Za-z0-9_.,:=+-]{0,200}\Z")
_BENEATH = re.compile(r"(?:(?:\./)?(?:\.|[A-Za-z0-9_][A-Za-z0-9_-]*(?:[./][A-Za-z0-9_-]+)*)/?(?::|\Z))+\Z")
"""Directories beneath the one that a command starts in, with colons between."""


def variable_problem(command: Command, name: str, value: object) -> str | None:
    """Return why a command may not be given a variable unasked; None where it may."""
    if name in PLAIN_VARIABLES and isinstance(value, str) and _PLAIN_VALUE.match(value):
        return None
    if name not in command.environment or not _NAME.match(name):
        allowed = ", ".join(command.environment) or "none"
        return f"'{command.name}' may not be given the variable {name!r}. Allowed: {allowed}."
    if not isinstance(value, str) or "\0" in value:
        return f"The variable {name!r} must be a string without NUL."
    if name in DIRECTORY_VARIABLES and not _BENEATH.match(value):
        return (
            f"The variable {name!r} may name directories of the workspace unasked, such as 'src', not {value[:80]!r}."
        )
    return None
