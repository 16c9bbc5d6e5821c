"""Everything that can be asked of the server by a request, with the verb it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.authority.accounts import Who, expected
from tests.unit.interfaces.server.house import House, execute

from toolgate.authority import Verb
from toolgate.ports.directory import Ability

REMEMBER = {"uses": 1, "seconds": 60}
TAKEN = execute("keep", {"value": 1})
_OF = {Verb.JOIN: Verb.ASK, Verb.REPEAT: Verb.ASK}
"""Verbs that are another one's request."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """One request; the words in braces in its path are things somebody made.

    `is_about` says whose thing decides, and `foreign` how what is another's is refused where not with 403. Who may
    oversee reaches everybody's (`is_overseen`). `also` are statuses that something else than a missing right may give.
    """

    verb: Verb
    method: str
    path: str
    body: Any = None
    is_about: bool = False
    foreign: int = 403
    is_overseen: bool = False
    also: frozenset[int] = frozenset()

    @property
    def asks(self) -> tuple[Verb, ...]:
        """The verbs that are asked about, one after the other."""
        return (Verb.UNDO, Verb.FORCE) if self.verb is Verb.FORCE else (_OF.get(self.verb, self.verb),)

    @property
    def names_something(self) -> bool:
        """Whether its path names a thing that a project has."""
        return "{" in self.path

    def filled(self, things: dict[str, str]) -> tuple[str, Any]:
        """Its path and body about these things."""
        path, body = self.path.format(**things), self.body
        if self.verb is Verb.JOIN:
            body = {**body, "tool_id": things["call"]}
        return path, body

    def refusals(self, who: Who, state: str, project: str, *, is_own: bool) -> frozenset[int]:
        """Which statuses refuse it, by the table; empty: it is let through."""
        found = expected(self.verb, who, state, project)
        if found or is_own or not self.is_about:
            return found
        if self.is_overseen:
            return expected(Verb.OVERSEE, who, state, project) and frozenset({self.foreign})
        return expected(self.verb, who, state, project, is_own=False) and frozenset({self.foreign})


def _read(*paths: str) -> list[Request]:
    return [Request(verb=Verb.READ, method="GET", path=path) for path in paths]


def _post(verb: Verb, path: str, body: Any = None, **more: Any) -> Request:
    return Request(verb=verb, method="POST", path=path, body=body or {}, **more)


def _answer(verb: Verb, word: str, body: Any = None) -> Request:
    """An answer to a question, which its terms may refuse besides."""
    return _post(verb, f"/approvals/{{approval}}/{word}", body, also=frozenset({403}))


REQUESTS: tuple[Request, ...] = (
    *_read(
        "/tools/available",
        "/tools",
        "/tools/{call}",
        "/tools/{call}/timeline",
        "/tools/{call}/record",
        "/approvals",
        "/approvals/{approval}",
        "/approvals/{approval}/artifact",
        "/inbox/waiting",
        "/grants",
        "/grants/{grant}",
        "/delegations",
        "/mode",
        "/brakes",
        "/policy",
        "/runs",
        "/runs/{run}",
        "/audit",
        "/chat/conversations",
        "/chat/runs",
    ),
    Request(verb=Verb.READ, method="GET", path="/approvals/{approval}/artifact/none", also=frozenset({404})),
    _post(Verb.READ, "/audit/verify"),
    _post(Verb.READ, "/policy/explain", {"tool_name": "add", "tool_params": {"left": 1, "right": 2}}),
    _post(Verb.ASK, "/tools/execute", execute("add", {"left": 1, "right": 2})),
    _post(Verb.JOIN, "/tools/execute", TAKEN, is_about=True, foreign=409),
    _post(Verb.REPEAT, "/tools/execute", TAKEN),
    _post(Verb.CLAIM, "/tools/{claim}/claim", {"claim_id": "c" * 32}, is_about=True),
    _post(Verb.CLAIM, "/tools/{claim}/report", {"status": "completed", "result": 1, "fence": "c" * 32}, is_about=True),
    _post(Verb.CANCEL, "/tools/{call}/cancel", is_about=True),
    _post(Verb.UNDO, "/tools/{call}/undo", is_about=True),
    _post(Verb.FORCE, "/tools/{own}/undo", {"force": True}),
    _post(Verb.SETTLE, "/tools/{call}/settle", {"happened": True, "reason": "looked"}),
    _post(Verb.REPORT, "/tools/{call}/result", {"status": "completed", "result": 1}, also=frozenset({403})),
    _post(Verb.PROGRESS, "/tools/{call}/progress", {"progress": 0.5}, also=frozenset({403})),
    _answer(Verb.COMMENT, "comment", {"text": "hm"}),
    _answer(Verb.EXTEND, "extend", {"seconds": 600}),
    _answer(Verb.ESCALATE, "escalate"),
    _answer(Verb.EDIT, "difference", {"tool_params": {"amount": 2}}),
    _answer(Verb.REMEMBER, "grant-preview", REMEMBER),
    _answer(Verb.EDIT, "edit", {"tool_params": {"amount": 2}}),
    _answer(Verb.DECIDE, "approve"),
    _answer(Verb.DECIDE, "reject"),
    _answer(Verb.DECIDE, "deny"),
    _answer(Verb.RESPOND, "respond", {"response": "no"}),
    _post(Verb.REVOKE, "/grants/{grant}/revoke"),
    _post(Verb.DELEGATE, "/delegations", {"to": "root", "seconds": 60}),
    _post(Verb.END_DELEGATION, "/delegations/{delegation}/end", also=frozenset({403, 404})),
    _post(Verb.UNDO_RUN, "/runs/{run}/undo", {"preview": True}),
    Request(verb=Verb.SET_MODE, method="PUT", path="/mode", body={"mode": "NORMAL", "reason": "drill"}),
    Request(verb=Verb.PULL, method="PUT", path="/brakes", body={"mode": "ALERT", "run": "no-run", "reason": "drill"}),
    Request(verb=Verb.TRY_POLICY, method="GET", path="/policy/source", also=frozenset({404})),
    _post(Verb.TRY_POLICY, "/policy/simulate", {"source": "version: 1"}),
    Request(verb=Verb.TRY_POLICY, method="GET", path="/policy/held"),
    _post(Verb.ACCEPT_POLICY, "/policy/accept", {"revision": "0" * 12}),
    Request(verb=Verb.TRY_POLICY, method="GET", path="/tools/{call}/learn"),
    _post(Verb.ACCEPT_POLICY, "/tools/{call}/learn", {"revised": "0" * 12}),
    Request(
        verb=Verb.READ,
        method="GET",
        path="/chat/runs/{chat}",
        is_about=True,
        is_overseen=True,
        foreign=404,
    ),
    _post(Verb.TALK, "/chat/runs/{chat}/cancel", is_about=True, is_overseen=True, foreign=404),
    Request(verb=Verb.TALK, method="POST", path="/chat/messages", body={"content": "hello", "session_id": "s1"}),
    _post(Verb.SIGN_IN, "/tickets"),
)
OWN_ALONE = Request(verb=Verb.READ, method="GET", path="/chat/conversations/{talk}/messages")
"""What not even who oversees everything reads: somebody's conversation."""


