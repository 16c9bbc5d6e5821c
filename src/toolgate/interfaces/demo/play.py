"""Plays the story: asks the agent, shows what it does, has the questions answered, undoes the run, checks the chain."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Any

from toolgate.errors import ConflictError, UsageError
from toolgate.interfaces.client.client import Client
from toolgate.interfaces.client.stream import EventStream
from toolgate.interfaces.demo import story
from toolgate.interfaces.demo.deciding import Decider
from toolgate.interfaces.demo.narrator import Narrator, plain
from toolgate.interfaces.demo.scene import Scene

PASSING = frozenset({"pending", "awaiting_approval", "approved", "executing"})
RUN_S = 3600.0
"""How long people may take; each question expires long before."""
ABOUT = ("path", "url", "subject")


class Play:
    """One performance."""

    def __init__(self, scene: Scene, client: Client, narrator: Narrator, decider: Decider) -> None:
        self._scene = scene
        self._client = client
        self._narrator = narrator
        self._decider = decider
        self._about: dict[str, str] = {}
        self._ended: set[str] = set()
        self.answers: dict[str, str] = {}
        """What was decided, by tool and what it was about."""
        self.undone: dict[str, str] = {}
        """What became of each call of the run when it was undone."""
        self.verified = 0

    async def perform(self) -> None:
        """Play everything. UsageError where the chain of events does not hold."""
        scene, narrator = self._scene, self._narrator
        async with asyncio.timeout(RUN_S), self._client.stream() as events, asyncio.TaskGroup() as tasks:
            await _ready(events)
            narrator.chapter(2, "The agent looks around. The policy lets it, but not everywhere.")
            if not scene.has_sandbox:
                narrator.note("no sandbox", f"{scene.sandbox}; so nothing is run or fetched in this demo")
            page = f"{scene.office.url}/"
            await self._ask(events, tasks, story.look_around(page, sandbox=scene.has_sandbox))
            narrator.chapter(3, "The agent wants to change things. Now a person is asked.")
            run_id = await self._ask(events, tasks, story.release())
            narrator.note("", f"{len(scene.office.letters)} of {len(story.CUSTOMERS)} letters went out.")
            narrator.chapter(4, "The agent checks its work.")
            await self._ask(events, tasks, story.check(sandbox=scene.has_sandbox))
            narrator.chapter(5, "Second thoughts: the run is undone, last call first.")
            await self._undo(run_id)
            narrator.chapter(6, "Everything is in the record, each event chained to the one before.")
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
            elif event.name == "chat.message" and data["run_id"] == sent.run_id:
                break
        return sent.run_id

    async def _question(self, approval_id: str) -> None:
        artifact = await self._client.artifact(approval_id)
        if artifact.card.status == "pending":  # an edit asks anew and is its own answer
            with contextlib.suppress(ConflictError):  # somebody else was quicker
                await self._decider.decide(artifact)

    def _decided(self, data: dict[str, Any]) -> None:
        what = f"{data['tool_name']} {self._about.get(data['tool_id'], '')}"
        if "edited_by" in data:
            word, by = "edited", data["edited_by"]
        elif what in self.answers:  # the yes that belongs to an edit
            return
        else:
            word = "approved" if data["decision"] == "approved" else "rejected"
            by = data["decided_by"]
        self.answers[what] = word
        self._narrator.answer(what, word, str(by), plain(data["reason"] or ""))

    def _call_ended(self, data: dict[str, Any]) -> None:
        if data["tool_id"] in self._ended:
            return
        self._ended.add(data["tool_id"])
        about = self._about.get(data["tool_id"], "")
        self._narrator.call(data["tool_name"], about, data["status"], _outcome(data["result"]))

    async def _undo(self, run_id: str) -> None:
        if not await self._decider.wants_undo():
            self._narrator.note("", "Nothing is undone.")
            return
        undone = await self._client.undo_run(run_id, skip_failures=True)
        for step in undone.steps:
            what = f"{step.tool_name} {self._about.get(step.tool_id, '')}"
            self.undone[what] = step.step
            self._narrator.step(what, step.step, plain(step.reason))

    async def _verify(self) -> None:
        found = await self._client.verify()
        while not found.is_whole and found.problem is None:
            found = await self._client.verify()
        if found.problem is not None:
            raise UsageError(f"The chain of events does not hold: {found.problem}")
        self.verified = found.verified
        self._narrator.note("verified", f"{found.verified} events; the last hash is {found.head_hash}")


def check(play: Play, scene: Scene) -> None:
    """Hold the performance that decides by itself to its promises; UsageError says which is broken."""
    words = set(play.answers.values())
    promises = {
        "one call was approved, one edited, one rejected": words == {"approved", "edited", "rejected"},
        "only those letters were sent that the edit left": [one["to"] for one in scene.office.letters] == story.PILOT,
        "undoing the run brought every file back": scene.files() == story.FILES,
        "events were verified": play.verified > 0,
    }
    broken = [promise for promise, is_kept in promises.items() if not is_kept]
    if broken:
        raise UsageError(f"The demo did not keep this: {'; '.join(broken)}.")


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
