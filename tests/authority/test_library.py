"""The library: whoever the host says acts, every verb that names somebody asks the authority about them.

In a process there are no accounts: who asks, cancels or changes the mode is the host's word (`HOSTS`).
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from itertools import count, product
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import toolgate
from toolgate.adapters.runners.client import ClientRunner
from toolgate.authority import _TERMS, RIGHTS, Verb, Whose
from toolgate.errors import ConflictError, NotAllowedError, NotFoundError
from toolgate.gate import Gate
from toolgate.gate.approvals import Approvals
from toolgate.gate.delegations import Delegations
from toolgate.gate.grants import Grants
from toolgate.gate.host import Host
from toolgate.gate.remote import Remote
from toolgate.kernel.call import Call, Status
from toolgate.kernel.context import Context, Principal, PrincipalKind
from toolgate.kernel.grant import Remember
from toolgate.kernel.output import ToolOutput
from toolgate.ports.directory import ABILITIES
from toolgate.ports.store import GrantQuery

HOSTS = {
    *(Verb.READ, Verb.STREAM, Verb.ASK, Verb.REPEAT, Verb.CANCEL, Verb.UNDO, Verb.UNDO_RUN, Verb.FORCE, Verb.TALK),
    *(Verb.OVERSEE, Verb.TRY_POLICY, Verb.DISPATCH, Verb.PULL, Verb.SET_MODE, Verb.CHANGE_POLICY, Verb.SIGN_IN),
    Verb.MAKE_TOKENS,
}
"""What a program does with its own gate; a server asks the table before it does."""
OF_HOSTS = {"set_mode", "set_policy", "reload_policy", "work"}
"""The methods of those that say who acts, for the record."""
LEAD, DEMOTED = frozenset({"lead"}), frozenset[str]()
HERE, AWAY = "demo", "elsewhere"
MAKERS = ("other", "own", "for them")
FREE = (Verb.REVOKE, Verb.SETTLE, Verb.DELEGATE)
"""What is not about somebody's question, and takes a person alone."""
BESIDE = {Verb.END_DELEGATION, Verb.ACCEPT_POLICY}
"""Whose delegation it is decides: tested with delegations; and what takes a person alone, below."""
AMOUNTS = count(2)
NOW = Remember(uses=1, seconds=60)


class Thing(NamedTuple):
    """A call by somebody, its question, and the grant that came of another."""

    call: Call
    approval: str
    grant: str


Act = Callable[[Gate, Thing, Principal, str], Awaitable[Any]]
ACTS: dict[Verb, Act] = {
    Verb.DECIDE: lambda gate, it, by, project: gate.decide(it.approval, "approve", by=by, reason="ok", project=project),
    Verb.EDIT: lambda gate, it, by, project: gate.approvals.edit(
        it.approval, {"amount": 2}, by=by, reason="ok", project=project
    ),
    Verb.RESPOND: lambda gate, it, by, project: gate.approvals.respond(it.approval, "no", by=by, project=project),
    Verb.EXTEND: lambda gate, it, by, project: gate.approvals.extend(it.approval, 600, by=by, project=project),
    Verb.ESCALATE: lambda gate, it, by, project: gate.approvals.escalate(it.approval, "boss", by=by, project=project),
    Verb.COMMENT: lambda gate, it, by, project: gate.approvals.comment(it.approval, "hm", by=by, project=project),
    Verb.REMEMBER: lambda gate, it, by, project: gate.decide(
        it.approval, "approve", by=by, reason="ok", project=project, remember=NOW
    ),
    Verb.REVOKE: lambda gate, it, by, project: gate.grants.revoke(it.grant, by=by, project=project),
    Verb.DELEGATE: lambda gate, it, by, project: gate.delegations.give("lea", by=by, seconds=60, project=project),
    Verb.SETTLE: lambda gate, it, by, project: gate.settle(
        it.call.id, happened=True, by=by, reason="looked", project=project
    ),
    Verb.JOIN: lambda gate, it, by, project: gate.call(
        "pay", {"amount": 1}, call_id=it.call.id, wait=False, context=_context(by.name, project, it.call.context.user)
    ),
    Verb.CLAIM: lambda gate, it, by, project: gate.remote.claim(it.call.id, by=by, fence="f" * 32, project=project),
    Verb.REPORT: lambda gate, it, by, project: gate.complete(it.call.id, ToolOutput.ok(1), by=by, project=project),
    Verb.PROGRESS: lambda gate, it, by, project: gate.remote.progress(it.call.id, 0.5, by=by, project=project),
}
TOOLS = {Verb.CLAIM: "here", Verb.REPORT: "far", Verb.PROGRESS: "far", Verb.SETTLE: "sent"}


