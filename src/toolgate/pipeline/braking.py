"""Setting modes: for everybody, a project, an agent or a run. One row holds them all, so the first commit wins.

The truth is the event in `_system`; a project reads of its own brakes in its own chain, too.
"""

from __future__ import annotations

from toolgate.authority import check_pull
from toolgate.errors import InvalidIdError, ModeChangedError
from toolgate.kernel.brake import EVERYBODY, Brake, Scope
from toolgate.kernel.call import Call
from toolgate.kernel.change import Change
from toolgate.kernel.context import SYSTEM_PROJECT, Mode
from toolgate.kernel.event import Draft
from toolgate.kernel.ids import check_id, check_label
from toolgate.pipeline.driver import Driver
from toolgate.pipeline.lockdown import Lockdown
from toolgate.ports.store import CallQuery

PAGE = 1000


class Braking:
    """Pulls and releases brakes."""

    def __init__(self, driver: Driver, lockdown: Lockdown) -> None:
        self._driver = driver
        self._lockdown = lockdown

    async def set(self, scope: Scope, mode: Mode, *, by: str, reason: str, only_pull: bool) -> Brake:
        """Set the mode of a scope; NORMAL releases it. Durable before it returns: nothing of the scope starts after.

        With `only_pull`, NotAllowedError where that would release or loosen what is pulled.
        """
        driver = self._driver
        self._check(scope)
        found: tuple[str, ...] = ()
        while True:
            brakes = driver.store.brakes
            before = brakes.at(scope)
            # Whom it holds already stays held while it is pulled again, whatever became of their calls.
            holds = () if mode is Mode.NORMAL else tuple(sorted({*before.holds, *found}))
            if only_pull:
                check_pull(by, before, mode)
            shown = driver.masker.text(reason)
            brake = Brake(scope=scope, mode=mode, by=by, at=driver.now(), reason=shown, holds=holds)
            events = (_changed(before, brake),)
            change = Change(
                project=SYSTEM_PROJECT,
                at=driver.now(),
                events=events,
                mode_seen=brakes.serial,
                set_mode=brakes.put(brake),
            )
            try:
                await driver.commit(change)
            except ModeChangedError:
                continue
            # Nothing of the run starts any more, so who has named it by now is everybody there will be.
            found = await self._named_by(brake)
            if holds == tuple(sorted({*holds, *found})):
                break
        if scope.project is not None:
            await driver.commit(Change(project=scope.project, at=driver.now(), events=events))
        if mode is Mode.LOCKDOWN:
            await self._lockdown.announce(brake)
        return brake

    def _check(self, scope: Scope) -> None:
        for name, what in ((scope.project, "project"), (scope.agent, "brake's `agent`")):
            if name == "":
                raise InvalidIdError(f"A {what} is named; an empty name is nobody's.")
            if name is not None:
                check_label(name, what)  # whoever can ask can be braked
        if scope.run is not None:
            check_id(scope.run, "run id", self._driver.masker)

    async def _named_by(self, brake: Brake) -> tuple[str, ...]:
        """The accounts that made calls of a braked run on their own word: they could name another run."""
        scope, found = brake.scope, set[str]()
        last: Call | None = None
        if scope.run is None or brake.mode is Mode.NORMAL:
            return ()
        while True:
            query = CallQuery(project=scope.project, run_id=scope.run, after=last, limit=PAGE)
            calls = await self._driver.store.calls(query)
            found.update(call.context.principal for call in calls if call.context.claimed)
            if len(calls) < PAGE:
                return tuple(sorted(found))
            last = calls[-1]


def _changed(before: Brake, after: Brake) -> Draft:
    data: dict[str, object] = {"from": before.mode.value, "to": after.mode.value, "by": after.by}
    if after.scope != EVERYBODY:
        data |= {"scope": after.scope.told(), "holds": list(after.holds)}
    return ("mode.changed", None, data, {"reason": after.reason})
