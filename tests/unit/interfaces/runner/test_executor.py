"""Each signal is seen through: its lease kept, its question asked, its result delivered until somebody has it."""

from __future__ import annotations

import time
from contextlib import closing
from typing import Any

import pytest
from tests.unit.interfaces.runner.conftest import Slow
from tests.unit.interfaces.runner.stage import Stage, problem

from toolgate.errors import NotSignedInError
from toolgate.interfaces.runner.ledger import Ledger
from toolgate.interfaces.runner.local import open_local
from toolgate.interfaces.runner.notices import Kind
from toolgate.interfaces.runner.signals import Signal
from toolgate.interfaces.runner.state import StateFolder
from toolgate.kernel.call import Status
from toolgate.testing.patience import until

STALE = (409, problem("stale_result", tool_status="failed"))
LEASE_S = 3600.0
"""Longer than anything takes here: a lease that ends while a busy machine still asks would prove nothing."""
EDIT = {"path": "a.txt", "old_text": "old", "new_text": "new"}


@pytest.fixture
def edited(stage: Stage) -> Any:
    """A file whose edit the policy asks about."""
    (stage.workspace / "a.txt").write_text("old")
    return stage.workspace / "a.txt"


async def question(stage: Stage) -> Any:
    """The one question that is open here."""
    await stage.notes.saw(Kind.ASKING)
    [approval] = await stage.gate.pending(project="demo")
    return approval


async def abandoned(stage: Stage) -> Any:
    """What a runner leaves that dies while it asks: a noted signal and an open question."""
    signal = Signal(tool_id="t1", tool_name="edit_file", fence="f-t1", attempt=1, lease_s=30.0, params=EDIT)
    with (
        StateFolder(stage.state, server=stage.server.url, project="demo", workspace=stage.workspace) as state,
        closing(Ledger(state.signals)) as ledger,
    ):
        local = open_local(state=state, project="demo", workspace=stage.workspace, policy=stage.policy)
        ledger.take(signal)
        local.holding.take(signal)
        await local.gate.call("edit_file", EDIT, context=local.context("t1"), call_id="t1", wait=False)
        [approval] = await local.gate.pending(project="demo")
        await local.gate.aclose()
    return approval


async def test_it_registers_for_its_tools_and_for_undo(stage: Stage) -> None:
    async with stage.runner():
        [query] = stage.server.queries
    assert "tools=" in query
    assert "write_file" in query
    assert "undo=true" in query


async def test_a_lease_is_renewed_and_progress_passed_on_while_a_call_runs(stage: Stage, slow: Slow) -> None:
    async with stage.runner():
        stage.server.run("t1", "slow", {}, timeout_seconds=0.6)
        await until(lambda: len(stage.server.beats) >= 3)
        slow.go.set()
        report = await stage.server.result()
    assert report == {
        "tool_id": "t1", "status": "completed", "result": {"begun": 1}, "fence": "f-t1", "artifacts": [],
    }  # fmt: skip
    assert {beat["fence"] for beat in stage.server.beats} == {"f-t1"}
    assert ("half way", 0.5) in {(beat.get("message"), beat.get("progress")) for beat in stage.server.beats}


async def test_a_call_the_server_takes_back_is_stopped(stage: Stage, slow: Slow) -> None:
    async with stage.runner():
        stage.server.run("t1", "slow", {})
        await until(lambda: slow.begun)
        stage.server.say("tool.cancel_signal", {"tool_id": "t1", "reason": "changed my mind"})
        report = await stage.server.result()
    assert (report["status"], slow.stopped) == ("unknown", 1)  # it may have done it before it was stopped
    assert "changed my mind" in report["error"]


async def test_a_call_that_is_offered_again_while_it_runs_is_answered_with_the_new_fence(
    stage: Stage, slow: Slow
) -> None:
    async with stage.runner():
        stage.server.run("t1", "slow_read", {}, timeout_seconds=0.6)
        await until(lambda: slow.begun)
        stage.server.beat_answer = STALE
        await stage.notes.saw(Kind.LOST)
        stage.server.beat_answer = None
        stage.server.run("t1", "slow_read", {}, attempt=2, fence="second", timeout_seconds=0.6)
        await until(lambda: any(beat["fence"] == "second" for beat in stage.server.beats))
        slow.go.set()
        report = await stage.server.result()
    assert (slow.begun, report["fence"], len(stage.server.results)) == (1, "second", 1)


async def test_a_call_that_is_offered_again_after_it_ran_is_answered_from_the_journal(stage: Stage, slow: Slow) -> None:
    slow.go.set()
    async with stage.runner():
        stage.server.answers = [STALE]
        stage.server.run("t1", "slow_read", {})
        await stage.notes.saw(Kind.REFUSED)
    async with stage.runner():
        stage.server.run("t1", "slow_read", {}, attempt=2, fence="second")
        report = await stage.server.result(2)
    assert (slow.begun, report["fence"], report["result"]) == (1, "second", {"begun": 1})


