"""Plays the story: asks the agent, shows what it does, has the questions answered, undoes the run, checks the chain."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Any

from toolgate.errors import ConflictError
from toolgate.interfaces.client.client import Client
from toolgate.interfaces.client.stream import EventStream
from toolgate.interfaces.demo import story
from toolgate.interfaces.demo.checking import Ended, Failure, Record, unkept
from toolgate.interfaces.demo.deciding import Decider
from toolgate.interfaces.demo.narrator import Narrator, plain
from toolgate.interfaces.demo.scene import Scene

PASSING = frozenset({"pending", "awaiting_approval", "approved", "executing"})
RUN_S = 3600.0
"""How long people may take; each question expires long before."""
BY_ITSELF_S = 600.0
"""How long it may take where nobody is asked, on a busy machine."""
ABOUT = ("path", "url", "subject", "order")


class Play:
    """One performance."""

    def __init__(self, scene: Scene, client: Client, narrator: Narrator, decider: Decider) -> None:
        self._scene = scene
        self._client = client
        self._narrator = narrator
        self._decider = decider
        self._about: dict[str, str] = {}
        self._ended: set[str] = set()
        self.record = Record()

    async def perform(self, *, within_s: float = RUN_S) -> None:
        """Play everything; what goes wrong is in the record. One that does not end in time is cut short there."""
        try:
            async with asyncio.timeout(within_s), self._client.stream() as events, asyncio.TaskGroup() as tasks:
                await self._perform(events, tasks)
        except TimeoutError:
            self._failed("the demo", f"it did not end within {within_s:.0f} s")

    def failures(self) -> list[Failure]:
        """What is not as the demo promises where it decided by itself."""
        scene = self._scene
        return unkept(
            self.record,
            sandbox=scene.has_sandbox,
            page=self._page,
            letters=[one["to"] for one in scene.office.letters],
            refunds=[one["order"] for one in scene.office.refunds],
            files=scene.files(),
        )

    @property
    def _page(self) -> str:
        return f"{self._scene.office.url}/"

    def _failed(self, step: str, why: str) -> None:
        self.record.problems.append(Failure(step=step, why=plain(why)))

    async def _perform(self, events: EventStream, tasks: asyncio.TaskGroup) -> None:
        scene, narrator = self._scene, self._narrator
        await _ready(events)
        narrator.chapter(2, "The agent looks around. The policy lets it, but not everywhere.")
        if not scene.has_sandbox:
            narrator.note("no sandbox", f"{scene.sandbox}; so nothing is run or fetched in this demo")
        await self._ask(events, tasks, story.look_around(self._page, sandbox=scene.has_sandbox))
        narrator.chapter(3, "The agent wants to change things. Now a person is asked.")
        run_id = await self._ask(events, tasks, story.release())
        narrator.note("", f"{len(scene.office.letters)} of {len(story.CUSTOMERS)} letters went out.")
        narrator.chapter(4, "The agent checks its work.")
        await self._ask(events, tasks, story.check(sandbox=scene.has_sandbox))
        narrator.chapter(5, "An answer gets lost. Nobody guesses, and nobody is paid twice.")
        await self._lose_an_answer(events, tasks)
        narrator.chapter(6, "Second thoughts: the run is undone, last call first.")
        await self._undo(run_id)
        narrator.chapter(7, "Everything is in the record, each event chained to the one before.")
        await self._verify()

    async def _ask(self, events: EventStream, tasks: asyncio.TaskGroup, lines: Sequence[str]) -> str:
        """Ask the agent for something and see its run through; returns the run's id."""
        self._narrator.asked(lines)
        sent = await self._client.send("\n".join(lines))
        assert sent.run_id is not None  # the server has an agent
        async for event in events:
            data = event.data
            if event.name == "tool.approval_request":
                tasks.create_task(self._question(data["approval_id"]))
            elif event.name == "chat.message" and not data["final"]:
                self._about |= {one["tool_id"]: _about(one["tool_params"]) for one in data["tool_calls"]}
            elif event.name in ("approval.decided", "approval.edited"):
                self._decided(data)
            elif event.name == "chat.tool" and data["status"] not in PASSING:
                self._call_ended(data)
            elif event.name == "chat.error" and data.get("run_id") == sent.run_id:
                self._failed("the agent", str(data["error"]))
                break
            elif event.name == "chat.message" and data["run_id"] == sent.run_id:
                break
        return sent.run_id

    async def _lose_an_answer(self, events: EventStream, tasks: asyncio.TaskGroup) -> None:
        """Have a call end UNKNOWN, say what the bank has booked, and have the same asked for once more."""
        await self._ask(events, tasks, story.give_back())
        for call in (await self._client.calls.list(status="unknown")).tools:
            booked = any(one["key"] == call.effect_key for one in self._scene.office.refunds)
            reason = f"the bank's statement {'has' if booked else 'lacks'} {call.effect_key}"
            settled = await self._client.settle(call.tool_id, happened=booked, reason=reason)
            self._narrator.note("settled", f"{settled.status.lower()}, since {plain(reason)}")
        await self._ask(events, tasks, story.give_back())
        self._narrator.note("", f"{len(self._scene.office.refunds)} refund was paid, for two requests.")

    async def _question(self, approval_id: str) -> None:
        artifact = await self._client.approvals.artifact(approval_id)
        if artifact.card.status == "pending":  # an edit asks anew and is its own answer
            with contextlib.suppress(ConflictError):  # somebody else was quicker
                await self._decider.decide(artifact)

    def _decided(self, data: dict[str, Any]) -> None:
        what = self._step(data["tool_name"], data["tool_id"])
        if "edited_by" in data:
            word, by = "edited", data["edited_by"]
        elif what in self.record.answers:  # the yes that belongs to an edit
            return
        else:
            word = "approved" if data["decision"] == "approved" else "rejected"
            by = data["decided_by"]
        self.record.answers[what] = word
        self._narrator.answer(what, word, str(by), plain(data["reason"] or ""))

    def _call_ended(self, data: dict[str, Any]) -> None:
        if data["tool_id"] in self._ended:
            return
        self._ended.add(data["tool_id"])
        outcome = "It joined the first call; nothing ran again." if data.get("joined") else _outcome(data["result"])
        step = self._step(data["tool_name"], data["tool_id"])
        self.record.calls.append(Ended(step=step, status=data["status"], outcome=outcome))
        self._narrator.call(data["tool_name"], self._about.get(data["tool_id"], ""), data["status"], outcome)

    def _step(self, tool: str, tool_id: str) -> str:
        """What a step is called: its tool, and what it is about."""
        return f"{tool} {self._about.get(tool_id, '')}".strip()

    async def _undo(self, run_id: str) -> None:
        if not await self._decider.wants_undo():
            self._narrator.note("", "Nothing is undone.")
            return
        undone = await self._client.undo_run(run_id, skip_failures=True)
        for step in undone.steps:
            what = self._step(step.tool_name, step.tool_id)
            self.record.undone[what] = step.step
            self._narrator.step(what, step.step, plain(step.reason))

    async def _verify(self) -> None:
        found = await self._client.verify()
        while not found.is_whole and found.problem is None:
            found = await self._client.verify()
        if found.problem is not None:
            self._failed("audit", f"the chain of events does not hold: {found.problem}")
            return
        self.record.verified = found.verified
        self._narrator.note("verified", f"{found.verified} events; the last hash is {found.head_hash}")


async def _ready(events: EventStream) -> None:
    """Wait until the stream is there, so that nothing is missed."""
    async for event in events:
        if event.name == "stream.ready":
            return


def _about(given: Any) -> str:
    """What a call is about, in a word or two."""
    if not isinstance(given, dict):
        return ""
    if "command" in given:
        return plain(" ".join([given["command"], *given.get("args", [])]))
    return next((plain(str(given[name])) for name in ABOUT if name in given), "")


def _outcome(result: Any) -> str:
    """A call's outcome in a line."""
    if isinstance(result, dict) and "note" in result:  # said of an edited call: what ran, and what it gave
        result = result.get("result", result)
    if not isinstance(result, dict):
        return plain(str(result))[:200]
    if "error" in result:
        return plain(str(result["error"]))[:200]
    if "exit_code" in result:
        said = (str(result.get("stderr") or "") + str(result.get("stdout") or "")).strip().splitlines()
        return plain(f"exit code {result['exit_code']}: {said[-1] if said else ''}")
    if "title" in result:
        return plain(f"“{result['title']}”, {result.get('bytes')} bytes")
    return plain(", ".join(f"{name} {value}" for name, value in result.items() if isinstance(value, int | str)))[:200]
