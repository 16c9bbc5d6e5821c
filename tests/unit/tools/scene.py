"""What tests of the tools door share: a sink that remembers, and a person who answers when asked."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID, uuid4

from toolgate.testing.patience import PATIENCE_S
from toolgate.tools import Action, ApprovalRequest, ApprovalService, ToolInput, ToolOutput, get_approval_service

PERSON = uuid4()


class Sink:
    """Remembers what it was told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, dict[str, Any]]] = []

    async def emit(self, *, type: str, data: dict[str, Any]) -> None:
        self.told.append((type, data))

    @property
    def types(self) -> list[str]:
        return [type for type, _ in self.told]

    def of(self, type: str) -> dict[str, Any]:
        """The data of the one event of this type."""
        (data,) = [data for told, data in self.told if told == type]
        return data


class Shelf:
    """A state that a tool changes and an undo puts back."""

    def __init__(self) -> None:
        self.state: Any = "old"
        self.runs = 0
        self.undos = 0

    async def put(self, given: ToolInput) -> ToolOutput:
        self.runs += 1
        before, self.state = self.state, given.payload.get("state", "new")
        return ToolOutput.ok({"state": self.state}, undo_metadata={"before": before})

    async def put_back(self, metadata: Any) -> None:
        self.undos += 1
        self.state = metadata.undo_data["before"]


async def echo(given: ToolInput) -> ToolOutput:
    return ToolOutput.ok(given.payload)


def act(type: str, **payload: Any) -> Action:
    return Action(id=uuid4(), type=type, payload=payload)


async def asked(service: ApprovalService | None = None) -> ApprovalRequest:
    """Wait until somebody is asked something, and return the question."""
    service = service if service is not None else get_approval_service()
    async with asyncio.timeout(PATIENCE_S):
        while not (pending := await service.list_pending()):  # noqa: ASYNC110  # whoever asks tells nobody here
            await asyncio.sleep(0.001)
        return pending[0]


async def answer(granted: bool, service: ApprovalService | None = None, by: UUID | str = PERSON) -> ApprovalRequest:
    """Answer the next question."""
    service = service if service is not None else get_approval_service()
    question = await asked(service)
    assert question.id is not None
    await service.record_decision(question.id, granted, by)
    return question
