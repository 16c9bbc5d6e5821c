"""From settings to a Gate: the only place that loads adapters, by name."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from importlib import import_module, invalidate_caches
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec
from os import PathLike, fspath
from pathlib import Path
from types import ModuleType
from typing import Any

import uuid_utils

from toolgate.authority import check_accepting
from toolgate.confines import LazySandbox, PolicyEdges, admit, policy_windows, program_pins
from toolgate.errors import UsageError
from toolgate.gate import Gate
from toolgate.gate.programs import ProgramPins
from toolgate.gate.windows import Held
from toolgate.kernel.call import Call
from toolgate.kernel.comparing import Difference
from toolgate.kernel.context import Principal
from toolgate.kernel.extras import how_to_install
from toolgate.kernel.misuse import explained
from toolgate.kernel.policy import Policy
from toolgate.kernel.text.canonical import DEFAULT_LIMITS, Limits
from toolgate.kernel.text.masking import Masker
from toolgate.kernel.tool import Placement, ToolDefinition
from toolgate.kernel.undo import DEFAULT_UNDO_TTL_S
from toolgate.ports.bus import Bus
from toolgate.ports.channel import Channel
from toolgate.ports.directory import Directory
from toolgate.ports.dispatcher import Dispatcher
from toolgate.ports.runner import Job, Runner
from toolgate.ports.store import Store, UndoRecords
from toolgate.ports.threads import Threads

REDIS = ("redis://", "rediss://")
EXTRAS = {
    "asyncpg": "postgres",
    "jinja2": "server",
    "jwt": "server",
    "limits": "server",
    "pgqueuer": "worker",
    "pydantic_ai": "agent",
    "pydantic_settings": "server",
    "redis": "redis",
    "starlette": "server",
    "uvicorn": "server",
    "websockets": "server",
}
"""The extra that brings each library that is not always there."""
_SCHEMES = ("memory", "sqlite", "postgresql")
_POSTGRES = ("postgresql", "postgres")


@explained
def open(  # `toolgate.open` is the name users type
    url: str | PathLike[str] = "memory://",
    *,
    tools: Iterable[ToolDefinition] = (),
    policy: Policy | str | PathLike[str] | None = None,
    project_policies: str | PathLike[str] | None = None,
    workspace: str | PathLike[str] | None = None,
    approver: Callable[..., Any] | Channel | Sequence[Callable[..., Any] | Channel] | None = None,
    secrets: Iterable[str] = (),
    limits: Limits = DEFAULT_LIMITS,
    undo_ttl_seconds: float = DEFAULT_UNDO_TTL_S,
    runners: Mapping[str, Runner] | None = None,
    built_in_tools: bool = False,
    sandbox_uid: int | None = None,
    redis: str | None = None,
    workers: bool | None = None,
    accept_policy: str | None = None,
    private_files: Iterable[str | PathLike[str]] = (),
) -> Gate:
    """Open a gate on a store, named by its URL or by the path of a SQLite file: `path/to/file.db`, which is the same as
    `sqlite:///path/to/file.db`, is durable, `postgresql://user@host/database` is shared by many machines, `memory://`
    ends with the process.

    `approver` answers approvals: a function (see CallbackChannel), a channel, or several. Without one, calls
    that need a person wait for `gate.decide`. `policy` is a policy file, a directory that holds one, or a Policy;
    files are read again when they change. `project_policies` is a folder with the policies of projects that have one of
    their own, `<project>.yaml` each, which add to that. `workspace` is where relative paths begin, the current
    directory by default. `secrets` are values hidden wherever they appear. `built_in_tools` adds the tools of the
    catalog. `sandbox_uid` is who sandboxed programs run as where this process is root. `runners` are further places
    where handlers run, by placement (`client`, ...). `redis` is the URL of a Redis that carries wake-ups between
    processes. `workers` lets tools with the placement `worker` run at `toolgate worker`; so it is by default on
    PostgreSQL. `accept_policy` is the revision of the policy that may be followed although its files changed during a
    sandboxed run that could write them; without it PolicyHeldError is raised then. `private_files` are files and
    folders, such as tokens, that no command may see; the database and its keys are among them anyway.
    """
    url = store_url(url)
    masker = Masker(_secrets(secrets))
    channels = [_channel(one) for one in _approvers(approver)]
    inline = _load("toolgate.adapters.runners.inline", "InlineRunner")()
    source = None
    if isinstance(policy, Policy | None):
        if project_policies is not None:
            raise UsageError("Policies of projects add to files: give `policy` as a file or folder beside them.")
        followed = policy
    else:  # read before anything is opened: a gate without its policy is no gate
        source = _load("toolgate.policy.loader", "PolicySource")(policy, workspace=workspace, projects=project_policies)
        followed = source.load()
    metrics = _load("toolgate.adapters.telemetry.metrics", "METRICS")
    edges = PolicyEdges(workspace, url, private=private_files)
    sandbox = LazySandbox(edges, sandbox_uid)
    offered = [*tools]
    if built_in_tools:
        if project_policies is not None:
            raise UsageError("The built-in tools go by one policy for all projects; leave them or the others out.")
        offered += _load("toolgate.catalog", "built_in_tools")(edges)
    store, bus = connect(url, redis=redis)
    windows = None
    if source is not None and followed is not None:
        windows = policy_windows(url, store, source, mask=masker.text)
    book = getattr(followed, "pins", None)
    pins = program_pins(url, store, book)
    if store.is_shared and book is not None:
        admit(windows, pins, followed, accept_policy, store, bus)
    worker = _WorkerRunner(url, store, bus)
    away: dict[str, Runner] = {Placement.WORKER.value: worker} if _has_workers(url, workers) else {}
    gate = Gate(
        store=store,
        bus=bus,
        runners={Placement.INLINE.value: inline, Placement.SANDBOX.value: sandbox, **away, **(runners or {})},
        tools=offered,
        policy=followed,
        policy_source=source,
        policy_windows=windows,
        program_pins=pins,
        channels=channels,
        masker=masker,
        limits=limits,
        undo_ttl_s=undo_ttl_seconds,
        tally=metrics.count,
        sink_tally=metrics.count_sink,
    )
    edges.gate = sandbox.gate = worker.gate = gate
    return gate


async def held_policy(url: str, source: Any, *, accept: str | None = None, by: Principal | None = None) -> Held | None:
    """Return what waits for a person's word, or waited until `by` accepted the revision named here."""
    if by is not None:
        check_accepting(by)
    found = source.load()
    store, bus = connect(url)
    try:
        windows = policy_windows(store_url(url), store, source, mask=Masker().text)
        if accept is None or by is None:
            return await windows.held(found)
        await windows.settle()
        held = await windows.held(found)
        if held is not None:
            await windows.accept(found, accept, by=by.name)
        return held
    finally:
        bus.close()
        await store.close()


