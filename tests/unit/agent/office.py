"""An agent at work on a gate, with a model that says what a test wants and a host that writes down what it hears."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import orjson
import uuid_utils

import toolgate
from toolgate.adapters.memory.threads import MemoryThreads
from toolgate.agent.limits import Limits
from toolgate.agent.model import Hear, Question, Reply, Wanted
from toolgate.agent.resident import Resident
from toolgate.gate import Gate
from toolgate.kernel.context import Context
from toolgate.ports.agent import Turn
from toolgate.ports.threads import Run, RunStatus, Threads
from toolgate.testing.patience import PATIENCE_S

Answer = Reply | Exception | Callable[[Question], Reply]


def call(name: str, /, **arguments: Any) -> Wanted:
    return raw_call(name, orjson.dumps(arguments).decode())


def raw_call(name: str, arguments: str) -> Wanted:
    return Wanted(ref=f"ref-{uuid_utils.uuid7()}", name=name, arguments=arguments)


class Puppet:
    """A model that gives the answers it was given, in order; the last one again and again."""

    name = "puppet"

    def __init__(self, *answers: Answer) -> None:
        self._answers = list(answers)
        self.asked: list[Question] = []
        self.is_closed = False

    async def answer(self, question: Question, hear: Hear) -> Reply:
        self.asked.append(question)
        given = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if callable(given):
            given = given(question)
        if isinstance(given, Exception):
            raise given
        for word in given.text.split(" "):
            await hear(word + " ")
        return given

    async def close(self) -> None:
        self.is_closed = True


class Ears:
    """A host that hears everything, and knows everybody."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, dict[str, Any]]] = []
        self._news = asyncio.Event()
        self.strangers: set[str] = set()

    async def say(self, run: Run, name: str, data: Mapping[str, Any]) -> None:
        self.heard.append((name, {"run_id": run.id, **data}))
        self._news.set()

    async def context_of(self, run: Run) -> Context | None:
        return None if run.account in self.strangers else run.context

    async def next(self, name: str, **wanted: Any) -> dict[str, Any]:
        """Wait for a message of this name and these fields, and take it."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                for at, (one, data) in enumerate(self.heard):
                    if one == name and wanted.items() <= data.items():
                        del self.heard[at]
                        return data
                self._news.clear()
                await self._news.wait()

    def text(self) -> str:
        return "".join(data["delta"] for name, data in self.heard if name == "chat.delta")


class Office:
    """Everything a test of the agent needs."""

    def __init__(self, gate: Gate, agent: Resident, ears: Ears, threads: Threads, model: Any) -> None:
        self.gate = gate
        self.agent = agent
        self.ears = ears
        self.threads = threads
        self.model = model

    async def send(self, content: str, session: str = "s1", account: str = "ann", **who: Any) -> Run:
        context = Context(
            principal=f"agent:{account}",
            user=account,
            project="p",
            session_id=session,
            run_id=str(uuid_utils.uuid7()),
            **who,
        )
        turn = Turn(message_id=str(uuid_utils.uuid7()), session_id=session, content=content, context=context)
        return await self.agent.accept(turn)

    async def answer(self, content: str, **fields: Any) -> dict[str, Any]:
        """Send a message and return the last one of the run."""
        run = await self.send(content, **fields)
        return await self.ears.next("chat.message", run_id=run.id, final=True)

    async def approve(self, decision: str = "approve", **fields: Any) -> None:
        for approval in await self.gate.pending():
            await self.gate.decide(approval.id, decision, by="bob", **fields)

    async def status(self, run: Run) -> RunStatus:
        found = await self.threads.run(run.project, run.id)
        assert found is not None
        return found.status


@asynccontextmanager
async def open_office(
    model: Any,
    tools: Sequence[toolgate.ToolDefinition],
    *,
    url: str = "memory://",
    threads: Threads | None = None,
    limits: Limits | None = None,
    ears: Ears | None = None,
    policy: Any = None,
    **options: Any,
) -> AsyncIterator[Office]:
    gate = toolgate.open(url, tools=tools, policy=policy, **options.pop("gate", {}))
    kept = threads or MemoryThreads(is_alive=lambda owner: owner == gate.host.owner)
    agent = Resident(gate, kept, model, limits=limits, **options)
    ears = ears or Ears()
    await agent.begin(ears)
    try:
        yield Office(gate, agent, ears, kept, model)
    finally:
        await agent.close()
        await gate.aclose()
