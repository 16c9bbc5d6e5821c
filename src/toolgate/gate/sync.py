"""The gate for plain threads: the same methods, blocking. They run on the gate's background loop."""

from __future__ import annotations

from collections.abc import Coroutine, Mapping
from concurrent.futures import CancelledError
from typing import TYPE_CHECKING, Any, TypeVar

from toolgate.errors import GateClosedError, UsageError
from toolgate.gate.elsewhere import LEASE_S
from toolgate.kernel.approval import Approval
from toolgate.kernel.artifact import ApprovalArtifact
from toolgate.kernel.call import Call
from toolgate.kernel.context import DEFAULT_CONTEXT, DEFAULT_PROJECT, Context, Mode, Principal
from toolgate.kernel.event import Event
from toolgate.kernel.grant import Grant, Remember
from toolgate.kernel.output import Result, ToolOutput
from toolgate.kernel.policy import Policy
from toolgate.kernel.tool import ToolDefinition
from toolgate.kernel.undo import UndoMetadata
from toolgate.pipeline.background import Background
from toolgate.pipeline.people.deciding import Foresight
from toolgate.pipeline.people.undoing import UndoReport
from toolgate.ports.channel import Decision
from toolgate.ports.store import ApprovalQuery, CallQuery, GrantQuery

if TYPE_CHECKING:
    from toolgate.gate.front import Gate

T = TypeVar("T")


