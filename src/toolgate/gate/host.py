"""What the gate tells and takes from a host that works beside it: a server, a worker, a door with tools of its own."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from typing import Any, TypeVar

from toolgate.authority import check_accepting
from toolgate.gate.approvals import somebody
from toolgate.gate.messenger import Messenger
from toolgate.gate.parked import Parked
from toolgate.gate.policies import Policies
from toolgate.gate.programs import ProgramPins
from toolgate.gate.windows import Held
from toolgate.kernel.assessment import ApprovalLevel
from toolgate.kernel.call import Call
from toolgate.kernel.change import Change
from toolgate.kernel.comparing import Difference
from toolgate.kernel.context import DEFAULT_CONTEXT, DEFAULT_PROJECT, Context, Principal
from toolgate.kernel.ids import check_context, check_id
from toolgate.kernel.output import Result
from toolgate.kernel.pin import Program
from toolgate.kernel.policy import Policy
from toolgate.kernel.registry import ToolRegistry
from toolgate.kernel.ruling import is_hopeless, level_of
from toolgate.kernel.text.masking import Masker
from toolgate.kernel.tool import ToolDefinition
from toolgate.kernel.undo import UndoMetadata
from toolgate.pipeline.comparing import differences_of
from toolgate.pipeline.driver import Driver, WhoDecides
from toolgate.pipeline.people.undoing import Undoing
from toolgate.pipeline.realm import Adjust, Realm, unchanged
from toolgate.pipeline.sinks.relay import REQUIRED_S, Relay, Rendering, as_it_is, check_name
from toolgate.pipeline.steps import timeout_s
from toolgate.ports.bus import Hint
from toolgate.ports.channel import Channel
from toolgate.ports.runner import Runner
from toolgate.ports.sink import Sink
from toolgate.ports.store import Head

T = TypeVar("T")


class Host:
    """`gate.host`."""

    def __init__(
        self,
        driver: Driver,
        policies: Policies,
        undoing: Undoing,
        messenger: Messenger,
        parked: Parked,
        check_open: Callable[[], None],
        programs: ProgramPins | None = None,
    ) -> None:
        self._driver = driver
        self._policies = policies
        self._undoing = undoing
        self._messenger = messenger
        self._parked = parked
        self._check_open = check_open
        self._programs = programs

    def runner(self, placement: str) -> Runner | None:
        """Return what runs the handlers of a placement here."""
        return self._driver.runners.get(placement)

    @property
    def masker(self) -> Masker:
        """What hides secrets here; `gate.host.masker.add(value)` makes a value secret everywhere."""
        return self._driver.masker

    def attach(
        self,
        project: str,
        registry: ToolRegistry,
        *,
        adjust: Adjust = unchanged,
        sink: Sink | None = None,
        sink_name: str | None = None,
        sink_required: bool = False,
        render: Rendering = as_it_is,
        channels: Iterable[Channel] = (),
        keeps_undo: bool = True,
    ) -> Realm:
        """Let a project go by tools, policy, event sink and approvers of its own while the realm is referenced.

        `adjust` makes the project's policy of the gate's. Under its `sink_name` the store remembers how far the sink
        was told, also after a restart; without one it begins now. With `sink_required` no handler starts before the
        sink took the event that says so; `render` is how it is told. Without `keeps_undo` nothing can be undone.
        """
        driver = self._driver
        relay = None
        if sink is not None:
            relay = Relay(
                sink,
                driver.store,
                project,
                name=check_name(sink_name, project),
                required=sink_required,
                render=render,
                tally=driver.sink_tally,
            )
        realm = Realm(registry=registry, adjust=adjust, relay=relay, channels=tuple(channels), keeps_undo=keeps_undo)
        driver.settle(project, realm)
        if realm.channels:
            driver.on_asked = self._messenger.carry
        return realm

    async def head(self, project: str = DEFAULT_PROJECT) -> Head:
        """Return where the project's chain of events ends: the number and the hash of the last one."""
        return await self._driver.store.head(project)

    async def differences(self, call_id: str, *, project: str = DEFAULT_PROJECT) -> list[Difference]:
        """Return what the rows of a call and its approvals say that its events do not, or the other way round."""
        return await differences_of(self._driver.store, project, call_id)

    async def sink_heard(self, *, project: str = DEFAULT_PROJECT, timeout_s: float = REQUIRED_S) -> bool:
        """Return once the project's event sink took everything so far; False where it did not within `timeout_s`."""
        relay = self._driver.relay(project)
        return relay is None or await relay.insist(timeout_s)

    async def undo_data(self, call_id: str, *, project: str = DEFAULT_PROJECT) -> UndoMetadata | None:
        """Return what is kept for the undo of a call; None where nothing is, or it was used."""
        return await self._undoing.kept(project, call_id)

    async def adopt(self, metadata: UndoMetadata, *, context: Context = DEFAULT_CONTEXT) -> None:
        """Bring in a call made elsewhere by the undo data that was kept of it, so that `undo` can take it back."""
        self._check_open()
        await self._undoing.adopt(metadata, context)

    def policy(self, project: str = DEFAULT_PROJECT) -> Policy:
        """Return the policy that calls of a project answer to now."""
        return self._driver.policy_of(project)

    async def reload_policy(self, *, by: str | Principal) -> Policy:
        """Read the policy files again now and follow what they say; PolicyError where they cannot be used."""
        self._check_open()
        return await self._policies.reload(by=somebody(by).name)

    async def held_policy(self) -> Held | None:
        """Return what a person must look at before the policy files take effect; None where nothing waits."""
        self._check_open()
        return await self._policies.held()

    async def held_revision(self) -> str | None:
        """Return which revision of the policy waits for a person's word, as was seen a second ago at most."""
        self._check_open()
        return await self._policies.held_revision()

    async def accept_policy(self, revision: str, *, by: str | Principal) -> Policy:
        """Follow what the policy files say although a run may have written it, because a person looked at it.

        `revision` names what they looked at; ConflictError where the files say another thing by now, NotAllowedError
        for an agent. Accepting what is followed already changes nothing.
        """
        self._check_open()
        who = somebody(by)
        check_accepting(who)
        return await self._policies.accept(revision, by=who.name)

    def policy_window(self, call: Call, writable: Sequence[str], kept: Sequence[str]) -> AbstractContextManager[None]:
        """Be around a sandboxed run of a call; the runner's own doing, off the event loop."""
        return self._policies.window(call, writable, kept)

    def settle_programs(self, call: Call, programs: Sequence[Program], approver: str | None) -> None:
        """Let a sandboxed run of a call start programs that somebody else than root could have replaced.

        New ones are pinned first. SandboxError where one is not what it was and nobody agreed to it; `approver` is who
        said yes to this very call. The runner's own doing, off the event loop.
        """
        if self._programs is not None:
            self._programs.settle(call, programs, approver)

    def note_sandbox(self, report: Mapping[str, Any]) -> None:
        """Record how a sandbox did in its test, from any thread; the runner's own doing."""
        told = dict(report)
        said = {"problem": told.pop("problem", None)}  # words of whatever failed
        self._driver.spawn(self._policies.tell(("sandbox.tested", None, told, said)))

    def check_givers(self, who_decides: WhoDecides) -> None:
        """Let grants and delegations count only while who gave them may.

        `who_decides(project, name)` is asked at every use. It returns who that is now, with their roles, or None where
        they may not decide there. Without it, who gives a grant or a vote is the host's word, and stays so.
        """
        self._driver.who_decides = who_decides

    async def carry(
        self,
        tool: str,
        arguments: Mapping[str, object] | bytes,
        function: Callable[[dict[str, Any]], Any],
        *,
        context: Context = DEFAULT_CONTEXT,
        call_id: str | None = None,
    ) -> Result:
        """Make a call of a tool placed at its caller and run it with `function`, if nobody has to be asked.

        Returns how it ended, or where it stands: `gate.run_here` takes it on from there.
        """
        self._check_open()
        if call_id is not None:
            check_id(call_id, "call id", self._driver.masker)
        if context is not DEFAULT_CONTEXT:
            check_context(context, self._driver.masker)
        return await self._parked.carry(tool, arguments, context, function, call_id=call_id)

    def new_id(self) -> str:
        """Return an id for a call that nobody has."""
        return self._driver.new_id()

    def submit(self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        """Run a coroutine on the gate's own loop, from a plain thread; UsageError on that loop's own thread."""
        return self._parked.submit(coroutine)

    def on_change(self, listener: Callable[[Change], None]) -> Callable[[], None]:
        """Have a function called after every commit, in the thread that made it; returns what ends that."""
        self._driver.listeners.append(listener)
        return lambda: self._driver.listeners.remove(listener)

    @property
    def owner(self) -> str:
        """The random id of this opening of the store, alive for as long as the gate is open."""
        return self._driver.owner

    def offers(self, context: Context = DEFAULT_CONTEXT) -> list[ToolDefinition]:
        """Return the tools of which some call could run in this context, under the policy and brakes of now."""
        driver = self._driver
        modes, now = driver.store.brakes.over(context), driver.now()
        found = []
        for tool in driver.realm(context.project).registry:
            plan = driver.plan_of(tool, context)
            if plan.placement in driver.runners and not is_hopeless(tool, plan.stance, context, modes, now):
                found.append(tool)
        return found

    def asks(self, tool: ToolDefinition, context: Context = DEFAULT_CONTEXT) -> float:
        """Return how long a person may take to answer about an ordinary call of this tool; 0 where nobody is asked.

        Under the policy and brakes of now. Not every call is asked about: its arguments may settle it, either way.
        """
        driver = self._driver
        now, stance = driver.now(), driver.plan_of(tool, context).stance
        level = level_of(tool, stance, context, driver.store.brakes.over(context), now)
        if level is ApprovalLevel.AUTO:
            return 0.0
        call = Call(id="", project=context.project, tool_name=tool.name, context=context, created_at=now)
        return timeout_s(call, tool, stance, level)

    def on_hint(self, listener: Callable[[Hint], None]) -> Callable[[], None]:
        """Have a function called whenever a call moves, here or in another process; returns what ends that.

        It is called on any thread and must return at once. Hints may be lost: look into the store now and then.
        """
        return self._driver.bus.subscribe(listener)
