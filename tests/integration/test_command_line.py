"""The `toolgate` command as people and scripts use it: its words, its JSON, its exit codes."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.integration.programs import cli, here, line, lines_of, run, running

import toolgate
from toolgate.adapters.sealing import new_key
from toolgate.adapters.sql.versions import HEAD
from toolgate.kernel.change import Change
from toolgate.testing.patience import PATIENCE_S

PAY = 'with open_gate() as gate: print(gate.sync.call("pay", {"amount": 3}, call_id="c1").status)'


@toolgate.tool
async def pay(amount: int) -> int:
    return amount


@pytest.fixture
def used(database: Path) -> Path:
    """A database with a finished call in each of two projects."""
    with toolgate.open(f"sqlite:///{database}", tools=[pay]) as gate:
        for project in ("one", "two"):
            gate.sync.call("pay", {"amount": 3}, call_id="c1", context=toolgate.Context(project=project))
    return database


@pytest.fixture
def orphaned(database: Path) -> Path:
    """A database whose process died in the call `c1`."""
    with running('open_gate().sync.call("hang", call_id="c1")', database) as dying:
        assert line(dying) == "running"
        dying.kill()
    return database


def change(path: Path, sql: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute(sql).rowcount > 0
        connection.commit()


def test_help_names_every_command() -> None:
    shown = cli("--help")
    assert shown.code == 0
    assert [name for name in ("audit", "db", "recover", "--version") if name not in shown.out] == []


def test_the_version_is_the_packages() -> None:
    assert cli("--version") == (0, f"{toolgate.__version__}\n", "")


def test_help_loads_no_heavy_library() -> None:
    program = """
import json, sys
sys.argv = ["toolgate", "--help"]
from toolgate.interfaces.cli import main
try:
    main()
except SystemExit as end:
    print(json.dumps([end.code, sorted({name.partition(".")[0] for name in sys.modules})]), file=sys.stderr)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE_S, check=True
    )
    code, loaded = json.loads(done.stderr)
    assert code == 0
    heavy = {"sqlalchemy", "alembic", "pydantic", "cryptography", "jsonschema_rs"}
    assert heavy & set(loaded) == set()


@pytest.mark.parametrize(
    "arguments", [["nonsense"], ["db"], ["db", "prune", "x"], ["db", "status", "a", "b"]], ids=" ".join
)
def test_a_command_that_is_wrong_in_itself_ends_with_2(arguments: list[str]) -> None:
    assert here(*arguments).code == 2


COMMANDS: dict[str, Callable[[Path], list[object]]] = {
    "audit verify": lambda path: ["audit", "verify", path],
    "recover": lambda path: ["recover", path],
    "db status": lambda path: ["db", "status", path],
    "db backup": lambda path: ["db", "backup", path, path.with_name("copy.db")],
    "db vacuum": lambda path: ["db", "vacuum", path],
    "db prune": lambda path: ["db", "prune", path, "--older-than", "1d"],
    "db rekey": lambda path: ["db", "rekey", path],
}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_a_path_without_a_database_is_an_error_and_none_is_made(
    tmp_path: Path, command: Callable[[Path], list[object]]
) -> None:
    ended = here(*command(tmp_path / "typo.db"))
    assert (ended.code, ended.out) == (1, "")
    assert ended.err.startswith("toolgate: There is no database at")
    assert os.listdir(tmp_path) == []


def test_a_whole_log_verifies(used: Path) -> None:
    assert cli("audit", "verify", used) == (0, "one: 3 events, chain verifies\ntwo: 3 events, chain verifies\n", "")
    assert here("audit", "verify", used, "--json").json == {
        "ok": True,
        "chains": [{"project": project, "events": 3, "problem": None, "redacted": 0} for project in ("one", "two")],
        "differences": [],
    }


def test_destroyed_content_is_told(used: Path) -> None:
    with closing(sqlite3.connect(used)) as connection:
        connection.execute("UPDATE events SET content=NULL WHERE project_id='one' AND seq=1")
        connection.commit()
    code, said, _ = cli("audit", "verify", used)
    assert (code, said.splitlines()[0]) == (0, "one: 3 events, chain verifies, the content of 1 was destroyed")


def test_an_empty_log_verifies(database: Path) -> None:
    assert here("audit", "verify", database) == (0, "No events yet.\n", "")


BREAKS = {
    "an altered body": (
        "UPDATE events SET frame=CAST(replace(frame, 'project', 'subject') AS BLOB) WHERE {} AND seq=1",
        "Event 1 of",
    ),
    "a removed event": ("DELETE FROM events WHERE {} AND seq=2", "Event 2 of project 'two' is missing"),
    "a truncated tail": ("DELETE FROM events WHERE {} AND seq=3", "the newest events are missing"),
}


