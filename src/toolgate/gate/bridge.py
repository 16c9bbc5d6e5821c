"""The way of a tool that somebody else runs: asked at the gate, paused, claimed, run where it always ran, recorded.

Adapters to agent frameworks stand on this. They say what a call is and how their framework pauses; what may run, and
how often, is decided here and behind it.
"""

from __future__ import annotations

import asyncio
import importlib.metadata
import inspect
import queue
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from weakref import WeakKeyDictionary

from toolgate.errors import ConflictError, DefinitionError, ToolOutputError, UsageError
from toolgate.kernel.call import Status
from toolgate.kernel.context import DEFAULT_CONTEXT, Context
from toolgate.kernel.ids import fault_of
from toolgate.kernel.output import Result
from toolgate.kernel.payload import encode
from toolgate.kernel.policy import NOTHING
from toolgate.kernel.tool import Placement, ToolDefinition

if TYPE_CHECKING:
    from toolgate.gate.front import Gate

TIMEOUT_S: Final = 3600.0
"""How long a tool of a framework may run: as long as people may take who are asked from inside it."""

_inside: ContextVar[Context | None] = ContextVar("toolgate_inside", default=None)
"""The context that calls have which are made from inside a governed one."""
_made: WeakKeyDictionary[Gate, dict[str, ToolDefinition]] = WeakKeyDictionary()
"""The definitions that came from frameworks, by gate and name: those may be replaced, those of the host may not."""

Function = Callable[[dict[str, Any]], Any]


def check_version(framework: str, distribution: str, low: tuple[int, ...], high: tuple[int, ...]) -> str:
    """Return the installed version of a framework; raise UsageError where it is not one the adapter was tested with."""
    try:
        found = importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        raise UsageError(f"The {framework} adapter needs {distribution}, which is not installed here.") from None
    numbers = tuple(int(part) for part in re.findall(r"\d+", found)[:3])
    if not low <= numbers < high:
        below, above = (".".join(map(str, bound)) for bound in (low, high))
        raise UsageError(
            f"The {framework} adapter was tested with {distribution} from {below} to below {above}; {found} is "
            f"installed, so nothing is run. Install `{distribution}>={below},<{above}`, or pass `any_version=True`."
        )
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Where a call stands after it went as far as it goes: ended, or paused for a person.

    `value` is what the tool returned, where it ran for this caller; else what was recorded of it. `edited` are the
    arguments it ran with, masked, where a person changed them.
    """

    result: Result
    value: Any = None
    ran: bool = False
    edited: Any = None

    @property
    def is_paused(self) -> bool:
        """Whether a person has yet to answer."""
        return not self.result.is_final

    @property
    def is_success(self) -> bool:
        return self.result.status is Status.COMPLETED

    @property
    def raised(self) -> BaseException | None:
        """What the tool raised, where it ran for this caller and failed plainly: the framework's own to handle."""
        return self.result.cause if self.result.status is Status.FAILED else None

    @property
    def text(self) -> str:
        """What a model is told of a call that did not come to its result."""
        result = self.result
        if self.is_paused:
            return f"`{result.tool_name}` waits for a person's approval ({result.approval_id}); it has not run."
        if result.status is Status.REJECTED and result.data is not None:
            return f"A person answered instead of letting `{result.tool_name}` run: {encode(result.data).decode()}"
        return result.error or f"`{result.tool_name}` ended {result.status}."

    @property
    def note(self) -> str | None:
        """What a model is told of arguments that a person changed; None where nobody did."""
        if self.edited is None:
            return None
        return f"A person changed the arguments before it ran: {encode(self.edited).decode()}"

    @property
    def question(self) -> dict[str, Any]:
        """What a pause says of itself, for whoever keeps it."""
        result = self.result
        return {"call_id": result.call_id, "approval_id": result.approval_id, "tool": result.tool_name}


@dataclass(slots=True)
class _Ran:
    """A call that is carried, and what came of the function if that was run for it."""

    call_id: str
    context: Context
    value: Any = None
    is_begun: bool = False

    @property
    def inside(self) -> Context:
        """The context of calls made from inside this one."""
        return replace(self.context, parent_call_id=self.call_id, depth=self.context.depth + 1)