def _context(principal: str, project: str, user: str | None = None) -> Context:
    return Context(principal=principal, user=user, project=project)


def cases() -> list[tuple[Verb, PrincipalKind, str, frozenset[str], str]]:
    """Each verb, by each kind, about whose call, with the role the terms ask for and without it, in which project."""
    return list(product(ACTS, PrincipalKind, MAKERS, (LEAD, DEMOTED), (HERE, AWAY)))


def refusal(verb: Verb, kind: PrincipalKind, whose: str, roles: frozenset[str], project: str) -> type[Exception] | None:
    """How the table refuses it; None: it is done."""
    right = RIGHTS[verb]
    if verb in FREE and right.ability not in ABILITIES[kind]:
        return NotAllowedError  # whatever it is about
    if verb is Verb.DELEGATE:
        return None  # one's own vote
    if project == AWAY:
        return None if verb is Verb.JOIN else NotFoundError  # an id of another project is no id here
    if right.whose in (Whose.OWN, Whose.GIVEN):
        return None if whose == "own" else ConflictError if verb is Verb.JOIN else NotAllowedError
    is_able = right.ability in ABILITIES[kind]
    is_asker = whose == "own" and verb not in FREE
    is_fit = _TERMS not in right.condition or (roles == LEAD and whose == "other")
    return None if is_able and not is_asker and is_fit else NotAllowedError


@pytest.fixture
async def gate() -> AsyncIterator[Gate]:
    @toolgate.tool(risk_level="medium")
    async def pay(amount: int) -> int:
        """Pay."""
        return amount

    terms = toolgate.ApprovalTerms(approvers=(LEAD,), separation=True, escalate_to=frozenset({"boss"}))
    here = toolgate.ToolDefinition("here", {}, placement="caller", effects="read")
    far = toolgate.ToolDefinition("far", {}, lambda _given: ToolOutput.ok(), placement="client", effects="read")
    sent = toolgate.ToolDefinition(
        "sent", {}, lambda _given: ToolOutput.ok(), placement="client", effects="irreversible", risk_level="low"
    )
    policy, runners = toolgate.Policy(terms=terms, revision="by leads"), {"client": ClientRunner()}
    async with toolgate.open("memory://", tools=[pay, here, far, sent], policy=policy, runners=runners) as gate:
        yield gate


async def thing_of(gate: Gate, verb: Verb, by: Principal, whose: str) -> Thing:
    """Make what the verb is about, by who acts, for them, or by somebody else."""
    principal = by.name if whose == "own" else "agent:else"
    context = _context(principal, HERE, by.name if whose == "for them" else None)
    tool = TOOLS.get(verb, "pay")
    # What an earlier grant does not cover, and no earlier call of unknown outcome was.
    amount = next(AMOUNTS) if verb in (Verb.REVOKE, Verb.SETTLE) else 1
    made = await gate.call(tool, {"amount": amount}, context=context, wait=False)
    grant = ""
    if verb is Verb.REVOKE:
        assert made.approval_id is not None
        lead = Principal(name="lea", roles=LEAD)
        await gate.decide(made.approval_id, "approve", by=lead, reason="ok", remember=NOW, project=HERE)
        grant = next(one.id for one in await gate.grants.list(GrantQuery(project=HERE)) if one.call_id == made.call_id)
    if verb is Verb.SETTLE:
        await gate.remote.dispatch(made.call_id, to="runner:1", project=HERE)
        await gate.remote.doubt(made.call_id, "it broke", by="runner:1", project=HERE)
    if tool == "far" and whose == "own":
        await gate.remote.dispatch(made.call_id, to=by, project=HERE)
    call = await gate.calls.get(made.call_id, project=HERE)
    assert verb is not Verb.SETTLE or call.status is Status.UNKNOWN
    return Thing(call, made.approval_id or "", grant)


