"""What the gate tells a host that works beside it: who it is, what somebody could call, and when calls move."""

from __future__ import annotations

from collections.abc import Callable

from toolgate.kernel.assessment import ApprovalLevel
from toolgate.kernel.call import Call
from toolgate.kernel.context import DEFAULT_CONTEXT, Context
from toolgate.kernel.ruling import is_hopeless, level_of
from toolgate.kernel.tool import ToolDefinition
from toolgate.pipeline.driver import Driver
from toolgate.pipeline.steps import timeout_s
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
            plan = driver.plan_of(tool, context.project)
            if plan.placement in driver.runners and not is_hopeless(tool, plan.stance, context, mode, now):
                found.append(tool)
        return found

    def asks(self, tool: ToolDefinition, context: Context = DEFAULT_CONTEXT) -> float:
        """Return how long a person may take to answer about an ordinary call of this tool; 0 where nobody is asked.

        Under the policy and mode of now. Not every call is asked about: its arguments may settle it, either way.
        """
        driver = self._driver
        now, stance = driver.now(), driver.plan_of(tool, context.project).stance
        level = level_of(tool, stance, context, driver.store.mode, now)
        if level is ApprovalLevel.AUTO:
            return 0.0
        call = Call(id="", project=context.project, tool_name=tool.name, context=context, created_at=now)
        return timeout_s(call, tool, stance, level)

    def hear(self, listener: Callable[[Hint], None]) -> Callable[[], None]:
        """Have a function called whenever a call moves, here or in another process; returns what ends that.

        It is called on any thread and must return at once. Hints may be lost: look into the store now and then.
        """
        return self._driver.bus.subscribe(listener)
