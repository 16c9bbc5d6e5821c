"""Where an ending is played: a gate with one tool that pays, whoever runs it, in whichever process."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.faults.bank import have_paid, pay, pay_in_thread
from tests.faults.world import World

import toolgate
from toolgate import Context, Gate, Result, ToolDefinition, ToolOutput
from toolgate.adapters.runners.client import ClientRunner
from toolgate.errors import ConflictError, NotFoundError
from toolgate.kernel.call import Status
from toolgate.kernel.doubt import carried_kinds
from toolgate.kernel.record import evolve
from toolgate.policy import read_policy
from toolgate.testing.patience import until

FIRST = "first"
RUN = Context(run_id="run-1", principal="agent:ann")
REMOTE = ("client", "worker")
SCHEMA = {
    "type": "object",
    "properties": {"payment": {"type": "string"}, "bank": {"type": "integer"}},
    "required": ["payment", "bank"],
}


@dataclass(frozen=True)
class Stage:
    """One tool in one placement on one store, and the bank's port: all that another process needs to know."""

    place: str
    keyed: bool
    url: str
    port: int
    folder: str
    key: str = ""

    @property
    def tool(self) -> str:
        return "pay" if self.keyed else "send"

    @property
    def arguments(self) -> dict[str, Any]:
        return {"payment": "p1", "bank": self.port}

    def open(self, decision: str = "allow", **options: Any) -> Gate:
        policy = f"tools: {{{self.tool}: {{decision: {decision}, sandbox: {{network: true}}}}}}"
        return toolgate.open(
            self.url,
            tools=[self.definition(**options)],
            policy=read_policy(policy),
            runners={"client": ClientRunner()},
            workers=True,
            workspace=self.folder,
        )

    def definition(self, **options: Any) -> ToolDefinition:
        standard: dict[str, Any] = {
            "input_schema": SCHEMA,
            "handler": pay_in_thread if self.place == "thread" else pay,
            "effects": "irreversible",
            "effect_key": "pay:{payment}" if self.keyed else None,
            "placement": "inline" if self.place in ("async", "thread") else self.place,
        }
        return ToolDefinition(name=self.tool, **{**standard, **options})

    async def call(self, gate: Gate, id: str, **options: Any) -> Result:
        return await gate.call(self.tool, self.arguments, context=RUN, call_id=id, wait=False, **options)

    async def call_to_its_end(self, gate: Gate, id: str) -> Result:
        """Make a call, and run it where somebody must; returns its end, or its question."""
        result = await self.call(gate, id)
        if result.is_final or result.status is Status.AWAITING_APPROVAL:
            return result
        done = await self.finish(gate, result.call_id)
        return evolve(done, joined=True) if result.joined else done

    async def finish(self, gate: Gate, call_id: str) -> Result:
        """Run a call that waits for its runner, and return how it ended."""
        if self.place == "caller":
            return await gate.run_here(call_id, lambda arguments: have_paid(call_id, self.tool, arguments))
        if self.place in REMOTE:
            await until(lambda: self._is_offered(gate, call_id))
            await self.run_remotely(gate, call_id)
        return await gate.wait(call_id)

    async def _is_offered(self, gate: Gate, call_id: str) -> bool:
        result = await gate.get(call_id)
        return result.is_final or result.status is Status.EXECUTING

    async def run_remotely(self, gate: Gate, call_id: str) -> None:
        """Be the client or the worker that takes a call."""
        try:
            if self.place == "worker":
                await gate.remote.work(call_id, by="worker:w")
            else:
                await self._be_client(gate, call_id)
        except ConflictError:
            assert (await gate.get(call_id)).is_final, "only what is over is reported in vain"

    async def _be_client(self, gate: Gate, call_id: str) -> None:
        taken = await gate.remote.dispatch(call_id, to="agent:ann")
        try:
            data = await have_paid(taken.id, taken.tool_name, json.loads(taken.arguments))
        except Exception as error:  # noqa: BLE001  # as a client does: whatever its function raised is told
            await gate.remote.doubt(call_id, str(error), raised=carried_kinds(error), fence=taken.fence)
        else:
            await gate.complete(call_id, ToolOutput.ok(data), fence=taken.fence)

    def paid(self) -> ToolOutput:
        """What the handler returns."""
        return ToolOutput.ok({"paid": "p1"})

    def write(self) -> None:
        """Leave this stage to a process that will find it by its folder."""
        (Path(self.folder) / "stage.json").write_text(json.dumps(asdict(self)), encoding="utf-8")


async def where_it_stands(gate: Gate, call_id: str = FIRST) -> Result | None:
    try:
        return await gate.get(call_id)
    except NotFoundError:
        return None


def pass_time(gate: Gate, much: timedelta) -> None:
    """Let leases and offers run out: time goes on, and the gate looks what has come due."""
    now = gate._driver.now
    gate._driver.now = lambda: now() + much
    assert gate._driver.on_due is not None
    gate._driver.on_due(datetime.min.replace(tzinfo=UTC))


async def payment(world: World, _seed: int) -> None:
    """A process that makes the first call of a stage, or runs it where it waits for a client or a worker."""
    stage = Stage(**json.loads((world.folder / "stage.json").read_text(encoding="utf-8")))
    if stage.key:
        os.environ["TOOLGATE_KEY"] = stage.key
    async with stage.open() as gate:
        if stage.place in REMOTE:
            await stage.run_remotely(gate, FIRST)
        else:
            await stage.call_to_its_end(gate, FIRST)
