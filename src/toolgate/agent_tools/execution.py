"""The row of an execution, mapped onto the stores' own table: for reading, with any SQLAlchemy session.

Only the gate writes these rows. Parameters and results are masked here, as everywhere people read.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from sqlalchemy.orm import registry

from toolgate.adapters.sql.tables import tool_executions


class ToolExecutionState(StrEnum):
    """The states document 004 knows."""

    PENDING = "PENDING"
    AWAITING_APPROVAL = "AWAITING_APPROVAL"
    APPROVED = "APPROVED"
    EXECUTING = "EXECUTING"
    COMPLETED = "COMPLETED"
    REJECTED = "REJECTED"
    TIMEOUT = "TIMEOUT"
    FAILED = "FAILED"


_SHOWN = {"DENIED": "FAILED", "UNKNOWN": "FAILED", "CANCELLED": "REJECTED"}


class ToolExecution:
    """One execution. `status` is as stored; `state` is one of the eight document 004 knows."""

    __tablename__ = "tool_executions"

    id: UUID
    user_id: UUID | None
    project_id: str
    session_id: str | None
    approval_id: UUID | None
    tool_name: str
    tool_params: Any
    result: Any
    risk_level: str
    requires_approval: bool
    status: str
    error: str | None
    error_type: str | None
    execution_time_ms: int | None
    created_at: datetime
    completed_at: datetime | None
    approved_at: datetime | None

    @property
    def state(self) -> ToolExecutionState:
        return ToolExecutionState(_SHOWN.get(self.status, self.status))


_SEALED = ("sealed_params", "sealed_result")
registry().map_imperatively(ToolExecution, tool_executions, exclude_properties=_SEALED)
