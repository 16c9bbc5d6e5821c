"""Watches a server: what it does with its gate must have been asked of the authority, in the same request or message.

What a surface may do with the gate after which verb is written here once; whatever else it does is an escape.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any
from unittest.mock import patch

from tests.unit.interfaces.server.house import House

from toolgate import authority
from toolgate.authority import Verb
from toolgate.interfaces.server.socket import Line
from toolgate.kernel.call import Call
from toolgate.kernel.context import Principal

ANY = frozenset(Verb)
DOES: dict[str, frozenset[Verb]] = {
    "call": frozenset({Verb.ASK}),
    "decide": frozenset({Verb.DECIDE}),
    "complete": frozenset({Verb.REPORT, Verb.CLAIM}),
    "settle": frozenset({Verb.SETTLE}),
    "cancel": frozenset({Verb.CANCEL}),
    "undo": frozenset({Verb.UNDO}),
    "undo_run": frozenset({Verb.UNDO_RUN}),
    "set_mode": frozenset({Verb.SET_MODE, Verb.PULL}),
    "approvals.edit": frozenset({Verb.EDIT}),
    "approvals.approve_with_network": frozenset({Verb.EDIT}),
    "approvals.respond": frozenset({Verb.RESPOND}),
    "approvals.extend": frozenset({Verb.EXTEND}),
    "approvals.escalate": frozenset({Verb.ESCALATE}),
    "approvals.comment": frozenset({Verb.COMMENT}),
    "grants.preview": frozenset({Verb.REMEMBER}),
    "grants.revoke": frozenset({Verb.REVOKE}),
    "delegations.give": frozenset({Verb.DELEGATE}),
    "delegations.end": frozenset({Verb.END_DELEGATION}),
    "host.accept_policy": frozenset({Verb.ACCEPT_POLICY}),
    "host.reload_policy": frozenset({Verb.ACCEPT_POLICY}),
    "host.held_policy": frozenset({Verb.TRY_POLICY}),
    "remote.dispatch": frozenset({Verb.DISPATCH}),
    "remote.claim": frozenset({Verb.CLAIM}),
    "remote.progress": frozenset({Verb.PROGRESS}),
    "remote.doubt": frozenset({Verb.REPORT, Verb.CLAIM}),
    **dict.fromkeys(
        (
            "wait get events undone mode brakes policy registry pending calls.get calls.list approvals.list "
            "host.policy host.masker host.held_revision host.head host.differences host.offers host.asks "
            "host.undo_data approvals.piece approvals.check approvals.artifact approvals.votes_held grants.list "
            "delegations.list"
        ).split(),
        ANY,
    ),
}
"""Which of the gate's verbs, after which right; what only looks, after any."""
FINDS = "approvals.get"
"""What a message or page that names a question alone may do first, to learn which project to ask about."""
PARTS = ("approvals", "grants", "delegations", "remote", "calls", "host")
_asked: ContextVar[set[Verb] | None] = ContextVar("asked", default=None)


class Watched:
    """A gate, or a part of one, that notes what is done with it before the authority was asked."""

    def __init__(self, real: Any, escapes: list[str], part: str = "") -> None:
        self._real, self._escapes, self._part = real, escapes, part

    def __getattr__(self, name: str) -> Any:
        if not self._part and name in PARTS:
            return Watched(getattr(self._real, name), self._escapes, f"{name}.")
        told = self._part + name
        asked = _asked.get() or set[Verb]()
        if told != FINDS and not asked & DOES.get(told, frozenset()):
            self._escapes.append(f"{told} after {sorted(asked)}")
        return getattr(self._real, name)


@contextmanager
def watching(house: House) -> Iterator[list[str]]:
    """Watch what the server's surfaces do with its gate; gives what they did unasked."""
    escapes: list[str] = []
    check, take = authority.check, Line._take

    def asked(verb: Verb, who: Any, project: str, call: Call | None = None) -> Principal:
        allowed = check(verb, who, project, call)
        noted = _asked.get()
        if noted is None:
            _asked.set(noted := set())
        noted.add(verb)
        return allowed

    async def taken(line: Line, message: Any) -> None:
        _asked.set(None)  # each message asks anew
        await take(line, message)

    house.services.gate = Watched(house.gate, escapes)  # type: ignore[assignment]
    with patch.object(authority, "check", asked), patch.object(Line, "_take", taken):
        yield escapes
    house.services.gate = house.gate
