"""The executor document 004's agent calls: validated, assessed, approved and run at the client, all by the gate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

import uuid_utils

from toolgate.adapters.runners.client import ClientRunner
from toolgate.bootstrap import open as open_gate
from toolgate.catalog.client import client_tools
from toolgate.errors import ToolgateError
from toolgate.gate import Gate
from toolgate.kernel.context import DEFAULT_PROJECT, Context
from toolgate.kernel.misuse import explained_class
from toolgate.kernel.record import evolve
from toolgate.kernel.response import ToolResponse


@explained_class
class ToolExecutor:
    """Runs the gate's tools for one principal; without a gate, the four client tools on one in memory."""

    def __init__(
        self,
        gate: Gate | None = None,
        *,
        project: str = DEFAULT_PROJECT,
        principal: str = "agent:local",
        user: str | None = None,
    ) -> None:
        if gate is None:
            gate = open_gate("memory://", tools=client_tools(), runners={"client": ClientRunner()})
        self.gate = gate
        self._context = Context(project=project, principal=principal, user=user)

    async def execute_tool(
        self,
        tool_name: str,
        tool_params: Mapping[str, Any] | None = None,
        session_id: UUID | str | None = None,
    ) -> ToolResponse:
        """Return what became of the call, waiting for approval and the client's result. Never raises for the call.

        Cancelling this cancels the call.
        """
        context = self._context if session_id is None else evolve(self._context, session_id=str(session_id))
        call_id = str(uuid_utils.uuid7())
        try:
            result = await self.gate.call(
                tool_name,
                {} if tool_params is None else tool_params,
                context=context,
                call_id=call_id,
                own=True,
                distinct=True,
            )
        except ToolgateError as error:  # the store is away or the gate closed: told like any other end
            return ToolResponse(
                tool_id=call_id, tool_name=tool_name, status="failed", error=str(error), error_type=error.code
            )
        return ToolResponse.of(result)
