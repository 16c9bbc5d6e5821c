"""Ask a Python function: it gets the approval and answers, at once or later, or leaves it to others."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import Any

from toolgate.errors import UsageError
from toolgate.kernel.approval import Approval
from toolgate.kernel.context import Principal
from toolgate.kernel.tool import is_async
from toolgate.ports.channel import Answer, Decision

Callback = Callable[[Approval], "Answer | Decision | str | bool | Awaitable[Any] | None"]


class CallbackChannel:
    """Wraps a function `(approval) -> True | False | "approve" | "deny" | Answer | None`, async or plain.

    A plain function runs off the event loop and may block. `by` is who its bare answers count as.
    """

    def __init__(self, callback: Callback, *, by: str | Principal = "callback") -> None:
        self._callback = callback
        self._by = Principal.of(by)

    async def ask(self, approval: Approval) -> Answer | None:
        if is_async(self._callback):
            said: object = self._callback(approval)
        else:
            said = await asyncio.to_thread(self._callback, approval)
        return self._read(await said if inspect.isawaitable(said) else said)

    def _read(self, said: object) -> Answer | None:
        if said is None or isinstance(said, Answer):
            return said
        if isinstance(said, bool):
            return Answer(Decision.APPROVE if said else Decision.DENY, self._by)
        try:
            return Answer(Decision(str(said)), self._by)
        except ValueError:
            raise UsageError(
                f"An approver answered {type(said).__name__}; answer True, False, 'approve', 'deny' or an Answer."
            ) from None
