"""What governs, over the network: runs and undoing them, the mode, the policy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from toolgate.interfaces.client.base import Part
from toolgate.interfaces.client.connection import given
from toolgate.wire.brakes import BrakesAnswer, ModeName
from toolgate.wire.policy import (
    AcceptPolicyAnswer,
    ExplainAnswer,
    HeldPolicy,
    HeldPolicyAnswer,
    LearnAnswer,
    LearnedAnswer,
    PolicyAnswer,
    PolicySourceAnswer,
    SimulateAnswer,
)
from toolgate.wire.schemas import (
    ModeAnswer,
    RunAnswer,
    UndoRunAnswer,
)

LONG_S = 600.0
"""How much longer than other requests may take what goes through many calls."""


class Governance(Part):
    """Runs, mode and policy."""

    async def run(self, run_id: str, *, after: str | None = None, limit: int | None = None) -> RunAnswer:
        """A page of a run's calls, oldest first; its `next` is the `after` of the next page."""
        query = given(after=after, limit=limit)
        return await self._connection.ask(RunAnswer, "GET", self._path("runs", run_id), query=query, repeats=True)

    async def undo_run(
        self, run_id: str, *, force: bool = False, skip_failures: bool = False, preview: bool = False
    ) -> UndoRunAnswer:
        """Undo the calls of a run, last first. `preview` changes nothing and says what would happen."""
        body = {"force": force, "skip_failures": skip_failures, "preview": preview}
        path = self._path("runs", run_id, "undo")
        return await self._connection.ask(UndoRunAnswer, "POST", path, body=body, repeats=preview, wait_s=LONG_S)

    async def mode(self) -> ModeName:
        """The operator's mode."""
        return (await self._connection.ask(ModeAnswer, "GET", self._path("mode"), repeats=True)).mode

    async def set_mode(self, mode: ModeName, reason: str = "") -> ModeName:
        """Change the mode, for everybody; for admins."""
        body = {"mode": mode, "reason": reason}
        return (await self._connection.ask(ModeAnswer, "PUT", self._path("mode"), body=body)).mode

    async def brakes(self) -> BrakesAnswer:
        """The brakes over this project and in it: everybody's mode, and those of the project, its agents and runs."""
        return await self._connection.ask(BrakesAnswer, "GET", self._path("brakes"), repeats=True)

    async def set_brake(
        self, mode: ModeName, reason: str = "", *, agent: str | None = None, run: str | None = None
    ) -> BrakesAnswer:
        """Set the mode of this project, or of an agent or a run in it; who may decide pulls, admins also release."""
        body = given(mode=mode, reason=reason, agent=agent, run=run)
        return await self._connection.ask(BrakesAnswer, "PUT", self._path("brakes"), body=body)

    async def policy(self) -> PolicyAnswer:
        """Which policy is followed."""
        return await self._connection.ask(PolicyAnswer, "GET", self._path("policy"), repeats=True)

    async def policy_source(self) -> PolicySourceAnswer:
        """What the policy says, file by file and tool by tool."""
        return await self._connection.ask(PolicySourceAnswer, "GET", self._path("policy", "source"), repeats=True)

    async def held_policy(self) -> HeldPolicy | None:
        """What waits for a person's word, as a diff, since a sandboxed run could have written it; None: nothing."""
        path = self._path("policy", "held")
        return (await self._connection.ask(HeldPolicyAnswer, "GET", path, repeats=True)).held

    async def accept_policy(self, revision: str) -> str:
        """Accept what waits, as it was shown, and return the revision that is followed; for admins.

        ConflictError where the files say something else by now. Saying it twice changes nothing.
        """
        path, body = self._path("policy", "accept"), {"revision": revision}
        return (await self._connection.ask(AcceptPolicyAnswer, "POST", path, body=body, repeats=True)).revision

    async def learn(self, call_id: str) -> LearnAnswer:
        """The narrowest change of the policy that would have allowed a call, as a diff; nothing is changed."""
        return await self._connection.ask(LearnAnswer, "GET", self._path("tools", call_id, "learn"), repeats=True)

    async def write_learned(self, call_id: str, revised: str) -> LearnedAnswer:
        """Write that change into the server's policy file; `revised` is of the change that was shown; for admins."""
        path, body = self._path("tools", call_id, "learn"), {"revised": revised}
        return await self._connection.ask(LearnedAnswer, "POST", path, body=body, repeats=True)

    async def simulate(
        self,
        files: Mapping[str, str],
        *,
        against: Literal["current", "recorded"] | None = None,
        since_seconds: float | None = None,
        after: str | None = None,
        limit: int | None = None,
    ) -> SimulateAnswer:
        """Replay recorded calls under a changed policy; go on with `after` until `next` is None."""
        body = given(files=dict(files), against=against, since_seconds=since_seconds, after=after, limit=limit)
        path = self._path("policy", "simulate")
        return await self._connection.ask(SimulateAnswer, "POST", path, body=body, repeats=True, wait_s=LONG_S)

    async def explain(
        self,
        tool: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        behavior: str | None = None,
        mode: ModeName | None = None,
    ) -> dict[str, Any]:
        """What the policy makes of a call by this account, without making it."""
        body = given(tool_name=tool, tool_params=dict(arguments or {}), behavior=behavior, mode=mode)
        path = self._path("policy", "explain")
        return (await self._connection.ask(ExplainAnswer, "POST", path, body=body, repeats=True)).explanation
