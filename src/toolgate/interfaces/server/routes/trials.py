"""Trying things out: what the policy says, what another one would have done, what a grant would have covered."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

from toolgate.authority import Verb
from toolgate.errors import PolicyError
from toolgate.gate import Gate
from toolgate.interfaces.server import searching
from toolgate.interfaces.server.operations import Ask, Operation
from toolgate.interfaces.server.routes.approvals import reply_of
from toolgate.kernel.call import Call
from toolgate.kernel.context import SYSTEM_PROJECT, Mode
from toolgate.kernel.event import Event
from toolgate.kernel.grant import Remember
from toolgate.kernel.policy import Policy, Rule
from toolgate.kernel.ruling import rules_over
from toolgate.kernel.text.masking.echo import CallMasker
from toolgate.kernel.tool import ToolDefinition
from toolgate.ports.store import CallQuery
from toolgate.wire.policy import (
    GrantPreviewAnswer,
    PolicyFile,
    PolicyProblemRecord,
    PolicySourceAnswer,
    SimulateAnswer,
    SimulateBody,
    ToolStance,
)
from toolgate.wire.schemas import RememberBody

_BASE = "/my/projects/{project_id}"
PIECE = 100
"""How many calls are replayed before others get their turn."""
CHANGES = 200
"""How many differences between two texts are told."""
MODE_CHANGES = 5000


async def source(ask: Ask) -> PolicySourceAnswer:
    from toolgate.policy.compile import FilePolicy

    gate = ask.services.gate
    policy = gate.host.policy(ask.project)
    documents = policy.documents if isinstance(policy, FilePolicy) else ()
    files = [(one, gate.host.masker.text(one.text)) for one in documents]
    return PolicySourceAnswer(
        revision=policy.revision,
        default=policy.default.value,
        files=[
            PolicyFile(name=one.name, layer=one.layer, text=text, is_masked=text != one.text) for one, text in files
        ],
        tools=await asyncio.to_thread(lambda: [_stance(policy, tool) for tool in gate.registry]),
    )


def _stance(policy: Policy, tool: ToolDefinition) -> ToolStance:
    from toolgate.policy.diff import word_in

    stance = policy.stance(tool)
    return ToolStance(
        tool_name=tool.name,
        risk_level=tool.risk.value.upper(),
        modes={mode.value: word_in(policy, tool, mode).value for mode in Mode},
        rules=[_rule(rule) for rule in rules_over(tool, stance)],
        rates=[
            {name: getattr(meter, name, None) for name in ("section", "limit", "window_s", "per")}
            for meter in stance.meters
        ],
    )


def _rule(rule: Rule) -> dict[str, str]:
    terms = getattr(rule, "terms", None)
    told = {"rule": rule.name, "where": str(getattr(rule, "site", "the tool's definition"))}
    return told if terms is None else {**told, "asks": terms.who()}


async def simulate(ask: Ask) -> SimulateAnswer:
    """Replay a bounded number of recorded calls under other texts; nothing is asked, reserved or run."""
    from toolgate.policy.compile import FilePolicy
    from toolgate.policy.diff import diff
    from toolgate.policy.loader import revise_policy

    body: SimulateBody = ask.body
    gate = ask.services.gate
    followed = gate.host.policy(ask.project)
    try:
        revised = await asyncio.to_thread(revise_policy, followed, body.files)
    except PolicyError as error:
        return SimulateAnswer(success=False, problems=_problems(gate, error))
    # Not the policy in force itself: asked about tools that only stand in, it would remember them.
    current = revise_policy(followed, {}) if isinstance(followed, FilePolicy) else followed
    try:
        answer = await _replay(ask, revised, current if body.against == "current" else None)
        if body.after is None and isinstance(current, FilePolicy):
            told: Any = gate.host.masker((await asyncio.to_thread(diff, current, revised)).as_json())
            changes, shifts = told["differences"][:CHANGES], told["shifts"][:CHANGES]
            answer = answer.model_copy(update={"changes": changes, "shifts": shifts})
    finally:
        for policy in (revised, current):
            if isinstance(policy, FilePolicy):
                policy.close()
    return answer


def _problems(gate: Gate, error: PolicyError) -> list[PolicyProblemRecord]:
    mask = gate.host.masker.text
    return [PolicyProblemRecord(**one._asdict() | {"message": mask(one.message)}) for one in error.problems[:100]]


async def _replay(ask: Ask, revised: Policy, old: Policy | None) -> SimulateAnswer:
    from toolgate.policy.simulate import Simulation, Timeline

    gate, project = ask.services.gate, ask.project
    body: SimulateBody = ask.body

    def hide(call: Call, text: str) -> str:
        return CallMasker(gate.host.masker, call).text(text) if call.hides else gate.host.masker.text(text)

    simulation = Simulation(
        revised,
        Timeline(await _mode_changes(gate)),
        tools={tool.name: tool for tool in gate.registry},
        old=old,
        mask=hide,
    )
    query = CallQuery(
        project=project,
        since=ask.services.now() - timedelta(seconds=body.since_seconds),
        after=None if body.after is None else await gate.calls.get(body.after, project=project),
        newest_first=True,
        limit=body.limit,
    )
    found = await searching.find(gate, query)
    for start in range(0, len(found.calls), PIECE):
        await asyncio.to_thread(simulation.replay, found.calls[start : start + PIECE])
    told = simulation.as_json()
    return SimulateAnswer(
        revision=revised.revision,
        calls=told["calls"],
        changed=told["changed"],
        groups=told["groups"],
        skipped=told["skipped"],
        next=found.next,
        reached=found.reached,
    )


async def _mode_changes(gate: Gate) -> list[Event]:
    """Every change of the mode, so that calls are judged in the mode they were made in."""
    found: list[Event] = []
    after = 0
    while page := await gate.events(project=SYSTEM_PROJECT, after=after, limit=MODE_CHANGES):
        found += [event for event in page if event.type == "mode.changed"]
        after = page[-1].seq
        await asyncio.sleep(0)
    return found


async def preview_grant(ask: Ask) -> GrantPreviewAnswer:
    body: RememberBody = ask.body
    reply = reply_of(ask)
    remember = Remember(uses=body.uses, seconds=body.seconds, pattern=body.pattern)
    seen = await ask.services.gate.grants.preview(reply.approval_id, remember, by=reply.by, project=reply.project)
    return GrantPreviewAnswer(
        matched=seen.matched,
        asked=seen.asked,
        looked_at=seen.looked_at,
        since=seen.since,
        examples=list(seen.examples),
        pattern=dict(seen.pattern),
    )


OPERATIONS = (
    Operation(
        method="GET",
        path=_BASE + "/policy/source",
        summary="Show what the policy says, file by file and tool by tool",
        handler=source,
        verb=Verb.TRY_POLICY,
        returns=PolicySourceAnswer,
        tag="governance",
    ),
    Operation(
        method="POST",
        path=_BASE + "/policy/simulate",
        summary="Replay recorded calls under a changed policy",
        handler=simulate,
        verb=Verb.TRY_POLICY,
        body=SimulateBody,
        returns=SimulateAnswer,
        tag="governance",
    ),
    Operation(
        method="POST",
        path=_BASE + "/approvals/{approval_id}/grant-preview",
        summary="Say which past calls a grant would have covered",
        handler=preview_grant,
        verb=Verb.REMEMBER,
        body=RememberBody,
        returns=GrantPreviewAnswer,
        tag="approvals",
    ),
)
