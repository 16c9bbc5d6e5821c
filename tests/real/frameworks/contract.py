"""What must hold for every adapter, told once. A `Driver` says how its framework runs, pauses, saves and resumes.

Only the standard library and Toolgate are imported here: it runs in the framework's own environment.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import toolgate
from toolgate import Gate
from toolgate.kernel.policy import Facts, Policy, Verdict, Word
from toolgate.testing.patience import until

ROOT = Path(__file__).parents[3]
EFFECTS = {"pay": "irreversible", "look": "read", "wipe": "irreversible"}
LIMIT_S = 60

Turn = Sequence[tuple[str, str, dict[str, Any]]]
"""What a model asks for at once: an id, a tool, its arguments."""


@dataclass
class Ended:
    """Where a run stands: its saved state while it is paused, and everything said in it."""

    is_paused: bool
    saved: Any
    transcript: str


class Driver(Protocol):
    """One framework."""

    def __init__(self, gate: Gate, turns: Sequence[Turn], tools: Tools, /) -> None: ...

    async def run(self, prompt: str, /) -> Ended: ...

    async def resume(self, saved: Any, /) -> Ended:
        """Go on from a saved state, saying yes to everything the framework asks by itself."""
        ...

    async def run_plain(self, prompt: str, /) -> Ended:
        """The same without an event loop of the caller's, where the framework can."""
        ...

    async def run_streamed(self, prompt: str, /) -> Ended: ...

    def dump(self, saved: Any, /) -> bytes: ...

    def load(self, data: bytes, /) -> Any: ...


@dataclass
class Tools:
    """The tools of every scenario, and what they did."""

    ran: list[Any] = field(default_factory=list)
    delegate_to: Callable[[], Awaitable[str]] | None = None
    effects: str | None = None
    is_deadly: bool = False

    def pay(self, to: str, amount: int) -> str:
        """Pay somebody."""
        self.ran.append(("pay", to, amount))
        if self.effects is not None:
            with open(self.effects, "a") as file:
                file.write("paid\n")
        if self.is_deadly:
            os.kill(os.getpid(), signal.SIGKILL)
        return f"paid {amount} to {to}"

    def look(self, what: str) -> str:
        """Look something up."""
        self.ran.append(("look", what))
        return f"saw {what}"

    def wipe(self, disk: str) -> str:
        """Wipe a disk."""
        self.ran.append(("wipe", disk))
        return "wiped"

    def fail(self, what: str) -> Any:
        """Return what nobody can write down."""
        self.ran.append(("fail", what))
        return object()

    async def delegate(self, task: str) -> str:
        """Have another agent do it."""
        assert self.delegate_to is not None
        return await self.delegate_to()


class NoWiping:
    """Denies `wipe`, and everything once it is strict."""

    name = "no_wiping"

    def __init__(self, *, is_strict: bool = False) -> None:
        self.is_strict = is_strict

    def __call__(self, call: Any, _tool: Any, _facts: Facts, /) -> Verdict | None:
        is_denied = self.is_strict or call.tool_name.endswith("wipe")
        return Verdict(Word.DENY, "wiping is not done here", self.name) if is_denied else None


def policy(*, is_strict: bool = False) -> Policy:
    return Policy(rules=(NoWiping(is_strict=is_strict),), revision=f"strict-{is_strict}")


PAY = ("call_1", "pay", {"to": "bob", "amount": 10})
LOOK = ("call_2", "look", {"what": "sky"})
WIPE = ("call_3", "wipe", {"disk": "sda"})


class Scene:
    """A gate, the tools, and one framework."""

    def __init__(self, driver: type[Driver], url: str = "memory://") -> None:
        self.make = driver
        self.gate = toolgate.open(url)
        self.tools = Tools()

    async def __aenter__(self) -> Scene:
        await self.gate.set_policy(policy(), by="ops")
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self.gate.aclose()

    def driver(self, *turns: Turn) -> Driver:
        return self.make(self.gate, turns, self.tools)

    async def answer(self, how: str = "approve", **more: Any) -> None:
        """Answer every open question at the gate."""
        await until(self.gate.pending)
        for question in await self.gate.pending():
            if how == "edit":
                await self.gate.approvals.edit(question.id, by="ann", **more)
            else:
                await self.gate.decide(question.id, how, by="ann", **more)

    @property
    def paid(self) -> list[Any]:
        return [one for one in self.tools.ran if one[0] == "pay"]