@asynccontextmanager
async def pinned_programs(url: str) -> AsyncIterator[ProgramPins]:
    """What is on record of programs in a database, for as long as it is held open."""
    store, bus = connect(url)
    try:
        pins = program_pins(store_url(url), store)
        await pins.read()
        yield pins
    finally:
        bus.close()
        await store.close()


class _WorkerRunner:
    """The worker runner, made when something is to run at a worker: most gates never need one."""

    def __init__(self, url: str, store: Store, bus: Bus) -> None:
        self._url, self._store, self._bus = url, store, bus
        self._runner: Any = None
        self._lock = threading.Lock()
        self.gate: Gate | None = None

    @property
    def dispatcher(self) -> Dispatcher:
        """What carries orders to workers."""
        with self._lock:
            if self._runner is None:
                self._runner = _load("toolgate.adapters.runners.worker", "WorkerRunner")(self._make())
        carrier: Dispatcher = self._runner.dispatcher
        return carrier

    def run(self, job: Job) -> Awaitable[object]:
        assert self.dispatcher is not None
        running: Awaitable[object] = self._runner.run(job)
        return running

    def recall(self, call: Call, reason: str) -> None:
        """The recall is on the call's row, which its worker reads."""

    def _make(self) -> Any:
        if _is_postgres(self._url):
            address = _load("toolgate.adapters.postgres.url", "read")(self._url)
            if not address.pooled:  # the engine prepares, sets and listens in a session, which a pooler gives away
                return _load("toolgate.adapters.postgres.dispatcher", "PgQueuerDispatcher")(address.dsn)
        assert self.gate is not None
        looking = _load("toolgate.adapters.sql.dispatcher", "LookingDispatcher")
        return looking(self._store, self._bus, self.gate.registry)

    async def close(self) -> None:
        if self._runner is not None:
            await self._runner.close()