class Bridge:
    """Takes the calls of one framework through a gate."""

    def __init__(
        self,
        gate: Gate,
        framework: str,
        *,
        effects: Mapping[str, str] | None = None,
        context: Context | None = None,
        wait: bool = False,
    ) -> None:
        self.gate, self.framework = gate, framework
        self._effects = dict(effects or {})
        self.context = context or DEFAULT_CONTEXT
        self._waits = wait
        self._known: dict[str, tuple[Any, str]] = {}

    @property
    def waits(self) -> bool:
        """Whether a question is waited for: told to, or inside of a call, which a pause would end."""
        return self._waits or _inside.get() is not None

    def define(
        self, name: str, schema: Mapping[str, Any] | None, description: str = "", options: Mapping[str, Any] = NOTHING
    ) -> None:
        """Have the gate know a tool of the framework; DefinitionError where it cannot be governed.

        What the host registered under this name stays, if it is placed at its caller. `options` are ToolDefinition's.
        """
        told = (schema, description)
        known = self._known.get(name)
        if known is not None and (known[0] is schema or known[0] == schema) and known[1] == description:
            return
        registry, made = self.gate.registry, _made.setdefault(self.gate, {})
        standing = registry.find(name)
        if standing is not None and made.get(name) is not standing:
            if standing.placement is not Placement.CALLER:
                raise DefinitionError(
                    f"{self.framework}: the gate has a tool `{name}` with a handler of its own, so this one cannot be "
                    "governed under that name. Register it with placement='caller', or name one of them otherwise."
                )
        else:
            definition = self._definition(name, schema, description, options)
            if standing is None or standing.hash != definition.hash:
                registry.add(definition)
                made[name] = definition
        self._known[name] = told

    def _definition(
        self, name: str, schema: Mapping[str, Any] | None, description: str, options: Mapping[str, Any]
    ) -> ToolDefinition:
        if schema is None:
            raise DefinitionError(
                f"{self.framework}: tool `{name}` has no schema of its arguments, so nobody could say what was "
                "approved; nothing is run. Give it typed parameters."
            )
        try:
            return ToolDefinition(
                name,
                schema,
                **{
                    "description": description,
                    "effects": self._effects.get(name),
                    "timeout_seconds": TIMEOUT_S,
                    **options,
                    "placement": Placement.CALLER,
                },
            )
        except DefinitionError as error:
            raise DefinitionError(
                f"{self.framework}: tool `{name}` cannot be governed, so nothing is run. {error}"
            ) from None

    def id_of(self, *parts: str) -> str:
        """Return an id made of others, such as a run's and a call's: as it reads, or a digest where that is no id."""
        text = ":".join(parts)
        if fault_of(text) is None and not self.gate.host.masker.hides(text):
            return text
        return sha256("\0".join(parts).encode()).hexdigest()[:40]

    def context_of(self, *, run: str | None = None, step: str | None = None) -> Context:
        """Return the context of a call made now, in this run and step; inside a governed call, that one's own."""
        context = _inside.get() or self.context
        run_id = context.run_id if context.run_id is not None or run is None else self.id_of(run)
        return replace(context, run_id=run_id, step_id=None if step is None else self.id_of(step))

    async def ask(self, name: str, arguments: Mapping[str, Any] | bytes, *, call_id: str, context: Context) -> Outcome:
        """Make a call, or find the one made before under this id, and run nothing yet."""
        try:
            result = await self.gate.call(name, arguments, call_id=call_id, context=context, wait=False)
        except ConflictError as error:
            result = _refused(name, call_id, error)
        return Outcome(result=result, value=result.data)

    async def carry(
        self,
        name: str,
        arguments: Mapping[str, Any] | bytes,
        function: Function,
        *,
        call_id: str | None = None,
        context: Context | None = None,
        record: Callable[[Any], Any] | None = None,
    ) -> Outcome:
        """Take a call as far as it goes: run it with `function`, or leave it paused, and say where it stands.

        A call that was made before under this id is taken on from where it stands. It is claimed once, whoever else
        tries. `record` makes JSON of what the function returned, for whoever asks for the result again.
        """
        context = self.context_of() if context is None else context
        ran = _Ran(call_id or self.gate.host.new_id(), context)
        hook = self._hook(name, function, record, ran)
        try:
            result = await self.gate.host.carry(name, arguments, hook, context=context, call_id=ran.call_id)
            if not result.is_final:
                ran.call_id = result.call_id  # of the call that it joined, where it did
                result = await self.gate.run_here(ran.call_id, hook, project=context.project, wait=self.waits)
        except ConflictError as error:
            result = _refused(name, ran.call_id, error)
        except asyncio.CancelledError:
            if ran.is_begun:  # what the framework gives up is ours to end
                await asyncio.shield(self.gate.cancel(ran.call_id, project=context.project, wait=False))
            raise
        return await self._outcome(result, context, ran)

    def _hook(self, name: str, function: Function, record: Callable[[Any], Any] | None, ran: _Ran) -> Function:
        async def run(arguments: dict[str, Any]) -> Any:
            ran.is_begun = True
            token = _inside.set(ran.inside)
            try:
                value = function(arguments)
                if inspect.isawaitable(value):
                    value = await value
            finally:
                _inside.reset(token)
            try:
                recorded = value if record is None else record(value)
                encode(recorded)
            except ToolOutputError as error:
                raise ToolOutputError(f"{self.framework}: tool `{name}` ran, and {error}", tool=name) from None
            ran.value = value
            return recorded

        return run

    async def _outcome(self, result: Result, context: Context, ran: _Ran) -> Outcome:
        outcome = await self.outcome_of(result, context)
        is_ours = outcome.is_success and ran.is_begun
        return replace(outcome, value=ran.value, ran=True) if is_ours else outcome

    async def outcome_of(self, result: Result, context: Context) -> Outcome:
        """Return where a call stands, with the arguments it ran with where a person changed them."""
        edited = None
        if result.status is Status.COMPLETED and result.approval_id is not None:
            row = await self.gate.calls.get(result.call_id, project=context.project)
            edited = row.shown if row.first_asked is not None else None
        return Outcome(result=result, value=result.data, edited=edited)

    def carry_sync(
        self,
        name: str,
        arguments: Mapping[str, Any] | bytes,
        function: Function,
        *,
        call_id: str | None = None,
        context: Context | None = None,
        record: Callable[[Any], Any] | None = None,
    ) -> Outcome:
        """The same from a plain thread; the function runs on that thread."""
        work: queue.SimpleQueue[_Work | None] = queue.SimpleQueue()
        inside = _inside.get()

        async def here(given: dict[str, Any]) -> Any:
            done = asyncio.get_running_loop().create_future()
            work.put(_Work(done, given, _inside.get()))
            while not done.done():  # a plain function cannot be stopped, and must not be said to have been
                with suppress(asyncio.CancelledError):
                    await asyncio.shield(done)
            return done.result()

        async def carried() -> Outcome:
            _inside.set(inside)
            return await self.carry(name, arguments, here, call_id=call_id, context=context, record=record)

        running = self.gate.host.submit(carried())
        running.add_done_callback(lambda _done: work.put(None))
        while (item := work.get()) is not None:
            item.do(function)
        return running.result()


class _Work(NamedTuple):
    """What a plain thread is to run, the context of calls made from inside it, and who waits for the end."""

    done: asyncio.Future[Any]
    arguments: dict[str, Any]
    inside: Context | None

    def do(self, function: Function) -> None:
        token, tell = _inside.set(self.inside), self.done.get_loop().call_soon_threadsafe
        try:
            tell(self.done.set_result, function(self.arguments))
        except BaseException as error:
            # No future takes a StopIteration, and what ends a program must not end the loop that writes it down.
            is_usual = isinstance(error, Exception) and not isinstance(error, StopIteration)
            tell(self.done.set_exception, error if is_usual else RuntimeError(f"it raised {type(error).__name__}"))
            if not isinstance(error, Exception):
                raise
        finally:
            _inside.reset(token)


def _refused(name: str, call_id: str, error: ConflictError) -> Result:
    text = f"Tool `{name}` did not run. {error}"
    return Result(call_id=call_id, tool_name=name, status=Status.DENIED, error=text, error_code=error.code)
