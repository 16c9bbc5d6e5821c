"""The world the tools of the fault tests act on: a ledger, and one tool of every kind that must be recovered."""

from __future__ import annotations

import asyncio
import shutil
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.faults.ledger import Ledger
from tests.faults.points import Points

import toolgate
from toolgate import Gate, Result, ToolDefinition, ToolInput, ToolOutput
from toolgate.kernel.tool import Prepared
from toolgate.kernel.undo import UndoMetadata

AT_MOST_ONCE = ("pay", "wire", "book", "write", "send")
"""Tools with effects and no second try."""

RETRIED = ("look", "put")


@dataclass
class World:
    """One database file with its ledger. `hold` makes handlers wait there, before or after their effect."""

    folder: Path
    points: Points = field(default_factory=Points)
    hold: str | None = None
    held: int = 0
    ledger_folder: Path | None = None
    release: threading.Event = field(default_factory=threading.Event)

    @property
    def file(self) -> Path:
        return self.folder / "toolgate.db"

    @property
    def ledger(self) -> Ledger:
        return Ledger((self.ledger_folder or self.folder) / "ledger")

    def open(self, **options: Any) -> Gate:
        return toolgate.open(f"sqlite:///{self.file}", tools=self.tools(), **options)

    async def _wait(self, where: str) -> None:
        if self.hold == where:
            self.held += 1
            while not self.release.is_set():  # noqa: ASYNC110  # handlers may wait on several event loops
                await asyncio.sleep(0.005)

    def _effect(self, given: ToolInput) -> ToolOutput:
        self.points.reach("effect")
        self.ledger.add("effect", call=given.action_id, tool=given.tool_name)
        self.points.reach("effect.done")
        return ToolOutput.ok({"did": given.action_id}, undo_metadata={})

    async def act(self, given: ToolInput) -> ToolOutput:
        await self._wait("effect")
        output = self._effect(given)
        await self._wait("effect.done")
        return output

    def act_in_thread(self, given: ToolInput) -> ToolOutput:
        return self._effect(given)

    async def prepare(self, given: ToolInput) -> Prepared:
        self.points.reach("prepare")
        await asyncio.sleep(0)
        self.points.reach("prepare.done")
        return Prepared(preview="a line", undo_data={"line": given.payload["n"]})

    async def take_back(self, undo: UndoMetadata) -> None:
        self.points.reach("undo")
        self.ledger.add("undo", call=undo.action_id, data=undo.undo_data)
        self.points.reach("undo.done")

    async def find_out(self, given: ToolInput) -> ToolOutput:
        if self.ledger.effects_of(str(given.action_id)):
            return ToolOutput.ok({"did": given.action_id})
        return ToolOutput.fail("it is not in the ledger")

    def tools(self) -> list[ToolDefinition]:
        act, plain = self.act, self.act_in_thread
        return [
            ToolDefinition(name="look", handler=act, effects="read"),
            ToolDefinition(name="put", handler=act, idempotent=True),
            ToolDefinition(name="pay", handler=act, effects="irreversible", risk_level="low"),
            ToolDefinition(name="wire", handler=plain),
            ToolDefinition(name="book", handler=act, reconcile=self.find_out),
            ToolDefinition(name="write", handler=act, prepare=self.prepare, undoable=True, undo_handler=self.take_back),
            ToolDefinition(name="send", handler=act, requires_approval=True),
        ]

    async def call(self, gate: Gate, tool: str, id: str, **options: Any) -> Result:
        """Make a call whose arguments follow from its id, and write down what was answered."""
        result = await gate.call(tool, {"n": id}, call_id=id, **options)
        self.acknowledge("result", call=id, tool=tool, status=result.status, data=result.data)
        return result

    async def decide(self, gate: Gate, approval_id: str, decision: str, *, by: str) -> Result:
        result = await gate.decide(approval_id, decision, by=by)
        said = {"approve": "approved", "deny": "denied"}[decision]
        self.acknowledge("decided", approval=approval_id, decision=said, by=by)
        return result

    def acknowledge(self, what: str, **fields: Any) -> None:
        """Write down that somebody was told."""
        self.points.reach("acknowledge")
        self.ledger.add(what, **fields)
        self.points.reach("acknowledge.done")


def copy_of(template: Path, folder: Path) -> World:
    """A fresh world: migrations take half a second, copying their outcome takes none."""
    folder.mkdir(parents=True)
    for name in ("toolgate.db", "toolgate.db.key"):
        shutil.copy(template / name, folder / name)
    return World(folder)