def _is_postgres(url: str) -> bool:
    return url.partition("://")[0] in _POSTGRES


def _has_workers(url: str, wanted: bool | None) -> bool:
    if url.startswith("memory://") and wanted:
        raise UsageError("Workers are processes of their own and cannot share `memory://`; use a file or PostgreSQL.")
    return _is_postgres(url) if wanted is None else wanted


def _load(module: str, name: str) -> Any:
    try:
        return getattr(import_module(module), name)
    except ModuleNotFoundError as error:
        raise uninstalled(error) or error from None


def uninstalled(error: ModuleNotFoundError) -> UsageError | None:
    """Say what to install where what is missing belongs to an extra; None where it is nothing of ours."""
    library = (error.name or "").partition(".")[0]
    extra = EXTRAS.get(library)
    return None if extra is None else _missing(library, extra)


def require(extra: str, *libraries: str) -> None:
    """Raise UsageError where one of an extra's libraries is not installed, and name the extra that brings them all."""
    for library in libraries:
        if find_spec(library) is None:
            raise _missing(library, extra)


def _missing(library: str, extra: str) -> UsageError:
    return UsageError(f"This needs {library}, which comes with the extra `{extra}`: {how_to_install(extra)}.")


def store_url(database: str | PathLike[str]) -> str:
    """Return the URL of a store that is named by its URL or by the path of a SQLite file."""
    named = fspath(database)
    scheme, separator, _ = named.partition("://")
    if separator:
        if scheme in ("http", "https"):
            raise UsageError("This is a server's address, not a database: use --server, or `toolgate.client.Client`.")
        return named
    if not named.strip() or named in _SCHEMES or named.partition(":")[0] in (*_SCHEMES, *_POSTGRES):
        raise UsageError(
            f"{named.partition(':')[0]!r} names no database. Give the path of a SQLite file, or a URL: memory://, "
            "sqlite:///file.db or postgresql://user@host/database."
        )
    return f"sqlite:///{named}"


def role_warning(url: str | PathLike[str]) -> str | None:
    """What a person should know of the role this process has in its database, before it serves; None: nothing."""
    named = store_url(url)
    if not _is_postgres(named):
        return None
    told: str | None = _load("toolgate.adapters.postgres.upkeep", "role_warning")(named)
    return told


def account_differences(url: str | PathLike[str]) -> list[Difference]:
    """The accounts and tokens of a database that say something else than the record, or do not count."""
    named = store_url(url)
    if named.startswith("memory://"):
        return []
    on = "postgres" if _is_postgres(named) else "sqlite"
    compare = _load(f"toolgate.adapters.{on}.comparing", "compare_accounts")
    path = None if _is_postgres(named) else _path(named.partition("://")[2])
    if path is not None and not path.exists():
        return []
    found: list[Difference] = compare(named if path is None else path)
    return found


