"""Questions answered by the `toolgate` command while another process holds the tool."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import sqlite3
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.integration.programs import cli, here, line, lines_of, running

import toolgate
from toolgate.kernel.grant import Remember
from toolgate.testing.patience import PATIENCE_S

HOLD = """
import json
async def main():
    async with open_gate() as gate:
        for to in sys.argv[2:]:
            context = toolgate.Context(principal="agent:a", user="ann", run_id="r1")
            await gate.call("send", {"to": to}, context=context, wait=False, call_id=f"call-{to[:4]}")
        print("asked", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
asyncio.run(main())
"""


def open_ids(database: Path) -> list[str]:
    return [one["approval_id"] for one in here("inbox", database, "--json").json["pending"]]


@contextmanager
def holding(database: Path, *to: str) -> Iterator[subprocess.Popen[str]]:
    with running(HOLD, database, *to) as process:
        assert line(process) == "asked"
        yield process


def wait_for(condition: Any) -> None:
    until = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < until, "it did not come true"
        time.sleep(0.01)


def test_what_is_approved_runs_where_the_tool_is(database: Path) -> None:
    with holding(database, "bob"):
        (waiting,) = open_ids(database)
        shown = here("show", database, waiting)
        assert "Asked by: agent:a on behalf of ann" in shown.out
        assert here("show", database, waiting, "--json").json["arguments"] == {"to": "bob"}
        done = cli("approve", database, waiting, "--by", "bob", "--json")
        assert done.json["status"] == "APPROVED"
        wait_for(lambda: lines_of(database, ".sent") == ["bob"])
        again = here("approve", database, waiting, "--by", "cid")
        assert (again.code, "already approved by bob" in again.err) == (1, True)


def test_what_is_denied_or_edited_is_so(database: Path) -> None:
    with holding(database, "bobby", "cidney"):
        first, second = open_ids(database)
        assert "REJECTED" in here("deny", database, first, "--by", "bob", "--reason", "no").out
        refused = here("edit", database, second, "--by", "bob", "--arguments", '{"to": 5}')
        assert (refused.code, "schema" in refused.err) == (1, True)
        changed = Path(f"{database}.json")
        changed.write_text('{"to": "dia"}')
        assert "APPROVED" in here("edit", database, second, "--by", "bob", "--arguments", f"@{changed}").out
        wait_for(lambda: lines_of(database, ".sent") == ["dia"])
        missing = here("edit", database, second, "--by", "bob", "--arguments", "@/nowhere/x")
        assert (missing.code, "cannot be read" in missing.err) == (1, True)


def test_what_is_too_long_must_be_looked_at_in_full_first(database: Path) -> None:
    with holding(database, "x" * 5000):
        (waiting,) = open_ids(database)
        refused = here("approve", database, waiting, "--by", "bob")
        assert (refused.code, "--full" in refused.err) == (1, True)
        digest = here("show", database, waiting, "--json").json["digest"]
        assert "x" * 5000 in here("show", database, waiting, "--full").out
        piece = here("show", database, waiting, "--part", "arguments", "--offset", "100")
        assert piece.out.startswith("Arguments: characters 100 to ")
        assert here("show", database, waiting, "--part", "arguments", "--json").json["next"] is None
        assert here("show", database, waiting, "--part", "nothing").code == 1
        beyond = here("show", database, waiting, "--part", "arguments", "--offset", "99999")
        assert (beyond.code, "no piece of it begins at 99,999" in beyond.err) == (1, True)
        of_nothing = here("show", database, waiting, "--offset", "100")
        assert (of_nothing.code, "name the part with --part" in of_nothing.err) == (1, True)
        assert here("approve", database, waiting, "--by", "bob", "--digest", "0" * 64).code == 1
        assert here("approve", database, waiting, "--by", "bob", "--digest", digest).code == 0


def test_the_editor_opens_where_no_arguments_are_given(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with holding(database, "bob"):
        (waiting,) = open_ids(database)
        monkeypatch.setenv("EDITOR", "true")
        assert here("edit", database, waiting, "--by", "bob").code == 1
        monkeypatch.setenv(
            "EDITOR", f'{sys.executable} -c "import sys; open(sys.argv[1], \'w\').write(\'{{\\"to\\": \\"eve\\"}}\')"'
        )
        assert here("edit", database, waiting, "--by", "bob").code == 0
        wait_for(lambda: lines_of(database, ".sent") == ["eve"])


def test_an_editor_that_is_not_there_or_fails_is_said_and_nothing_is_decided(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with holding(database, "bob"):
        (waiting,) = open_ids(database)
        for editor in ("false", "no-such-editor"):
            monkeypatch.setenv("EDITOR", editor)
            refused = cli("edit", database, waiting, "--by", "bob")
            assert (refused.code, refused.err.startswith("toolgate: The editor did not work")) == (1, True)
        monkeypatch.delenv("EDITOR")
        monkeypatch.delenv("VISUAL", raising=False)
        refused = here("edit", database, waiting, "--by", "bob")
        assert (refused.code, "no terminal" in refused.err) == (1, True)
        assert open_ids(database) == [waiting]


@pytest.mark.parametrize("command", ["show", "approve", "deny", "edit"])
def test_an_empty_id_answers_nothing_even_where_only_one_question_waits(database: Path, command: str) -> None:
    with holding(database, "bob"):
        refused = here(command, database, "", *(() if command == "show" else ("--by", "bob")))
        assert (refused.code, "id is empty" in refused.err) == (1, True)
        assert len(open_ids(database)) == 1


def test_a_yes_is_remembered_listed_and_revoked(database: Path) -> None:
    with holding(database, "bob"):
        (waiting,) = open_ids(database)
        assert here("grants", "list", database).out == "There are no grants that can be used.\n"
        assert here("approve", database, waiting, "--by", "bob", "--remember", 3, "--for", "30m").code == 0
        (grant,) = here("grants", "list", database, "--json").json["grants"]
        assert (grant["granted_by"], grant["max_uses"], grant["arguments"]) == ("bob", 3, {"to": {"is": "bob"}})
        assert "live" in here("grants", "list", database).out
        assert "is revoked" in here("grants", "revoke", database, grant["id"][:30], "--by", "cid").out
        assert "revoked by cid" in here("grants", "list", database, "--all").out
        assert here("grants", "revoke", database, grant["id"], "--json").code == 1
        assert here("grants", "revoke", database, "").code == 1


def test_a_vote_is_lent_used_and_taken_back(database: Path) -> None:
    with holding(database, "bob"):
        (waiting,) = open_ids(database)
        assert here("delegations", "list", database, "--all").out == "There is no delegation.\n"
        given = here("delegations", "give", database, "cid", "--by", "dan", "--for", "7d", "--reason", "leave")
        assert "cid may give the vote of dan until" in given.out
        assert here("delegations", "give", database, "cid", "--by", "dan", "--for", "15d").code == 1
        (listed,) = here("delegations", "list", database, "--json").json["delegations"]
        assert (listed["giver"], listed["delegate"], listed["reason"]) == ("dan", "cid", "leave")
        done = here("approve", database, waiting, "--by", "cid", "--on-behalf-of", "dan", "--json")
        assert (done.code, done.json["approved_by"]) == (0, "cid for dan")
        assert here("delegations", "end", database, listed["delegation_id"], "--by", "cid").code == 1
        ended = here("delegations", "end", database, listed["delegation_id"][:30], "--by", "dan", "--json")
        assert ended.json["ended_by"] == "dan"
        assert here("delegations", "end", database, "").code == 1


def test_a_delegation_that_nobody_gave_is_listed_as_such(database: Path) -> None:
    for _ in range(2):
        assert here("delegations", "give", database, "cid", "--by", "ann", "--for", "1h").code == 0
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("UPDATE delegations SET giver='eve', expires_at='2999-01-01 00:00:00.000000'")
        connection.execute("UPDATE delegations SET expires_at='2020-01-01 00:00:00.000000' WHERE rowid=1")
    shown = here("delegations", "list", database, "--all").out
    assert shown.count("not valid: it does not carry the mark") == 2
    assert "write more of the id" in here("delegations", "end", database, "0", "--by", "eve").err


def test_a_grant_that_covers_nothing_is_listed_with_the_reason(database: Path) -> None:
    with holding(database, "bob"):
        (waiting,) = open_ids(database)
        assert here("approve", database, waiting, "--by", "bob", "--remember", 3).code == 0
    (grant,) = here("grants", "list", database, "--json").json["grants"]
    assert (grant["is_live"], grant["is_valid"], grant["invalid_because"]) == (True, True, None)
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("UPDATE grants SET requester='agent:eve'")
    (forged,) = here("grants", "list", database, "--json").json["grants"]
    assert (forged["is_live"], forged["is_valid"]) == (False, False)
    assert "not valid: it does not carry the mark" in here("grants", "list", database).out


def test_a_module_of_tools_that_does_not_import_is_said_so(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.chdir(database.parent)
    (database.parent / "broken_tools.py").write_text("raise ValueError('not set up')")
    toolgate.open(f"sqlite:///{database}").close()
    for module in ("broken_tools", "no_such_module", ""):
        refused = here("undo", database, "call-1", "--tools", module)
        assert (refused.code, "cannot be imported" in refused.err) == (1, True)


def test_history_and_watch_tell_what_happened(database: Path) -> None:
    assert here("history", database).out == "No calls yet.\n"
    with holding(database, "bob"):
        (waiting,) = open_ids(database)
        here("approve", database, waiting, "--by", "bob")
        told = cli("watch", database, "--after", 2, "--count", 2, "--json").out
        assert [toolgate_json(row)["type"] for row in told.splitlines()] == ["approval.decided", "tool.started"]
        assert "approval.requested" in here("watch", database, "--after", 0, "--count", 2).out
        wait_for(lambda: "COMPLETED" in here("history", database).out)
        (call,) = here("history", database, "--run", "r1", "--limit", 5, "--json").json["calls"]
        assert (call["approved_by"], call["status"]) == ("bob", "COMPLETED")


def toolgate_json(row: str) -> Any:
    import json

    return json.loads(row)


UNDOABLE = """
import toolgate
from toolgate.hitl import hitl_tool

async def put(given):
    return toolgate.ToolOutput.ok(undo_metadata={"x": 1})

async def back(undo):
    with open(__file__ + ".undone", "a") as file:
        file.write("x")

put_tool = toolgate.ToolDefinition("put", {}, put, undoable=True, undo_handler=back)

@hitl_tool()
async def other() -> None: ...
"""


def test_a_call_and_a_run_are_undone_with_their_tools(
    database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"undoable_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(UNDOABLE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    module = __import__(name)
    with toolgate.open(f"sqlite:///{database}", tools=[module.put_tool]) as gate:
        for id in ("c1", "c2"):
            gate.sync.call("put", call_id=id, context=toolgate.Context(run_id="r1"))
        gate.sync.call("no_such_tool", context=toolgate.Context(run_id="r2"))
    assert here("undo", database, "c1").code == 1
    assert here("undo", database, "c1", "--tools", "no_such_module").code == 1
    assert "was undone" in here("undo", database, "c1", "--tools", name, "--by", "bob").out
    preview = here("undo-run", database, "r1", "--tools", f"{name}:put_tool", "--preview", "--json").json
    assert [step["step"] for step in preview["steps"]] == ["undoable", "nothing"]
    assert "undone" in here("undo-run", database, "r1", "--tools", name).out
    assert here("undo", database, "c2", "--tools", name, "--json").json["undone"] is False
    assert "no call that did anything" in here("undo-run", database, "r2").out
    unknown = here("undo-run", database, "r9")
    assert unknown.code == 1
    assert "There is no run 'r9' in project `default`; its latest runs are: r" in unknown.err


class Screen:
    """The inbox at a pseudo-terminal."""

    def __init__(self, database: Path) -> None:
        self.hand, terminal = pty.openpty()
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
        command = [sys.executable, "-m", "toolgate", "inbox", str(database), "--by", "bob"]
        self.process = subprocess.Popen(command, stdin=terminal, stdout=terminal, stderr=terminal, close_fds=True)
        os.close(terminal)
        self.seen = ""

    def sees(self, *words: str) -> None:
        """Wait until words are on the screen, in what was drawn since the last time."""
        until = time.monotonic() + PATIENCE_S
        drawn = ""
        while not all(word in drawn for word in words):
            assert time.monotonic() < until, (words, drawn[-3000:])
            if select.select([self.hand], [], [], 0.1)[0]:
                drawn += os.read(self.hand, 65536).decode(errors="replace")
        self.seen += drawn

    def press(self, keys: str) -> None:
        os.write(self.hand, keys.encode())


@pytest.fixture
def screen(database: Path) -> Iterator[Any]:
    screens: list[Screen] = []

    def show() -> Screen:
        screens.append(Screen(database))
        return screens[-1]

    yield show
    for one in screens:
        one.process.kill()
        one.process.wait()
        os.close(one.hand)


def test_the_inbox_is_live_and_answers_by_keys(database: Path, screen: Any) -> None:
    with holding(database, "bob", "cid" + "y" * 3000, "dia"):
        inbox = screen()
        inbox.sees("3 waiting")
        inbox.press("a")
        inbox.sees("Open it first")
        inbox.press("\r")
        inbox.sees("Arguments", '"to": "bob"')
        inbox.press("c")
        inbox.sees("Comment: ")
        inbox.press("who is this?\n")
        inbox.sees("Comment added", "bob: who is this?")
        inbox.press("+")
        inbox.sees("ten minutes from now")
        inbox.press("a")
        inbox.sees("Reason")
        inbox.press("fine\n")
        inbox.sees("The call is APPROVED", "2 waiting")
        wait_for(lambda: lines_of(database, ".sent") == ["bob"])
        inbox.press("\r")
        inbox.sees("characters hidden")
        inbox.press("a")
        inbox.sees("Press x to see all of it")
        inbox.press("x")
        inbox.sees("more lines below")
        inbox.press("\x1b[6~\x1b[5~\x1b[1;5Hdtoo long\n")  # faster than it is read
        inbox.sees("Reason")
        inbox.sees("The call is REJECTED", "1 waiting")
        inbox.press("\r")
        inbox.sees('"dia"')
        inbox.press("r")
        inbox.sees("Tell the agent")
        inbox.press("ask her yourself\n")
        inbox.sees("The call is REJECTED", "Nothing waits")
        inbox.press("q")
        assert inbox.process.wait(PATIENCE_S) == 0
        assert lines_of(database, ".sent") == ["bob"]


def test_the_inbox_notices_what_others_answer(database: Path, screen: Any) -> None:
    with holding(database, "bob"):
        inbox = screen()
        inbox.sees("1 waiting")
        inbox.press("\r")
        inbox.sees("Arguments")
        here("deny", database, open_ids(database)[0], "--by", "cid")
        inbox.sees("Somebody answered it")


def test_the_inbox_needs_a_terminal(database: Path) -> None:
    refused = here("inbox", database)
    assert (refused.code, "terminal" in refused.err) == (1, True)


def test_more_than_one_beginning_is_refused(database: Path) -> None:
    with holding(database, "bob", "cid"):
        assert "write more of the id" in here("deny", database, open_ids(database)[0][:4], "--by", "bob").err


def test_grants_of_one_beginning_are_not_guessed(database: Path) -> None:
    @toolgate.tool(risk_level="medium")
    async def send(to: str) -> str:
        return to

    with toolgate.open(f"sqlite:///{database}", tools=[send]) as gate:
        for to in ("a", "b"):
            asked = gate.sync.call("send", {"to": to}, wait=False)
            gate.sync.decide(str(asked.approval_id), "approve", by="ann", remember=Remember())
            gate.sync.wait(asked.call_id)
    assert "write more of the id" in here("grants", "revoke", database, "0").err
