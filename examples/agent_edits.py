"""An agent edits a document: refused in one behavior, approved in another, undone. Nothing is kept."""

from __future__ import annotations

import asyncio
from typing import Any

from toolgate.tools import (
    Action,
    AdvancedToolExecutor,
    ToolDeniedError,
    ToolRegistry,
    clear_approval_service,
    get_approval_service,
)
from toolgate.tools.examples import register_examples


class Printer:
    """Prints what happens."""

    async def emit(self, *, type: str, data: dict[str, Any]) -> None:
        print(f"  {type:20} {data.get('reason') or data.get('message') or ''}")


async def approve_next() -> None:
    """Play the person who is asked."""
    service = get_approval_service()
    while not (questions := await service.list_pending()):  # noqa: ASYNC110  # a person looks now and then
        await asyncio.sleep(0.01)
    question = questions[0]
    print(f"  ann is asked: {question.message} {dict(question.payload)}")
    await service.record_decision(question.action_id, True, "ann")


async def main() -> None:
    """Walk through gating, approval and undo."""
    registry = ToolRegistry()
    archive = register_examples(registry)
    archive.documents["plan"] = "draft"
    executor = AdvancedToolExecutor(registry, event_sink=Printer())

    print("in behavior chat:")
    payload = {"document_id": "plan", "content": "final"}
    try:
        await executor.execute(Action(type="EDIT_DOCUMENT", payload=payload), {"behavior": "chat"})
    except ToolDeniedError as error:
        print(f"  {error}")

    print("in behavior doc_edit:")
    action = Action(type="EDIT_DOCUMENT", payload=payload)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(approve_next())
        await executor.execute(action, {"behavior": "doc_edit"})
    print(f"  the plan is now: {archive.documents['plan']}")

    print("and back:")
    await executor.undo_action(action.id, {"behavior": "doc_edit"})
    print(f"  the plan is now: {archive.documents['plan']}")


if __name__ == "__main__":
    asyncio.run(main())
    clear_approval_service()
