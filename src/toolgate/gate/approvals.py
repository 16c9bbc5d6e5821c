"""The questions that were put to people: look at them, and do with them what is more than yes or no."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from toolgate.errors import NotFoundError, UsageError
from toolgate.gate.drawing import draw
from toolgate.gate.parked import Parked
from toolgate.kernel.approval import Approval
from toolgate.kernel.artifact import ApprovalArtifact, Piece, artifact_of
from toolgate.kernel.context import Principal
from toolgate.kernel.editing import with_network
from toolgate.kernel.grant import Remember
from toolgate.kernel.misuse import explained
from toolgate.kernel.output import Result
from toolgate.kernel.text.rendering import BUDGET
from toolgate.pipeline.driver import Driver
from toolgate.pipeline.people.deciding import Deciding, Said
from toolgate.ports.store import ApprovalQuery


class Approvals:
    """`gate.approvals`. Every answer is durable when the method returns; `gate.decide` says yes or no."""

    def __init__(self, driver: Driver, deciding: Deciding, parked: Parked, check_open: Callable[[], None]) -> None:
        self._driver = driver
        self._deciding = deciding
        self._parked = parked
        self._check_open = check_open

    @explained
    async def get(self, approval_id: str, *, project: str | None = None) -> Approval:
        """Return one approval; raise NotFoundError."""
        found = await self.list(ApprovalQuery(id=approval_id, project=project))
        if not found:
            raise NotFoundError(f"There is no approval {approval_id[:64]}.")
        return found[0]

    async def list(self, query: ApprovalQuery) -> builtins.list[Approval]:
        """Return the approvals that fit, oldest first."""
        return await self._driver.store.approvals(query)

    async def artifact(self, approval_id: str, *, project: str | None = None) -> ApprovalArtifact:
        """Return what an approver must see of one approval; draw it with `toolgate.kernel.surfaces`."""
        return artifact_of(await self.get(approval_id, project=project))

    @explained
    async def piece(
        self, approval_id: str, part: str, *, offset: int = 0, size: int = BUDGET.piece, project: str | None = None
    ) -> Piece:
        """Return a piece of one part of what an approver must see; its `next` is the offset of the one after it.

        `part` is a block's name, such as `arguments` or `change`. The whole is masked and made safe to show, then cut.
        """
        approval = await self.get(approval_id, project=project)
        return await draw(lambda asked: artifact_of(asked).piece(part, offset=offset, size=size), approval)

    async def answer(self, approval_id: str, *, project: str | None = None) -> Approval:
        """Return an approval once it is decided or closed; raise NotFoundError. Going away changes nothing."""
        self._check_open()
        return await self._parked.answer(approval_id, project)

    async def check(
        self,
        approval_id: str,
        *,
        by: str | Principal,
        digest: str | None = None,
        project: str | None = None,
        on_behalf_of: str | Principal | None = None,
    ) -> None:
        """Raise what an answer by this person would be refused with; nothing is decided."""
        self._check_open()
        await self._deciding.check(said(approval_id, by, None, digest, project, on_behalf_of))

    async def votes_held(self, approval_id: str, *, by: str | Principal, project: str | None = None) -> tuple[str, ...]:
        """Return whose delegated votes this person could give on an approval now."""
        return await self._deciding.votes_held(said(approval_id, by, None, None, project))

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
        allowances: tuple[str, ...] = (),
        look: Callable[[Approval], bool] | None = None,
    ) -> Result:
        """Approve a call with other arguments: checked like those of a new call, and the difference is kept.

        Where `look` is true of the new question, it waits to be looked at instead of being answered.
        """
        self._check_open()
        words = replace(said(approval_id, by, reason, digest, project), allowances=allowances)
        return await self._deciding.edit(words, arguments, remember=remember, look=look)

    async def approve_with_network(
        self,
        approval_id: str,
        *,
        by: str | Principal,
        reason: str | None = None,
        digest: str | None = None,
        project: str | None = None,
        allowances: tuple[str, ...] = (),
        look: Callable[[Approval], bool] | None = None,
    ) -> Result:
        """Approve a call of a command, and give the command a network, this once: an edit that changes nothing else.

        The yes covers it, the record says who granted it, and it is never remembered. UsageError where the tool has no
        network to give, or the call asks for one itself.
        """
        asked = await self.get(approval_id, project=project)
        return await self.edit(
            asked.id,
            with_network(asked),
            by=by,
            reason=reason,
            digest=digest or asked.digest,
            project=asked.project,
            allowances=allowances,
            look=look,
        )

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
        return await self._deciding.respond(said(approval_id, by, None, digest, project), response)

    async def extend(
        self, approval_id: str, seconds: float, *, by: str | Principal, project: str | None = None
    ) -> Approval:
        """Give people `seconds` from now to decide."""
        self._check_open()
        return await self._deciding.extend(said(approval_id, by, None, None, project), seconds=seconds)

    async def escalate(
        self, approval_id: str, *roles: str, by: str | Principal, project: str | None = None
    ) -> Approval:
        """Ask the people the policy names for it too; `roles` it does not name are refused."""
        self._check_open()
        return await self._deciding.escalate(said(approval_id, by, None, None, project), roles=frozenset(roles))

    async def comment(
        self, approval_id: str, text: str, *, by: str | Principal, project: str | None = None
    ) -> Approval:
        """Put words beside an undecided approval, for whoever decides."""
        self._check_open()
        return await self._deciding.comment(said(approval_id, by, None, None, project), text=text)


def said(
    approval_id: str,
    by: str | Principal,
    reason: str | None,
    digest: str | None,
    project: str | None,
    on_behalf_of: str | Principal | None = None,
) -> Said:
    """Put together what somebody said about a question."""
    giver = None if on_behalf_of is None else somebody(on_behalf_of)
    who = somebody(by)
    return Said(approval_id=approval_id, by=who, reason=reason, digest=digest, project=project, on_behalf_of=giver)


def somebody(by: str | Principal | None) -> Principal:
    """Return who acts; what nobody does, or a name that cannot be read back, is refused."""
    who = Principal.of("" if by is None else by)
    if not who.name.strip() or not who.name.isprintable():
        raise UsageError("Say who does this: `by` is empty or cannot be printed.")
    return who
