"""Questions as the inbox shows them: nothing in a card can hide, move or imitate anything."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import orjson

from toolgate.errors import NotFoundError
from toolgate.gate import Gate
from toolgate.gate.drawing import draw
from toolgate.interfaces.server import views
from toolgate.interfaces.server.frames import Frame, event_frame, sse
from toolgate.interfaces.server.friction import needs_preview
from toolgate.kernel.approval import Approval, Note
from toolgate.kernel.artifact import ApprovalArtifact, artifact_of
from toolgate.kernel.editing import takes_network
from toolgate.kernel.event import Event
from toolgate.kernel.text.rendering import clip_entries, clip_field, few, reveal
from toolgate.wire.inbox import BlockRecord, Card
from toolgate.wire.schemas import NoteRecord

if TYPE_CHECKING:
    from toolgate.interfaces.server.identity import Caller
    from toolgate.interfaces.server.services import Services

CARD = "inbox.card"


def card_of(approval: Approval, artifact: ApprovalArtifact | None = None) -> Card:
    """Return a question as a list shows it."""
    shown = artifact_of(approval) if artifact is None else artifact
    blocks = shown.blocks()
    return Card(
        approval_id=approval.id,
        tool_id=approval.call_id,
        tool_name=_safe(approval.tool_name),
        status=views.APPROVAL_STATUS[approval.status],
        risk_level=views.risk(approval.risk),
        level=approval.level,
        summary=_safe(shown.action_summary),
        message=_safe(approval.message),
        digest=approval.digest,
        group=_group(approval),
        requester=_safe(approval.requester),
        user=_maybe(approval.user),
        run_id=_maybe(approval.run_id),
        session_id=_maybe(approval.session_id),
        reasons=clip_entries([_safe(one) for one in approval.reasons]),
        confidence=approval.confidence,
        factors=clip_entries([_safe(one) for one in approval.factors]),
        warnings=list(few(warning for block in blocks for warning in block.warnings)),
        must_expand=any(block.hidden for block in blocks),
        undoable=approval.undoable,
        undo_ttl_s=approval.undo_ttl_s,
        requires_reason=approval.requires_reason,
        needs_reason=approval.needs_reason,
        approve_label=_safe(shown.approve_label),
        reject_label=_safe(shown.reject_label),
        quorum=approval.terms.quorum,
        approvers=[sorted(map(_safe, roles)) for roles in approval.terms.approvers],
        including=[sorted(map(_safe, roles)) for roles in approval.terms.including],
        lacks=[sorted(map(_safe, roles)) for roles in approval.lacks],
        escalates_to=sorted(map(_safe, approval.terms.escalate_to)),
        escalated_to=sorted(map(_safe, approval.terms.escalate_to)) if approval.escalated else [],
        votes=_notes(approval.votes),
        comments=_notes(approval.comments),
        edited_from=approval.edited_from,
        has_unknown_command=_is_unknown(approval.facts),
        created_at=approval.created_at,
        expires_at=approval.expires_at,
        decided_by=_maybe(approval.decided_by),
        decided_at=approval.decided_at,
        reason=_maybe(approval.reason),
    )


def blocks_of(artifact: ApprovalArtifact, *, full: bool) -> list[BlockRecord]:
    """Return everything an approver must see, in order."""
    return [
        BlockRecord(
            title=block.title,
            text=block.text,
            style=block.style.value,
            warnings=list(block.warnings),
            hidden=block.hidden,
            name=block.name,
        )
        for block in artifact.blocks(full=full)
    ]


def network_of(gate: Gate, approval: Approval) -> str | None:
    """Say which hosts a command would reach, where a yes to this question may give it a network; else None."""
    if not approval.is_pending or not takes_network(approval.input_schema) or not isinstance(approval.arguments, dict):
        return None
    if approval.arguments.get("network") is True:
        return None
    if "runs" in _commands(approval.facts):
        return "the hosts that the policy of the machine it runs on allows"
    policy = gate.host.policy(approval.project)
    hosts = getattr(policy, "hosts", None)  # one that comes from no file says nothing of them
    return None if hosts is None else hosts.told()


def _commands(facts: Any) -> dict[str, Any]:
    """What the policy found the first command of a line to be, with the others; empty where it judged none."""
    found = facts.get("commands") if isinstance(facts, dict) else None
    return found if isinstance(found, dict) else {}


def _is_unknown(facts: Any) -> bool:
    """Whether the policy found a command that no grammar knows."""
    found = _commands(facts)
    return any("unknown" in one for one in (found, *found.get("with", ())))


async def note_served(services: Services, caller: Caller, approval: Approval, blocks: Iterable[BlockRecord]) -> None:
    """Remember which parts of a question went to somebody with nothing left out."""
    if needs_preview(approval):
        whole = [block.name for block in blocks if not block.hidden]
        await services.served.note(caller.account.name, approval.id, whole)


def card_sse(approval: Approval) -> bytes:
    """Return a card as one server-sent event. It has no id: the event it comes with has."""
    return sse(CARD, card_of(approval).model_dump_json().encode())


async def card_frame(gate: Gate, event: Event) -> Frame:
    """An event on the inbox stream: its exact body, and before it the card of the question it is about."""
    plain = await event_frame(gate, event)
    if not event.type.startswith("approval."):
        return plain
    approval_id: str = event.data["request_id"]
    try:
        approval = await gate.approvals.get(approval_id, project=event.project)
    except NotFoundError:  # forgotten by a store that keeps only so many
        return plain
    asks = approval_id if event.type == "approval.requested" else None
    return Frame(event.seq, await draw(card_sse, approval) + plain.data, asks)


def _group(approval: Approval) -> str:
    """Questions that look alike to a person share this. What is masked may differ; each is answered by its own id."""
    alike = (
        approval.tool_name, approval.definition_hash, approval.requester, approval.user, approval.risk,
        approval.level, approval.message, approval.claim, approval.arguments, approval.preview,
        approval.facts,
    )  # fmt: skip
    try:
        told = orjson.dumps(alike, default=str, option=orjson.OPT_SORT_KEYS)
    except TypeError:  # half a surrogate pair in what a tool said, or a number of very many digits
        told = repr(alike).encode()
    return hashlib.sha256(told).hexdigest()[:16]


def _notes(notes: Iterable[Note]) -> list[NoteRecord]:
    return [
        NoteRecord(
            by=_safe(note.who),
            at=note.at,
            text=_maybe(note.text),
            on_behalf_of=_maybe(note.on_behalf_of),
            roles=[*map(_safe, note.roles)],
        )
        for note in notes
    ]


def _safe(text: str) -> str:
    return clip_field(reveal(text).text)


def _maybe(text: str | None) -> str | None:
    return None if text is None else _safe(text)
