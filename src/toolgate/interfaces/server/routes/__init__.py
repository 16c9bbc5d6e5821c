"""The operations of the API, a file for each noun. `OPERATIONS` is all of them: what is not here does not exist."""

from __future__ import annotations

from toolgate.interfaces.server.operations import Operation
from toolgate.interfaces.server.routes import (
    approvals,
    changes,
    chat,
    claims,
    delegations,
    events,
    executions,
    governance,
    health,
    history,
    inbox,
    runs,
    session,
    trials,
)

# The hot ones come first: routes are tried in order.
OPERATIONS: tuple[Operation, ...] = (
    *approvals.OPERATIONS,
    *executions.OPERATIONS,
    *events.OPERATIONS,
    *chat.OPERATIONS,
    *claims.OPERATIONS,
    *inbox.OPERATIONS,
    *runs.OPERATIONS,
    *history.OPERATIONS,
    *governance.OPERATIONS,
    *delegations.OPERATIONS,
    *trials.OPERATIONS,
    *changes.OPERATIONS,
    *session.OPERATIONS,
    *health.OPERATIONS,
)
