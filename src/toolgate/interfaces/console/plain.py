"""Pages that need no script: the questions of a project, one question in full with its answers, and the brake.

A form proves that it is ours by a field with the session's CSRF value. The same holds here as in the console: what is
hidden must be shown before a yes; what else a yes takes, the server asks on every surface.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from toolgate.authority import Verb, may
from toolgate.errors import ToolgateError
from toolgate.gate.drawing import draw, draw_all
from toolgate.interfaces.console.pages import Pages, form_of, going_to
from toolgate.interfaces.server import deciding, sessions
from toolgate.interfaces.server.cards import blocks_of, card_of, note_served
from toolgate.interfaces.server.deciding import Reply
from toolgate.interfaces.server.identity import Caller
from toolgate.interfaces.server.problems import ProblemError, problem_of
from toolgate.interfaces.server.tokens import csrf_of, is_csrf_of
from toolgate.interfaces.server.waiting import riskiest
from toolgate.kernel.approval import Approval
from toolgate.kernel.artifact import artifact_of
from toolgate.ports.channel import Decision
from toolgate.wire.inbox import BlockRecord, Card

Form = dict[str, str]
LISTED = 500
"""How many questions stand on one page."""


class Plain:
    """Serves people whose browser runs no script, or who run none on purpose."""

    def __init__(self, pages: Pages) -> None:
        self._pages = pages
        self._services = pages.services

    async def index(self, request: Request) -> Response:
        """The open questions of a project, the riskiest first."""

        async def draw(caller: Caller) -> Response:
            project = request.query_params.get("project", "")
            known = await sessions.memberships(self._services, caller, also=project)
            project = project or (known[0].project if known else "")
            caller.check(project, Verb.READ)
            after = request.query_params.get("after")
            gate = self._services.gate
            last = None if after is None else await gate.approvals.get(after, project=project)
            found = await riskiest(gate, project=project, after=last, limit=LISTED)
            return self._page(
                request,
                "plain_list.html",
                caller,
                project,
                cards=await draw_all(card_of, found.approvals),
                total=found.total,
                next=None if found.next is None else found.next.id,
                projects=[one.project for one in known],
            )

        return await self._for_caller(request, draw)

    async def show(self, request: Request) -> Response:
        """One question in full."""

        async def draw(caller: Caller) -> Response:
            approval = await self._found(request, caller)
            return await self._question(request, caller, approval, full=request.query_params.get("full") == "1")

        return await self._for_caller(request, draw)

    async def answer(self, request: Request) -> Response:
        """Take the answer of a form, and show what came of it."""

        async def take(caller: Caller) -> Response:
            form = await self._checked(request, caller)
            approval = await self._found(request, caller)
            try:
                await self._say(caller, approval, form)
            except (ProblemError, ToolgateError) as error:
                problem = error if isinstance(error, ProblemError) else problem_of(error)
                fresh = await self._found(request, caller)
                full = form.get("full") == "1"
                return await self._question(
                    request, caller, fresh, full=full, problem=problem.detail, status=problem.status
                )
            return going_to(request, f"/approvals/{approval.id}/plain")

        return await self._for_caller(request, take)

    async def brake(self, request: Request) -> Response:
        """Change the mode, for everybody."""

        async def take(caller: Caller) -> Response:
            form = await self._checked(request, caller)
            project = form.get("project", "")
            who = caller.check(project, Verb.SET_MODE)
            await self._services.gate.set_mode(form.get("mode", ""), by=who, reason=form.get("reason", ""))
            self._services.hub.tell_mode()
            return going_to(request, f"/approvals/plain?{urlencode({'project': project})}")

        return await self._for_caller(request, take)

    async def _for_caller(self, request: Request, work: Callable[[Caller], Awaitable[Response]]) -> Response:
        """Do something for who is signed in; a problem becomes a page that says it."""
        try:
            caller = await self._pages.caller(request)
            if caller is None or caller.session is None:
                return going_to(request, "/login")
            return await work(caller)
        except ProblemError as problem:
            return self._pages.problem(request, problem)
        except ToolgateError as error:
            return self._pages.problem(request, problem_of(error))

    async def _found(self, request: Request, caller: Caller) -> Approval:
        """The question the path names; somebody else's is not there."""
        approval = await self._services.gate.approvals.get(request.path_params["approval_id"])
        caller.check(approval.project, Verb.READ)
        return approval

    async def _checked(self, request: Request, caller: Caller) -> Form:
        form = await form_of(request)
        if caller.session is None or not is_csrf_of(form.get("csrf", ""), caller.session):
            raise ProblemError(403, "csrf", "The form belongs to another session; load the page again.")
        return form

    async def _say(self, caller: Caller, approval: Approval, form: Form) -> None:
        """Do what the form wants."""
        who = caller.check(approval.project, Verb.DECIDE)
        reason = form.get("reason", "").strip() or None
        reply = Reply(
            project=approval.project, approval_id=approval.id, by=who, reason=reason, digest=form.get("digest")
        )
        match form.get("answer"):
            case "approve":
                _check_seen(await draw(card_of, approval), form)
                await deciding.decide(self._services, reply, Decision.APPROVE)
            case "reject":
                await deciding.decide(self._services, reply, Decision.DENY)
            case "comment":
                if reason is None:
                    raise ProblemError(400, "invalid_request", "A comment cannot be empty; write it as the reason.")
                await self._services.gate.approvals.comment(approval.id, reason, by=who, project=approval.project)
            case _:
                raise ProblemError(400, "invalid_request", "The form says neither approve, reject nor comment.")

    async def _question(
        self,
        request: Request,
        caller: Caller,
        approval: Approval,
        *,
        full: bool,
        problem: str | None = None,
        status: int = 200,
    ) -> Response:
        card, blocks = await draw(_opened, approval, full)
        await note_served(self._services, caller, approval, blocks)
        return self._page(
            request,
            "plain_question.html",
            caller,
            approval.project,
            status=status,
            card=card,
            blocks=blocks,
            is_whole=full or not card.must_expand,
            full=full,
            problem=problem,
            may_decide=may(Verb.DECIDE, caller, approval.project),
        )

    def _page(
        self, request: Request, template: str, caller: Caller, project: str, *, status: int = 200, **values: Any
    ) -> Response:
        assert caller.session is not None
        caller.check(project, Verb.READ)
        return self._pages.page(
            request,
            template,
            status=status,
            account=caller.account.name,
            csrf=csrf_of(caller.session),
            project=project,
            mode=self._services.gate.mode.value,
            is_admin=may(Verb.SET_MODE, caller, project),
            **values,
        )


def _opened(approval: Approval, full: bool) -> tuple[Card, list[BlockRecord]]:
    artifact = artifact_of(approval)
    return card_of(approval, artifact), blocks_of(artifact, full=full)


def _check_seen(card: Card, form: Form) -> None:
    """Refuse a yes to what was not wholly shown."""
    if card.must_expand and form.get("full") != "1":
        raise ProblemError(409, "not_shown", "A part was hidden; show everything before you approve.")
