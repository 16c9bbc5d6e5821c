"""The runner's own gate: this machine's policy over this machine's tools, with a journal of its own.

Whatever the server says, a call passes this gate like any other: schema, policy, approval, claim, audit. The
server's approval is no approval here; what it may have done without one is what the local policy allows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from toolgate import bootstrap
from toolgate.errors import UsageError
from toolgate.gate import Gate
from toolgate.guards.files import Access
from toolgate.interfaces.runner.holding import Holding, SignalledRule
from toolgate.interfaces.runner.state import StateFolder
from toolgate.kernel.context import Context
from toolgate.kernel.policy import Policy, Stance, Verdict, Word
from toolgate.kernel.record import evolve
from toolgate.kernel.registry import ToolRegistry
from toolgate.kernel.tool import Placement, ToolDefinition
from toolgate.pipeline.realm import AdjustedPolicy, Realm
from toolgate.ports.channel import Channel

USUAL = (
    "read_file",
    "list_directory",
    "write_file",
    "edit_file",
    "delete_file",
    "execute_command",
    "git_status",
    "run_linter",
    "run_tests",
)
"""The built-in tools a runner offers unless told otherwise: those about the workspace."""
UNDO_TTL_S = 30 * 24 * 3600.0
"""How long undo data is kept here; the server has its own, shorter idea of it."""
SERVER = "agent:server"
"""Who asks for every call here."""


@dataclass(frozen=True, slots=True)
class ConfirmRule:
    """Ask at this machine before everything, because its user wants to be asked."""

    name: str = "confirm"

    def __call__(self, *_about: Any) -> Verdict | None:
        return Verdict(Word.ASK, "the runner was started with --confirm", self.name, "confirm")


@dataclass(kw_only=True)
class LocalGate:
    """A gate, and what of it the server reaches. Keep it referenced: the realm lasts as long as it does."""

    gate: Gate
    project: str
    tools: ToolRegistry
    holding: Holding
    realm: Realm = field(repr=False)

    def context(self, tool_id: str) -> Context:
        """Who asks, and for which signal: every call a signal leads to has its id as the run's."""
        return Context(principal=SERVER, project=self.project, run_id=tool_id)


def open_local(
    *,
    state: StateFolder,
    project: str,
    workspace: Path,
    policy: Path,
    only: Sequence[str] | None = None,
    more: Iterable[ToolDefinition] = (),
    confirm: bool = False,
    channels: Sequence[Channel] = (),
    private: Iterable[Path] = (),
) -> LocalGate:
    """Open the runner's gate. PolicyError where the policy cannot be used, UsageError for tools there are not."""
    own = list(more)
    gate = bootstrap.open(
        f"sqlite:///{state.journal}",
        tools=own,
        policy=policy,
        workspace=workspace,
        approver=list(channels),
        undo_ttl_seconds=UNDO_TTL_S,
        built_in_tools=True,
        private_files=(state.path, *private),
    )
    try:
        offered = ToolRegistry(_chosen(gate, only, own))
        holding = Holding()
        realm = gate.host.attach(project, offered, adjust=_Adjust(holding, confirm))
    except BaseException:
        gate.close()
        raise
    return LocalGate(gate=gate, project=project, tools=offered, holding=holding, realm=realm)


@dataclass(frozen=True, slots=True)
class _Adjust:
    """The local policy, plus what a runner adds to every policy."""

    holding: Holding
    confirm: bool

    def __call__(self, policy: Policy) -> Policy:
        return AdjustedPolicy(base=policy, change=self._stance, revision=policy.revision)

    def _stance(self, stance: Stance) -> Stance:
        added: tuple[Any, ...] = (SignalledRule(self.holding),)
        if not self.confirm:
            return evolve(stance, rules=(*stance.rules, *added))
        return evolve(stance, rules=(*stance.rules, *added, ConfirmRule()), undo_asks=True)


def _chosen(gate: Gate, only: Sequence[str] | None, own: Sequence[ToolDefinition]) -> list[ToolDefinition]:
    names = list(only) if only else [*USUAL, *(tool.name for tool in own)]
    unknown = sorted(name for name in names if gate.registry.find(name) is None)
    if unknown:
        known = ", ".join(sorted(tool.name for tool in gate.registry))
        raise UsageError(f"There is no tool `{unknown[0]}` here to offer; there are: {known}.")
    found = [gate.registry.resolve(name) for name in dict.fromkeys(names)]
    for tool in own:
        if gate.registry.find(tool.name) is not tool:
            raise UsageError(f"Tool `{tool.name}` is built in already; give yours another name.")
    for tool in found:
        if tool.runs_in in (Placement.CLIENT, Placement.WORKER):
            raise UsageError(f"Tool `{tool.name}` says it runs elsewhere ({tool.runs_in}); a runner runs tools here.")
    return found


def reachable(gate: Gate, path: Path, access: Access) -> bool:
    """Whether a tool that runs here could be made to touch a path: one that must be out of its reach."""
    from toolgate.guards.files import PathRefused

    edges = getattr(gate.policy, "edges", None)
    if edges is None:
        return True
    tool = "read_file" if access == "read" else "write_file"
    try:
        edges().look(tool, str(path), access)
    except PathRefused:
        return False
    return True
