"""How delegations become rows and rows become them again, for every SQL store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from toolgate.adapters.sql.rows import Row, moment, required_time, time_of, uuid_hex
from toolgate.kernel.delegation import Delegation

DELEGATION_COLUMNS = (
    "id", "project_id", "giver", "delegate", "created_at", "expires_at", "ended_at", "version", "detail",
)  # fmt: skip
_DETAIL = ("id", "tools", "reason", "ended_by", "mark")


def delegation_row(delegation: Delegation) -> Row:
    """Every column of a delegation, in the order of DELEGATION_COLUMNS."""
    return (
        uuid_hex(delegation.id),
        delegation.project,
        delegation.giver,
        delegation.delegate,
        moment(delegation.created_at),
        moment(delegation.expires_at),
        moment(delegation.ended_at),
        delegation.version,
        orjson.dumps({name: getattr(delegation, name) for name in _DETAIL}).decode(),
    )


def delegation_of(row: Sequence[Any]) -> Delegation:
    """The delegation of a row selected as DELEGATION_COLUMNS."""
    _, project, giver, delegate, created_at, expires_at, ended_at, version, detail = row
    fields: dict[str, Any] = orjson.loads(detail)
    fields["tools"] = tuple(fields["tools"])
    return Delegation(
        **fields,
        project=project,
        giver=giver,
        delegate=delegate,
        created_at=required_time(created_at),
        expires_at=required_time(expires_at),
        ended_at=time_of(ended_at),
        version=version,
    )
