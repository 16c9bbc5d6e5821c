"""Where a command for people does its work: a database of this machine, or a server. One set of verbs for both."""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import typer

from toolgate.errors import UsageError
from toolgate.interfaces.cli.on_server import REMOTE, is_address

if TYPE_CHECKING:
    from datetime import datetime

    from toolgate.kernel.approval import Approval
    from toolgate.kernel.grant import Remember
    from toolgate.kernel.output import Result
    from toolgate.ports.channel import Decision
    from toolgate.wire.brakes import BrakesAnswer, ModeName
    from toolgate.wire.delegations import DelegationRecord
    from toolgate.wire.schemas import EventRecord, ExecutionRecord, GrantRecord, UndoRunAnswer


class UnknownCall(NamedTuple):
    """A call whose outcome nobody knows since a time; `owner` is the process that ran it, which no server says."""

    id: str
    project: str
    tool_name: str
    started_at: datetime | None
    owner: str | None
    error: str | None
    shown: Any
    since: datetime


class Backend(Protocol):
    """Everything a person can do from the command line. Questions are given as they were shown."""

    def pending(self) -> list[Approval]: ...

    def approval(self, approval_id: str) -> Approval: ...

    def decide(
        self,
        asked: Approval,
        decision: Decision,
        *,
        reason: str | None = None,
        digest: str | None = None,
        remember: Remember | None = None,
        on_behalf_of: str | None = None,
    ) -> Result: ...

    def approve_with_network(
        self, asked: Approval, *, reason: str | None = None, digest: str | None = None
    ) -> Result: ...

    def edit(
        self, asked: Approval, arguments: str, *, reason: str | None = None, digest: str | None = None
    ) -> Result: ...

    def respond(self, asked: Approval, words: str, *, digest: str | None = None) -> Result: ...

    def comment(self, asked: Approval, words: str) -> None: ...

    def extend(self, asked: Approval, seconds: float) -> None: ...

    def latest(self, *, run: str | None, limit: int) -> list[ExecutionRecord]: ...

    def follow(self, after: int | None) -> Generator[EventRecord, None, None]: ...

    def undo(self, call_id: str, *, force: bool) -> Result: ...

    def undo_run(self, run_id: str, *, force: bool, skip_failures: bool, preview: bool) -> UndoRunAnswer: ...

    def grants(self, *, everything: bool) -> list[GrantRecord]: ...

    def revoke(self, grant_id: str, reason: str | None) -> GrantRecord: ...

    def delegate(self, to: str, *, seconds: float, tools: Collection[str], reason: str | None) -> DelegationRecord: ...

    def delegations(self, *, everything: bool) -> list[DelegationRecord]: ...

    def end_delegation(self, delegation_id: str, reason: str | None) -> DelegationRecord: ...

    def unknown(self) -> list[UnknownCall]: ...

    def events_of(self, call: UnknownCall) -> list[EventRecord]: ...

    def settle(self, call: UnknownCall, *, happened: bool | None, reason: str) -> Result: ...

    def brakes(self) -> BrakesAnswer: ...

    def set_mode(
        self, mode: ModeName, *, reason: str, everybody: bool, agent: str | None, run: str | None
    ) -> BrakesAnswer: ...


@contextmanager
def backend_on(
    where: str,
    *,
    project: str | None = None,
    by: str | None = None,
    roles: list[str] | None = None,
    tools: list[str] | None = None,
) -> Iterator[Backend]:
    """Open a database or a server for the time of one command.

    A server knows who one is by the token, and has the tools itself.
    """
    if is_address(where):
        if by is not None or roles or tools:
            raise typer.BadParameter(
                "A server knows you by your token and has its own tools: leave --by, --role, --tools out."
            )
        from toolgate.interfaces.cli.backend_remote import RemoteBackend, client_at

        with client_at(where, REMOTE.get(), project) as client:
            yield RemoteBackend(client)
    else:
        from toolgate.bootstrap import tools_at
        from toolgate.interfaces.cli.backend_local import LocalBackend
        from toolgate.interfaces.cli.session import check_project, gate_on, person

        if project is not None:
            check_project(where, project)
        found = {name: tool for named in tools or () for name, tool in tools_at(named).items()}
        with gate_on(where, tools=found.values()) as gate:
            yield LocalBackend(gate, person(by, roles), project)


def full_id(backend: Backend, given: str) -> str:
    """Return the id of the one open approval that begins so; an id that is whole is returned as it is."""
    if not given:  # a script whose variable is not set must not answer whatever happens to wait
        raise UsageError("The approval's id is empty; `toolgate inbox --json` lists what waits.")
    begun = [approval.id for approval in backend.pending() if approval.id.startswith(given)]
    if given in begun or not begun:
        return given
    if len(begun) > 1:
        raise UsageError(f"{len(begun)} open approvals begin with {given!r}; write more of the id.")
    return begun[0]
