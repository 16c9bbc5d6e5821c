"""Pages that need no script: the questions of a project, one question in full with its answers, and the brake.

They live under a path with a key of the session in it, which no page tells anybody: whoever knows it, and has the
cookie, is who signed in. The same holds here as in the console: what is hidden must be shown before a yes; what else a
yes takes, the server asks on every surface.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from toolgate.authority import Verb, may
from toolgate.errors import ToolgateError
from toolgate.gate.drawing import draw, draw_all
from toolgate.interfaces.console.pages import SECRET_HEADERS, Pages, form_of, going_to
from toolgate.interfaces.server import deciding, sessions, views
from toolgate.interfaces.server.cards import blocks_of, card_of, network_of, note_served
from toolgate.interfaces.server.deciding import Reply
from toolgate.interfaces.server.identity import PATH_KEY, Caller
from toolgate.interfaces.server.problems import ProblemError, problem_of
from toolgate.interfaces.server.shield import prefix_of
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
            return await self._page(
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
            form = await form_of(request)
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
            return self._going_to(request, f"approvals/{approval.id}")

        return await self._for_caller(request, take)

    async def brake(self, request: Request) -> Response:
        """Set the mode of everybody, or of the project, an agent or a run in it."""

        async def take(caller: Caller) -> Response:
            form = await form_of(request)
            project = form.get("project", "")
            scope = _scope_of(form)
            who = caller.check(project, Verb.PULL if scope else Verb.SET_MODE)
            only_pull = not may(Verb.SET_MODE, caller, project)
            await self._services.gate.set_mode(
                form.get("mode", ""), by=who, reason=form.get("reason", ""), only_pull=only_pull, **scope
            )
            self._services.hub.tell_mode()
            return self._going_to(request, f"approvals?{urlencode({'project': project})}")

        return await self._for_caller(request, take)

    async def sign_out(self, request: Request) -> Response:
        """End the session."""

        async def end(caller: Caller) -> Response:
            await form_of(request)
            assert caller.token is not None
            await self._services.directory.revoke(caller.token.id, now=self._services.now(), by=caller.name)
            response = going_to(request, "/login")
            sessions.drop_cookie(response, self._services, scope=request.scope)
            return response

        return await self._for_caller(request, end)

    async def _for_caller(self, request: Request, work: Callable[[Caller], Awaitable[Response]]) -> Response:
        """Do something for who is signed in and knows the session's path; a problem becomes a page that says it."""
        try:
            caller = await self._pages.caller(request)
            key = request.path_params["key"]
            if caller is None or not await self._services.authenticator.has_key(caller, key, PATH_KEY):
                return going_to(request, "/login")
            return await work(replace(caller, is_bare=False))
        except ProblemError as problem:
            return self._problem(request, problem)
        except ToolgateError as error:
            return self._problem(request, problem_of(error))

    def _problem(self, request: Request, problem: ProblemError) -> Response:
        return self._pages.problem(request, problem, home=f"{self._home(request)}approvals", headers=SECRET_HEADERS)

    @staticmethod
    def _home(request: Request) -> str:
        return f"/pages/{request.path_params['key']}/"

    def _going_to(self, request: Request, tail: str) -> Response:
        return going_to(request, self._home(request) + tail, headers=SECRET_HEADERS)

    async def _found(self, request: Request, caller: Caller) -> Approval:
        """The question the path names; somebody else's is not there."""
        approval = await self._services.gate.approvals.get(request.path_params["approval_id"])
        caller.check(approval.project, Verb.READ)
        return approval

    async def _say(self, caller: Caller, approval: Approval, form: Form) -> None:
        """Do what the form wants."""
        answer = form.get("answer")
        who = caller.check(approval.project, Verb.COMMENT if answer == "comment" else Verb.DECIDE)
        reason = form.get("reason", "").strip() or None
        reply = Reply(
            project=approval.project,
            approval_id=approval.id,
            by=who,
            reason=reason,
            digest=form.get("digest"),
            on_behalf_of=form.get("on_behalf_of") or None,
            network=form.get("network") == "1",
        )
        match answer:
            case "approve":
                if reply.network:
                    caller.check(approval.project, Verb.EDIT)
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
        held = await deciding.votes_held(self._services, approval, caller.principal_in(approval.project))
        return await self._page(
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
            held=held,
            network=network_of(self._services.gate, approval),
        )

    async def _page(
        self, request: Request, template: str, caller: Caller, project: str, *, status: int = 200, **values: Any
    ) -> Response:
        caller.check(project, Verb.READ)
        return self._pages.page(
            request,
            template,
            status=status,
            headers=SECRET_HEADERS,
            here=prefix_of(request.scope) + self._home(request),
            account=caller.account.name,
            project=project,
            mode=self._services.gate.mode.value,
            brakes=[one for one in views.brakes(self._services.gate, project).brakes if one.project is not None],
            may_pull=may(Verb.PULL, caller, project),
            is_admin=may(Verb.SET_MODE, caller, project),
            held_policy=await self._services.gate.host.held_revision(),
            **values,
        )


def _opened(approval: Approval, full: bool) -> tuple[Card, list[BlockRecord]]:
    artifact = artifact_of(approval)
    return card_of(approval, artifact), blocks_of(artifact, full=full)


def _check_seen(card: Card, form: Form) -> None:
    """Refuse a yes to what was not wholly shown."""
    if card.must_expand and form.get("full") != "1":
        raise ProblemError(409, "not_shown", "A part was hidden; show everything before you approve.")


def _scope_of(form: Form) -> dict[str, Any]:
    """Over whom the brake of a form is: nothing for everybody. A name that is missing is none, not everybody's."""
    over, project, name = form.get("over", "everybody"), form.get("project", ""), form.get("name", "")
    scopes: dict[str, dict[str, Any]] = {
        "everybody": {},
        "project": {"project": project},
        "agent": {"project": project, "agent": name},
        "run": {"project": project, "run": name},
    }
    if over not in scopes:
        raise ProblemError(400, "invalid_body", "A brake is over everybody, a project, an agent or a run.")
    return scopes[over]