@pytest.mark.parametrize(("sql", "says"), BREAKS.values(), ids=BREAKS)
def test_a_broken_log_is_told_and_ends_with_1(used: Path, sql: str, says: str) -> None:
    change(used, sql.format("project_id='two'"))
    ended = cli("audit", "verify", used)
    one, two = ended.out.splitlines()
    assert ended.code == 1
    assert one == "one: 3 events, chain verifies"
    assert "BROKEN" in two
    assert says in two


def test_a_broken_log_is_told_in_json_too(used: Path) -> None:
    change(used, "DELETE FROM events WHERE project_id='two' AND seq=3")
    ended = here("audit", "verify", used, "--json")
    assert (ended.code, ended.json["ok"]) == (1, False)
    assert [chain["problem"] is None for chain in ended.json["chains"]] == [True, False]


def test_recover_lists_what_a_dead_process_left(orphaned: Path) -> None:
    listed = cli("recover", orphaned)
    assert listed.code == 0
    assert listed.out.splitlines()[1].split()[:3] == ["c1", "default", "hang"]
    [unknown] = here("recover", orphaned, "--json").json["unknown"]
    assert (unknown["id"], unknown["tool_name"], unknown["shown"]) == ("c1", "hang", {})


def test_recover_settles_a_call_with_name_and_reason(orphaned: Path) -> None:
    for missing in (["--happened"], ["--happened", "--by", "ann"], ["--by", "ann", "--reason", "looked"]):
        refused = here("recover", orphaned, "c1", *missing)
        assert (refused.code, refused.out) == (1, "")
        assert "--happened, --did-not-happen, --not-yet; --by NAME; --reason TEXT" in refused.err
    settled = here(
        "recover", orphaned, "c1", "--did-not-happen", "--by", "ann", "--reason", "not on the statement", "--json"
    )
    assert settled.json == {"call_id": "c1", "status": "FAILED"}
    assert here("recover", orphaned) == (0, "No call has an unknown outcome.\n", "")
    with toolgate.open(f"sqlite:///{orphaned}") as gate:
        last = gate.sync.events(call_id="c1")[-1]
        assert last.type == "tool.settled"
        assert "not on the statement" in last.body.decode()
    assert here("audit", "verify", orphaned).code == 0


def test_recover_refuses_what_it_cannot_settle(orphaned: Path) -> None:
    settle = ["--happened", "--by", "ann", "--reason", "looked"]
    assert "is not among the unknown calls" in here("recover", orphaned, "other", *settle).err
    assert here("recover", orphaned, "c1", *settle, "--project", "elsewhere").code == 1
    refused = here("recover", orphaned, "c1", "--happened", "--by", "agent:x", "--reason", "trust me")
    assert refused.code == 1
    assert "agent:x" in refused.err


def test_recover_asks_which_project_where_two_have_the_same_call(database: Path) -> None:
    program = """
    gate = open_gate()
    def call(project):
        gate.sync.call("hang", call_id="c1", context=toolgate.Context(project=project))
    for project in ("one", "two"):
        threading.Thread(target=call, args=(project,)).start()
    threading.Event().wait()
    """
    with running(program, database) as dying:
        assert (line(dying), line(dying)) == ("running", "running")
        dying.kill()
    settle = ["--happened", "--by", "ann", "--reason", "looked"]
    refused = here("recover", database, "c1", *settle)
    assert refused.code == 1
    assert "say which with --project" in refused.err
    assert here("recover", database, "c1", *settle, "--project", "two").out == "c1 is COMPLETED now.\n"
    [left] = here("recover", database, "--json").json["unknown"]
    assert left["project"] == "one"


def test_status_shows_what_is_there(used: Path) -> None:
    shown = cli("db", "status", used)
    assert (shown.code, shown.err) == (0, "")
    assert f"schema {HEAD} (this version needs {HEAD})" in shown.out
    assert "events 6, approvals waiting 0, mode NORMAL" in shown.out
    assert shown.out.splitlines()[-1].split() == ["COMPLETED", "2"]
    assert here("db", "status", used, "--json").json["calls"] == {"COMPLETED": 2}


def test_upgrade_makes_a_database_once(tmp_path: Path) -> None:
    path = tmp_path / "new.db"
    assert cli("db", "upgrade", path).out == f"The schema is at {HEAD} (was empty).\n"
    assert here("db", "upgrade", path).out == f"The schema is at {HEAD}.\n"
    adopted = {"accounts": [], "tokens": 0, "refused": 0}
    said = {"from": HEAD, "to": HEAD, "adopted": adopted, "unmarked": {"approvals": 0, "grants": 0}}
    assert here("db", "upgrade", path, "--json").json == said


def test_a_backup_can_be_opened_with_the_key_beside_it(used: Path, tmp_path: Path) -> None:
    made = cli("db", "backup", used, tmp_path / "copy.db")
    assert made.code == 0
    assert f"keep {used}.key safe" in made.out
    again = here("db", "backup", used, tmp_path / "copy.db", "--json")
    assert (again.code, again.out) == (1, "")
    assert "exists already" in again.err
    shutil.copy(f"{used}.key", tmp_path / "copy.db.key")
    with toolgate.open(f"sqlite:///{tmp_path}/copy.db") as gate:
        assert gate.sync.get("c1", project="two").data == 3