@pytest.mark.parametrize(
    "answer", [(503, problem("unavailable")), (429, problem("busy")), (403, problem("not_allowed"))]
)
async def test_a_result_is_brought_until_the_server_takes_it(stage: Stage, answer: Any) -> None:
    (stage.workspace / "a.txt").write_text("x")
    stage.server.answers = [answer, answer]
    async with stage.runner():
        stage.server.run("t1", "read_file", {"path": "a.txt"})
        await stage.notes.saw(Kind.DELIVERED)
    assert len(stage.server.results) >= 3
    assert {report["status"] for report in stage.server.results} == {"completed"}


@pytest.mark.parametrize("answer", [STALE, (404, problem("not_found"))])
async def test_a_result_nobody_waits_for_is_shown_and_not_brought_again(stage: Stage, answer: Any) -> None:
    (stage.workspace / "a.txt").write_text("x")
    stage.server.answers = [answer]
    async with stage.runner():
        stage.server.run("t1", "read_file", {"path": "a.txt"})
        shown = await stage.notes.saw(Kind.REFUSED)
    async with stage.runner():
        pass
    assert "not taken" in shown.text
    assert len(stage.server.results) == 1


async def test_of_a_result_that_is_too_large_at_least_the_end_arrives(stage: Stage) -> None:
    (stage.workspace / "a.txt").write_text("x")
    large = (413, problem("too_large"))
    stage.server.answers = [large]
    async with stage.runner():
        stage.server.run("t1", "read_file", {"path": "a.txt"})
        read = await stage.server.result(2)
        stage.server.answers = [large]
        stage.server.run("t2", "write_file", {"path": "b.txt", "content": "y"})
        written = await stage.server.result(4)
    assert (read["status"], "journal" in read["error"]) == ("failed", True)
    assert (written["status"], "journal" in written["result"]["omitted"]) == ("completed", True)


async def test_where_the_policy_asks_a_person_here_is_asked_and_the_lease_goes_on(stage: Stage, edited: Any) -> None:
    async with stage.runner():
        stage.server.run("t1", "edit_file", EDIT, timeout_seconds=0.6)
        approval = await question(stage)
        await until(lambda: len(stage.server.beats) >= 3)
        assert edited.read_text() == "old"
        await stage.gate.decide(approval.id, "approve", by="me", project="demo")
        report = await stage.server.result()
    assert (report["status"], edited.read_text()) == ("completed", "new")


async def test_a_no_here_is_told_to_the_agent(stage: Stage, edited: Any) -> None:
    async with stage.runner():
        stage.server.run("t1", "edit_file", EDIT)
        approval = await question(stage)
        await stage.gate.decide(approval.id, "deny", by="me", reason="not on my machine", project="demo")
        report = await stage.server.result()
    assert (report["status"], edited.read_text()) == ("failed", "old")
    assert "person at the runner's machine said no" in report["error"]
    assert "not on my machine" in report["error"]


async def test_a_question_ends_when_the_server_no_longer_waits(stage: Stage, edited: Any) -> None:
    async with stage.runner():
        stage.server.beat_answer = STALE
        stage.server.answers = [STALE]
        stage.server.run("t1", "edit_file", EDIT, timeout_seconds=0.6)
        await stage.notes.saw(Kind.LOST)
        await stage.notes.saw(Kind.REFUSED)
        assert await stage.gate.pending(project="demo") == []
    assert edited.read_text() == "old"


