"""The commands for people on a server, through the client library.

What a server says is drawn by the same code as what stands in a database: it can neither hide, move nor imitate.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterator
from contextlib import contextmanager

from pydantic import ValidationError

from toolgate.errors import BadAnswerError, NotFoundError
from toolgate.interfaces.cli.backend import UnknownCall
from toolgate.interfaces.cli.credentials import token_of
from toolgate.interfaces.cli.on_server import Remote
from toolgate.interfaces.client import StreamEvent, SyncClient
from toolgate.interfaces.server.views import APPROVAL_STATUS
from toolgate.interfaces.server.waiting import listed
from toolgate.kernel.approval import Approval, Note
from toolgate.kernel.context import DEFAULT_PROJECT
from toolgate.kernel.grant import Remember
from toolgate.kernel.output import Result
from toolgate.kernel.terms import ApprovalTerms
from toolgate.kernel.text.canonical import read_arguments
from toolgate.ports.channel import Decision
from toolgate.wire.brakes import BrakesAnswer, ModeName
from toolgate.wire.delegations import DelegationRecord
from toolgate.wire.schemas import (
    ApprovalRecord,
    DecisionAnswer,
    EventRecord,
    ExecutionRecord,
    GrantRecord,
    NoteRecord,
    UndoRunAnswer,
)

RETRY_S = 2.0
"""How long a person is kept waiting for a server that does not answer."""
_STATUSES = {shown: status for status, shown in APPROVAL_STATUS.items()}


@contextmanager
def client_at(url: str, remote: Remote, project: str | None) -> Iterator[SyncClient]:
    """The client of one command. Where something is not found in a project that is none of yours, it says so."""
    with SyncClient(
        url,
        token=token_of(remote.token_file, kind="person"),
        project=project or DEFAULT_PROJECT,
        retry_s=RETRY_S,
        ca_file=remote.ca_file,
        allow_plain_http=remote.plain_http,
    ) as client:
        try:
            yield client
        except NotFoundError as error:
            why = client.missing_project()
            if why is None:
                raise
            raise NotFoundError(f"{why} Say which with --project.") from error


class RemoteBackend:
    """Works on one project of a server as whoever the token is of."""

    def __init__(self, client: SyncClient) -> None:
        self._client = client

    def pending(self) -> list[Approval]:
        found: list[ApprovalRecord] = []
        after: str | None = None
        while True:
            page = self._client.approvals.list(status="pending", after=after, limit=1000)
            found += page.approvals
            if page.next is None:
                return listed(self._approval(one) for one in found)
            after = page.next

    def approval(self, approval_id: str) -> Approval:
        return self._approval(self._client.approvals.get(approval_id))

    def decide(
        self,
        asked: Approval,
        decision: Decision,
        *,
        reason: str | None = None,
        digest: str | None = None,
        remember: Remember | None = None,
        on_behalf_of: str | None = None,
    ) -> Result:
        if decision is Decision.DENY:
            rejected = self._client.approvals.reject(asked.id, reason, digest=digest, on_behalf_of=on_behalf_of)
            return self._result(rejected)
        kept = None if remember is None else {"uses": remember.uses, "seconds": remember.seconds}
        approved = self._client.approvals.approve(
            asked.id, reason, digest=digest, remember=kept, on_behalf_of=on_behalf_of
        )
        return self._result(approved)

    def approve_with_network(self, asked: Approval, *, reason: str | None = None, digest: str | None = None) -> Result:
        return self._result(self._client.approvals.approve(asked.id, reason, digest=digest, network=True))

    def edit(self, asked: Approval, arguments: str, *, reason: str | None = None, digest: str | None = None) -> Result:
        changed = dict(read_arguments(arguments).value)
        return self._result(self._client.approvals.edit(asked.id, changed, reason, digest=digest))

    def respond(self, asked: Approval, words: str, *, digest: str | None = None) -> Result:
        return self._result(self._client.approvals.respond(asked.id, words, digest=digest))

    def comment(self, asked: Approval, words: str) -> None:
        self._client.approvals.comment(asked.id, words)

    def extend(self, asked: Approval, seconds: float) -> None:
        self._client.approvals.extend(asked.id, seconds)

    def latest(self, *, run: str | None, limit: int) -> list[ExecutionRecord]:
        found: list[ExecutionRecord] = []
        after: str | None = None
        while len(found) < limit:
            wanted = min(1000, limit - len(found))
            page = self._client.calls.list(run_id=run, order="newest", after=after, limit=wanted)
            found += page.tools
            if page.next is None:
                break
            after = page.next
        return found

    def follow(self, after: int | None) -> Generator[EventRecord, None, None]:
        with self._client.follow(after=after) as events:
            for event in events:
                if event.name != "stream.ready":
                    yield _event(event)

    def undo(self, call_id: str, *, force: bool) -> Result:
        return self._client.undo(call_id, force=force)

    def undo_run(self, run_id: str, *, force: bool, skip_failures: bool, preview: bool) -> UndoRunAnswer:
        return self._client.undo_run(run_id, force=force, skip_failures=skip_failures, preview=preview)

    def grants(self, *, everything: bool) -> list[GrantRecord]:
        return self._client.grants.list(live=not everything, limit=1000)

    def revoke(self, grant_id: str, reason: str | None) -> GrantRecord:
        return self._client.grants.revoke(grant_id, reason)

    def delegate(self, to: str, *, seconds: float, tools: Collection[str], reason: str | None) -> DelegationRecord:
        return self._client.delegations.give(to, seconds=seconds, tools=tools, reason=reason)

    def delegations(self, *, everything: bool) -> list[DelegationRecord]:
        return self._client.delegations.list(live=not everything, limit=1000)

    def end_delegation(self, delegation_id: str, reason: str | None) -> DelegationRecord:
        return self._client.delegations.end(delegation_id, reason)

    def unknown(self) -> list[UnknownCall]:
        found: list[ExecutionRecord] = []
        after: str | None = None
        while True:
            page = self._client.calls.list(status="unknown", after=after, limit=1000)
            found += page.tools
            if page.next is None:
                return [_unknown(one) for one in found]
            after = page.next

    def events_of(self, call: UnknownCall) -> list[EventRecord]:
        return self._client.events(call_id=call.id, limit=1000).events

    def settle(self, call: UnknownCall, *, happened: bool | None, reason: str) -> Result:
        return self._client.settle(call.id, happened=happened, reason=reason)

    def brakes(self) -> BrakesAnswer:
        return self._client.brakes()

    def set_mode(
        self, mode: ModeName, *, reason: str, everybody: bool, agent: str | None, run: str | None
    ) -> BrakesAnswer:
        if not everybody:
            return self._client.set_brake(mode, reason, agent=agent, run=run)
        self._client.set_mode(mode, reason)
        return self._client.brakes()

    def _result(self, decided: DecisionAnswer) -> Result:
        return self._client.get(decided.tool_id)

    def _approval(self, told: ApprovalRecord) -> Approval:
        return Approval(
            id=told.approval_id,
            project=self._client.project,
            call_id=told.tool_id,
            tool_name=told.tool_name,
            message=told.description,
            digest=told.digest,
            nonce="",
            definition_hash="",
            requester=told.requester,
            created_at=told.created_at,
            expires_at=told.expires_at,
            user=told.user,
            run_id=told.run_id,
            session_id=told.session_id,
            level=told.level,
            risk=told.risk_level.lower(),
            confidence=told.confidence,
            factors=tuple(told.factors),
            reasons=tuple(told.reasons),
            claim=told.claim,
            arguments=told.arguments,
            preview=told.preview,
            facts=told.facts,
            undoable=told.undoable,
            undo_ttl_s=told.undo_ttl_s,
            requires_reason=told.requires_reason,
            terms=ApprovalTerms(
                quorum=told.quorum,
                approvers=tuple(map(frozenset, told.approvers)),
                including=tuple(map(frozenset, told.including)),
            ),
            votes=_notes(told.votes),
            comments=_notes(told.comments),
            edited_from=told.edited_from,
            difference=told.difference,
            status=_STATUSES[told.status],
            decided_by=told.decided_by,
            decided_at=told.decided_at,
            reason=told.reason,
        )


def _event(told: StreamEvent) -> EventRecord:
    shown = {**told.data, "tool_id": told.data.get("call_id"), "seq": told.id, "type": told.name}
    try:
        return EventRecord.model_validate(shown)
    except ValidationError:
        raise BadAnswerError("The server sent something that is not an event. Check the address.") from None


def _unknown(call: ExecutionRecord) -> UnknownCall:
    return UnknownCall(
        id=call.tool_id,
        project=call.project_id,
        tool_name=call.tool_name,
        started_at=call.started_at,
        owner=None,
        error=call.error,
        shown=call.tool_params,
        since=call.completed_at or call.created_at,
    )


def _notes(told: list[NoteRecord]) -> tuple[Note, ...]:
    return tuple(Note(one.by, one.at, one.text, roles=tuple(one.roles)) for one in told)
