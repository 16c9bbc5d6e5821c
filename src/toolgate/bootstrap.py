"""From settings to a Gate: the only place that loads adapters, by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
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
    policy: Policy | None = None,
    approver: Callable[..., Any] | Channel | None = None,
    secrets: Iterable[str] = (),
    limits: Limits = DEFAULT_LIMITS,
    undo_ttl_seconds: float = DEFAULT_UNDO_TTL_S,
) -> Gate:
    """Open a gate on a store: `sqlite:///path/to/file.db` is durable, `memory://` ends with the process.

    `approver` answers approvals: a function (see CallbackChannel) or a channel. Without one, calls
    that need a person wait for `gate.decide`. `secrets` are values hidden wherever they appear.
    """
    channels = [] if approver is None else [_channel(approver)]
    inline = _load("toolgate.adapters.runners.inline", "InlineRunner")()
    store, bus = connect(url)
    return Gate(
        store=store,
        bus=bus,
        runners={Placement.INLINE.value: inline},
        tools=tools,
        policy=policy,
        channels=channels,
        masker=Masker(secrets),
        limits=limits,
        undo_ttl_s=undo_ttl_seconds,
        tally=_load("toolgate.adapters.telemetry.metrics", "METRICS").hear,
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


def _channel(approver: Callable[..., Any] | Channel) -> Channel:
    if hasattr(approver, "ask"):
        channel: Channel = approver
        return channel
    wrapped: Channel = _load("toolgate.adapters.channels.callback", "CallbackChannel")(approver)
    return wrapped