def connect(url: str | PathLike[str], *, redis: str | None = None) -> tuple[Store, Bus]:
    """Return the store of this name and the bus that belongs to it, through Redis where one is given."""
    store, bus = _connect(store_url(url))
    if redis is None:
        return store, bus
    return store, _load("toolgate.adapters.redis.bus", "RedisBus")(redis, beneath=bus, origin=store.owner)


def _connect(url: str) -> tuple[Store, Bus]:
    scheme, separator, rest = url.partition("://")
    owner = str(uuid_utils.uuid7())
    if separator and scheme == "memory":
        return (
            _load("toolgate.adapters.memory.store", "MemoryStore")(owner=owner),
            _load("toolgate.adapters.memory.bus", "MemoryBus")(),
        )
    if separator and scheme == "sqlite":
        store = _load("toolgate.adapters.sqlite.store", "SqliteStore")(_path(rest), owner=owner)
        return store, _load("toolgate.adapters.sqlite.bus", "SqliteBus")(store.open_news)
    if separator and scheme in _POSTGRES:
        store = _load("toolgate.adapters.postgres.store", "PostgresStore")(url, owner=owner)
        return store, _load("toolgate.adapters.postgres.bus", "PostgresBus")(store.open_news())
    raise _unknown(scheme)


def undo_records(url: str | PathLike[str]) -> UndoRecords:
    """Return what keeps undo data: a Redis at its URL, or the store of this name."""
    if isinstance(url, str) and url.startswith(REDIS):
        in_redis: UndoRecords = _load("toolgate.adapters.redis.undo", "RedisUndo")(url)
        return in_redis
    return connect(url)[0]


def directory(url: str | PathLike[str]) -> Directory:
    """Return the directory that belongs to the store of this name."""
    url = store_url(url)
    scheme, separator, rest = url.partition("://")
    if separator and scheme == "memory":
        in_memory: Directory = _load("toolgate.adapters.memory.directory", "MemoryDirectory")()
        return in_memory
    if separator and scheme == "sqlite":
        file = _load("toolgate.adapters.sqlite.beside", "Beside")(_path(rest))
        in_file: Directory = _load("toolgate.adapters.sqlite.directory", "SqliteDirectory")(
            file.connect, sealer=file.sealer
        )
        return in_file
    if separator and scheme in _POSTGRES:
        link = _load("toolgate.adapters.postgres.schema", "prepared")(url)
        sealer = _load("toolgate.adapters.sealing", "load_shared")(link.address.key)
        in_postgres: Directory = _load("toolgate.adapters.postgres.directory", "PostgresDirectory")(link, sealer=sealer)
        return in_postgres
    raise _unknown(scheme)


def threads(url: str | PathLike[str]) -> Threads:
    """Return where the conversations of the store of this name are kept."""
    url = store_url(url)
    scheme, separator, rest = url.partition("://")
    if separator and scheme == "memory":
        in_memory: Threads = _load("toolgate.adapters.memory.threads", "MemoryThreads")()
        return in_memory
    if separator and scheme == "sqlite":
        file = _load("toolgate.adapters.sqlite.beside", "Beside")(_path(rest))
        in_file: Threads = _load("toolgate.adapters.sqlite.threads", "SqliteThreads")(
            file.connect, sealer=file.sealer, is_alive=file.is_alive
        )
        return in_file
    if separator and scheme in _POSTGRES:
        link = _load("toolgate.adapters.postgres.schema", "prepared")(url)
        sealer = _load("toolgate.adapters.sealing", "load_shared")(link.address.key)
        in_postgres: Threads = _load("toolgate.adapters.postgres.threads", "PostgresThreads")(link, sealer=sealer)
        return in_postgres
    raise _unknown(scheme)


def _path(rest: str) -> Path:
    if not rest.startswith("/") or rest == "/":
        raise UsageError("A SQLite URL is sqlite:///relative.db or sqlite:////absolute/path.db.")
    return Path(rest[1:])


