"""The front object. A Gate knows ports only; `toolgate.open` builds one from settings."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from toolgate.errors import GateClosedError, UsageError
from toolgate.gate.approvals import Approvals, said, somebody
from toolgate.gate.delegations import Delegations
from toolgate.gate.grants import Grants
from toolgate.gate.host import Host
from toolgate.gate.messenger import Messenger
from toolgate.gate.news import News
from toolgate.gate.options import checked, decision_of, mode_of
from toolgate.gate.ownership import Ownership
from toolgate.gate.parked import Parked
from toolgate.gate.policies import Policies, PolicySource
from toolgate.gate.programs import ProgramPins
from toolgate.gate.remote import Remote
from toolgate.gate.rows import Calls
from toolgate.gate.windows import PolicyWindows
from toolgate.kernel.approval import Approval, ApprovalStatus
from toolgate.kernel.brake import Brakes, scope_of
from toolgate.kernel.change import Change
from toolgate.kernel.context import DEFAULT_CONTEXT, DEFAULT_PROJECT, Context, Mode, Principal
from toolgate.kernel.event import Event
from toolgate.kernel.grant import Remember
from toolgate.kernel.ids import check_context, check_id
from toolgate.kernel.misuse import explained
from toolgate.kernel.output import Result, ToolOutput, result_of
from toolgate.kernel.policy import Policy
from toolgate.kernel.record import evolve
from toolgate.kernel.registry import ToolRegistry
from toolgate.kernel.text.canonical import DEFAULT_LIMITS, Limits
from toolgate.kernel.text.masking import Masker
from toolgate.kernel.tool import ToolDefinition
from toolgate.kernel.undo import DEFAULT_UNDO_TTL_S
from toolgate.pipeline import Pipeline
from toolgate.pipeline.background import Background
from toolgate.pipeline.braking import Braking
from toolgate.pipeline.driver import Driver, utc_now
from toolgate.pipeline.flight import Flights
from toolgate.pipeline.lockdown import Lockdown
from toolgate.pipeline.outcome import decode
from toolgate.pipeline.people.answers import Answers
from toolgate.pipeline.people.deciding import Deciding
from toolgate.pipeline.people.delegating import Delegating
from toolgate.pipeline.people.undoing import Undoing, UndoReport
from toolgate.pipeline.plan import NO_OPTIONS, Options
from toolgate.pipeline.recording import Recorder
from toolgate.pipeline.remote.leasing import Leases
from toolgate.pipeline.remote.orders import Orders
from toolgate.pipeline.sinks.relay import Tally
from toolgate.pipeline.time.clockwork import Clockwork
from toolgate.pipeline.time.recovery import Recovery
from toolgate.pipeline.time.sweeper import Sweeper
from toolgate.ports.bus import Bus
from toolgate.ports.channel import Channel, Decision
from toolgate.ports.runner import Runner
from toolgate.ports.store import ApprovalQuery, Clocked, Store

if TYPE_CHECKING:
    from toolgate.gate.answering import Replies
    from toolgate.gate.sync import SyncGate

RESOURCES = "policy:resources"
"""Who moves the system to DEGRADED when it is out of disk or memory."""

_NOTHING_ASKED = (None,) * 5
T = TypeVar("T")


class Gate:
    """Every tool call goes through here. Bound to no event loop; usable from several loops and threads."""

    def __init__(
        self,
        *,
        store: Store,
        bus: Bus,
        runners: Mapping[str, Runner],
        tools: Iterable[ToolDefinition] = (),
        policy: Policy | None = None,
        policy_source: PolicySource | None = None,
        policy_windows: PolicyWindows | None = None,
        program_pins: ProgramPins | None = None,
        channels: Iterable[Channel] = (),
        masker: Masker | None = None,
        limits: Limits = DEFAULT_LIMITS,
        undo_ttl_s: float = DEFAULT_UNDO_TTL_S,
        tally: Callable[[Change], None] | None = None,
        sink_tally: Tally | None = None,
    ) -> None:
        self.registry = ToolRegistry(tools)
        self._runners = runners
        self._background = Background(f"toolgate-{store.owner[-6:]}")
        self._driver = Driver(
            store=store,
            bus=bus,
            registry=self.registry,
            masker=masker or Masker(),
            runners=runners,
            spawn=self._background.spawn,
            policy=policy or (Policy() if policy_source is None else policy_source.load()),
            limits=limits,
            undo_ttl_s=undo_ttl_s,
            owner=store.owner,
            now=store.now if isinstance(store, Clocked) else utc_now,
            tally=tally,
            sink_tally=sink_tally,
        )
        self._policies = Policies(self._driver, policy_source, self._background.submit, policy_windows)
        if program_pins is not None:
            program_pins.attach(self._background.submit, self._driver.write)
        recorder = Recorder(self._driver)
        self._flights = Flights(self._driver, recorder)
        self._pipeline = Pipeline(self._driver, self._flights)
        self._answers = Answers(self._driver, self._flights)
        delegating = Delegating(self._driver)
        self._deciding = Deciding(self._driver, self._pipeline, delegating)
        self._undoing = Undoing(self._driver, self._pipeline)
        self._parked = Parked(self._driver, self._pipeline, self._flights, self._background)
        self._messenger = Messenger(channels, self._deciding, self._driver, self._background.spawn)
        self._owners = Ownership(self._driver, self._parked, self._background, self.cancel)
        self._recovery = Recovery(self._driver, self._flights, recorder, self._parked.offer)
        self._leases = Leases(self._driver, recorder, self._pipeline.take)
        self._news = News(self._driver)
        self.calls = Calls(self._driver)
        self.approvals = Approvals(self._driver, self._deciding, self._parked, self._check_open)
        self.grants = Grants(self._driver, self._deciding, self._check_open)
        self.delegations = Delegations(delegating, self._check_open)
        self.remote = Remote(self._leases, Orders(self._driver, self._flights, self._leases), self._check_open)
        doings = (self._policies, self._undoing, self._messenger, self._parked)
        self.host = Host(self._driver, *doings, self._check_open, program_pins)
        lockdown = Lockdown(self._driver, self._flights)
        self._braking = Braking(self._driver, lockdown)
        sweeper = Sweeper(self._driver, self._parked.offer, self._recovery, self._leases, lockdown)
        self._driver.submit = self.call
        self._driver.on_exhausted = self._degrade
        if self._messenger.has_channels:
            self._driver.on_asked = self._messenger.carry
        self._driver.on_due = Clockwork(self._background, sweeper, self._driver.now).wind
        if store.is_shared:
            self._driver.on_due(self._driver.now())  # what others left behind is looked after at once

    @property
    def sync(self) -> SyncGate:
        """The same gate for plain threads: every method, blocking."""
        from toolgate.gate.sync import SyncGate

        return SyncGate(self, self._background)

    @property
    def mode(self) -> Mode:
        """The mode of everybody."""
        return self._driver.store.brakes.mode

    @property
    def brakes(self) -> Brakes:
        """The modes that are set: everybody's, and those of projects, agents and runs."""
        return self._driver.store.brakes

    @property
    def policy(self) -> Policy:
        """The policy in force."""
        return self._driver.policy

    def _check_open(self) -> None:
        if self._parked.is_closed:
            raise GateClosedError("This gate is closed; open a new one.")

    def _name_of(self, tool: str | ToolDefinition) -> str:
        """The name of a tool; a definition must be the one that is registered, since that is what would run."""
        if not isinstance(tool, ToolDefinition):
            if not isinstance(tool, str):
                raise UsageError(f"A tool is named by text or given as its definition, not {type(tool).__name__}.")
            return tool
        if self.registry.find(tool.name) is not tool:
            raise UsageError(f"This definition of `{tool.name}` is not registered here; register it first.")
        return tool.name

    def _check_context(self, context: Context) -> None:
        if not isinstance(context, Context):
            raise UsageError(f"A call's `context` is a toolgate.Context, not {type(context).__name__}.")
        check_context(context, self._driver.masker)

    def register(self, tool: ToolDefinition) -> None:
        """Offer a tool, or replace the one of the same name."""
        self.registry.add(tool)

    def wrap(self, target: T, *, name: str | None = None, context: Context | None = None, **options: Any) -> T:
        """Return a function or tool object that does what it did through this gate; `options` are ToolDefinition's."""
        from toolgate.gate.wrapping import wrap

        return wrap(self, target, name=name, context=context, options=options)

    async def answer(
        self,
        response: Any,
        *,
        run_id: str,
        step: str | None = None,
        functions: Mapping[str, Callable[[dict[str, Any]], Any]] | None = None,
        context: Context | None = None,
        wait: bool = True,
    ) -> Replies:
        """Make the calls of a model's response and return the messages to append, in its provider's form."""
        from toolgate.gate import answering

        return await answering.answer(self, response, run_id, step, functions, context, wait=wait)

    async def call(
        self,
        tool: str | ToolDefinition,
        arguments: str | bytes | Mapping[str, object] | None = None,
        *,
        context: Context = DEFAULT_CONTEXT,
        call_id: str | None = None,
        wait: bool | float = True,
        approval_timeout_s: float | None = None,
        message: str | None = None,
        claim: str | None = None,
        repeat_of: str | None = None,
        distinct: bool = False,
        held_key: str | None = None,
        own: bool = False,
    ) -> Result:
        """Return the call's final result, waiting for approval and execution; or where it stands (`wait=False`,
        or its seconds are over).

        Governed ends (denied, rejected, failed...) are results, not exceptions: see `Result.unwrap`.
        Cancelling the wait does not cancel the call, unless it is your `own`: then it ends with you, except where
        you joined it. The same `call_id` never runs twice: a second call with it joins the first. So does one with the
        same effect key and arguments, and, for a tool that declares its effects, the same call of the same run while
        the first one's question is open (`Result.joined`); `distinct` joins none. `repeat_of` is a call of yours that
        has ended and whose effect is to be had again, on purpose: a person is always asked. `held_key` is the key of
        its effect where another gate holds that, empty where it has none: then nothing is held or joined here.
        `message` is what an approver is asked instead of the tool's own words; `claim` is what the agent says about it,
        and is shown as no more than that.
        """
        self._check_open()
        name = tool if type(tool) is str else self._name_of(tool)
        if call_id is not None:
            check_id(call_id, "call id", self._driver.masker)
        if context is not DEFAULT_CONTEXT:
            self._check_context(context)
        if own:
            call_id = call_id or self._driver.new_id()
        submitting = self._pipeline.run(
            name,
            {} if arguments is None else arguments,
            context,
            call_id=call_id,
            options=NO_OPTIONS
            if (approval_timeout_s, message, claim, repeat_of, held_key) == _NOTHING_ASKED and not distinct
            else checked(
                Options(approval_timeout_s, message, claim, repeat_of, distinct, held_key), self._driver.masker
            ),
        )
        if own and call_id is not None:
            return await self._owners.see_through((context.project, call_id), submitting)
        result = await submitting
        if result.status.is_final:
            return result
        key = (context.project, result.call_id)
        await self._parked.settle_in(key)
        if not wait:
            return result
        is_joined = result.joined
        del result, submitting  # thousands may wait here for hours
        final = await self._parked.wait_for(key, wait)
        return evolve(final, joined=True) if is_joined else final

    @explained
    async def wait(self, call_id: str, timeout: float | None = None, *, project: str = DEFAULT_PROJECT) -> Result:
        """Return the final result of a call that was made before; raise TimeoutError after `timeout` seconds."""
        self._check_open()
        return await self._parked.wait_within((project, call_id), timeout)

    @explained
    async def run_here(
        self,
        call_id: str,
        function: Callable[[dict[str, Any]], Any],
        *,
        project: str = DEFAULT_PROJECT,
        wait: bool = True,
    ) -> Result:
        """Run an approved call of a tool placed at its caller with a function of your own, and record what it did.

        Waits until the call is approved (without `wait`, returns where it stands if a person has yet to answer), judges
        it again, and calls `function(arguments)` with what was approved, which a person may have edited. Only one of
        many who try runs it; the others get the recorded result. What the function returns or raises is the call's
        outcome; where it never says, the outcome is UNKNOWN.
        """
        self._check_open()
        if not callable(function):
            raise UsageError(f"`run_here` takes a function of the arguments, not {type(function).__name__}.")
        return await self._parked.run_here((project, call_id), function, wait=wait)

    @explained
    async def decide(
        self,
        approval_id: str,
        decision: Decision | str,
        *,
        by: str | Principal,
        reason: str | None = None,
        digest: str | None = None,
        project: str | None = None,
        remember: Remember | None = None,
        allowances: tuple[str, ...] = (),
        on_behalf_of: str | Principal | None = None,
    ) -> Result:
        """Answer an approval: "approve" or "deny"; "reject" is another word for that. The first answer is final; where
        several people must approve, each has one vote and the first "deny" ends it. `remember` makes a grant of a yes.

        Returns where the call stands after the decision is durable; it does not wait for execution. `allowances` name
        what the host excuses a yes from, such as the reason at level full; the decision's event has them.
        `on_behalf_of` is whose vote it is, where that was delegated to `by`; their roles count then, not those of `by`.
        """
        self._check_open()
        approve_it = decision_of(decision) is Decision.APPROVE
        if remember is not None and not approve_it:
            raise UsageError("Only an approval can be remembered.")
        words = said(approval_id, by, reason, digest, project, on_behalf_of)
        words = replace(words, allowances=allowances)
        return await self._deciding.decide(words, approve_it=approve_it, remember=remember)

    async def pending(self, *, project: str | None = None, limit: int = 1000) -> list[Approval]:
        """Return the approvals that wait for a person, oldest first."""
        return await self.approvals.list(ApprovalQuery(project=project, status=ApprovalStatus.PENDING, limit=limit))

    async def complete(
        self,
        call_id: str,
        output: ToolOutput,
        *,
        fence: str | None = None,
        by: str | Principal | None = None,
        project: str = DEFAULT_PROJECT,
    ) -> Result:
        """Report the result of a call that runs on a client or worker; the first report counts.

        `by` is who reports: without a fence it must be who the call was given to.
        """
        self._check_open()
        who = None if by is None else somebody(by)
        return await self._leases.complete(project, call_id, output, fence=fence, by=who)

    @explained
    async def settle(
        self,
        call_id: str,
        *,
        happened: bool | None,
        by: str | Principal,
        reason: str,
        project: str = DEFAULT_PROJECT,
    ) -> Result:
        """Say what an UNKNOWN call really did; None where that is not known yet, which is recorded."""
        self._check_open()
        return await self._answers.settle(project, call_id, happened=happened, by=somebody(by), reason=reason)

    @explained
    async def cancel(
        self,
        call_id: str,
        *,
        reason: str = "cancelled by the caller",
        project: str = DEFAULT_PROJECT,
        wait: bool = True,
    ) -> Result:
        """End a call. One that runs is asked to stop, and with `wait` its end is awaited."""
        self._check_open()
        result = await self._answers.cancel(project, call_id, reason=reason)
        return await self._parked.wait((project, call_id)) if wait and not result.is_final else result

    @explained
    async def undo(self, call_id: str, *, context: Context = DEFAULT_CONTEXT, force: bool = False) -> Result:
        """Take a call's effect back; the result is the undo call's own."""
        self._check_open()
        if context is not DEFAULT_CONTEXT:
            self._check_context(context)
        result = await self._undoing.undo(context.project, call_id, context, force=force)
        return result if result.is_final else await self._parked.wait((context.project, result.call_id))

    async def undo_run(
        self,
        run_id: str,
        *,
        context: Context = DEFAULT_CONTEXT,
        force: bool = False,
        skip_failures: bool = False,
        preview: bool = False,
    ) -> UndoReport:
        """Undo what a run did, last effect first, and report on every call of it.

        It stops at the first effect that cannot be taken back, unless told to skip it. `preview` changes nothing and
        says what would happen. Raises NotFoundError for a run that made no call.
        """
        self._check_open()
        one = None if preview else self.undo
        return await self._undoing.undo_run(run_id, context, one, force=force, skip_failures=skip_failures)

    async def set_mode(
        self,
        mode: Mode | str,
        *,
        by: str | Principal,
        reason: str = "",
        project: str | None = None,
        agent: str | None = None,
        run: str | None = None,
        only_pull: bool = False,
    ) -> None:
        """Set the mode of everybody, of a project, or of an agent or a run in it; audited in the project `_system`.

        A call answers to every mode pulled over it, so a narrower one only takes away; NORMAL releases it. LOCKDOWN
        freezes what waits at once and stops what runs, where its runner can; `mode.enforced` says what that did.
        With `only_pull`, NotAllowedError where that would release or loosen anything.
        """
        self._check_open()
        scope = scope_of(project, agent, run)
        await self._braking.set(scope, mode_of(mode), by=somebody(by).name, reason=reason, only_pull=only_pull)

    def _degrade(self, reason: str) -> None:
        """Go to DEGRADED because the machine is out of something; stricter modes stay."""
        if self.mode in (Mode.NORMAL, Mode.ALERT):
            self._background.spawn(self.set_mode(Mode.DEGRADED, by=RESOURCES, reason=reason))

    @explained
    async def set_policy(self, policy: Policy, *, by: str | Principal) -> None:
        """Follow another policy from now on; calls already approved must pass it before they run."""
        self._check_open()
        await self._policies.use(policy, by=somebody(by).name)

    async def recover(self) -> None:
        """Look after the calls of dead processes now; a shared store does so by itself every few seconds."""
        self._check_open()
        await self._recovery.recover()

    @explained
    async def get(self, call_id: str, *, project: str = DEFAULT_PROJECT) -> Result:
        """Return where a call stands; raise NotFoundError."""
        call = await self._driver.read(project, call_id)
        return result_of(call, data=decode(call.result))

    async def events(
        self, *, project: str = DEFAULT_PROJECT, after: int = 0, limit: int = 1000, call_id: str | None = None
    ) -> list[Event]:
        """Return events in order, from after a sequence number."""
        return await self._driver.store.events(project, after=after, limit=limit, call_id=call_id)

    def follow(
        self, *, project: str = DEFAULT_PROJECT, after: int = 0, call_id: str | None = None
    ) -> AsyncIterator[Event]:
        """Yield events as they happen, from after a sequence number, until the reader stops."""
        return self._news.follow(project=project, after=after, call_id=call_id)

    async def aclose(self) -> None:
        """Stop taking calls, end the background work and close the adapters. Parked calls stay parked."""
        if self._parked.is_closed:
            return
        self._parked.close()
        self._messenger.close()
        self._news.close()
        await self._flights.drain()
        for runner in {id(runner): runner for runner in self._runners.values()}.values():
            await runner.close()
        for minder in tuple(self._driver.minders):
            await minder.close()
        await asyncio.to_thread(self._background.close)
        self._driver.bus.close()  # first: it may send and hear through the store
        await self._driver.store.close()

    def close(self) -> None:
        """The same from plain code; inside a coroutine use `await gate.aclose()`."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            asyncio.run(self.aclose())
        else:
            raise UsageError("This is running in an event loop: use `await gate.aclose()`.")

    async def __aenter__(self) -> Gate:
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self.aclose()

    def __enter__(self) -> Gate:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()
