"""Several processes on one file: what one does the others see, and what one leaves behind is there for the next."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.integration.programs import line, lines_of, run, running

import toolgate
from toolgate.kernel.call import Status
from toolgate.ports.store import CallQuery
from toolgate.testing.patience import PATIENCE_S

DECIDE = """
with toolgate.open(f"sqlite:///{sys.argv[1]}") as gate:
    [asked] = gate.sync.pending()
    print(gate.sync.decide(asked.id, sys.argv[2], by="ann", reason="looked", digest=asked.digest).status)
"""

ASK_AND_WAIT = """
gate = open_gate()
waiting = threading.Thread(target=lambda: print(gate.sync.call("send", {"to": "bob"}, call_id="c1").status, flush=True))
waiting.start()
while not gate.sync.pending():
    threading.Event().wait(0.01)
print("asked", flush=True)
waiting.join()
gate.close()
"""


def test_a_yes_in_another_process_wakes_the_one_who_waits(database: Path) -> None:
    with running(ASK_AND_WAIT, database) as waiter:
        assert line(waiter) == "asked"
        assert run(DECIDE, database, "approve") == "APPROVED\n"
        assert line(waiter) == "COMPLETED"
    assert lines_of(database, ".sent") == ["bob"]


def test_a_no_in_another_process_wakes_the_one_who_waits(database: Path) -> None:
    with running(ASK_AND_WAIT, database) as waiter:
        assert line(waiter) == "asked"
        run(DECIDE, database, "deny")
        assert line(waiter) == "REJECTED"
    assert lines_of(database, ".sent") == []


def test_an_approval_asked_before_a_restart_is_decided_and_run_after_it(database: Path) -> None:
    run('gate = open_gate()\ngate.sync.call("send", {"to": "bob"}, call_id="c1", wait=False)\ngate.close()', database)
    run(DECIDE, database, "approve")
    assert lines_of(database, ".sent") == [], "the process that decided does not hold the tool"
    assert run('with open_gate() as gate: print(gate.sync.wait("c1").data)', database) == "sent to bob\n"
    assert lines_of(database, ".sent") == ["bob"]


def test_an_approved_call_nobody_waits_for_runs_in_the_next_process_that_has_its_tool(database: Path) -> None:
    run('gate = open_gate()\ngate.sync.call("send", {"to": "bob"}, call_id="c1", wait=False)\ngate.close()', database)
    with running(
        'gate = open_gate()\nprint("open", flush=True)\nsys.stdin.readline()\ngate.close()', database
    ) as holder:
        line(holder)
        run(DECIDE, database, "approve")
        told = run(
            'with toolgate.open(f"sqlite:///{sys.argv[1]}") as gate: print(gate.sync.wait("c1").status)', database
        )
        assert told == "COMPLETED\n"
    assert lines_of(database, ".sent") == ["bob"]


def test_undo_data_survives_a_restart(database: Path) -> None:
    undoable = """
    state = {"value": int(sys.argv[2])}

    def put_back(undo):
        state["value"] = undo.undo_data["old"]

    @toolgate.tool(effects="reversible", undoable=True, undo_handler=put_back)
    async def write(value: int) -> toolgate.ToolOutput:
        old, state["value"] = state["value"], value
        return toolgate.ToolOutput.ok(undo_metadata={"old": old})

    with toolgate.open(f"sqlite:///{sys.argv[1]}", tools=[write]) as gate:
        print(eval(sys.argv[3]).status, state["value"])
    """
    assert run(undoable, database, 1, "gate.sync.call('write', {'value': 5}, call_id='c1')") == "COMPLETED 5\n"
    assert run(undoable, database, 5, "gate.sync.undo('c1')") == "COMPLETED 1\n"
    assert run(undoable, database, 5, "gate.sync.undo('c1')") == "FAILED 5\n"


def test_the_same_call_id_runs_once_in_all_processes(database: Path) -> None:
    program = 'with open_gate() as gate: print(gate.sync.call("pay", {"amount": 3}, call_id="c1").data)'
    assert {run(program, database) for _ in range(2)} == {"3\n"}
    assert lines_of(database, ".paid") == ["3"]


def test_a_process_that_dies_in_a_call_leaves_it_unknown(database: Path) -> None:
    with running('open_gate().sync.call("hang", call_id="c1")', database) as dying:
        assert line(dying) == "running"
        dying.kill()
    told = run(
        """
        with toolgate.open(f"sqlite:///{sys.argv[1]}") as gate:
            gate.sync.recover()
            result = gate.sync.get("c1")
            print(result.status, result.error_code)
            print(gate.sync.settle("c1", happened=False, by="ann", reason="looked").status)
        """,
        database,
    )
    assert told == "UNKNOWN unknown\nFAILED\n"


def test_a_call_of_a_living_process_is_nobodys_orphan(database: Path) -> None:
    with running('open_gate().sync.call("hang", call_id="c1")', database) as living:
        assert line(living) == "running"
        with toolgate.open(f"sqlite:///{database}") as gate:
            gate.sync.recover()
            assert gate.sync.get("c1").status is Status.EXECUTING


async def test_one_who_follows_sees_what_another_process_does(database: Path) -> None:
    async with toolgate.open(f"sqlite:///{database}") as gate:
        seen: list[str] = []

        async def follow() -> None:
            async for event in gate.follow():
                seen.append(event.type)
                if event.type == "tool.completed":
                    return

        following = asyncio.create_task(follow())
        program = 'with open_gate() as gate: gate.sync.call("pay", {"amount": 3})'
        await asyncio.to_thread(run, program, database)
        await asyncio.wait_for(following, PATIENCE_S)
        assert seen == ["tool.invoked", "tool.started", "tool.completed"]


def test_lockdown_in_one_process_stops_calls_in_all(database: Path) -> None:
    program = """
    gate = open_gate()
    print("open", flush=True)
    sys.stdin.readline()
    print(gate.sync.call("pay", {"amount": 3}).status, flush=True)
    gate.close()
    """
    with running(program, database) as other:
        assert line(other) == "open"
        with toolgate.open(f"sqlite:///{database}") as gate:
            gate.sync.set_mode("LOCKDOWN", by="ann", reason="drill")
        assert other.stdin is not None
        other.stdin.write("\n")
        other.stdin.flush()
        assert line(other) == "DENIED"
    assert lines_of(database, ".paid") == []


def test_no_secret_is_in_any_file_beside_the_database(database: Path) -> None:
    canary = "canary-7f3a91c2e8"
    with toolgate.open(f"sqlite:///{database}", tools=[keep], secrets=[canary]) as gate:
        done = gate.sync.call("keep", {"text": f"my key is {canary}", "password": "sw0rdfish-by-key-only"})
        assert done.data == f"my key is {canary}", "the caller gets the real result"
        files = [path for path in database.parent.rglob("*") if path.is_file()]
        assert any(path.name.endswith("-wal") for path in files), "written, and not yet moved to the main file"
        _search(files, canary)
        assert len(gate.sync.calls.list(CallQuery())) == 1
    _search([path for path in database.parent.rglob("*") if path.is_file()], canary)


@toolgate.tool(
    effects="reversible",
    undoable=True,
    undo_handler=lambda _undo: None,
    fingerprint=lambda undo: undo.undo_data["old"],
)
async def keep(text: str, password: str) -> toolgate.ToolOutput:
    return toolgate.ToolOutput.ok(text, undo_metadata={"old": text + password}, artifacts=[text])


def _search(files: list[Path], canary: str) -> None:
    for path in files:
        content = path.read_bytes()
        for secret in (canary, "sw0rdfish-by-key-only"):
            assert secret.encode() not in content, path.name
            assert secret.encode("utf-16-le") not in content, path.name