async def test_a_yes_that_comes_after_the_lease_is_over_runs_nothing(
    stage: Stage, edited: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with stage.runner():
        stage.server.run("t1", "edit_file", EDIT, timeout_seconds=LEASE_S)
        approval = await question(stage)
        assert stage.local is not None
        monkeypatch.setattr(stage.local.holding, "_now", lambda: time.monotonic() + LEASE_S)
        await stage.gate.decide(approval.id, "approve", by="me", project="demo")
        report = await stage.server.result()
    assert (report["status"], edited.read_text()) == ("failed", "old")
    assert "lease ended" in report["error"]


@pytest.mark.parametrize(
    ("said", "runs"),
    [
        ({"approval_id": "a1", "approved_by": "ann"}, True),
        ({"approval_id": None, "approved_by": "policy:auto"}, False),
        ({"approval_id": "a1", "approved_by": "grant:g1"}, False),
        ({"approval_id": None, "approved_by": "ann"}, False),
    ],
)
async def test_a_persons_yes_at_the_server_counts_where_that_was_asked_for(
    stage: Stage, edited: Any, said: dict[str, Any], runs: bool
) -> None:
    stage.server.call = said
    async with stage.runner(trust=True):
        stage.server.run("t1", "edit_file", EDIT)
        if runs:
            assert (await stage.server.result())["status"] == "completed"
        else:
            await question(stage)
        stage.server.run("t2", "delete_file", {"path": "a.txt"})  # a denial stays one
        await stage.server.result(2 if runs else 1)
        assert edited.read_text() == ("new" if runs else "old")


async def test_without_being_asked_for_it_does_not_count(stage: Stage, edited: Any) -> None:
    stage.server.call = {"approval_id": "a1", "approved_by": "ann"}
    async with stage.runner():
        stage.server.run("t1", "edit_file", EDIT)
        await question(stage)
    assert edited.read_text() == "old"


async def test_confirm_asks_about_what_the_policy_allows_and_about_undo(stage: Stage) -> None:
    async with stage.runner(confirm=True):
        stage.server.run("t1", "write_file", {"path": "a.txt", "content": "x"})
        approval = await question(stage)
        assert not (stage.workspace / "a.txt").exists()
        await stage.gate.decide(approval.id, "approve", by="me", project="demo")
        await stage.server.result()
        undo = {"tool_id": "u1", "tool_name": "write_file", "undo_of": "t1", "fence": "f", "attempt": 1}
        stage.server.say("tool.undo_signal", undo | {"timeout_seconds": 30})
        await stage.notes.saw(Kind.ASKING, 2)
        [approval] = await stage.gate.pending(project="demo")
        assert (stage.workspace / "a.txt").exists()
        await stage.gate.decide(approval.id, "approve", by="me", project="demo")
        await stage.server.result(2)
    assert not (stage.workspace / "a.txt").exists()


async def test_stopping_lets_what_runs_end_and_hands_back_what_waits(stage: Stage, slow: Slow, edited: Any) -> None:
    async with stage.runner() as runner:
        stage.server.run("t1", "slow", {})
        stage.server.run("t2", "edit_file", EDIT)
        await until(lambda: slow.begun)
        await question(stage)
        runner.stop()
        await stage.notes.saw(Kind.STOPPING)
        slow.go.set()
    ended = {report["tool_id"]: report for report in stage.server.results}
    assert (ended["t1"]["status"], ended["t2"]["status"]) == ("completed", "failed")
    assert "the runner stops" in ended["t2"]["error"]
    assert stage.notes.of(Kind.STOPPED)[0].data == {"left": 0}


async def test_stopping_twice_stops_what_runs(stage: Stage, slow: Slow) -> None:
    async with stage.runner(grace_s=600) as runner:
        stage.server.run("t1", "slow", {})
        await until(lambda: slow.begun)
        runner.stop()
        await stage.notes.saw(Kind.STOPPING)
        runner.stop()
    assert slow.stopped == 1
    assert stage.server.results[0]["status"] == "unknown"


async def test_what_could_not_be_delivered_is_delivered_at_the_next_start(stage: Stage, slow: Slow) -> None:
    async with stage.runner() as runner:
        stage.server.run("t1", "slow", {})
        await until(lambda: slow.begun)
        await stage.server.stop()
        slow.go.set()
        await stage.notes.saw(Kind.KEPT)
        runner.stop()
        runner.stop()
    assert stage.notes.of(Kind.STOPPED)[0].data == {"left": 1}
    await stage.server.start()
    async with stage.runner():
        report = await stage.server.result()
    assert (report["status"], report["result"], slow.begun) == ("completed", {"begun": 1}, 1)


async def test_the_server_may_come_later(stage: Stage, slow: Slow) -> None:
    slow.go.set()
    await stage.server.stop()
    async with stage.runner(connects=False):
        await stage.notes.saw(Kind.DISCONNECTED)
        await stage.server.start()
        await stage.notes.saw(Kind.CONNECTED)
        stage.server.run("t1", "slow", {})
        assert (await stage.server.result())["status"] == "completed"


async def test_a_question_of_an_earlier_runner_is_asked_again_if_the_server_still_waits(
    stage: Stage, edited: Any
) -> None:
    approval = await abandoned(stage)
    async with stage.runner():
        await until(lambda: stage.local is not None and stage.local.holding.why_not("t1") is None)
        await stage.gate.decide(approval.id, "approve", by="me", project="demo")
        report = await stage.server.result()
    assert (report["status"], edited.read_text()) == ("completed", "new")


async def test_a_question_of_an_earlier_runner_ends_if_the_server_gave_the_call_up(stage: Stage, edited: Any) -> None:
    await abandoned(stage)
    stage.server.beat_answer = STALE
    stage.server.answers = [STALE]
    async with stage.runner():
        await stage.notes.saw(Kind.REFUSED)
        assert (await stage.gate.calls.get("t1", project="demo")).status is Status.CANCELLED
    assert edited.read_text() == "old"


async def test_who_is_turned_away_at_once_ends_with_the_servers_words(stage: Stage) -> None:
    stage.server.stream_answer = (401, problem("not_signed_in"))
    with pytest.raises(NotSignedInError):
        async with stage.runner():
            pass
    assert stage.notes.of(Kind.STOPPED)


async def test_who_was_welcome_once_keeps_coming_back(stage: Stage, slow: Slow) -> None:
    slow.go.set()
    async with stage.runner():
        stage.server.stream_answer = (403, problem("not_allowed"))
        stage.server.hang_up()
        await stage.notes.saw(Kind.DISCONNECTED, 2)
        stage.server.stream_answer = None
        await stage.notes.saw(Kind.CONNECTED, 2)
        stage.server.run("t1", "slow", {})
        assert (await stage.server.result())["status"] == "completed"
