"""From settings to a Gate: the only place that loads adapters, by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any

from toolgate.errors import UsageError
from toolgate.gate import Gate
from toolgate.kernel.canonical import DEFAULT_LIMITS, Limits
from toolgate.kernel.masking import Masker
from toolgate.kernel.policy import Policy
from toolgate.kernel.tool import Placement, ToolDefinition
from toolgate.kernel.undo import DEFAULT_UNDO_TTL_S
from toolgate.ports.channel import Channel
from toolgate.ports.store import Store

_STORES = {"memory": ("toolgate.adapters.stores.memory", "MemoryStore")}


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
    """Open a gate on a store: `memory://` keeps everything in this process.

    `approver` answers approvals: a function (see CallbackChannel) or a channel. Without one, calls
    that need a person wait for `gate.decide`. `secrets` are values hidden wherever they appear.
    """
    channels = [] if approver is None else [_channel(approver)]
    inline = _load("toolgate.adapters.runners.inline", "InlineRunner")()
    return Gate(
        store=_store(url),
        bus=_load("toolgate.adapters.buses.memory", "MemoryBus")(),
        runners={Placement.INLINE.value: inline},
        tools=tools,
        policy=policy,
        channels=channels,
        masker=Masker(secrets),
        limits=limits,
        undo_ttl_s=undo_ttl_seconds,
    )


def _load(module: str, name: str) -> Any:
    return getattr(import_module(module), name)


def _store(url: str) -> Store:
    scheme, separator, _rest = url.partition("://")
    if not separator or scheme not in _STORES:
        known = ", ".join(f"{name}://" for name in sorted(_STORES))
        raise UsageError(f"The store URL {scheme[:40]!r} is not known here; use one of: {known}.")
    store: Store = _load(*_STORES[scheme])()
    return store


def _channel(approver: Callable[..., Any] | Channel) -> Channel:
    if hasattr(approver, "ask"):
        channel: Channel = approver
        return channel
    wrapped: Channel = _load("toolgate.adapters.channels.callback", "CallbackChannel")(approver)
    return wrapped