async def made_by(house: House, who: str, project: str) -> dict[str, str]:
    """Make one of every thing as somebody, and return their ids."""
    base = f"/my/projects/{project}"
    client, root, things = house.client(who), house.client("root"), {}

    async def ask(tool: str, params: dict[str, Any] | None = None, **more: Any) -> Any:
        return (await client.post(f"{base}/tools/execute", json=execute(tool, params, **more))).json()

    things["call"] = things["own"] = (await ask("keep", {"value": 1}, run_id=f"run-{who}"))["tool_id"]
    things["run"] = f"run-{who}"
    things["approval"] = (await ask("pay", {"amount": 1}, wait=False))["approval_id"]
    granted = await ask("pay", {"amount": 9}, wait=False)
    yes = {"remember": REMEMBER, "reason": "fine"}
    await root.post(f"{base}/approvals/{granted['approval_id']}/approve", json=yes)
    grants = (await root.get(f"{base}/grants")).json()["grants"]
    things["grant"] = next(one["grant_id"] for one in grants if one["requester"].endswith(who))
    things["claim"] = (await ask("here", wait=False))["tool_id"]
    said = (await client.post(f"{base}/chat/messages", json={"content": "hello", "session_id": f"talk-{who}"})).json()
    things["chat"], things["talk"] = said["run_id"], said["session_id"]
    lent = (await client.post(f"{base}/delegations", json={"to": "root", "seconds": 60})).json()
    things["delegation"] = lent.get("delegation", {"delegation_id": "none"})["delegation_id"]  # an agent has no vote
    return things


def reads_all(who: Who, state: str, project: str) -> bool:
    """Whether it may read in a project at all."""
    return Ability.READ in (who.able(state, project) or ())