def test_a_backup_without_the_key_cannot_be_opened(used: Path, tmp_path: Path) -> None:
    size = here("db", "backup", used, tmp_path / "copy.db", "--json").json["bytes"]
    assert size == (tmp_path / "copy.db").stat().st_size
    refused = here("recover", tmp_path / "copy.db")
    assert refused.code == 1
    assert "key file copy.db.key is missing" in refused.err
    assert here("audit", "verify", tmp_path / "copy.db").code == 0, "the log can be checked without it"


def test_prune_forgets_and_the_call_id_still_does_not_run_again(database: Path) -> None:
    assert run(PAY, database) == "COMPLETED\n"
    pruned = here("db", "prune", database, "--older-than", "0s")
    assert pruned.out.startswith("Deleted the arguments and results of 1 calls")
    assert here("audit", "verify", database).code == 0
    again = run(
        """
        from toolgate.errors import ConflictError
        with open_gate() as gate:
            try:
                print(gate.sync.call("pay", {"amount": 3}, call_id="c1").status)
            except ConflictError as error:
                print(error.code)
        """,
        database,
    )
    assert again == "conflict\n", "what it ran with is forgotten, so no call can be shown to be the same"
    assert lines_of(database, ".paid") == ["3"]
    assert here("db", "prune", database, "--older-than", "0s", "--json").json["forgotten"] == 0


@pytest.mark.parametrize("duration", ["", "30", "d", "-1d", "1.5d", "30 d", "999999w", "1y"])
def test_prune_takes_only_a_duration(database: Path, duration: str) -> None:
    ended = here("db", "prune", database, f"--older-than={duration}")
    assert (ended.code, ended.out) == (2, "")
    assert "is not a duration" in ended.err


def test_the_longest_age_forgets_nothing(database: Path) -> None:
    assert here("db", "prune", database, "--older-than", "99999w", "--json").json["forgotten"] == 0


BUSY = """
import time
gate, count = open_gate(), 0
print("busy", flush=True)
while count < 20000:
    assert gate.sync.call("pay", {"amount": count}).success
    count += 1
    if count == 50:
        print("going", flush=True)
"""


def test_every_upkeep_command_works_while_another_process_writes(database: Path, tmp_path: Path) -> None:
    with running(BUSY, database) as busy:
        assert (line(busy), line(busy)) == ("busy", "going")
        assert here("db", "backup", database, tmp_path / "copy.db").code == 0
        assert here("db", "status", database, "--json").json["calls"]["COMPLETED"] >= 50
        assert cli("db", "prune", database, "--older-than", "0s").code == 0
        assert here("db", "vacuum", database, "--json").json["bytes_after"] > 0
        assert here("audit", "verify", database).code == 0
        assert busy.poll() is None, "it goes on undisturbed"
    assert here("audit", "verify", tmp_path / "copy.db").code == 0


def commit_now(gate: toolgate.Gate, change: Change) -> None:
    async def commit() -> None:
        writing = gate._driver.store.commit(change)
        if writing is not None:
            await writing

    asyncio.run(commit())


def test_a_name_that_would_steer_the_terminal_is_written_out(database: Path) -> None:
    steering = "\x1b[2Jinnocent"
    with toolgate.open(f"sqlite:///{database}", tools=[pay]) as gate:
        told = Change(project=steering, at=datetime.now(UTC), events=(("tool.progress", None, {}, None),))
        gate.sync.call("pay", {"amount": 3})  # a gate refuses such a name, but somebody may have written it
        commit_now(gate, told)
    shown = here("audit", "verify", database).out
    assert "\x1b" not in shown
    assert "\\x1b[2Jinnocent" in shown


def test_rekey_tells_which_keys_may_go_and_without_them_everything_is_there(used: Path) -> None:
    key = used.with_name(used.name + ".key")
    key.write_text(new_key() + "\n" + key.read_text())
    told = here("db", "rekey", used)
    assert told.code == 0
    assert "Encrypted 4 values again" in told.out
    assert "No longer needed: " in told.out
    key.write_text(key.read_text().split()[0])
    assert here("db", "rekey", used, "--json").json["resealed"] == 0
    with toolgate.open(f"sqlite:///{used}") as gate:
        assert gate.sync.get("c1", project="one").data == 3


def test_rekey_tells_of_keys_that_are_still_in_use(used: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = used.with_name(used.name + ".key")
    key.write_text(new_key() + "\n" + key.read_text())
    monkeypatch.setattr("toolgate.adapters.sqlite.rekey.ROUNDS", 0)
    assert "Still in use: " in here("db", "rekey", used).out
