"""The gate's verbs for people: look at questions, answer them, and take remembered answers back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolgate.errors import NotFoundError, UsageError
from toolgate.gate.attendance import Attendance
from toolgate.kernel.approval import Approval, ApprovalStatus
from toolgate.kernel.artifact import ApprovalArtifact, artifact_of
from toolgate.kernel.context import Principal
from toolgate.kernel.grant import Grant, Remember
from toolgate.kernel.misuse import explained
from toolgate.kernel.output import Result
from toolgate.pipeline.driver import Driver
from toolgate.pipeline.people.deciding import Deciding, Foresight, Said
from toolgate.ports.channel import Decision
from toolgate.ports.store import ApprovalQuery, GrantQuery


class People:
    """What the gate offers to people. Every answer is durable when the method returns."""

    _driver: Driver
    _deciding: Deciding
    _attendance: Attendance

    def _check_open(self) -> None:
        raise NotImplementedError

    @explained
    async def decide(
        self,
        approval_id: str,
        decision: Decision | str,
        *,
        by: str | Principal,
        reason: str | None = None,
        digest: str | None = None,
        project: str | None = None,
        remember: Remember | None = None,
    ) -> Result:
        """Answer an approval: "approve" or "deny"; "reject" is another word for that. The first answer is final; where
        several people must approve, each has one vote and the first "deny" ends it. `remember` makes a grant of a yes.

        Returns where the call stands after the decision is durable; it does not wait for execution.
        """
        self._check_open()
        try:
            approve_it = Decision(decision) is Decision.APPROVE
        except ValueError:
            raise UsageError(f"A decision is 'approve' or 'deny', not {str(decision)[:40]!r}.") from None
        if remember is not None and not approve_it:
            raise UsageError("Only a yes can be remembered.")
        said = _said(approval_id, by, reason, digest, project)
        return await self._deciding.decide(said, approve_it=approve_it, remember=remember)

    async def answer(self, approval_id: str, *, project: str | None = None) -> Approval:
        """Return an approval once it is decided or closed; raise NotFoundError. Going away changes nothing."""
        self._check_open()
        return await self._attendance.answer(approval_id, project)

    async def edit(
        self,
        approval_id: str,
        arguments: str | bytes | Mapping[str, object],
        *,
        by: str | Principal,
        reason: str | None = None,
        digest: str | None = None,
        project: str | None = None,
        remember: Remember | None = None,
    ) -> Result:
        """Approve a call with other arguments: checked like those of a new call, and the difference is kept."""
        self._check_open()
        said = _said(approval_id, by, reason, digest, project)
        return await self._deciding.edit(said, arguments, remember=remember)

    async def respond(
        self,
        approval_id: str,
        response: Any,
        *,
        by: str | Principal,
        digest: str | None = None,
        project: str | None = None,
    ) -> Result:
        """Answer the agent instead of running the call: it ends REJECTED, and its result's `data` is the answer."""
        self._check_open()
        return await self._deciding.respond(_said(approval_id, by, None, digest, project), response)

    async def extend(
        self, approval_id: str, seconds: float, *, by: str | Principal, project: str | None = None
    ) -> Approval:
        """Give people `seconds` from now to decide."""
        self._check_open()
        return await self._deciding.extend(_said(approval_id, by, None, None, project), seconds=seconds)

    async def escalate(
        self, approval_id: str, *roles: str, by: str | Principal, project: str | None = None
    ) -> Approval:
        """Ask people with these roles too; any of them may decide."""
        self._check_open()
        return await self._deciding.escalate(_said(approval_id, by, None, None, project), roles=frozenset(roles))

    async def comment(
        self, approval_id: str, text: str, *, by: str | Principal, project: str | None = None
    ) -> Approval:
        """Put words beside an undecided approval, for whoever decides."""
        self._check_open()
        return await self._deciding.comment(_said(approval_id, by, None, None, project), text=text)

    async def pending(self, *, project: str | None = None, limit: int = 1000) -> list[Approval]:
        """Return the approvals that wait for a person, oldest first."""
        return await self.approvals(ApprovalQuery(project=project, status=ApprovalStatus.PENDING, limit=limit))

    async def approvals(self, query: ApprovalQuery) -> list[Approval]:
        """Return the approvals that fit, oldest first."""
        return await self._driver.store.approvals(query)

    @explained
    async def approval(self, approval_id: str, *, project: str | None = None) -> Approval:
        """Return one approval; raise NotFoundError."""
        found = await self.approvals(ApprovalQuery(id=approval_id, project=project))
        if not found:
            raise NotFoundError(f"There is no approval {approval_id[:64]}.")
        return found[0]

    async def artifact(self, approval_id: str, *, project: str | None = None) -> ApprovalArtifact:
        """Return what an approver must see of one approval; draw it with `toolgate.kernel.surfaces`."""
        return artifact_of(await self.approval(approval_id, project=project))

    async def preview_grant(
        self, approval_id: str, remember: Remember, *, by: str | Principal, project: str | None = None
    ) -> Foresight:
        """Say which past calls a grant from this question would have covered; nothing is decided or kept."""
        self._check_open()
        return await self._deciding.foresee(_said(approval_id, by, None, None, project), remember)

    async def grants(self, query: GrantQuery) -> list[Grant]:
        """Return the remembered answers that fit, oldest first, each with its uses."""
        return await self._driver.store.grants(query)

    async def revoke(
        self, grant_id: str, *, by: str | Principal, reason: str | None = None, project: str | None = None
    ) -> Grant:
        """Take a remembered answer back: nothing starts because of it any more."""
        self._check_open()
        return await self._deciding.revoke(grant_id, by=somebody(by), reason=reason, project=project)


def _said(approval_id: str, by: str | Principal, reason: str | None, digest: str | None, project: str | None) -> Said:
    return Said(approval_id=approval_id, by=somebody(by), reason=reason, digest=digest, project=project)


def somebody(by: str | Principal | None) -> Principal:
    """Return who acts; what nobody does, or a name that cannot be read back, is refused."""
    who = Principal.of("" if by is None else by)
    if not who.name.strip() or not who.name.isprintable():
        raise UsageError("Say who does this: `by` is empty or cannot be printed.")
    return who
