"""Questions over the network: list, look, approve, reject, edit, respond, extend, escalate, comment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from toolgate.interfaces.client.base import Part
from toolgate.interfaces.client.connection import given
from toolgate.wire.inbox import ArtifactAnswer, DifferenceAnswer, PieceAnswer, WaitingAnswer
from toolgate.wire.schemas import (
    ApprovalAnswer,
    ApprovalList,
    ApprovalRecord,
    DecisionAnswer,
    RememberBody,
)


class Approvals(Part):
    """`client.approvals`. An answer that comes second raises a ConflictError whose `decided` has the first."""

    async def list(
        self,
        *,
        status: Literal["pending", "approved", "rejected", "timeout"] | None = None,
        call_id: str | None = None,
        after: str | None = None,
        limit: int | None = None,
    ) -> ApprovalList:
        """A page of approvals, oldest first; its `next` is the `after` of the next page."""
        query = given(status=status, tool_id=call_id, after=after, limit=limit)
        return await self._connection.ask(ApprovalList, "GET", self._path("approvals"), query=query, repeats=True)

    async def waiting(self, *, after: str | None = None, limit: int | None = None) -> WaitingAnswer:
        """A page of the questions that wait, the riskiest first; its `next` is the `after` of the next page."""
        query = given(after=after, limit=limit)
        return await self._connection.ask(
            WaitingAnswer, "GET", self._path("inbox", "waiting"), query=query, repeats=True
        )

    async def get(self, approval_id: str) -> ApprovalRecord:
        """One question and, once there is one, its answer."""
        path = self._path("approvals", approval_id)
        return (await self._connection.ask(ApprovalAnswer, "GET", path, repeats=True)).approval

    async def artifact(self, approval_id: str, *, full: bool = False) -> ArtifactAnswer:
        """Everything an approver must see of a question, safe to show; `full` leaves nothing out."""
        path = self._path("approvals", approval_id, "artifact")
        return await self._connection.ask(ArtifactAnswer, "GET", path, query={"full": full}, repeats=True)

    async def piece(
        self, approval_id: str, part: str, *, offset: int | None = None, size: int | None = None
    ) -> PieceAnswer:
        """A piece of one part of what an approver must see; its `next` is the `offset` of the one after it."""
        path, query = self._path("approvals", approval_id, "artifact", part), given(offset=offset, size=size)
        return await self._connection.ask(PieceAnswer, "GET", path, query=query, repeats=True)

    async def difference(self, approval_id: str, arguments: Mapping[str, Any]) -> DifferenceAnswer:
        """How arguments differ from those that were shown."""
        path, body = self._path("approvals", approval_id, "difference"), {"tool_params": dict(arguments)}
        return await self._connection.ask(DifferenceAnswer, "POST", path, body=body, repeats=True)

    async def approve(
        self,
        approval_id: str,
        reason: str | None = None,
        *,
        digest: str | None = None,
        remember: RememberBody | Mapping[str, Any] | None = None,
        on_behalf_of: str | None = None,
        network: bool = False,
    ) -> DecisionAnswer:
        """Say yes. With `digest`, only to exactly what was shown; with `remember`, also to the next ones like it.

        `on_behalf_of` is whose vote it is, where that was delegated to one. `network` gives the command a network, in
        this one call.
        """
        body = given(reason=reason, digest=digest, remember=_remembered(remember), on_behalf_of=on_behalf_of)
        body |= {"network": True} if network else {}
        return await self._decide(approval_id, "approve", body)

    async def reject(
        self,
        approval_id: str,
        reason: str | None = None,
        *,
        digest: str | None = None,
        on_behalf_of: str | None = None,
    ) -> DecisionAnswer:
        """Say no."""
        body = given(reason=reason, digest=digest, on_behalf_of=on_behalf_of)
        return await self._decide(approval_id, "reject", body)

    async def deny(
        self,
        approval_id: str,
        reason: str | None = None,
        *,
        digest: str | None = None,
        on_behalf_of: str | None = None,
    ) -> DecisionAnswer:
        """Say no: another word for `reject`."""
        body = given(reason=reason, digest=digest, on_behalf_of=on_behalf_of)
        return await self._decide(approval_id, "deny", body)

    async def edit(
        self,
        approval_id: str,
        arguments: Mapping[str, Any],
        reason: str | None = None,
        *,
        digest: str | None = None,
        remember: RememberBody | Mapping[str, Any] | None = None,
    ) -> DecisionAnswer:
        """Say yes to other arguments. A value given as it was shown, masked, stays what it really is."""
        body = given(tool_params=dict(arguments), reason=reason, digest=digest, remember=_remembered(remember))
        return await self._decide(approval_id, "edit", body)

    async def respond(self, approval_id: str, response: Any, *, digest: str | None = None) -> DecisionAnswer:
        """Answer the agent instead of running the call."""
        return await self._decide(approval_id, "respond", {"response": response} | given(digest=digest))

    async def extend(self, approval_id: str, seconds: float) -> ApprovalRecord:
        """Give people more time to decide."""
        return await self._change(approval_id, "extend", {"seconds": seconds})

    async def escalate(self, approval_id: str, *roles: str) -> ApprovalRecord:
        """Ask people with other roles too."""
        return await self._change(approval_id, "escalate", {"roles": [*roles]})

    async def comment(self, approval_id: str, text: str) -> ApprovalRecord:
        """Put words beside a question."""
        return await self._change(approval_id, "comment", {"text": text})

    async def _decide(self, approval_id: str, verb: str, body: dict[str, Any]) -> DecisionAnswer:
        path = self._path("approvals", approval_id, verb)
        return await self._connection.ask(DecisionAnswer, "POST", path, body=body, repeats=True)

    async def _change(self, approval_id: str, verb: str, body: dict[str, Any]) -> ApprovalRecord:
        path = self._path("approvals", approval_id, verb)
        return (await self._connection.ask(ApprovalAnswer, "POST", path, body=body)).approval


def _remembered(remember: RememberBody | Mapping[str, Any] | None) -> dict[str, Any] | None:
    if isinstance(remember, RememberBody):
        return remember.model_dump(exclude_none=True)
    return None if remember is None else dict(remember)
