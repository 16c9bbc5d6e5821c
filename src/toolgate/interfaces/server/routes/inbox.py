"""The inbox of a project: open questions as cards, what a card opens to, and what an edit would change."""

from __future__ import annotations

import re
from typing import Any

from toolgate.authority import Verb
from toolgate.gate.drawing import draw, draw_all
from toolgate.interfaces.server import deciding
from toolgate.interfaces.server.cards import blocks_of, card_of, network_of, note_served
from toolgate.interfaces.server.operations import Ask, Operation
from toolgate.interfaces.server.streams import inbox_stream
from toolgate.interfaces.server.waiting import riskiest
from toolgate.kernel.approval import Approval
from toolgate.kernel.artifact import artifact_of
from toolgate.kernel.text.diff import diff_text
from toolgate.kernel.text.rendering import as_lines, clip
from toolgate.wire.inbox import (
    ArtifactAnswer,
    ArtifactQuery,
    DifferenceAnswer,
    DifferenceBody,
    InboxQuery,
    PieceAnswer,
    PieceQuery,
    WaitingAnswer,
    WaitingQuery,
)

_BASE = "/my/projects/{project_id}"


async def artifact(ask: Ask) -> ArtifactAnswer:
    """Everything an approver must see, made safe to show; the digest in the card is what a decision echoes."""
    approval = await ask.services.gate.approvals.get(ask.params["approval_id"], project=ask.project)
    shown = await draw(_opened, approval, ask.query.full)
    await note_served(ask.services, ask.by, approval, shown.blocks)
    held = await deciding.votes_held(ask.services, approval, ask.who)
    more = {} if not held.on_behalf_of else held._asdict()
    return shown.model_copy(update={**more, "network": network_of(ask.services.gate, approval)})


def _opened(approval: Approval, full: bool) -> ArtifactAnswer:
    shown = artifact_of(approval)
    return ArtifactAnswer(
        card=card_of(approval, shown),
        blocks=blocks_of(shown, full=full),
        arguments=approval.arguments,
        arguments_text=next(block.text for block in shown.blocks(full=True) if block.name == "arguments"),
        input_schema=approval.input_schema,
    )


async def piece(ask: Ask) -> PieceAnswer:
    """One part of what an approver must see, piece by piece: masked and made safe as a whole before it is cut."""
    approval_id, part, query = ask.params["approval_id"], ask.params["part"], ask.query
    found = await ask.services.gate.approvals.piece(
        approval_id, part, offset=query.offset, size=query.size, project=ask.project
    )
    await ask.services.served.note_piece(
        ask.by.account.name, approval_id, found.name, offset=query.offset, next=found.next
    )
    return PieceAnswer(
        name=found.name,
        title=found.title,
        text=found.text,
        style=found.style.value,
        offset=found.offset,
        next=found.next,
        characters=found.characters,
        lines=found.lines,
        warnings=list(found.warnings),
    )


async def waiting(ask: Ask) -> WaitingAnswer:
    """A page of the questions that wait. The stream tells the first; this has the rest."""
    gate, query = ask.services.gate, ask.query
    after = None if query.after is None else await gate.approvals.get(query.after, project=ask.project)
    found = await riskiest(gate, project=ask.project, after=after, limit=query.limit)
    return WaitingAnswer(
        cards=await draw_all(card_of, found.approvals),
        waiting=found.total,
        next=None if found.next is None else found.next.id,
    )


async def difference(ask: Ask) -> DifferenceAnswer:
    """Compare arguments with those that were shown. What was left masked counts as unchanged."""
    approval = await ask.services.gate.approvals.get(ask.params["approval_id"], project=ask.project)
    return await draw(_compared, approval, ask.body.tool_params)


def _compared(approval: Approval, edited: dict[str, Any]) -> DifferenceAnswer:
    before, after = as_lines(approval.arguments)[0], as_lines(edited)
    found = diff_text(_text(before), _text(after[0]), fromfile="asked", tofile="edited")
    shown = clip(found.diff_output)
    return DifferenceAnswer(
        diff=shown.text,
        hidden=shown.hidden,
        additions=found.additions,
        deletions=found.deletions,
        warnings=list(after[1]),
    )


_BREAK = re.compile(r"((?<!\\)(?:\\\\)*\\n)(?=[^\"])")


def _text(lines: list[str]) -> str:
    """JSON as text to compare: a line break inside a value begins a line here too, or a change would be lost in it."""
    return "\n".join(_BREAK.sub(r"\1\n", line) for line in lines) + "\n"


OPERATIONS = (
    Operation(
        method="GET",
        path=_BASE + "/inbox",
        summary="Follow the project as an approver: open questions as cards, then every event",
        stream=inbox_stream,
        query=InboxQuery,
        takes_ticket=True,
        media="text/event-stream",
        tag="inbox",
    ),
    Operation(
        method="GET",
        path=_BASE + "/inbox/waiting",
        summary="List the questions that wait as cards, the riskiest first",
        handler=waiting,
        query=WaitingQuery,
        returns=WaitingAnswer,
        tag="inbox",
    ),
    Operation(
        method="GET",
        path=_BASE + "/approvals/{approval_id}/artifact",
        summary="Show what an approver must see, made safe to show",
        handler=artifact,
        query=ArtifactQuery,
        returns=ArtifactAnswer,
        tag="inbox",
    ),
    Operation(
        method="GET",
        path=_BASE + "/approvals/{approval_id}/artifact/{part}",
        summary="Show one part of it piece by piece",
        handler=piece,
        query=PieceQuery,
        returns=PieceAnswer,
        tag="inbox",
    ),
    Operation(
        method="POST",
        path=_BASE + "/approvals/{approval_id}/difference",
        summary="Compare arguments with those that were shown, without deciding",
        handler=difference,
        verb=Verb.EDIT,
        body=DifferenceBody,
        returns=DifferenceAnswer,
        tag="inbox",
    ),
)