async def allow(scene: Scene) -> None:
    ended = await scene.driver([LOOK]).run("look")
    assert (ended.is_paused, scene.tools.ran) == (False, [("look", "sky")]), ended
    assert "saw sky" in ended.transcript, ended.transcript
    assert [event.type for event in await scene.gate.events()][-1] == "tool.completed"


async def deny(scene: Scene) -> None:
    ended = await scene.driver([WIPE]).run("wipe")
    assert (ended.is_paused, scene.tools.ran) == (False, []), ended
    assert "wiping is not done here" in ended.transcript, ended.transcript


async def ask_and_resume(scene: Scene) -> None:
    driver = scene.driver([PAY])
    paused = await driver.run("pay")
    assert (paused.is_paused, scene.tools.ran) == (True, []), paused
    await scene.answer()
    ended = await driver.resume(paused.saved)
    assert (ended.is_paused, scene.paid) == (False, [("pay", "bob", 10)]), ended
    assert "paid 10 to bob" in ended.transcript, ended.transcript


async def reject(scene: Scene) -> None:
    driver = scene.driver([PAY])
    paused = await driver.run("pay")
    await scene.answer("deny", reason="the account is closed")
    ended = await driver.resume(paused.saved)
    assert (ended.is_paused, scene.tools.ran) == (False, []), ended
    assert "the account is closed" in ended.transcript, ended.transcript


async def edited(scene: Scene) -> None:
    driver = scene.driver([PAY])
    paused = await driver.run("pay")
    await scene.answer("edit", arguments={"to": "bob", "amount": 7})
    ended = await driver.resume(paused.saved)
    assert scene.paid == [("pay", "bob", 7)], scene.paid
    assert "paid 7 to bob" in ended.transcript, ended.transcript
    assert "changed the arguments" in ended.transcript, ended.transcript


async def resumed_twice(scene: Scene) -> None:
    driver = scene.driver([PAY])
    paused = await driver.run("pay")
    await scene.answer()
    await driver.resume(paused.saved)
    again = await scene.driver([PAY]).resume(paused.saved)
    assert len(scene.paid) == 1, scene.paid
    assert "paid 10 to bob" in again.transcript, again.transcript


async def resumed_ten_times_at_once(scene: Scene) -> None:
    driver = scene.driver([PAY])
    paused = await driver.run("pay")
    await scene.answer()
    ended = await asyncio.gather(*(scene.driver([PAY]).resume(paused.saved) for _ in range(10)))
    assert len(scene.paid) == 1, scene.paid
    assert all("paid 10 to bob" in one.transcript for one in ended)


async def own_approval_does_not_count(scene: Scene) -> None:
    driver = scene.driver([PAY])
    paused = await driver.run("pay")
    again = await driver.resume(paused.saved)
    assert (again.is_paused, scene.tools.ran) == (True, []), again


async def policy_changed_meanwhile(scene: Scene) -> None:
    driver = scene.driver([PAY])
    paused = await driver.run("pay")
    await scene.answer()
    await scene.gate.set_policy(policy(is_strict=True), by="ops")
    ended = await driver.resume(paused.saved)
    assert scene.tools.ran == [], scene.tools.ran
    assert "wiping is not done here" in ended.transcript, ended.transcript


async def mixed_in_parallel(scene: Scene) -> None:
    driver = scene.driver([PAY, LOOK, WIPE])
    paused = await driver.run("all")
    assert (paused.is_paused, scene.paid) == (True, []), paused
    await scene.answer()
    ended = await driver.resume(paused.saved)
    assert sorted(scene.tools.ran) == [("look", "sky"), ("pay", "bob", 10)], scene.tools.ran
    for words in ("paid 10 to bob", "saw sky", "wiping is not done here"):
        assert words in ended.transcript, ended.transcript


async def without_a_loop(scene: Scene) -> None:
    driver = scene.driver([LOOK], [PAY])
    paused = await driver.run_plain("pay")
    assert (paused.is_paused, scene.tools.ran) == (True, [("look", "sky")]), paused
    await scene.answer()
    await driver.resume(paused.saved)
    assert scene.paid == [("pay", "bob", 10)], scene.paid


