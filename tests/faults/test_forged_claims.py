"""Who can write to the database, but has no key, cannot have a call run that a person must be asked about."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import toolgate
from toolgate import ApprovalTerms, Gate, Policy, Principal, Remember, ToolDefinition, ToolOutput
from toolgate.adapters.runners.client import ClientRunner
from toolgate.errors import ConflictError, DecisionConflictError
from toolgate.kernel.approval import Approval
from toolgate.kernel.call import Call, Status
from toolgate.kernel.change import Change
from toolgate.kernel.record import evolve
from toolgate.pipeline import evidence
from toolgate.ports.store import GrantQuery
from toolgate.testing.patience import until

RAN: list[Any] = []


@pytest.fixture(autouse=True)
def nothing_ran() -> None:
    RAN.clear()


async def pay(given: toolgate.ToolInput) -> ToolOutput:
    RAN.append(given.payload)
    return ToolOutput.ok()


def tool(**options: Any) -> ToolDefinition:
    return ToolDefinition("pay", {}, pay, **{"requires_approval": True, **options})


def open_gate(database: Path, **options: Any) -> Gate:
    """A gate with client runners and workers, as a server has them."""
    options = {"tools": [tool()], "runners": {"client": ClientRunner()}, "workers": True, **options}
    return toolgate.open(f"sqlite:///{database}", **options)


async def write(gate: Gate, call_id: str, fields: Mapping[str, Any], asked: Mapping[str, Any] | None = None) -> None:
    """What somebody does who can write to the database, and has no key."""
    call = await gate.calls.get(call_id)
    approvals: tuple[Approval, ...] = ()
    if asked is not None:
        approvals = (evolve(await gate.approvals.get(str(call.approval_id)), **asked),)
    altered: Call = evolve(call.stay(), **fields)
    change = Change(project=call.project, at=call.created_at, call=altered, expect=call.version, approvals=approvals)
    writing = gate._driver.store.commit(change)
    if writing is not None:
        await writing


async def claimed_by_nobody(database: Path, options: dict[str, Any], **fields: Any) -> str:
    """Ask, and write the call as if somebody who died since had claimed it."""
    async with open_gate(database, **options) as gate:
        parked = await gate.call("pay", {"sum": 1}, wait=False)
        assert parked.status is Status.AWAITING_APPROVAL
        claim = {"status": Status.EXECUTING, "owner": "dead", "attempt": 1, "approved_by": "ann", "level": "full"}
        await write(gate, parked.call_id, claim | fields)
    return parked.call_id


async def claimed(gate: Gate, call_id: str) -> None:
    """Wait until a call that was approved is offered to whoever runs it."""

    async def is_claimed() -> bool:
        return (await gate.get(call_id)).status is Status.EXECUTING

    await until(is_claimed)


FORGERIES: dict[str, dict[str, Any]] = {
    "unanswered": {},
    "no approval": {"approval_id": None},
    "a grant there is not": {"approval_id": None, "approved_by": "grant:g1"},
    "an approval there is not": {"approval_id": "a1"},
}


@pytest.mark.parametrize("forged", FORGERIES.values(), ids=FORGERIES)
@pytest.mark.parametrize("kind", [{"effects": "read"}, {"idempotent": True}], ids=["read", "idempotent"])
async def test_recovery_tries_nothing_again_that_nobody_allowed(
    database: Path, kind: dict[str, Any], forged: dict[str, Any]
) -> None:
    options = {"tools": [tool(**kind)]}
    call_id = await claimed_by_nobody(database, options, **forged)
    async with open_gate(database, **options) as gate:

        async def is_over() -> bool:
            return (await gate.get(call_id)).is_final

        await until(is_over)
        assert "denied now" in str((await gate.get(call_id)).error)
    assert RAN == []


@pytest.mark.parametrize("forged", FORGERIES.values(), ids=FORGERIES)
async def test_no_runner_is_given_what_nobody_allowed(database: Path, forged: dict[str, Any]) -> None:
    options = {"tools": [tool(placement="client")]}
    call_id = await claimed_by_nobody(database, options, owner=None, fence="f", **forged)
    async with open_gate(database, **options) as gate:
        with pytest.raises(ConflictError):
            await gate.remote.dispatch(call_id, to="runner:eve")
        assert (await gate.get(call_id)).status in (Status.FAILED, Status.UNKNOWN)


@pytest.mark.parametrize("forged", FORGERIES.values(), ids=FORGERIES)
async def test_no_worker_runs_what_nobody_allowed(database: Path, forged: dict[str, Any]) -> None:
    options = {"tools": [tool(placement="worker")]}
    call_id = await claimed_by_nobody(database, options, fence="f", **forged)
    async with open_gate(database, **options) as gate:
        with pytest.raises(ConflictError):
            await gate.remote.work(call_id, by="worker:eve")
    assert RAN == []


async def test_what_a_person_or_a_grant_allowed_runs_at_a_runner(database: Path) -> None:
    async with open_gate(database, tools=[tool(placement="client")]) as gate:
        asked = await gate.call("pay", {"sum": 1}, wait=False)
        await gate.decide(str(asked.approval_id), "approve", by="ann", remember=Remember())
        await claimed(gate, asked.call_id)
        granted = await gate.call("pay", {"sum": 1}, wait=False)
        for made in (asked, granted):
            assert (await gate.remote.dispatch(made.call_id, to="runner:1")).arguments == b'{"sum":1}'


@pytest.mark.parametrize(
    "forged",
    [{"max_uses": 999}, {"revoked_at": None, "expires_at": datetime(2999, 1, 1, tzinfo=UTC)}, {"mark": None}],
    ids=lambda forged: "+".join(forged),
)
async def test_a_runner_is_not_given_what_a_changed_grant_allows(database: Path, forged: dict[str, Any]) -> None:
    async with open_gate(database, tools=[tool(placement="client")]) as gate:
        asked = await gate.call("pay", {"sum": 1}, wait=False)
        await gate.decide(str(asked.approval_id), "approve", by="ann", remember=Remember())
        granted = await gate.call("pay", {"sum": 1}, wait=False)
        (grant,) = await gate.grants.list(GrantQuery())
        assert [use.call_id for use in grant.used] == [granted.call_id]
        altered = evolve(grant, **forged)
        change = Change(project=grant.project, at=grant.created_at, grant=altered, grant_expect=grant.version)
        writing = gate._driver.store.commit(change)
        if writing is not None:
            await writing
        with pytest.raises(ConflictError, match="denied now"):
            await gate.remote.dispatch(granted.call_id, to="runner:1")


async def test_a_runner_is_not_given_what_names_a_grant_that_it_did_not_use(database: Path) -> None:
    async with open_gate(database, tools=[tool(placement="client")]) as gate:
        asked = await gate.call("pay", {"sum": 1}, wait=False)
        await gate.decide(str(asked.approval_id), "approve", by="ann", remember=Remember())
        (grant,) = await gate.grants.list(GrantQuery())
        other = await gate.call("pay", {"sum": 2}, wait=False)
        claim = {"status": Status.EXECUTING, "attempt": 1, "approved_by": grant.name, "approval_id": None, "fence": "f"}
        await write(gate, other.call_id, claim)
        with pytest.raises(ConflictError, match="denied now"):
            await gate.remote.dispatch(other.call_id, to="runner:1")


async def test_a_runner_is_not_given_what_somebody_allowed_who_may_not_any_more(database: Path) -> None:
    deciders = {"ann"}

    async def who_decides(_project: str, name: str) -> Principal | None:
        return Principal(name=name) if name in deciders else None

    async with open_gate(database, tools=[tool(placement="client")]) as gate:
        gate.host.check_givers(who_decides)
        asked = await gate.call("pay", {"sum": 1}, wait=False)
        await gate.decide(str(asked.approval_id), "approve", by="ann", remember=Remember())
        calls = [await gate.call("pay", {"sum": 1}, wait=False) for _ in range(2)]
        assert (await gate.remote.dispatch(calls[0].call_id, to="runner:1")).status is Status.EXECUTING
        deciders.clear()
        with pytest.raises(ConflictError, match="denied now"):
            await gate.remote.dispatch(calls[1].call_id, to="runner:1")


async def test_a_runner_is_not_given_what_needs_more_people_by_now(database: Path) -> None:
    async with open_gate(database, tools=[tool(placement="client")]) as gate:
        asked = await gate.call("pay", {"sum": 1}, wait=False)
        await gate.decide(str(asked.approval_id), "approve", by="ann")
        await claimed(gate, asked.call_id)
        await gate.set_policy(Policy(terms=ApprovalTerms(quorum=2), revision="two"), by="ann")
        with pytest.raises(ConflictError, match="denied now"):
            await gate.remote.dispatch(asked.call_id, to="runner:1")


@pytest.mark.parametrize("page", [2, evidence.PAGE])
@pytest.mark.parametrize("back", [Status.APPROVED, Status.EXECUTING])
async def test_a_call_that_ran_is_not_run_again_because_its_row_says_so(
    database: Path, back: Status, page: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evidence, "PAGE", page)
    options = {"tools": [tool(idempotent=True)]}
    async with open_gate(database, **options) as gate:
        asked = await gate.call("pay", {"sum": 1}, wait=False)
        await gate.decide(str(asked.approval_id), "approve", by="ann")
        assert (await gate.wait(asked.call_id)).success
        await write(gate, asked.call_id, {"status": back, "owner": "dead", "completed_at": None})
    async with open_gate(database, **options) as gate:

        async def is_over() -> bool:
            return (await gate.get(asked.call_id)).is_final

        await until(is_over)
        again = await gate.get(asked.call_id)
        code = "already_started" if back is Status.APPROVED else "unknown"
        assert (again.error_code, RAN) == (code, [{"sum": 1}])


async def test_what_a_runner_ran_is_not_given_out_again_because_its_row_says_so(database: Path) -> None:
    async with open_gate(database, tools=[tool(placement="client")]) as gate:
        asked = await gate.call("pay", {"sum": 1}, wait=False)
        await gate.decide(str(asked.approval_id), "approve", by="ann")
        await claimed(gate, asked.call_id)
        held = await gate.remote.dispatch(asked.call_id, to="runner:1")
        assert (await gate.complete(asked.call_id, ToolOutput.ok(), fence=held.fence)).success
        await write(gate, asked.call_id, {"status": Status.EXECUTING, "runner": None, "completed_at": None})
        with pytest.raises(ConflictError, match="denied now"):
            await gate.remote.dispatch(asked.call_id, to="runner:1")


async def test_what_a_worker_ran_is_not_run_again_because_its_row_says_so(database: Path) -> None:
    async with open_gate(database, tools=[tool(placement="worker")]) as gate:
        asked = await gate.call("pay", {"sum": 1}, wait=False)
        await gate.decide(str(asked.approval_id), "approve", by="ann")
        await claimed(gate, asked.call_id)
        assert (await gate.remote.work(asked.call_id, by="worker:1")).success
        await write(gate, asked.call_id, {"status": Status.EXECUTING, "runner": None, "completed_at": None})
        with pytest.raises(ConflictError, match="denied now"):
            await gate.remote.work(asked.call_id, by="worker:1")
        assert "its events tell that it has ended" in str((await gate.get(asked.call_id)).error)
    assert RAN == [{"sum": 1}]


async def test_terms_that_were_lowered_for_a_while_do_not_count(database: Path) -> None:
    terms = ApprovalTerms(approvers=(frozenset({"finance"}),), separation=True)
    options = {"policy": Policy(terms=terms, revision="terms")}
    async with open_gate(database, **options) as gate:
        parked = await gate.call("pay", {"sum": 1}, wait=False)
        await write(gate, parked.call_id, {}, {"terms": ApprovalTerms()})
    async with toolgate.open(f"sqlite:///{database}") as elsewhere:
        with pytest.raises(DecisionConflictError, match="does not carry the mark"):
            await elsewhere.decide(str(parked.approval_id), "approve", by="intern")
    assert RAN == []
