"""What looking after a database means in every SQL store: what is sealed, what may be forgotten, what is reported."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from toolgate.adapters.sealing import Sealer
from toolgate.adapters.sql.delegation_rows import DELEGATION_COLUMNS, delegation_of, delegation_row
from toolgate.adapters.sql.rows import (
    APPROVAL_COLUMNS,
    GRANT_COLUMNS,
    approval_of,
    approval_row,
    grant_of,
    grant_row,
)
from toolgate.kernel.call import Status
from toolgate.kernel.event import Draft
from toolgate.kernel.marks import Marked

BATCH = 200
"""How many values are sealed anew in one transaction."""
ROUNDS = 5
"""How often to go over what others sealed with an older key meanwhile, before telling that they still do."""
SEALED = (
    ("tool_executions", "call_id", "sealed_params", "params"),
    ("tool_executions", "call_id", "sealed_result", "result"),
    ("large_params", "call_id", "sealed_params", "params"),
    ("undo_records", "call_id", "sealed_data", "undo"),
    ("large_undo", "call_id", "sealed_data", "undo_data"),
    ("messages", "id", "sealed_content", "message"),
)
FORGETTABLE = tuple(status.value for status in Status if status.is_final and status is not Status.UNKNOWN)

_ENDS = ", ".join(f"'{status}'" for status in Status if status.is_final)
_UNUSED_YES = (
    f"SELECT {', '.join(f'a.{name}' for name in APPROVAL_COLUMNS)} FROM approval_requests AS a "
    "JOIN tool_executions AS c ON c.project_id=a.project_id AND c.id=a.action_id AND c.call_id=a.call_id "
    f"WHERE a.status IN ('pending', 'approved') AND c.status NOT IN ({_ENDS})"
)
"""The approvals whose marks will be checked: their calls have not ended."""


_GRANTS = f"SELECT {', '.join(GRANT_COLUMNS)} FROM grants"
"""All of them: a use of one that has ended may still wait for its runner."""


_DELEGATIONS = f"SELECT {', '.join(DELEGATION_COLUMNS)} FROM delegations"


def _approval(row: Sequence[Any], sealer: Sealer) -> str | None:
    approval = approval_of(row)
    return approval_row(sealer.marks.put(approval))[-1] if _is_old(approval, sealer) else None


def _grant(row: Sequence[Any], sealer: Sealer) -> str | None:
    grant = grant_of(row)
    return grant_row(sealer.marks.put(grant))[-1] if _is_old(grant, sealer) else None


def _delegation(row: Sequence[Any], sealer: Sealer) -> str | None:
    delegation = delegation_of(row)
    return delegation_row(sealer.marks.put(delegation))[-1] if _is_old(delegation, sealer) else None


def _is_old(marked: Marked, sealer: Sealer) -> bool:
    return sealer.marks.hold(marked) and not str(marked.mark).startswith(f"{sealer.current}:")


MARKED = (
    ("approval_requests", _UNUSED_YES, _approval),
    ("grants", _GRANTS, _grant),
    ("delegations", _DELEGATIONS, _delegation),
)
"""What carries marks: its table, the rows whose marks will be checked, and the function that marks one anew.

That returns the row's new detail, with its mark under the newest key. None where it needs none: it has no mark, has
that one, or carries one that does not hold, which is not made good.
"""


def told_keys(current: str, retired: Sequence[str], *, by: str) -> Draft:
    """Draft the event that tells that everything is under another key by now."""
    return "keys.changed", None, {"key": current, "retired": list(retired), "by": by}, None


def told_pruned(cut: datetime, forgotten: int, removed: int | None, *, by: str, project: str | None = None) -> Draft:
    """Draft the event that tells what was deleted; `removed` events, None where only arguments and results were."""
    facts = {"before": cut, "project": project, "forgotten": forgotten, "removed_events": removed, "by": by}
    return "database.pruned", None, facts, None


def told_copied(destination: str, *, by: str) -> Draft:
    """Draft the event that tells that every record was handed out in a copy."""
    return "database.copied", None, {"destination": destination, "by": by}, None


def told_imported(rows: dict[str, int], *, by: str) -> Draft:
    """Draft the event that tells that the records of a file were brought in."""
    return "database.imported", None, {"rows": rows, "by": by}, None


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
