"""How a layer asks: the approver's own signature, or nobody at all."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from toolgate.adapters.channels.callback import CallbackChannel
from toolgate.errors import UsageError
from toolgate.gate import Gate
from toolgate.kernel.approval import Approval
from toolgate.kernel.context import Mode, Principal
from toolgate.ports.channel import Answer, Channel, Decision

log = logging.getLogger("toolgate.channels")
Approver = Callable[..., Any] | Channel
USER = "user"
BRAKE = "Tool not allowed in LOCKDOWN mode"
NOBODY = "approval is needed, and nobody can be asked"


class AskNobody:
    """Ends a call that needs a person where there is none: a no, and the record says why."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    async def ask(self, approval: Approval) -> None:
        await self._gate.cancel(approval.call_id, reason=NOBODY, project=approval.project, wait=False)


class Asked:
    """Lets a channel answer and then has the current mode looked up, for time passed while it was asked.

    In LOCKDOWN nothing is decided, so the call ends instead: whoever waits for it is not left to wait for the brake.
    So it is where the channel fails or the mode cannot be told: nobody else answers for a layer.
    """

    def __init__(self, channel: Channel, gate: Gate, current_mode: Callable[[], Awaitable[Mode]]) -> None:
        self._channel = channel
        self._gate = gate
        self._current_mode = current_mode

    async def ask(self, approval: Approval) -> Answer | None:
        try:
            answer = await self._channel.ask(approval)
        except Exception as error:  # noqa: BLE001  # whatever it raises, it did not say yes
            answer, brake = None, f"the approver failed with {type(error).__name__}"
            log.warning("%s on approval %s", brake, approval.id)
        else:
            brake = "" if answer is None else await self._brake()
        if brake:
            await self._gate.cancel(approval.call_id, reason=brake, project=approval.project, wait=False)
        return None if brake else answer

    async def _brake(self) -> str:
        """Return why nothing may run now; nothing where it may."""
        try:
            mode = await self._current_mode()
        except Exception as error:  # noqa: BLE001  # without a mode nothing may run
            return str(error)
        return BRAKE if mode is Mode.LOCKDOWN else ""


class AskFunction:
    """Asks a function. One that fails, or says neither yes nor no, has said no: there is nobody else to wait for."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    async def ask(self, approval: Approval) -> Answer:
        why = "the approver gave no answer"
        try:
            answer = await self._channel.ask(approval)
        except Exception as error:  # noqa: BLE001  # whatever it raises, it did not say yes
            answer, why = None, f"the approver failed with {type(error).__name__}"
            log.warning("%s on approval %s", why, approval.id)
        return Answer(Decision.DENY, Principal.of(USER), why) if answer is None else answer


def channel_of(approver: Approver) -> Channel:
    """Return a channel that asks `approver(tool_name, arguments)` or `approver(approval)`.

    It answers True or False, or anything with `granted`. The arguments it sees are masked.
    """
    if hasattr(approver, "ask"):
        return approver
    takes = _positional(approver)

    def ask(approval: Approval) -> Any:
        if takes >= 2:
            return _granted(approver(approval.tool_name, approval.arguments))
        return _granted(approver(approval))

    async def ask_async(approval: Approval) -> Any:
        if takes >= 2:
            return _granted(await approver(approval.tool_name, approval.arguments))
        return _granted(await approver(approval))

    return AskFunction(CallbackChannel(ask_async if inspect.iscoroutinefunction(approver) else ask, by=USER))


def _positional(approver: Callable[..., Any]) -> int:
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = inspect.signature(approver).parameters.values()
    if any(parameter.kind is inspect.Parameter.VAR_POSITIONAL for parameter in parameters):
        return 2
    count = sum(parameter.kind in kinds for parameter in parameters)
    if count == 0:
        raise UsageError("An approver takes (tool_name, arguments) or (approval).")
    return count


def _granted(said: Any) -> Any:
    granted = getattr(said, "granted", None)
    return said if granted is None else bool(granted)
