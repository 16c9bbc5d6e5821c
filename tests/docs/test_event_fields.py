"""One run that makes every kind of event; each field it carries must be on the reference page."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from tests.docs.pages import missing_words, sections

import toolgate
from toolgate.adapters.runners.client import ClientRunner
from toolgate.adapters.sql.directory_rows import told_account, told_end, told_token
from toolgate.adapters.sql.upkeep import told_copied, told_imported, told_keys, told_pruned
from toolgate.errors import DeliveryError, PolicyError, PolicyHeldError
from toolgate.gate.programs import ProgramPins
from toolgate.kernel.approval import Approval
from toolgate.kernel.change import Change
from toolgate.kernel.context import SYSTEM_PROJECT, PrincipalKind
from toolgate.kernel.event import EVENTS, Event
from toolgate.kernel.grant import Remember
from toolgate.kernel.pin import PinBook, Program
from toolgate.kernel.terms import ApprovalTerms
from toolgate.kernel.undo import UndoMetadata
from toolgate.ports.directory import Account, Token, TokenUse
from toolgate.ports.store import CallQuery, GrantQuery
from toolgate.testing.clock import NOON
from toolgate.testing.patience import PATIENCE_S, until

PAGE = "docs/reference/events.md"


@toolgate.tool(effects="read")
async def count(to: int, progress: toolgate.ToolInput) -> int:
    await progress.progress(0.5, "half way", {"seen": to})
    return to


@toolgate.tool(risk_level="medium", undoable=True, undo_handler=lambda _undo: None)
async def change(value: int) -> toolgate.ToolOutput:
    return toolgate.ToolOutput.ok(value, artifacts=["a"])


pay = toolgate.ToolDefinition(
    "pay", {}, lambda _input: toolgate.ToolOutput.ok(), effects="irreversible", requires_approval=True
)
far = toolgate.ToolDefinition("far", {}, lambda _input: toolgate.ToolOutput.ok(), placement="client")


async def wait_for(gate: toolgate.Gate, name: str) -> None:
    async for event in gate.follow():
        if event.type == name:
            return


async def joined(gate: toolgate.Gate) -> None:
    calls = [gate.call("pay", {}, context=toolgate.Context(run_id="r2"), call_id=id, wait=False) for id in ("a", "b")]
    first, _again = [await call for call in calls]
    await gate.cancel(first.call_id)


async def several_people(gate: toolgate.Gate) -> None:
    (grant,) = await gate.grants.list(GrantQuery())
    await gate.grants.revoke(grant.id, by="ann", reason="enough")
    await gate.call("no_such_tool", context=toolgate.Context(run_id="r1"))
    await gate.undo_run("r1")
    await gate.set_policy(toolgate.Policy(terms=ApprovalTerms(quorum=2), revision="several"), by="ann")
    asked = await gate.call("change", {"value": 7}, wait=False)
    lent = await gate.delegations.give("dan", by="ann", seconds=60, reason="away")
    await gate.decide(str(asked.approval_id), "approve", by="dan", on_behalf_of="ann")
    await gate.delegations.end(lent.id, by="ann", reason="back")
    edited = await gate.approvals.edit(str(asked.approval_id), {"value": 8}, by="bob")
    await gate.approvals.respond(str(edited.approval_id), "not now", by="cid")


async def undeliverable(_approval: Approval) -> None:
    raise DeliveryError("nobody there", attempts=3)


async def make_every_event(gate: toolgate.Gate, release: threading.Event, policy: Path) -> None:
    await gate.call("count", {"to": 3})
    await gate.call("count", {"to": "x"})
    asked = await gate.call("change", {"value": 1}, wait=False)
    assert asked.approval_id is not None
    await gate.approvals.extend(asked.approval_id, 60, by="ann")
    await gate.approvals.comment(asked.approval_id, "hm", by="ann")
    await gate.approvals.escalate(asked.approval_id, by="ann")
    await gate.decide(asked.approval_id, "approve", by="ann", remember=Remember())
    done = await gate.wait(asked.call_id)
    await gate.call("change", {"value": 1})
    await gate.undo(done.call_id)
    await gate.undo(done.call_id)
    await gate.host.adopt(UndoMetadata("kept elsewhere", "change", {}))
    await gate.call("change", {"value": 2}, approval_timeout_s=1)
    await joined(gate)
    parked = await gate.call("change", {"value": 3}, wait=False)
    await gate.cancel(parked.call_id)
    elsewhere = await gate.call("far", wait=False)
    await gate.remote.dispatch(elsewhere.call_id, to="ann")
    await gate.complete(elsewhere.call_id, toolgate.ToolOutput.ok(), by="ann")
    unknown = await gate.call("stuck")
    release.set()
    await wait_for(gate, "tool.late_result")
    await gate.settle(unknown.call_id, happened=None, by="ann", reason="looked")
    await gate.settle(unknown.call_id, happened=True, by="ann", reason="looked")
    await several_people(gate)
    gate.host.note_sandbox({"backend": "none", "holds": True, "passed": [], "failed": [], "problem": None})
    await gate.set_policy(toolgate.Policy(revision="two"), by="ann")
    with suppress(PolicyError):
        await gate.host.reload_policy(by="ann")
    await keep_house(gate)
    await rewrite_policy(gate, policy)
    await pin_programs(gate)
    await gate.set_mode("LOCKDOWN", by="ann", reason="drill")
    await gate.call("count", {"to": 3})


async def rewrite_policy(gate: toolgate.Gate, policy: Path) -> None:
    """What runs tell the record that could write the policy."""
    policy.write_text("version: 1")
    trusted = await gate.host.reload_policy(by="ann")
    call = (await gate.calls.list(CallQuery()))[0]

    def run(*texts: str) -> None:
        with gate.host.policy_window(call, ("/",), ()):
            for text in texts:
                policy.write_text(text)

    await asyncio.to_thread(run)
    await asyncio.to_thread(run, "{version: 1, default: deny}")
    held = await reload_held(gate)
    await gate.host.accept_policy(held.revision, by="ann")
    await asyncio.to_thread(run, "version: 1")
    await reload_held(gate)
    policy.write_text("{version: 1, default: deny}")
    await gate.recover()
    assert gate.policy.revision == held.revision != trusted.revision


async def reload_held(gate: toolgate.Gate) -> PolicyHeldError:
    with pytest.raises(PolicyHeldError) as held:
        await gate.host.reload_policy(by="ann")
    return held.value


async def pin_programs(gate: toolgate.Gate) -> None:
    """What first uses of programs, and people, tell the record."""
    call = (await gate.calls.list(CallQuery()))[0]
    program = Program("/srv/shop/lint", "/srv/shop/lint", "aa", 1, NOON.isoformat())
    await asyncio.to_thread(gate.host.settle_programs, call, [program], None)
    pins = ProgramPins(gate._driver.store, PinBook(), now=lambda: NOON)
    await pins.forget([program.path], by="ann")


async def keep_house(gate: toolgate.Gate) -> None:
    """What directories and commands on a database tell the record."""
    ann = Account(name="ann", kind=PrincipalKind.PERSON)
    token = Token(id="t1", account="ann", digest=b"", created_at=NOON)
    session = replace(token, use=TokenUse.SESSION)
    drafts = (
        told_account(ann, by="me", adopted=True),
        told_token(token, by="me", adopted=True, revoked_at=None),
        told_token(session, by="ann"),
        told_end(token, by="me"),
        told_end(session, by="ann"),
        told_pruned(NOON, 1, 2, by="me"),
        told_copied("copy.db", by="me"),
        told_imported({}, by="me"),
        told_keys("new", ["old"], by="me"),
    )
    await gate._driver.commit(Change(project=SYSTEM_PROJECT, at=NOON, events=drafts))


async def told(gate: toolgate.Gate) -> list[Event]:
    return [*await gate.events(), *await gate.events(project=SYSTEM_PROJECT)]


async def has_told_all(gate: toolgate.Gate) -> bool:
    return {event.type for event in await told(gate)} == set(EVENTS)


@pytest.fixture
async def events(tmp_path: Path) -> AsyncIterator[list[Event]]:
    release = threading.Event()

    @toolgate.tool(timeout_seconds=0.5)
    def stuck() -> None:
        release.wait(PATIENCE_S)

    tools = [count, change, stuck, pay, far]
    policy = tmp_path / "toolgate.yaml"
    policy.write_text("version: 1\ntools: {change: {approval: {escalate: {after: 1h, to: [lead]}, timeout: 2h}}}\n")
    async with toolgate.open(
        "memory://", tools=tools, policy=policy, runners={"client": ClientRunner()}, approver=undeliverable
    ) as gate:
        policy.write_text("nonsense: 1")
        try:
            await asyncio.wait_for(make_every_event(gate, release, policy), PATIENCE_S)
        finally:
            release.set()
        with suppress(TimeoutError):  # some are told by the gate's own thread; the tests say which is missing
            await until(lambda: has_told_all(gate))
        yield await told(gate)


async def test_every_event_can_be_seen(events: list[Event]) -> None:
    assert {event.type for event in events} == set(EVENTS)


CONTENT = frozenset(
    "payload_summary output_summary response pattern difference message error error_message reason reasons factors "
    "comment problem problems progress data policy_texts".split()
)


async def test_what_was_given_returned_or_said_is_content_and_nothing_else_is(events: list[Event]) -> None:
    kept = {event.type: set(event._replace(content=None).data) for event in events}
    told = {event.type: set(event.data) for event in events}
    assert {name: fields & CONTENT for name, fields in kept.items() if fields & CONTENT} == {}
    assert {name: told[name] - fields - CONTENT for name, fields in kept.items() if told[name] - fields - CONTENT} == {}
    text = sections(PAGE, 2)["Event"]
    assert missing_words(CONTENT, text) == []


async def test_every_field_of_every_event_is_documented(events: list[Event]) -> None:
    common = sections(PAGE, 2)["Fields every event of a call carries"]
    said = sections(PAGE, 3)
    gaps = {event.type: missing_words(event.data, said[event.type] + common) for event in events}
    assert {name: gap for name, gap in gaps.items() if gap} == {}