def _unknown(scheme: str) -> UsageError:
    known = ", ".join(f"{name}://" for name in _SCHEMES)
    return UsageError(f"The store URL {scheme[:40]!r} is not known here; use one of: {known}.")


def _secrets(given: Iterable[str]) -> list[str]:
    """Return the secrets; refuse what is none, without quoting it."""
    if isinstance(given, str | bytes):
        raise UsageError("`secrets` is a list of strings, each hidden whole; put the one you have into a list.")
    secrets = list(given)
    for number, secret in enumerate(secrets, 1):
        if not isinstance(secret, str):
            kind = type(secret).__name__
            raise UsageError(
                f"Each of the `secrets` is a string, and number {number} is of type {kind}; nothing opened."
            )
    return secrets


def _approvers(given: Any) -> Sequence[Any]:
    if given is None:
        return ()
    return given if isinstance(given, list | tuple) else (given,)


def _channel(approver: Callable[..., Any] | Channel) -> Channel:
    if hasattr(approver, "ask"):
        channel: Channel = approver
        return channel
    wrapped: Channel = _load("toolgate.adapters.channels.callback", "CallbackChannel")(approver)
    return wrapped


def tools_at(where: str | None) -> Mapping[str, ToolDefinition]:
    """Return the tools a `module:name` holds, by name: one, or several in a list.

    A module alone stands for its `TOOLS` or, where it has none, for every tool in it. UsageError says what is wrong.
    """
    if where is None:
        return {}
    tools: dict[str, ToolDefinition] = {}
    for value in _values_at(where):
        tool = _tool(value)
        if tool is None:
            called = getattr(value, "__name__", type(value).__name__)
            raise _no_tools(where, f"`{called}` is not a tool: decorate the function with `@tool`")
        tools[tool.name] = tool
    return tools


class _WorkspaceFinder(MetaPathFinder):
    """Finds modules in the working directory; never one that Python or an extra of ours has the name of."""

    def __init__(self, *only: str) -> None:
        self._only = only

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if path is not None or fullname in sys.stdlib_module_names or fullname in EXTRAS:
            return None
        if self._only and fullname not in self._only:
            return None
        return PathFinder.find_spec(fullname, [os.getcwd()], target)


@contextmanager
def _workspace(module: str) -> Iterator[None]:
    """Let a module be imported from the working directory, with what it imports from there; nothing else, ever.

    The module itself is looked for there first, what it imports after everything that is installed. A file that was put
    into the workspace under the name of a library is then not loaded by this process in the library's place.
    """
    first, last = _WorkspaceFinder(module.partition(".")[0]), _WorkspaceFinder()
    invalidate_caches()
    sys.meta_path[:] = [first, *sys.meta_path, last]
    try:
        yield
    finally:
        sys.meta_path[:] = [finder for finder in sys.meta_path if finder is not first and finder is not last]


def _values_at(where: str) -> list[object]:
    module, _, name = where.partition(":")
    try:
        with _workspace(module):
            there = vars(import_module(module))
    except Exception as error:  # whatever the module's own code raises
        raise _no_tools(where, f"the module cannot be imported ({type(error).__name__}: {error})") from error
    if not name and "TOOLS" not in there:
        found = [value for value in there.values() if _tool(value) is not None]
        if not found:
            raise _no_tools(where, "the module has no `TOOLS`, and no tool either")
        return found
    name = name or "TOOLS"
    if name not in there:
        raise _no_tools(where, f"the module has no `{name}`")
    held = there[name].values() if isinstance(there[name], Mapping) else there[name]
    is_several = isinstance(held, Iterable) and _tool(held) is None
    return [*held] if is_several else [held]


def _tool(value: object) -> ToolDefinition | None:
    """Return the tool a value is, or that a decorator made of a function."""
    found = getattr(value, "_hitl_definition", value)
    return found if isinstance(found, ToolDefinition) else None


def _no_tools(where: str, why: str) -> UsageError:
    return UsageError(f"There are no tools at {where!r}: {why}.")
