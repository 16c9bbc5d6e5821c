"""Planted secrets are in no byte of what is kept, logged or told; only a handler gets them, and only with the key."""

from __future__ import annotations

import base64
import logging
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from tests.faults.world import World

from toolgate import Gate, ToolDefinition, ToolInput, ToolOutput
from toolgate.adapters import sealing
from toolgate.bootstrap import open as open_gate
from toolgate.errors import StoreError
from toolgate.kernel.context import Context
from toolgate.kernel.tool import Prepared
from toolgate.kernel.undo import UndoMetadata

ARGUMENT = "Quu7-argument-canary"  # under a key that names a secret
REGISTERED = "Quu7-registered-canary"  # wherever it appears
RESULT = "Quu7-result-canary"  # under a key that names a secret
UNDO = "Quu7-undo-canary"  # sealed whole, whatever its key
STATE = "Quu7-state-canary"  # a precondition, sealed with the arguments
CANARIES = (ARGUMENT, REGISTERED, RESULT, UNDO, STATE)
PAYLOAD = {"password": ARGUMENT, "note": f"please say {REGISTERED} twice"}


class Confidant:
    """Tools that are told secrets and tell some."""

    def __init__(self) -> None:
        self.heard: list[object] = []

    async def login(self, given: ToolInput) -> ToolOutput:
        self.heard.append(given.payload)
        await given.progress(0.5, f"still {REGISTERED}", {"token": RESULT})
        return ToolOutput.ok(
            {"token": RESULT, "echo": [REGISTERED]}, undo_metadata={"was": UNDO}, artifacts=[{"secret": RESULT}]
        )

    async def prepare(self, _given: ToolInput) -> Prepared:
        return Prepared(preview={"password": ARGUMENT}, preconditions={"state": STATE}, undo_data={"was": UNDO})

    async def logout(self, undo: UndoMetadata) -> None:
        self.heard.append(undo.undo_data)

    async def fail(self, given: ToolInput) -> ToolOutput:
        raise RuntimeError(f"cannot use {REGISTERED} nor {given.payload['note']}")

    def tools(self) -> list[ToolDefinition]:
        return [
            ToolDefinition(
                name="login",
                handler=self.login,
                prepare=self.prepare,
                requires_approval=True,
                undoable=True,
                undo_handler=self.logout,
            ),
            ToolDefinition(name="fail", handler=self.fail),
        ]


async def tell_secrets(gate: Gate) -> None:
    context = Context(run_id="run-1")
    asked = await gate.call("login", PAYLOAD, call_id="login-1", wait=False, context=context)
    assert asked.approval_id is not None
    await gate.decide(asked.approval_id, "approve", by="ann", reason=f"she said {REGISTERED}")
    done = await gate.wait("login-1")
    assert done.data == {"token": RESULT, "echo": [REGISTERED]}
    await gate.call("fail", PAYLOAD, call_id="fail-1")
    parked = await gate.call("login", PAYLOAD, call_id="login-2", wait=False)
    await gate.cancel(parked.call_id, reason=f"no more {REGISTERED}")


def traces(folder: Path) -> list[str]:
    """Every canary found in any file of the folder, plain or in a usual disguise."""
    found = []
    for file in (path for path in folder.rglob("*") if path.is_file()):
        content = file.read_bytes()
        for canary in CANARIES:
            raw = canary.encode()
            disguises = (raw, raw.hex().encode(), base64.b64encode(raw)[:-4], canary.encode("utf-16-le"), raw[5:])
            found += [f"{canary} in {file.name}" for disguise in disguises if disguise in content]
    return found


@pytest.fixture
def confidant() -> Confidant:
    return Confidant()


def open_with(world: World, confidant: Confidant) -> Gate:
    return open_gate(f"sqlite:///{world.file}", tools=confidant.tools(), secrets=[REGISTERED])


async def test_no_secret_is_in_any_byte_that_is_kept_told_or_logged(
    world: World, confidant: Confidant, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    caplog.set_level(logging.DEBUG)
    async with open_with(world, confidant) as gate:
        await tell_secrets(gate)
        shutil.copytree(world.folder, tmp_path / "as a kill would leave it")
        told = b"".join(event.body for event in await gate.events())
        await gate.undo("login-1")
    assert traces(tmp_path) == []
    assert traces(world.folder) == []
    assert [canary for canary in CANARIES if canary.encode() in told or canary in caplog.text] == []


async def test_with_the_key_the_handlers_of_another_process_get_the_real_values(
    world: World, confidant: Confidant
) -> None:
    async with open_with(world, confidant) as gate:
        asked = await gate.call("login", PAYLOAD, call_id="login-1", wait=False)
    assert asked.approval_id is not None
    async with open_with(world, confidant) as gate:
        await gate.decide(asked.approval_id, "approve", by="ann")
        assert (await gate.wait("login-1")).success
    async with open_with(world, confidant) as gate:
        assert (await gate.get("login-1")).data == {"token": RESULT, "echo": [REGISTERED]}
        assert (await gate.undo("login-1")).success
    assert confidant.heard == [PAYLOAD, {"was": UNDO}]


@pytest.mark.parametrize("key", ["wrong", "missing", "public", "empty"])
async def test_without_the_key_the_file_is_not_opened_and_not_changed(
    world: World, confidant: Confidant, key: str
) -> None:
    async with open_with(world, confidant) as gate:
        await tell_secrets(gate)
    before = world.file.read_bytes()
    key_file = world.file.with_name("toolgate.db.key")
    if key == "missing":
        key_file.unlink()
    elif key == "public":
        key_file.chmod(0o644)
    else:
        key_file.write_text(f"{sealing.new_key()}\n" if key == "wrong" else "", encoding="ascii")
    with pytest.raises(StoreError):
        open_with(world, confidant)
    assert world.file.read_bytes() == before


async def test_a_sealed_value_is_of_no_use_in_another_row(new_world: Callable[[], World], confidant: Confidant) -> None:
    world = new_world()
    async with open_with(world, confidant) as gate:
        await tell_secrets(gate)
    with closing(sqlite3.connect(world.file)) as connection:
        connection.execute(
            "UPDATE tool_executions SET sealed_params="
            "(SELECT sealed_params FROM tool_executions WHERE call_id='fail-1') WHERE call_id='login-1'"
        )
        connection.commit()
    async with open_with(world, confidant) as gate:
        with pytest.raises(StoreError, match="belongs to another row"):
            await gate.get("login-1")
