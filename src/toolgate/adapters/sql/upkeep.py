"""What looking after a database means in every SQL store: what is sealed, what may be forgotten, what is reported."""

from __future__ import annotations

from typing import NamedTuple

from toolgate.kernel.call import Status

BATCH = 200
"""How many values are sealed anew in one transaction."""
ROUNDS = 5
"""How often to go over what others sealed with an older key meanwhile, before telling that they still do."""
SEALED = (
    ("tool_executions", "call_id", "sealed_params", "params"),
    ("tool_executions", "call_id", "sealed_result", "result"),
    ("undo_records", "call_id", "sealed_data", "undo"),
    ("messages", "id", "sealed_content", "message"),
)
FORGETTABLE = tuple(status.value for status in Status if status.is_final and status is not Status.UNKNOWN)


class Rekeyed(NamedTuple):
    """The id of the key that now seals everything, how many values were sealed anew, and which keys may go."""

    key: str
    resealed: int
    retired: tuple[str, ...]
    in_use: tuple[str, ...]


class ChainReport(NamedTuple):
    """What was found in one project's chain; `problem` is None where it verifies.

    `redacted` counts the events whose content was destroyed, which does not break a chain.
    """

    project: str
    events: int
    problem: str | None
    redacted: int = 0
