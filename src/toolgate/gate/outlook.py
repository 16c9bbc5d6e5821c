"""What the gate tells a host that works beside it: who it is, what somebody could call, and when calls move."""

from __future__ import annotations

from collections.abc import Callable

from toolgate.kernel.context import DEFAULT_CONTEXT, Context
from toolgate.kernel.ruling import is_hopeless
from toolgate.kernel.tool import ToolDefinition
from toolgate.pipeline.driver import Driver
from toolgate.pipeline.route import placement_of
from toolgate.ports.bus import Hint


class Outlook:
    """Reads only. Nothing here waits for anybody."""

    _driver: Driver

    @property
    def owner(self) -> str:
        """The random id of this opening of the store, alive for as long as the gate is open."""
        return self._driver.owner

    def offers(self, context: Context = DEFAULT_CONTEXT) -> list[ToolDefinition]:
        """Return the tools of which at least some call could run in this context, under the policy and mode of now."""
        driver = self._driver
        mode, now = driver.store.mode, driver.now()
        found = []
        for tool in driver.realm(context.project).registry:
            stance = driver.route(tool, context.project).stance
            runs_here = placement_of(tool, stance).value in driver.runners
            if runs_here and not is_hopeless(tool, stance, context, mode, now):
                found.append(tool)
        return found

    def hear(self, listener: Callable[[Hint], None]) -> Callable[[], None]:
        """Have a function called whenever a call moves, here or in another process; returns what ends that.

        It is called on any thread and must return at once. Hints may be lost: look into the store now and then.
        """
        return self._driver.bus.subscribe(listener)
