"""Who is tried: an account of every kind, in two projects, and what may happen to it while it is signed in."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from tests.unit.interfaces.server.house import House

from toolgate.authority import RIGHTS, Verb, Whose
from toolgate.kernel.context import PrincipalKind
from toolgate.ports.directory import ABILITIES, VIEWER, Ability, Account

HOME, AWAY = "demo", "elsewhere"
PROJECTS = (HOME, AWAY)
STATES = ("viewer", "left", "revoked", "member")
"""What happens to an account, one after the other; what it could do before comes last, since that uses things up."""
LOSSES = STATES[:-1]


@dataclass(frozen=True, kw_only=True)
class Who:
    """An account before anything happens to it, the project it belongs to, and what its token is narrowed to."""

    name: str
    kind: PrincipalKind
    place: str = HOME
    acts_for: str | None = None
    token: dict[str, Any] = field(default_factory=dict)

    def able(self, state: str, project: str = HOME) -> frozenset[Ability] | None:
        """What it may do in a project in a state, by the table of kinds; None: it is not let in at all."""
        if state == "revoked":
            return None
        belongs = project == self.place and state != "left"
        if project not in self.token.get("projects", PROJECTS) or not (belongs or self.kind is PrincipalKind.ADMIN):
            return frozenset()
        is_viewer = state == "viewer" and project == self.place
        able = frozenset({Ability.READ}) if is_viewer else ABILITIES[self.kind]
        narrowed: frozenset[Ability] = self.token.get("abilities", frozenset(Ability))
        return able & narrowed

    @property
    def makes_things(self) -> bool:
        return Ability.ASK in (self.able("member", self.place) or ())


WHO = (
    Who(name="alma", kind=PrincipalKind.ADMIN),
    Who(name="pat", kind=PrincipalKind.PERSON),
    Who(name="abe", kind=PrincipalKind.AGENT, acts_for="pat"),
    Who(name="lone", kind=PrincipalKind.AGENT),
    Who(name="rex", kind=PrincipalKind.RUNNER),
    Who(name="rule", kind=PrincipalKind.POLICY),
    Who(name="sam", kind=PrincipalKind.PERSON, place=AWAY),
    Who(name="nora", kind=PrincipalKind.PERSON, token={"abilities": frozenset({Ability.READ})}),
    Who(name="ida", kind=PrincipalKind.PERSON, token={"projects": frozenset({"other"})}),
)


async def come(house: House, who: Who) -> None:
    """Let an account in, as it was before anything happened to it."""
    await house.add(who.name, who.kind.value, (who.place,), acts_for=who.acts_for, **who.token)


async def change(house: House, who: Who, state: str) -> None:
    """Do to an account what may happen while it is signed in."""
    if state == "revoked":
        for token in await house.directory.tokens(account=who.name):
            await house.directory.revoke(token.id, now=datetime.now(UTC))
    elif state != "member":
        roles = {who.place: frozenset({VIEWER})} if state == "viewer" else {}
        await house.directory.put_account(Account(name=who.name, kind=who.kind, roles=roles, acts_for=who.acts_for))


def expected(verb: Verb, who: Who, state: str, project: str = HOME, *, is_own: bool | None = None) -> frozenset[int]:
    """Which statuses refuse it, by the table; empty: it is let through, whatever comes of it then.

    `is_own` says whose call it is about, None: about none.
    """
    able, right = who.able(state, project), RIGHTS[verb]
    if able is None:
        return frozenset({401})
    if not able:
        return frozenset({404})
    if right.ability not in able:
        return frozenset({403})
    if is_own is not False or right.whose is Whose.ANYBODYS:
        return frozenset()
    if right.whose is Whose.OWN_OR_DECIDERS and Ability.DECIDE in able:
        return frozenset()
    return frozenset({403})
