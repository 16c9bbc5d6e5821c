"""One run, from a person's message to the answer: ask the model, make its calls, tell it what came of them.

Every step is saved before its effects: the model's answer before its calls are made, their outcomes before the model is
asked again. The ids of the calls follow from the run and the step, so a run that is taken up again after a crash finds
its calls at the gate and never makes one twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from time import monotonic
from typing import Any

import uuid_utils

from toolgate.agent import limits as bounds
from toolgate.agent.calls import Caller
from toolgate.agent.discretion import Discretion, Pieces
from toolgate.agent.history import (
    AgentSaid,
    Made,
    Said,
    ToolsSaid,
    content_of,
    recent,
    role_of,
    said_of,
    shown_of,
    told,
)
from toolgate.agent.limits import Limits
from toolgate.agent.model import Model, Question, Reply
from toolgate.agent.words import AGAIN
from toolgate.errors import ConflictError, ModelError
from toolgate.gate import Gate
from toolgate.ports.threads import Message, Run, RunStatus, Threads, Usage

Tell = Callable[[str, Mapping[str, Any]], Awaitable[None]]
PAGE = 1000


@dataclass(slots=True, kw_only=True)
class Resources:
    """What every run needs; made once."""

    gate: Gate
    threads: Threads
    model: Model
    limits: Limits
    now: Callable[[], datetime]
    instructions: str = ""
    retries: int = 2


class AgentLoop:
    """One run while somebody works on it. `run` is its last saved version."""

    def __init__(self, resources: Resources, run: Run, tell: Tell) -> None:
        self._resources = resources
        self.run = run
        self._tell = tell
        self._said: list[Said] = []
        self._mine = 0
        self._discretion = Discretion(resources.gate.host.masker)
        self._caller = Caller(resources.gate, run)
        self._began = monotonic()

    async def go_on(self) -> None:
        """Work until the run waits or ends. ConflictError: somebody else took or ended it."""
        await self.read()
        while not self.run.status.is_final and self.run.status is not RunStatus.WAITING:
            last = self._said[-1]
            if isinstance(last, AgentSaid) and last.calls:
                await self._call(last)
            else:
                await self._ask()

    async def read(self) -> None:
        """Read what was said so far."""
        run, after = self.run, 0
        while True:
            page = await self._resources.threads.messages(
                run.project, run.account, run.conversation_id, after=after, limit=PAGE
            )
            for message in page:
                self._discretion.learn(message)
                if message.run_id == run.id and not self._mine:
                    self._mine = len(self._said) + 1
                self._said.append(said_of(message))
            if len(page) < PAGE:
                return
            after = page[-1].position

    @property
    def _own(self) -> Sequence[Said]:
        """What was said in this run, after the person's message."""
        return self._said[self._mine :]

    async def save(self, run: Run, *said: Said) -> list[Message]:
        """Write the next version of the run, as it is given, and what was said; tell nobody before that."""
        now = self._resources.now()
        messages = [
            Message(
                project=run.project,
                id=str(uuid_utils.uuid7()),
                account=run.account,
                conversation_id=run.conversation_id,
                run_id=run.id,
                role=role_of(one),
                content=content_of(one),
                shown=shown_of(one, self._discretion),
                created_at=now,
            )
            for one in said
        ]
        worked = run.worked_s + monotonic() - self._began
        self._began = monotonic()
        following = replace(run.next(now), worked_s=worked)
        kept = await self._resources.threads.save(following, messages=messages)
        self.run = following
        for message in kept:
            self._discretion.learn(message)
        self._said.extend(said)
        return kept

    async def _ask(self) -> None:
        """Ask the model once; its answer is either the end of the run or the calls to make next."""
        limits = self._resources.limits
        reason = bounds.exceeded(self.run, limits)
        if reason is None and bounds.repeats(self._own) >= limits.repeats:
            reason = f"it made the same call {limits.repeats} times and it ended the same way each time"
        if reason is not None:
            await self._stop(reason)
            return
        try:
            reply = await self._answer()
        except TimeoutError:
            self.run = replace(self.run, worked_s=limits.seconds or 0.0)
            await self._stop(bounds.exceeded(self.run, limits) or "its time is over")
        except ModelError as error:
            await self._fail(error)
        else:
            await self._take(reply)

    async def _answer(self) -> Reply:
        resources, limits = self._resources, self._resources.limits
        said = told(recent(self._said, limits.history))
        tools = resources.gate.host.offers(self.run.context)
        question = Question(said=said, tools=tools, instructions=resources.instructions)
        left = None if limits.seconds is None else max(0.1, limits.seconds - self.run.worked_s)
        async with asyncio.timeout(left):
            for attempt in range(resources.retries + 1):
                pieces = Pieces(self._discretion)
                try:
                    reply = await resources.model.answer(question, self._hearing(pieces))
                except ModelError as error:
                    if error.retry_after_s is None or attempt == resources.retries:
                        raise
                    await self._tell("chat.retry", {"error": str(error), "retry_after_seconds": error.retry_after_s})
                    await asyncio.sleep(error.retry_after_s)
                else:
                    await self._hand_on(pieces.finish())
                    return reply
        raise AssertionError("the last attempt returns or raises")

    def _hearing(self, pieces: Pieces) -> Callable[[str], Awaitable[None]]:
        async def hear(piece: str) -> None:
            await self._hand_on(pieces.add(piece))

        return hear

    async def _hand_on(self, text: str) -> None:
        if text:
            await self._tell("chat.delta", {"delta": text, "step": self.run.steps + 1})

    async def _take(self, reply: Reply) -> None:
        step = self.run.steps + 1
        calls = tuple(
            Made(call_id=f"{self.run.id}.{step}.{at}", ref=one.ref, name=one.name, arguments=one.arguments)
            for at, one in enumerate(reply.calls)
        )
        said = AgentSaid(text=reply.text, calls=calls, raw=reply.raw)
        run = replace(self.run, steps=step, usage=_sum(self.run.usage, reply.usage))
        if calls:
            [message] = await self.save(run, said)
            await self._tell("chat.message", self._view(message, final=False))
        else:
            await self._end(replace(run, status=RunStatus.COMPLETED), said)

    async def _call(self, said: AgentSaid) -> None:
        """Make the calls of the last step, or find those made before; go on when all have ended, else wait."""
        results = await self._caller.make(said.calls, self._state, self._is_ours)
        if results.is_lost:
            raise ConflictError(f"Run {self.run.id[:64]} was changed by somebody else.")
        if waiting := results.waiting:
            await self.save(replace(self.run, status=RunStatus.WAITING, owner=None, waiting=waiting))
            await self._tell("chat.run", {"status": "waiting", "waiting_for": list(waiting)})
            return
        outcomes = tuple(results.ended[made.call_id] for made in said.calls)
        again = bounds.repeated([*self._own, ToolsSaid(outcomes=outcomes)])
        outcomes = tuple(replace(one, note=AGAIN) if one.call_id in again else one for one in outcomes)
        await self.save(self.run, ToolsSaid(outcomes=outcomes))

    async def _is_ours(self) -> bool:
        found = await self._resources.threads.run(self.run.project, self.run.id)
        return found is not None and found.version == self.run.version

    @property
    def open_calls(self) -> tuple[str, ...]:
        """The ids of the calls of the last step, where their outcomes are not known yet."""
        last = self._said[-1] if self._said else None
        return tuple(call.call_id for call in last.calls) if isinstance(last, AgentSaid) else ()

    async def _state(self, made: Made, status: str, shown: Any, joined: str | None) -> None:
        name = self._discretion.text(made.name)
        told = {"tool_id": made.call_id, "tool_name": name, "status": status, "result": self._discretion(shown)}
        await self._tell("chat.tool", told | {"joined": joined})

    async def _stop(self, reason: str) -> None:
        said = AgentSaid(text=f"I stopped: {reason}.", is_notice=True)
        await self.end(RunStatus.STOPPED, said, error=reason)

    async def _fail(self, error: ModelError) -> None:
        text = self._discretion.text(str(error))
        await self.end(RunStatus.FAILED, AgentSaid(text=f"I cannot go on: {text}", is_notice=True), error=text)
        await self._tell("chat.error", {"error": text, "code": error.code, "reason": error.reason})

    async def end(self, status: RunStatus, said: AgentSaid, *, error: str) -> None:
        """End the run before it came to an answer, with a last message that says why."""
        await self._end(replace(self.run, status=status, error=error), said)

    async def _end(self, run: Run, said: AgentSaid) -> None:
        """End the run with a last message, which carries the results, the analysis and the answer."""
        analysis = "\n\n".join(one.text for one in self._own if isinstance(one, AgentSaid) and one.text)
        results = [
            one
            for step in self._own
            if isinstance(step, ToolsSaid)
            for one in shown_of(step, self._discretion)["tool_results"]
        ]
        ended = self._resources.now()
        [message] = await self.save(replace(run, owner=None, waiting=(), ended_at=ended), said)
        view = self._view(message, final=True)
        view |= {
            "answer": view["content"],
            "analysis": self._discretion.text(analysis),
            "tool_results": results,
            "status": run.status.value,
            "usage": usage_view(self.run.usage),
        }
        await self._tell("chat.message", view)

    def _view(self, message: Message, *, final: bool) -> dict[str, Any]:
        shown = message.shown
        view = {"role": "assistant", "content": shown["text"], "final": final, "position": message.position}
        return view | {"tool_calls": shown.get("tool_calls", [])}


def usage_view(usage: Usage) -> dict[str, Any]:
    """Tokens and cost as they are told."""
    return {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens, "cost": usage.cost}


def _sum(one: Usage, other: Usage) -> Usage:
    costs = [cost for cost in (one.cost, other.cost) if cost is not None]
    return Usage(
        input_tokens=one.input_tokens + other.input_tokens,
        output_tokens=one.output_tokens + other.output_tokens,
        cost=sum(costs) if costs else None,
    )
