"""Brakes: the mode pulled for everybody, for a project, an agent or a run, and which of them hold for a call.

A call answers to every brake that is pulled over it: everybody's, its project's, its principal's and its user's, its
run's. It must pass the rules under each of their modes, so a narrower brake only ever takes away. Modes have no other
order than this: LOCKDOWN is the strictest, NORMAL is no brake at all, and of the rest each asks its own rules.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from toolgate.errors import UsageError
from toolgate.kernel.context import Context, Mode

MOST = 1000
"""How many projects can have a brake of their own at once, and how many agents and runs: every claim looks at them."""
MOST_IN_PROJECT = 100
"""How many agents and runs of one project: nobody uses up the brakes of another, nor that of the whole project."""
FAULTY = -1
"""The number of brakes that cannot be trusted: no event has it."""

_ALONE = {mode: (mode,) for mode in Mode}
_ORDER = (Mode.LOCKDOWN, *(mode for mode in Mode if mode is not Mode.LOCKDOWN))


class Scope(NamedTuple):
    """Over whom a brake is pulled: everybody, or a project, or an agent or a run in a project."""

    project: str | None = None
    agent: str | None = None
    run: str | None = None

    def told(self) -> dict[str, str]:
        """What it names, as JSON."""
        return {name: value for name, value in self._asdict().items() if value is not None}

    def __str__(self) -> str:
        if self.project is None:
            return "everybody"
        if self.agent is not None:
            return f"agent '{self.agent}' in project '{self.project}'"
        return f"project '{self.project}'" if self.run is None else f"run '{self.run}' in project '{self.project}'"


EVERYBODY = Scope()


@dataclass(frozen=True, slots=True, kw_only=True)
class Brake:
    """A mode that holds over a scope, who pulled it, when and why.

    `holds` are the accounts that named a braked run by their own word: they could name another, so what they ask on
    their word is held with it.
    """

    scope: Scope = EVERYBODY
    mode: Mode = Mode.NORMAL
    by: str = ""
    at: datetime | None = None
    reason: str = ""
    holds: tuple[str, ...] = ()

    def __str__(self) -> str:
        why = f": {self.reason}" if self.reason else ""
        return f"{self.mode} over {self.scope}, by {self.by or 'nobody'}{why}"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Brakes:
    """All brakes at one moment. `serial` is the number of the event in `_system` that set them; 0: none ever did.

    `fault` says why what is stored cannot be trusted: everybody is in LOCKDOWN then, since nothing less is sure.
    """

    whole: Brake = Brake()
    scoped: dict[Scope, Brake] = field(default_factory=dict)
    serial: int = 0
    fault: str | None = None
    _holding: dict[tuple[str | None, str], list[Brake]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        for brake in self.scoped.values():
            for account in brake.holds:
                self._holding.setdefault((brake.scope.project, account), []).append(brake)

    @classmethod
    def distrusted(cls, why: str) -> Brakes:
        """What counts where the stored brakes were not written by a gate: LOCKDOWN for everybody."""
        return cls(whole=Brake(mode=Mode.LOCKDOWN, reason=why), serial=FAULTY, fault=why)

    @property
    def mode(self) -> Mode:
        """The mode of everybody."""
        return self.whole.mode

    @property
    def active(self) -> tuple[Brake, ...]:
        """The brakes that are pulled, everybody's first."""
        mine = () if self.whole.mode is Mode.NORMAL else (self.whole,)
        return (*mine, *self.scoped.values())

    @property
    def has_lockdown(self) -> bool:
        """Whether anybody is in LOCKDOWN."""
        return any(brake.mode is Mode.LOCKDOWN for brake in self.active)

    def over(self, context: Context) -> tuple[Mode, ...]:
        """Return the modes a call of this context answers to, LOCKDOWN first: it must pass the rules under each."""
        if not self.scoped:
            return _ALONE[self.whole.mode]
        modes = {self.whole.mode, *(brake.mode for brake in self.on(context))}
        return tuple(mode for mode in _ORDER if mode in modes) if len(modes) > 1 else _ALONE[self.whole.mode]

    def on(self, context: Context) -> list[Brake]:
        """Return the brakes pulled over a call of this context besides everybody's, the widest first."""
        project, run = context.project, context.run_id
        scopes = [Scope(project), Scope(project, agent=context.principal)]
        if context.user is not None and context.user != context.principal:
            scopes.append(Scope(project, agent=context.user))
        if run is not None:
            scopes.append(Scope(project, run=run))
        found = [self.scoped[scope] for scope in scopes if scope in self.scoped]
        if context.claimed:
            found += (brake for brake in self._holding.get((project, context.principal), ()) if brake not in found)
        return found

    def told(self, context: Context, *, mode: Mode | None = None) -> str:
        """Name the brakes pulled over a call of this context, or those of one mode; empty where there are none."""
        mine = [] if self.whole.mode is Mode.NORMAL else [self.whole]
        found = [brake for brake in (*mine, *self.on(context)) if mode in (None, brake.mode)]
        return self.fault or "; ".join(map(str, found))

    def at(self, scope: Scope) -> Brake:
        """Return the brake of exactly this scope; its mode is NORMAL where it is not pulled."""
        return self.whole if scope == EVERYBODY else self.scoped.get(scope, Brake(scope=scope))

    def put(self, brake: Brake) -> Brakes:
        """Return these brakes with this one in the place of what its scope has now; NORMAL releases it.

        Raises UsageError where there are too many. What could not be trusted does not come back.
        """
        scoped = {scope: kept for scope, kept in self.scoped.items() if scope != brake.scope}
        if brake.scope == EVERYBODY:
            return Brakes(whole=brake, scoped=scoped)
        if self.fault is not None:
            raise UsageError(f"{self.fault} Set the mode of everybody first.")
        if brake.mode is not Mode.NORMAL:
            _check_room(scoped, brake.scope)
            scoped[brake.scope] = brake
        return Brakes(whole=self.whole, scoped=scoped)

    def numbered(self, serial: int) -> Brakes:
        """Return the same as set by the event of this number."""
        return Brakes(whole=self.whole, scoped=self.scoped, serial=serial)


def _check_room(pulled: Iterable[Scope], scope: Scope) -> None:
    """Raise UsageError where there are too many brakes for one more of this scope."""
    if scope == Scope(scope.project):
        if sum(one == Scope(one.project) for one in pulled) >= MOST:
            raise UsageError(
                f"The brakes of {MOST} projects are pulled already; release some, or set everybody's mode."
            )
        return
    narrow = [one.project for one in pulled if one != Scope(one.project)]
    if len(narrow) >= MOST or narrow.count(scope.project) >= MOST_IN_PROJECT:
        raise UsageError(
            f"Brakes of {MOST_IN_PROJECT} agents and runs in a project, or {MOST} in all, are pulled already; release "
            "some, or pull the one of their project."
        )


def scope_of(project: str | None, agent: str | None, run: str | None) -> Scope:
    """Return the scope these words name; UsageError where they name none."""
    if project is None and (agent is not None or run is not None):
        raise UsageError("An agent or a run is braked in a project; name it.")
    if agent is not None and run is not None:
        raise UsageError("A brake is pulled over an agent or over a run; name one of them.")
    return Scope(project, agent, run)


def is_pull(before: Mode, after: Mode) -> bool:
    """Whether going from one mode to the other pulls a brake, and loosens none: out of NORMAL, or into LOCKDOWN."""
    return after is Mode.LOCKDOWN or (before is Mode.NORMAL and after is not Mode.NORMAL)
