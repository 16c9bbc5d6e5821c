"""Channel: carries a question to people and may bring their answer back."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple, Protocol

from toolgate.kernel.approval import Approval
from toolgate.kernel.context import Principal


class Decision(StrEnum):
    """A person's yes or no. "reject" is another word for "deny"."""

    APPROVE = "approve"
    DENY = "deny"

    @classmethod
    def _missing_(cls, value: object) -> Decision | None:
        return cls.DENY if value == "reject" else None


class Answer(NamedTuple):
    """What a person said."""

    decision: Decision
    by: Principal
    reason: str | None = None


class Channel(Protocol):
    """Asked after the request is durable. A channel that fails or returns None leaves the call waiting.

    One that has tried hard enough raises DeliveryError, which is put into the audit.
    """

    async def ask(self, approval: Approval) -> Answer | None: ...
