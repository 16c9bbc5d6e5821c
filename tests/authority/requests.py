"""Everything that can be asked of the server, with the verb it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.unit.interfaces.server.house import House, P, execute

from toolgate.authority import Verb

REMEMBER = {"uses": 1, "seconds": 60}


@dataclass(frozen=True, kw_only=True)
class Request:
    """One request; `{call}`, `{approval}`, `{grant}`, `{delegation}`, `{run}` and `{claim}` in its path are things that
    somebody made.

    `is_about` says whose call decides. `also` are statuses that something else than a missing right may give.
    """

    verb: Verb
    method: str
    path: str
    body: Any = None
    is_about: bool = False
    also: frozenset[int] = frozenset()


def _read(*paths: str) -> list[Request]:
    return [Request(verb=Verb.READ, method="GET", path=path) for path in paths]


def _post(verb: Verb, path: str, body: Any = None, **more: Any) -> Request:
    return Request(verb=verb, method="POST", path=path, body=body or {}, **more)


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
        "/policy",
        "/runs",
        "/runs/{run}",
        "/audit",
    ),
    _post(Verb.READ, "/audit/verify"),
    _post(Verb.READ, "/policy/explain", {"tool_name": "add", "tool_params": {"left": 1, "right": 2}}),
    _post(Verb.ASK, "/tools/execute", execute("add", {"left": 1, "right": 2})),
    _post(Verb.CLAIM, "/tools/{claim}/claim", {"claim_id": "c" * 32}, is_about=True),
    _post(Verb.CANCEL, "/tools/{call}/cancel", is_about=True),
    _post(Verb.UNDO, "/tools/{call}/undo", is_about=True),
    _post(Verb.FORCE, "/tools/{own}/undo", {"force": True}),
    _post(Verb.SETTLE, "/tools/{call}/settle", {"happened": True, "reason": "looked"}),
    _post(Verb.REPORT, "/tools/{call}/result", {"status": "completed", "result": 1}, also=frozenset({403})),
    _post(Verb.PROGRESS, "/tools/{call}/progress", {"progress": 0.5}, also=frozenset({403})),
    _post(Verb.COMMENT, "/approvals/{approval}/comment", {"text": "hm"}, also=frozenset({403})),
    _post(Verb.EXTEND, "/approvals/{approval}/extend", {"seconds": 600}, also=frozenset({403})),
    _post(Verb.ESCALATE, "/approvals/{approval}/escalate", also=frozenset({403})),
    _post(Verb.EDIT, "/approvals/{approval}/difference", {"tool_params": {"amount": 2}}),
    _post(Verb.REMEMBER, "/approvals/{approval}/grant-preview", REMEMBER, also=frozenset({403})),
    _post(Verb.EDIT, "/approvals/{approval}/edit", {"tool_params": {"amount": 2}}, also=frozenset({403})),
    _post(Verb.DECIDE, "/approvals/{approval}/approve", also=frozenset({403})),
    _post(Verb.DECIDE, "/approvals/{approval}/reject", also=frozenset({403})),
    _post(Verb.DECIDE, "/approvals/{approval}/deny", also=frozenset({403})),
    _post(Verb.RESPOND, "/approvals/{approval}/respond", {"response": "no"}, also=frozenset({403})),
    _post(Verb.REVOKE, "/grants/{grant}/revoke"),
    _post(Verb.DELEGATE, "/delegations", {"to": "bob", "seconds": 60}),
    _post(Verb.END_DELEGATION, "/delegations/{delegation}/end", also=frozenset({403})),
    _post(Verb.UNDO_RUN, "/runs/{run}/undo", {"preview": True}),
    Request(verb=Verb.SET_MODE, method="PUT", path="/mode", body={"mode": "NORMAL", "reason": "drill"}),
    Request(verb=Verb.TRY_POLICY, method="GET", path="/policy/source", also=frozenset({404})),
    _post(Verb.TRY_POLICY, "/policy/simulate", {"source": "version: 1"}),
    _post(Verb.TALK, "/chat/messages", {"message": "hello", "session_id": "s1"}),
    Request(verb=Verb.TALK, method="POST", path="/chat/runs/none/cancel", body={}, also=frozenset({404})),
    Request(verb=Verb.READ, method="GET", path="/chat/conversations"),
    Request(verb=Verb.READ, method="GET", path="/chat/runs"),
    _post(Verb.SIGN_IN, "/tickets"),
)


async def made_by(house: House, who: str) -> dict[str, str]:
    """Make one of every thing as somebody, and return their ids."""
    client, things = house.client(who), {}
    body = execute("keep", {"value": 1}, run_id=f"run-{who}")
    things["call"] = things["own"] = (await client.post(f"{P}/tools/execute", json=body)).json()["tool_id"]
    things["run"] = f"run-{who}"
    asked = (await client.post(f"{P}/tools/execute", json=execute("pay", {"amount": 1}, wait=False))).json()
    things["approval"] = asked["approval_id"]
    granted = (await client.post(f"{P}/tools/execute", json=execute("pay", {"amount": 9}, wait=False))).json()
    yes = {"remember": REMEMBER, "reason": "fine"}
    await house.client("bob").post(f"{P}/approvals/{granted['approval_id']}/approve", json=yes)
    grants = (await house.client("bob").get(f"{P}/grants")).json()["grants"]
    things["grant"] = next(one["grant_id"] for one in grants if one["requester"].endswith(who))
    lent = (await client.post(f"{P}/delegations", json={"to": "bob", "seconds": 60})).json()
    things["delegation"] = (
        lent["delegation"]["delegation_id"] if "delegation" in lent else "none"
    )  # an agent has no vote
    things["claim"] = (await client.post(f"{P}/tools/execute", json=execute("here", wait=False))).json()["tool_id"]
    return things