@pytest.mark.parametrize("verb", ACTS, ids=lambda verb: verb.name)
async def test_the_library_lets_through_whom_the_table_lets_through(gate: Gate, verb: Verb) -> None:
    wrong = []
    for _, kind, whose, roles, project in (case for case in cases() if case[0] is verb):
        by = Principal(name=f"{kind}-x", kind=kind, roles=roles)
        thing = await thing_of(gate, verb, by, whose)
        expected = refusal(verb, kind, whose, roles, project)
        try:
            await ACTS[verb](gate, thing, by, project)
            given: type[Exception] | None = None
        except (NotAllowedError, NotFoundError, ConflictError) as error:
            given = NotAllowedError if isinstance(error, NotAllowedError) else type(error)
        if given is not expected and not (given and expected and issubclass(given, expected)):
            wrong.append((kind, whose, sorted(roles), project, given, expected))
    assert wrong == []


def test_every_verb_is_asked_about_or_is_the_hosts() -> None:
    assert set(ACTS) | HOSTS | BESIDE == set(Verb)
    assert not set(ACTS) & HOSTS


@pytest.mark.parametrize("kind", PrincipalKind)
async def test_what_a_run_may_have_written_counts_by_a_person_s_word(kind: PrincipalKind, tmp_path: Path) -> None:
    (tmp_path / "toolgate.yaml").write_text("version: 1")
    async with toolgate.open("memory://", policy=tmp_path) as gate:
        accepting = gate.host.accept_policy(gate.policy.revision, by=Principal(name="x", kind=kind))
        if kind in (PrincipalKind.PERSON, PrincipalKind.ADMIN):
            assert (await accepting).revision == gate.policy.revision
        else:
            with pytest.raises(NotAllowedError, match="only people"):
                await accepting


@pytest.mark.parametrize("whose", ["other", "own"])
@pytest.mark.parametrize("kind", PrincipalKind)
async def test_a_network_is_given_by_who_may_edit(kind: PrincipalKind, whose: str) -> None:
    schema = {"command": {"type": "string", "format": "shell-line"}, "network": {"type": "boolean"}}
    line = toolgate.ToolDefinition(
        "line", {"properties": schema}, lambda given: ToolOutput.ok(dict(given.payload)), requires_approval=True
    )
    by = Principal(name="x", kind=kind)
    async with toolgate.open("memory://", tools=[line]) as gate:
        context = _context(by.name if whose == "own" else "agent:else", HERE)
        asked = await gate.call("line", {"command": "make"}, context=context, wait=False)
        giving = gate.approvals.approve_with_network(str(asked.approval_id), by=by, reason="ok", project=HERE)
        if refusal(Verb.EDIT, kind, whose, LEAD, HERE) is None:
            await giving
            ended = await gate.wait(asked.call_id, project=HERE)
            assert ended.data == {"command": "make", "network": True}
        else:
            with pytest.raises(NotAllowedError):
                await giving


def test_every_method_that_names_somebody_who_acts_is_tried() -> None:
    named = {
        name
        for part in (Gate, Approvals, Delegations, Grants, Host, Remote)
        for name, method in inspect.getmembers(part, inspect.isfunction)
        if not name.startswith("_") and "by" in inspect.signature(method).parameters
    }
    tried = {str(verb) for verb in ACTS} - {"join", "remember", "report", "report progress", "delegate"} | {
        "complete",
        "progress",
    }
    looks = {"check", "preview", "votes_held"}  # ask what an answer would be refused with, and decide nothing
    assert named == tried | looks | {"doubt", "give", "end", "accept_policy", "approve_with_network"} | OF_HOSTS
