"""A policy file decides what runs, is read again when it changes, and its limits hold in every race."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.journeys.scene import Open, names, park
from tests.turns import Turns

import toolgate
from toolgate import Context, Gate
from toolgate.errors import PolicyError, UsageError
from toolgate.gate import policies
from toolgate.kernel.call import Status
from toolgate.kernel.policy import Policy
from toolgate.policy import load_policy
from toolgate.testing.patience import PATIENCE_S


@toolgate.tool
async def pay(amount: float) -> float:
    """Pay."""
    return amount


@toolgate.tool(effects="read")
async def look(path: str = ".") -> str:
    """Look at a file."""
    return path


def write(folder: Path, text: str) -> Path:
    path = folder / "toolgate.yaml"
    path.write_text(text)
    return path


def open_with(open_gate: Open, folder: Path, text: str, **options: Any) -> Gate:
    return open_gate(tools=[pay, look], policy=load_policy(write(folder, text), workspace=folder), **options)


async def test_reasons_and_facts_are_kept_with_the_call(open_gate: Open, tmp_path: Path) -> None:
    text = "tools: {look: {decision: allow, allowed_paths: ['**'], arguments: [{field: path, equals: x, then: ask}]}}"
    async with open_with(open_gate, tmp_path, text) as gate:
        done = await gate.call("look", {"path": "a.txt"})
        row = await gate.calls.get(done.call_id)
        assert row.reasons == ("decision: the policy allows it",)
        assert row.facts["paths"][0]["path"] == str(tmp_path / "a.txt")
        assert row.policy_revision == gate.policy.revision
        denied = await gate.call("look", {"path": "/etc/passwd"})
        assert denied.status is Status.DENIED
        assert str(denied.error).endswith(
            "(rule `paths`). Choose another, or allow it in the policy: "
            "`tools: {look: {paths: {allowed: [..., '/etc/passwd']}}}`."
        )
        assert (await gate.calls.get(denied.call_id)).reasons == (
            "decision: the policy allows it",
            "paths: Path /etc/passwd not in allowed paths",
        )


REFUSED = [
    ("allowed_paths: ['src/**']", "other.txt", "paths: {allowed: ["),
    ("allowed_paths: ['**'], forbidden_paths: [scratch]", "scratch/a", "take 'scratch' out of `paths: {forbidden:"),
    ("allowed_paths: ['**']", ".env", "protected: ['!"),
    ("allowed_paths: ['**']", ".ssh/config", "protected: ['!"),
]


@pytest.mark.parametrize(("keys", "path", "remedy"), REFUSED)
async def test_a_refused_path_is_told_with_the_line_that_would_allow_it(
    open_gate: Open, tmp_path: Path, keys: str, path: str, remedy: str
) -> None:
    text = f"tools: {{look: {{decision: allow, {keys}}}}}"
    async with open_with(open_gate, tmp_path, text) as gate:
        denied = await gate.call("look", {"path": path})
        assert denied.status is Status.DENIED
        assert remedy in str(denied.error)
        if "protected" in remedy:
            line = str(denied.error).rsplit("`", 2)[1]
            await gate.set_policy(load_policy(write(tmp_path, f"{text}\n{line}"), workspace=tmp_path), by="ann")
            assert (await gate.call("look", {"path": path})).success


async def test_a_secret_in_a_path_is_not_recorded(open_gate: Open, tmp_path: Path) -> None:
    text = "tools: {look: {decision: allow, allowed_paths: ['**']}}"
    async with open_with(open_gate, tmp_path, text, secrets=["hunter2-hunter2"]) as gate:
        done = await gate.call("look", {"path": "hunter2-hunter2/x"})
        assert "hunter2" not in str((await gate.calls.get(done.call_id)).facts)
        denied = await gate.call("look", {"path": "/hunter2-hunter2"})
        assert "hunter2" not in f"{denied.error} {(await gate.calls.get(denied.call_id)).reasons}"


async def test_terms_reach_the_approval(open_gate: Open, tmp_path: Path) -> None:
    text = "tools: {pay: {approval: {level: full, approvers: [lead], quorum: 2, timeout: 2m}}}"
    async with open_with(open_gate, tmp_path, text) as gate:
        approval = await park(gate, "pay", {"amount": 5})
        assert (approval.level, approval.terms.quorum, approval.terms.approvers) == ("full", 2, (frozenset({"lead"}),))
        assert (approval.expires_at - approval.created_at).total_seconds() == 120


async def test_an_approval_given_under_weaker_terms_is_asked_for_again(open_gate: Open, tmp_path: Path) -> None:
    async with open_with(open_gate, tmp_path, "tools: {pay: {decision: ask}}") as gate:
        approval = await park(gate, "pay", {"amount": 5})
        stricter = load_policy(write(tmp_path, "tools: {pay: {decision: ask, approval: {separation: true}}}"))
        await gate.set_policy(stricter, by="ann")
        await gate.decide(approval.id, "approve", by="ann")
        result = await asyncio.wait_for(_until_asked_again(gate, approval.id), PATIENCE_S)
        assert result.terms.separation


async def _until_asked_again(gate: Gate, first: str) -> Any:
    while True:
        pending = await gate.pending()
        if pending and pending[0].id != first:
            return pending[0]
        await asyncio.sleep(0.01)


async def test_an_approval_still_counts_where_nobody_need_be_asked_any_more(open_gate: Open, tmp_path: Path) -> None:
    async with open_with(open_gate, tmp_path, "tools: {pay: {decision: ask}}") as gate:
        approval = await park(gate, "pay", {"amount": 5})
        await gate.set_policy(load_policy(write(tmp_path, "tools: {pay: {decision: allow}}")), by="ann")
        await gate.decide(approval.id, "approve", by="ann")
        assert (await gate.wait(approval.call_id)).success


async def test_a_rate_holds_however_many_call_at_once(open_gate: Open, tmp_path: Path) -> None:
    text = "tools: {pay: {decision: allow, rates: [{limit: 5, window: 1h, per: principal}]}}"
    async with open_with(open_gate, tmp_path, text) as gate:
        results = await asyncio.gather(*(gate.call("pay", {"amount": 1}) for _ in range(20)))
        assert sum(result.success for result in results) == 5
        refused = next(result for result in results if not result.success)
        assert (refused.status, refused.error_code) == (Status.DENIED, "rate_limited")
        assert "Rate limit exceeded" in (refused.error or "")
        assert (await gate.call("pay", {"amount": 1}, context=Context(principal="agent:other"))).success


async def test_a_budget_is_not_overspent(open_gate: Open, tmp_path: Path) -> None:
    text = "tools: {pay: {decision: allow, budgets: [{field: amount, limit: 1, window: 1d}]}}"
    async with open_with(open_gate, tmp_path, text) as gate:
        results = await asyncio.gather(*(gate.call("pay", {"amount": 0.1}) for _ in range(15)))
        assert sum(result.success for result in results) == 10
        assert (await gate.call("pay", {"amount": -5})).status is Status.DENIED


def test_a_rate_holds_across_processes(tmp_path: Path) -> None:
    write(tmp_path, "tools: {pay: {decision: allow, rates: [{limit: 7, window: 1h}]}}")
    script = tmp_path / "caller.py"
    script.write_text(
        "import toolgate\n"
        "@toolgate.tool\n"
        "def pay(amount: float) -> float:\n"
        "    return amount\n"
        f"with toolgate.open('sqlite:///{tmp_path}/shared.db', tools=[pay], policy='{tmp_path}') as gate:\n"
        "    print(sum(gate.sync.call('pay', {'amount': 1}).success for _ in range(6)))\n"
    )
    toolgate.open(f"sqlite:///{tmp_path}/shared.db").close()
    started = [subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True) for _ in range(3)]
    said = [process.communicate(timeout=PATIENCE_S)[0] for process in started]
    assert sum(int(text) for text in said) == 7


async def test_an_undo_answers_to_the_rules_about_what_it_undoes(open_gate: Open, tmp_path: Path) -> None:
    taken_back: list[str] = []

    async def put(given: toolgate.ToolInput) -> toolgate.ToolOutput:
        return toolgate.ToolOutput.ok(None, undo_metadata={"path": given.payload["path"]})

    async def take(metadata: Any) -> None:
        taken_back.append(metadata.undo_data["path"])

    tool = toolgate.ToolDefinition(name="put", handler=put, undoable=True, undo_handler=take)
    text = "tools: {put: {decision: allow, allowed_paths: ['**'], rates: [{limit: 1, window: 1h}], undo: {ttl: 1h}}}"
    async with open_gate(tools=[tool], policy=load_policy(write(tmp_path, text), workspace=tmp_path)) as gate:
        done = await gate.call("put", {"path": "a"})
        stricter = load_policy(write(tmp_path, "tools: {put: {forbidden_paths: [a]}}"), workspace=tmp_path)
        looser = gate.policy
        await gate.set_policy(stricter, by="ann")
        assert (await gate.undo(done.call_id)).status is Status.DENIED
        await gate.set_policy(looser, by="ann")
        assert (await gate.undo(done.call_id)).success
        assert taken_back == ["a"]


async def test_what_is_denied_is_not_prepared(open_gate: Open, tmp_path: Path) -> None:
    prepared: list[Any] = []

    async def prepare(given: toolgate.ToolInput) -> Any:
        prepared.append(given.payload)
        raise toolgate.errors.ToolDeniedError("the guard refuses")

    async def put(_given: toolgate.ToolInput) -> toolgate.ToolOutput:
        raise AssertionError("never run")

    tool = toolgate.ToolDefinition(name="put", handler=put, prepare=prepare)
    text = "tools: {put: {arguments: [{field: x, above: 1, then: deny}]}}"
    async with open_gate(tools=[tool], policy=load_policy(write(tmp_path, text))) as gate:
        assert (await gate.call("put", {"x": 2})).status is Status.DENIED
        assert prepared == []
        refused = await gate.call("put", {"x": 1})
        assert (refused.status, refused.error) == (Status.DENIED, "the guard refuses")


async def test_a_changed_file_is_followed_and_a_wrong_one_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(policies, "LOOK_AFTER_S", 0.0)
    path = write(tmp_path, "tools: {pay: {decision: allow}}")
    async with toolgate.open("memory://", tools=[pay], policy=path, workspace=tmp_path) as gate:
        first = gate.policy.revision
        assert (await gate.call("pay", {"amount": 1})).success
        write(tmp_path, "tools: {pay: {decision: nope}}")
        assert (await gate.call("pay", {"amount": 1})).success
        assert gate.policy.revision == first
        write(tmp_path, "tools: {pay: {decision: deny}}")
        assert (await gate.call("pay", {"amount": 1})).status is Status.DENIED
        events = await gate.events(project="_system")
        assert names(events) == ["policy.refused", "policy.changed"]
        assert events[0].data["kept"] == first
        assert "did you mean" not in events[0].data["problems"]
        assert (events[1].data["from"], events[1].data["by"]) == (first, "policy:files")
        monkeypatch.setattr(policies, "LOOK_AFTER_S", 3600.0)
        write(tmp_path, "tools: {pay: {decision: allow}}")
        assert (await gate.call("pay", {"amount": 1})).status is Status.DENIED
        assert (await gate.host.reload_policy(by="ann")).revision == first
        assert (await gate.host.reload_policy(by="ann")).revision == first  # nothing changed, nothing told
        write(tmp_path, "tools: 5")
        with pytest.raises(PolicyError):
            await gate.host.reload_policy(by="ann")
        assert len(await gate.events(project="_system")) == 4


async def test_an_approved_call_meets_the_changed_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policies, "LOOK_AFTER_S", 0.0)
    path = write(tmp_path, "tools: {pay: {decision: ask}}")
    async with toolgate.open("memory://", tools=[pay], policy=path) as gate:
        approval = await park(gate, "pay", {"amount": 5})
        write(tmp_path, "tools: {pay: {decision: deny}}")
        await gate.decide(approval.id, "approve", by="ann")
        assert (await gate.wait(approval.call_id)).status is Status.DENIED


async def test_an_undo_meets_the_changed_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policies, "LOOK_AFTER_S", 0.0)
    taken_back: list[Any] = []

    async def put(_given: toolgate.ToolInput) -> toolgate.ToolOutput:
        return toolgate.ToolOutput.ok(None, undo_metadata={"path": "a"})

    async def take(metadata: Any) -> None:
        taken_back.append(metadata)

    tool = toolgate.ToolDefinition(name="put", handler=put, undoable=True, undo_handler=take)
    path = write(tmp_path, "tools: {put: {decision: allow}}")
    async with toolgate.open("memory://", tools=[tool], policy=path) as gate:
        done = await gate.call("put", {})
        write(tmp_path, "tools: {put: {decision: deny}}")
        assert (await gate.undo(done.call_id)).status is Status.DENIED
        assert taken_back == []


async def test_a_gate_is_not_opened_without_its_policy(tmp_path: Path) -> None:
    with pytest.raises(PolicyError):
        toolgate.open("memory://", policy=tmp_path)
    with pytest.raises(PolicyError):
        toolgate.open("memory://", policy=str(write(tmp_path, "nope: 1")))


def test_a_policy_that_came_from_no_file_is_not_reloaded() -> None:
    with toolgate.open("memory://", policy=Policy()) as gate, pytest.raises(UsageError, match="set_policy"):
        gate.sync.host.reload_policy(by="ann")


async def test_a_gate_may_be_built_from_a_source(tmp_path: Path) -> None:
    from toolgate.adapters.memory.bus import MemoryBus
    from toolgate.adapters.memory.store import MemoryStore
    from toolgate.adapters.runners.inline import InlineRunner
    from toolgate.policy import PolicySource

    source = PolicySource(write(tmp_path, "default: deny"))
    gate = Gate(store=MemoryStore(), bus=MemoryBus(), runners={"inline": InlineRunner()}, policy_source=source)
    async with gate:
        assert gate.policy.default == "deny"


def _large(limit: int) -> str:
    """A policy that takes a while to read, whose tool `pay` may be called up to a limit."""
    tools = "".join(
        f"  tool_{number}:\n"
        f"    arguments:\n"
        f"      - {{field: amount, at_most: {number + 1}, then: allow}}\n"
        f"      - {{field: note, matches: '^note number {number} of many', then: ask}}\n"
        for number in range(400)
    )
    return f"default: deny\ntools:\n  pay: {{arguments: [{{field: amount, at_most: {limit}, then: allow}}]}}\n{tools}"


async def test_a_large_policy_does_not_hold_the_loop(tmp_path: Path) -> None:
    file = tmp_path / "toolgate.yaml"
    file.write_text("default: deny\ntools:\n  pay: {arguments: [{field: amount, at_most: 1, then: allow}]}\n")
    async with toolgate.open(tools=[pay], policy=file) as gate:
        file.write_text(_large(50))
        async with Turns() as turns:
            read = await gate.host.reload_policy(by="ann")
        assert turns.were_given
        assert read.revision == gate.policy.revision
        assert (await gate.call("pay", {"amount": 50})).success


async def test_calls_made_while_a_changed_policy_is_read_wait_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "toolgate.yaml"
    file.write_text(_large(50))
    async with toolgate.open(tools=[pay], policy=file) as gate:
        monkeypatch.setattr(policies, "LOOK_AFTER_S", 0.0)
        file.write_text(_large(1))
        first = asyncio.create_task(gate.call("pay", {"amount": 50}))
        await asyncio.sleep(0)
        first.cancel()  # who saw the change may go; it is followed all the same
        results = await asyncio.gather(*(gate.call("pay", {"amount": 50}) for _ in range(5)))
        assert {result.status for result in results} == {Status.DENIED}
        changed = [event.type for event in await gate.events(project="_system")]
        assert changed.count("policy.changed") == 1
