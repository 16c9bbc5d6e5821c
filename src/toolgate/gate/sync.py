"""The gate for plain threads: the same methods, blocking. They run on the gate's background loop."""

from __future__ import annotations

from toolgate.gate.approvals import Approvals
from toolgate.gate.delegations import Delegations
from toolgate.gate.front import Gate
from toolgate.gate.grants import Grants
from toolgate.gate.host import Host
from toolgate.gate.remote import Remote
from toolgate.gate.rows import Calls
from toolgate.kernel.tool import ToolDefinition
from toolgate.pipeline.background import Background
from toolgate.pipeline.blocking import Blocking, iterated, waited


class SyncApprovals(Blocking):
    """`gate.sync.approvals`."""

    get = waited(Approvals.get)
    list = waited(Approvals.list)
    artifact = waited(Approvals.artifact)
    check = waited(Approvals.check)
    votes_held = waited(Approvals.votes_held)
    answer = waited(Approvals.answer)
    edit = waited(Approvals.edit)
    approve_with_network = waited(Approvals.approve_with_network)
    respond = waited(Approvals.respond)
    extend = waited(Approvals.extend)
    escalate = waited(Approvals.escalate)
    comment = waited(Approvals.comment)
    piece = waited(Approvals.piece)


class SyncGrants(Blocking):
    """`gate.sync.grants`."""

    list = waited(Grants.list)
    preview = waited(Grants.preview)
    revoke = waited(Grants.revoke)


class SyncDelegations(Blocking):
    """`gate.sync.delegations`."""

    give = waited(Delegations.give)
    list = waited(Delegations.list)
    end = waited(Delegations.end)


class SyncCalls(Blocking):
    """`gate.sync.calls`."""

    get = waited(Calls.get)
    list = waited(Calls.list)


class SyncRemote(Blocking):
    """`gate.sync.remote`."""

    dispatch = waited(Remote.dispatch)
    claim = waited(Remote.claim)
    progress = waited(Remote.progress)
    doubt = waited(Remote.doubt)
    work = waited(Remote.work)


class SyncHost(Blocking):
    """`gate.sync.host`: what of it has to be waited for."""

    head = waited(Host.head)
    differences = waited(Host.differences)
    undo_data = waited(Host.undo_data)
    adopt = waited(Host.adopt)
    reload_policy = waited(Host.reload_policy)
    held_policy = waited(Host.held_policy)
    held_revision = waited(Host.held_revision)
    accept_policy = waited(Host.accept_policy)
    sink_heard = waited(Host.sink_heard)


class SyncGate(Blocking):
    """Blocks the calling thread until the answer is there. Arguments are those of Gate's methods."""

    answer = waited(Gate.answer)
    call = waited(Gate.call)
    wait = waited(Gate.wait)
    get = waited(Gate.get)
    run_here = waited(Gate.run_here)
    decide = waited(Gate.decide)
    pending = waited(Gate.pending)
    complete = waited(Gate.complete)
    settle = waited(Gate.settle)
    cancel = waited(Gate.cancel)
    undo = waited(Gate.undo)
    undo_run = waited(Gate.undo_run)
    events = waited(Gate.events)
    follow = iterated(Gate.follow)
    set_mode = waited(Gate.set_mode)
    set_policy = waited(Gate.set_policy)
    recover = waited(Gate.recover)

    def __init__(self, gate: Gate, background: Background) -> None:
        super().__init__(gate, background)
        self.approvals = SyncApprovals(gate.approvals, background)
        self.grants = SyncGrants(gate.grants, background)
        self.delegations = SyncDelegations(gate.delegations, background)
        self.calls = SyncCalls(gate.calls, background)
        self.remote = SyncRemote(gate.remote, background)
        self.host = SyncHost(gate.host, background)

    def register(self, tool: ToolDefinition) -> None:
        """Offer a tool, or replace the one of the same name."""
        self._target.register(tool)
