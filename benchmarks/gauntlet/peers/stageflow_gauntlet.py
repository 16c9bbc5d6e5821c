"""stageflow: `AdvancedToolExecutor` with `requires_approval`, an `ApprovalService` and undo handlers."""

# mypy: ignore-errors
# ruff: noqa: ASYNC110, ASYNC221, RUF100

import asyncio
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

from benchmarks.gauntlet.sheet import Cell, absent, fill_in, judge
from stageflow.tools import AdvancedToolExecutor, ToolDefinition, ToolExecutorConfig, ToolOutput
from stageflow.tools.approval import ApprovalService

RAN: list[Any] = []


def tool(*, asks: bool = True, factor: int = 1, description: str = "Pay somebody.", **more: Any) -> Any:
    async def pay(given: Any) -> Any:
        RAN.append((given.payload["to"], given.payload["amount"] * factor))
        return ToolOutput.ok(data="paid", undo_metadata={"to": given.payload["to"]})

    return ToolDefinition(
        name="pay",
        action_type="PAY",
        description=description,
        input_schema={},
        handler=pay,
        requires_approval=asks,
        **more,
    )


class WaitingCall:
    """An executor, its approvals, and one call that waits."""

    def __init__(self, *, timeout_s: float = 30.0) -> None:
        RAN.clear()
        self.service = ApprovalService()
        config = ToolExecutorConfig(approval_timeout_seconds=timeout_s)
        self.executor = AdvancedToolExecutor(approval_service=self.service, config=config)
        self.executor.register(tool())
        self.context = SimpleNamespace(pipeline_run_id=uuid4(), request_id=uuid4(), execution_mode="default")
        self.action = SimpleNamespace(id=uuid4(), type="PAY", payload={"to": "bob", "amount": 10})

    async def ask(self) -> Any:
        self.waiting = asyncio.ensure_future(self.executor.execute(self.action, self.context))
        while not self.service._requests:
            await asyncio.sleep(0)
        return next(iter(self.service._requests))

    async def end(self) -> Any:
        return (await asyncio.gather(self.waiting, return_exceptions=True))[0]


async def reject_while_relaxed() -> Cell:
    waiting = WaitingCall()
    request = await waiting.ask()
    waiting.executor.register(tool(asks=False))
    await waiting.service.record_decision(request, granted=False)
    await waiting.end()
    return judge(not RAN, "the rejected call did not run", f"the rejected call ran: {RAN}")


async def changed_arguments() -> Cell:
    waiting = WaitingCall()
    request = await waiting.ask()
    waiting.action.payload["amount"] = 10_000
    await waiting.service.record_decision(request, granted=True)
    await waiting.end()
    said = f"the caller changed the payload while the approver looked at it; it ran: {RAN}"
    return judge(RAN == [("bob", 10)], "what was reviewed ran", said)


async def expired() -> Cell:
    waiting = WaitingCall(timeout_s=0.01)
    request = await waiting.ask()
    error = await waiting.end()
    await waiting.service.record_decision(request, granted=True)
    status = waiting.service._requests[request].status
    said = f"the call ended with {type(error).__name__}, but the late yes was accepted: the request is {status}"
    return judge(not RAN and status == "expired", "the late yes was refused", said)


async def undo() -> Cell:
    world = {"undone": 0}

    async def back(_data: Any) -> None:
        world["undone"] += 1

    executor = AdvancedToolExecutor()
    executor.register(tool(asks=False, undoable=True, undo_handler=back))
    context = SimpleNamespace(pipeline_run_id=uuid4(), request_id=uuid4(), execution_mode="default")
    action = SimpleNamespace(id=uuid4(), type="PAY", payload={"to": "bob", "amount": 10})
    await executor.execute(action, context)
    returned = await executor.undo_action(action.id, context)
    said = f"a tool whose action type is not its name: undo_action returned {returned} and the handler never ran"
    return judge(bool(world["undone"]), "the undo handler ran", said)


async def changed_definition() -> Cell:
    waiting = WaitingCall()
    request = await waiting.ask()
    waiting.executor.register(tool(factor=2, description="Pay twice the amount."))
    await waiting.service.record_decision(request, granted=True)
    await waiting.end()
    return judge(RAN == [("bob", 10)], "the tool that was asked about ran, not the new one", f"it ran: {RAN}")


async def double_click() -> Cell:
    waiting = WaitingCall()
    request = await waiting.ask()
    await waiting.service.record_decision(request, granted=False)
    await waiting.service.record_decision(request, granted=True)
    await waiting.end()
    return judge(not RAN, "the first decision stayed", "a yes right after the no was accepted, and the call ran")


def run(scenario: Any) -> Any:
    return lambda: asyncio.run(scenario())


if __name__ == "__main__":
    fill_in(
        "stageflow-core",
        {
            "reject_while_relaxed": run(reject_while_relaxed),
            "resume_twice": absent("the waiting call is a coroutine; an approval cannot be resumed"),
            "changed_arguments": run(changed_arguments),
            "expired": run(expired),
            "hidden_positional": ("holds", "the payload is one mapping, shown by name"),
            "quorum": absent("one decision decides"),
            "undo": run(undo),
            "changed_definition": run(changed_definition),
            "double_click": run(double_click),
            "crash": absent("approvals live in memory; after a crash there is nothing to resume"),
            "own_approval": absent("the decider is recorded, but who may decide is not checked"),
        },
    )