async def streamed(scene: Scene) -> None:
    driver = scene.driver([LOOK], [PAY])
    paused = await driver.run_streamed("pay")
    assert (paused.is_paused, scene.tools.ran) == (True, [("look", "sky")]), paused
    await scene.answer()
    await driver.resume(paused.saved)
    assert scene.paid == [("pay", "bob", 10)], scene.paid


async def sub_agent(scene: Scene) -> None:
    inner = scene.driver([PAY])

    async def delegate_to() -> str:
        return (await inner.run("pay")).transcript

    scene.tools.delegate_to = delegate_to
    running = asyncio.create_task(scene.driver([("call_9", "delegate", {"task": "pay"})]).run("delegate"))
    await scene.answer()
    ended = await running
    assert (ended.is_paused, scene.paid) == (False, [("pay", "bob", 10)]), ended
    calls = {call.tool_name.rpartition("__")[2]: call for call in await scene.gate.calls.list(toolgate.CallQuery())}
    assert calls["pay"].context.parent_call_id == calls["delegate"].id


async def ids_repeated_in_another_run(scene: Scene) -> None:
    for what in ("sky", "sea"):
        ended = await scene.driver([("call_1", "look", {"what": what})]).run("look")
        assert f"saw {what}" in ended.transcript, ended.transcript
    assert scene.tools.ran == [("look", "sky"), ("look", "sea")], scene.tools.ran


async def result_that_cannot_be_written(scene: Scene) -> None:
    try:
        told = (await scene.driver([("call_1", "fail", {"what": "x"})]).run("fail")).transcript
    except Exception as error:  # noqa: BLE001  # some frameworks raise what a tool raised
        told = str(error)
    assert "`fail`" in told, told
    assert "JSON" in told, told


async def killed_after_the_claim(scene: Scene) -> None:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        module = sys.modules[scene.make.__module__]
        name = Path(str(module.__file__)).stem
        _child(name, place, "start")
        async with Scene(scene.make, f"sqlite:///{place / 'gate.db'}") as seen:
            await seen.answer()
        assert _child(name, place, "die", check=False) == -signal.SIGKILL
        _child(name, place, "resume")
        assert (place / "effects").read_text() == "paid\n", "it ran again"
        told = (place / "transcript").read_text()
        assert "unknown" in told.lower() or "may or may not" in told, told


def _child(name: str, folder: Path, job: str, *, check: bool = True) -> int:
    command = [sys.executable, "-m", "tests.real.frameworks.child", name, str(folder), job]
    with (folder / "log").open("w+") as log:  # a pipe would be held open by what a killed one leaves behind
        done = subprocess.run(command, cwd=ROOT, stdout=log, stderr=log, check=False, timeout=LIMIT_S)
        log.seek(0)
        assert not check or done.returncode == 0, log.read()[-3000:]
    return done.returncode


SCENARIOS: tuple[Callable[[Scene], Awaitable[None]], ...] = (
    allow,
    deny,
    ask_and_resume,
    reject,
    edited,
    resumed_twice,
    resumed_ten_times_at_once,
    own_approval_does_not_count,
    policy_changed_meanwhile,
    mixed_in_parallel,
    without_a_loop,
    streamed,
    sub_agent,
    ids_repeated_in_another_run,
    result_that_cannot_be_written,
    killed_after_the_claim,
)


async def play(scenario: Callable[[Scene], Awaitable[None]], driver: type[Driver]) -> None:
    async with asyncio.timeout(LIMIT_S), Scene(driver) as scene:
        await scenario(scene)


def main(driver: type[Driver], *further: Callable[[Scene], Awaitable[None]], without: Sequence[str] = ()) -> None:
    """Play every scenario and print what came of each as one line of JSON: null, or the failure."""
    chosen = [one for one in (*SCENARIOS, *further) if one.__name__ not in without]
    chosen = [one for one in chosen if len(sys.argv) < 2 or one.__name__ in sys.argv[1:]]
    told: dict[str, str | None] = {}
    for scenario in chosen:
        try:
            asyncio.run(play(scenario, driver))
            told[scenario.__name__] = None
        except Exception:  # noqa: BLE001  # whatever went wrong is the scenario's failure
            told[scenario.__name__] = traceback.format_exc()
    sys.stdout.write(json.dumps(told) + "\n")
