"""From settings to a Gate: the only place that loads adapters, by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from os import PathLike
from typing import Any

import uuid_utils

from toolgate.errors import UsageError
from toolgate.gate import Gate
from toolgate.kernel.canonical import DEFAULT_LIMITS, Limits
from toolgate.kernel.masking import Masker
from toolgate.kernel.policy import Policy
from toolgate.kernel.tool import Placement, ToolDefinition
from toolgate.kernel.undo import DEFAULT_UNDO_TTL_S
from toolgate.ports.bus import Bus
from toolgate.ports.channel import Channel
from toolgate.ports.store import Store

_SCHEMES = ("memory", "sqlite")


def open(  # `toolgate.open` is the name users type
    url: str = "memory://",
    *,
    tools: Iterable[ToolDefinition] = (),
    policy: Policy | str | PathLike[str] | None = None,
    workspace: str | PathLike[str] | None = None,
    approver: Callable[..., Any] | Channel | Sequence[Callable[..., Any] | Channel] | None = None,
    secrets: Iterable[str] = (),
    limits: Limits = DEFAULT_LIMITS,
    undo_ttl_seconds: float = DEFAULT_UNDO_TTL_S,
) -> Gate:
    """Open a gate on a store: `sqlite:///path/to/file.db` is durable, `memory://` ends with the process.

    `approver` answers approvals: a function (see CallbackChannel), a channel, or several. Without one, calls
    that need a person wait for `gate.decide`. `policy` is a policy file, a directory that holds one, or a Policy;
    files are read again when they change. `workspace` is where its relative paths begin. `secrets` are
    values hidden wherever they appear.
    """
    channels = [_channel(one) for one in _approvers(approver)]
    inline = _load("toolgate.adapters.runners.inline", "InlineRunner")()
    source = None
    if isinstance(policy, Policy | None):
        followed = policy
    else:  # read before anything is opened: a gate without its policy is no gate
        source = _load("toolgate.policy.loader", "PolicySource")(policy, workspace=workspace)
        followed = source.load()
    store, bus = connect(url)
    return Gate(
        store=store,
        bus=bus,
        runners={Placement.INLINE.value: inline},
        tools=tools,
        policy=followed,
        policy_source=source,
        channels=channels,
        masker=Masker(secrets),
        limits=limits,
        undo_ttl_s=undo_ttl_seconds,
    )


def _load(module: str, name: str) -> Any:
    return getattr(import_module(module), name)


def connect(url: str) -> tuple[Store, Bus]:
    """Return the store a URL names and the bus that belongs to it."""
    scheme, separator, rest = url.partition("://")
    owner = str(uuid_utils.uuid7())
    if separator and scheme == "memory":
        return (
            _load("toolgate.adapters.stores.memory", "MemoryStore")(owner=owner),
            _load("toolgate.adapters.buses.memory", "MemoryBus")(),
        )
    if separator and scheme == "sqlite":
        if not rest.startswith("/") or rest == "/":
            raise UsageError("A SQLite URL is sqlite:///relative.db or sqlite:////absolute/path.db.")
        store = _load("toolgate.adapters.stores.sqlite", "SqliteStore")(rest[1:], owner=owner)
        return store, _load("toolgate.adapters.buses.sqlite", "SqliteBus")(store.open_news)
    known = ", ".join(f"{name}://" for name in _SCHEMES)
    raise UsageError(f"The store URL {scheme[:40]!r} is not known here; use one of: {known}.")


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
