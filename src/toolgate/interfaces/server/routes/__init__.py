"""The operations of the API, a file for each noun. `OPERATIONS` is all of them: what is not here does not exist."""

from __future__ import annotations

from toolgate.interfaces.server.operations import Operation
from toolgate.interfaces.server.routes import (
    approvals,
    chat,
    events,
    executions,
    governance,
    health,
    inbox,
    runs,
    session,
)

# The hot ones come first: routes are tried in order.
OPERATIONS: tuple[Operation, ...] = (
    *approvals.OPERATIONS,
    *executions.OPERATIONS,
    *events.OPERATIONS,
    *chat.OPERATIONS,
    *inbox.OPERATIONS,
    *runs.OPERATIONS,
    *governance.OPERATIONS,
    *session.OPERATIONS,
    *health.OPERATIONS,
)
