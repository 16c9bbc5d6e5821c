"""Who is tried: one account of every kind, and what may happen to it while it is signed in."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from tests.unit.interfaces.server.house import House

from toolgate.authority import RIGHTS, Verb, Whose
from toolgate.kernel.context import PrincipalKind
from toolgate.ports.directory import ABILITIES, VIEWER, Ability, Account

PROJECT = "demo"


@dataclass(frozen=True, kw_only=True)
class Who:
    """An account before anything happens to it, and what its token is narrowed to."""

    name: str
    kind: PrincipalKind
    is_member: bool = True
    acts_for: str | None = None
    token: dict[str, Any] = field(default_factory=dict)

    def able(self, state: str) -> frozenset[Ability] | None:
        """What it may do in the project in a state, by the table of kinds; None: it is not let in at all."""
        if state == "revoked":
            return None
        belongs = self.is_member and state != "left"
        if "projects" in self.token or not (belongs or self.kind is PrincipalKind.ADMIN):
            return frozenset()
        able = frozenset({Ability.READ}) if state == "viewer" else ABILITIES[self.kind]
        narrowed: frozenset[Ability] | None = self.token.get("abilities")
        return able if narrowed is None else able & narrowed


WHO = (
    Who(name="alma", kind=PrincipalKind.ADMIN),
    Who(name="pat", kind=PrincipalKind.PERSON),
    Who(name="abe", kind=PrincipalKind.AGENT, acts_for="pat"),
    Who(name="lone", kind=PrincipalKind.AGENT),
    Who(name="rex", kind=PrincipalKind.RUNNER),
    Who(name="sam", kind=PrincipalKind.PERSON, is_member=False),
    Who(name="nora", kind=PrincipalKind.PERSON, token={"abilities": frozenset({Ability.READ})}),
    Who(name="ida", kind=PrincipalKind.PERSON, token={"projects": frozenset({"other"})}),
)
STATES = ("member", "viewer", "left", "revoked")


async def come(house: House, who: Who) -> None:
    """Let an account in."""
    places = {PROJECT: frozenset[str]()} if who.is_member else {"elsewhere": frozenset[str]()}
    await house.add(who.name, who.kind.value, places, acts_for=who.acts_for, **who.token)


async def change(house: House, who: Who, state: str) -> None:
    """Do to an account what may happen while it is signed in."""
    if state == "revoked":
        for token in await house.directory.tokens(account=who.name):
            await house.directory.revoke(token.id, now=datetime.now(UTC))
    elif state != "member":
        place = PROJECT if who.is_member else "elsewhere"
        roles = {place: frozenset({VIEWER})} if state == "viewer" else {}
        await house.directory.put_account(Account(name=who.name, kind=who.kind, roles=roles, acts_for=who.acts_for))


def expected(verb: Verb, who: Who, state: str, *, is_own: bool | None) -> frozenset[int]:
    """Which statuses refuse it, by the table; empty: it is let through, whatever comes of it then.

    `is_own` says whose call it is about, None: about none.
    """
    able, right = who.able(state), RIGHTS[verb]
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