class SyncGate:
    """Blocks the calling thread until the answer is there. Arguments are those of Gate's methods."""

    def __init__(self, gate: Gate, background: Background) -> None:
        self._gate = gate
        self._background = background

    def _run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        if self._background.is_closed or self._background.is_current:
            coroutine.close()
            if self._background.is_closed:
                raise GateClosedError("This gate is closed; open a new one.")
            raise UsageError("`gate.sync` would wait for itself here; use the async method.")
        future = self._background.submit(coroutine)
        try:
            return future.result()
        except KeyboardInterrupt:
            future.cancel()
            raise
        except CancelledError:
            raise GateClosedError("The gate was closed while this waited.") from None

    def call(
        self,
        tool: str | ToolDefinition,
        arguments: str | bytes | Mapping[str, object] | None = None,
        *,
        context: Context = DEFAULT_CONTEXT,
        call_id: str | None = None,
        wait: bool = True,
        approval_timeout_s: float | None = None,
        message: str | None = None,
        claim: str | None = None,
        own: bool = False,
    ) -> Result:
        return self._run(
            self._gate.call(
                tool,
                arguments,
                context=context,
                call_id=call_id,
                wait=wait,
                approval_timeout_s=approval_timeout_s,
                message=message,
                claim=claim,
                own=own,
            )
        )

    def wait(self, call_id: str, *, project: str = DEFAULT_PROJECT) -> Result:
        return self._run(self._gate.wait(call_id, project=project))

    def decide(self, approval_id: str, decision: Decision | str, **said: Any) -> Result:
        return self._run(self._gate.decide(approval_id, decision, **said))

    def edit(self, approval_id: str, arguments: str | bytes | Mapping[str, object], **said: Any) -> Result:
        return self._run(self._gate.edit(approval_id, arguments, **said))

    def respond(self, approval_id: str, response: Any, **said: Any) -> Result:
        return self._run(self._gate.respond(approval_id, response, **said))

    def answer(self, approval_id: str, *, project: str | None = None) -> Approval:
        return self._run(self._gate.answer(approval_id, project=project))

    def extend(self, approval_id: str, seconds: float, *, by: str | Principal, project: str | None = None) -> Approval:
        return self._run(self._gate.extend(approval_id, seconds, by=by, project=project))

    def escalate(self, approval_id: str, *roles: str, by: str | Principal, project: str | None = None) -> Approval:
        return self._run(self._gate.escalate(approval_id, *roles, by=by, project=project))

    def comment(self, approval_id: str, text: str, *, by: str | Principal, project: str | None = None) -> Approval:
        return self._run(self._gate.comment(approval_id, text, by=by, project=project))

    def artifact(self, approval_id: str, *, project: str | None = None) -> ApprovalArtifact:
        return self._run(self._gate.artifact(approval_id, project=project))

    def preview_grant(
        self, approval_id: str, remember: Remember, *, by: str | Principal, project: str | None = None
    ) -> Foresight:
        return self._run(self._gate.preview_grant(approval_id, remember, by=by, project=project))

    def grants(self, query: GrantQuery) -> list[Grant]:
        return self._run(self._gate.grants(query))

    def revoke(
        self, grant_id: str, *, by: str | Principal, reason: str | None = None, project: str | None = None
    ) -> Grant:
        return self._run(self._gate.revoke(grant_id, by=by, reason=reason, project=project))

    def dispatch(self, call_id: str, *, to: str | Principal, project: str = DEFAULT_PROJECT) -> Call:
        return self._run(self._gate.dispatch(call_id, to=to, project=project))

    def work(
        self, call_id: str, *, by: str | Principal, project: str = DEFAULT_PROJECT, lease_s: float = LEASE_S
    ) -> Result:
        return self._run(self._gate.work(call_id, by=by, project=project, lease_s=lease_s))

    def progress(
        self,
        call_id: str,
        fraction: float | None = None,
        message: str | None = None,
        data: object = None,
        *,
        by: str | Principal | None = None,
        fence: str | None = None,
        project: str = DEFAULT_PROJECT,
    ) -> Result:
        return self._run(self._gate.progress(call_id, fraction, message, data, by=by, fence=fence, project=project))

    def complete(
        self,
        call_id: str,
        output: ToolOutput,
        *,
        fence: str | None = None,
        by: str | Principal | None = None,
        project: str = DEFAULT_PROJECT,
    ) -> Result:
        return self._run(self._gate.complete(call_id, output, fence=fence, by=by, project=project))

    def doubt(
        self,
        call_id: str,
        reason: str,
        *,
        fence: str | None = None,
        by: str | Principal | None = None,
        project: str = DEFAULT_PROJECT,
    ) -> Result:
        return self._run(self._gate.doubt(call_id, reason, fence=fence, by=by, project=project))

    def settle(
        self,
        call_id: str,
        *,
        happened: bool,
        by: str | Principal,
        reason: str,
        project: str = DEFAULT_PROJECT,
    ) -> Result:
        return self._run(self._gate.settle(call_id, happened=happened, by=by, reason=reason, project=project))

    def cancel(
        self,
        call_id: str,
        *,
        reason: str = "cancelled by the caller",
        project: str = DEFAULT_PROJECT,
        wait: bool = True,
    ) -> Result:
        return self._run(self._gate.cancel(call_id, reason=reason, project=project, wait=wait))

    def undo(self, call_id: str, *, context: Context = DEFAULT_CONTEXT, force: bool = False) -> Result:
        return self._run(self._gate.undo(call_id, context=context, force=force))

    def undo_data(self, call_id: str, *, project: str = DEFAULT_PROJECT) -> UndoMetadata | None:
        return self._run(self._gate.undo_data(call_id, project=project))

    def adopt(self, metadata: UndoMetadata, *, context: Context = DEFAULT_CONTEXT) -> None:
        self._run(self._gate.adopt(metadata, context=context))

    def undo_run(
        self,
        run_id: str,
        *,
        context: Context = DEFAULT_CONTEXT,
        force: bool = False,
        skip_failures: bool = False,
        preview: bool = False,
    ) -> UndoReport:
        return self._run(
            self._gate.undo_run(run_id, context=context, force=force, skip_failures=skip_failures, preview=preview)
        )

    def set_mode(self, mode: Mode | str, *, by: str | Principal, reason: str = "") -> None:
        self._run(self._gate.set_mode(mode, by=by, reason=reason))

    def set_policy(self, policy: Policy, *, by: str | Principal) -> None:
        self._run(self._gate.set_policy(policy, by=by))

    def reload_policy(self, *, by: str | Principal) -> Policy:
        return self._run(self._gate.reload_policy(by=by))

    def register(self, tool: ToolDefinition) -> None:
        self._gate.register(tool)

    def approvals(self, query: ApprovalQuery) -> list[Approval]:
        return self._run(self._gate.approvals(query))

    def approval(self, approval_id: str, *, project: str | None = None) -> Approval:
        return self._run(self._gate.approval(approval_id, project=project))

    def recover(self) -> None:
        self._run(self._gate.recover())

    def pending(self, *, project: str | None = None, limit: int = 1000) -> list[Approval]:
        return self._run(self._gate.pending(project=project, limit=limit))

    def get(self, call_id: str, *, project: str = DEFAULT_PROJECT) -> Result:
        return self._run(self._gate.get(call_id, project=project))

    def record(self, call_id: str, *, project: str = DEFAULT_PROJECT) -> Call:
        return self._run(self._gate.record(call_id, project=project))

    def calls(self, query: CallQuery) -> list[Call]:
        return self._run(self._gate.calls(query))

    def events(
        self, *, project: str = DEFAULT_PROJECT, after: int = 0, limit: int = 1000, call_id: str | None = None
    ) -> list[Event]:
        return self._run(self._gate.events(project=project, after=after, limit=limit, call_id=call_id))
