"""What every request needs, made once: the gate, the directory, who is connected, and the limits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any

from toolgate.adapters.runners.client import ClientRunner
from toolgate.authority import decider
from toolgate.gate import Gate
from toolgate.interfaces.server.chains import Chains
from toolgate.interfaces.server.foreign import Foreign
from toolgate.interfaces.server.hub import Hub
from toolgate.interfaces.server.idempotency import Repeats
from toolgate.interfaces.server.identity import Authenticator, JwtReader
from toolgate.interfaces.server.limits import Buckets, Limit
from toolgate.interfaces.server.metrics import ServerMetrics
from toolgate.interfaces.server.naming import Naming
from toolgate.interfaces.server.served import Served, ServedHere
from toolgate.interfaces.server.settings import ServerSettings
from toolgate.ports.agent import Agent, ResidentAgent
from toolgate.ports.directory import Directory


def utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass(slots=True, kw_only=True)
class Services:
    """Made by `create_app`, handed to every operation."""

    gate: Gate
    directory: Directory
    settings: ServerSettings
    clients: ClientRunner
    agent: Agent | ResidentAgent | None = None
    now: Callable[[], datetime] = utc_now
    hub: Hub = field(init=False)
    foreign: Foreign = field(init=False)
    authenticator: Authenticator = field(init=False)
    requests: Limit = field(init=False)
    served: Served = field(init=False)
    repeats: Repeats = field(init=False)
    counts: Any = None
    """Where servers count requests together, if they do."""
    metrics: ServerMetrics = field(default_factory=ServerMetrics)
    chains: Chains = field(default_factory=Chains)
    naming: Naming = field(default_factory=Naming)

    def __post_init__(self) -> None:
        settings = self.settings
        self.gate.host.check_givers(partial(decider, self.directory))
        self.hub = Hub(self.gate, self.directory, settings, now=self.now)
        self.foreign = Foreign(self.gate, self.clients)
        self.counts = _shared(settings)
        self.served = _served(self.counts)
        self.repeats = Repeats(now=self.now, wait_s=settings.wait_limit_s)
        limit = _limits(self.counts)
        self.requests = limit("requests", settings.requests_per_second, settings.request_burst)
        self.authenticator = Authenticator(
            self.directory,
            failures=limit("failures", settings.failures_per_second, settings.failure_burst),
            jwt=_jwt(settings),
            cookie_suffices=settings.cookie_suffices,
            now=self.now,
        )


async def close(services: Services) -> None:
    """Let go of what requests were answered with; the gate and the directory are their opener's."""
    await services.hub.close()
    await services.foreign.close()
    if services.counts is not None:
        from toolgate.interfaces.server.shared_limits import close_storage

        await close_storage(services.counts)


def _shared(settings: ServerSettings) -> Any:
    if settings.redis is None:
        return None
    from toolgate.interfaces.server.shared_limits import shared_storage  # needs the extra `redis`

    return shared_storage(settings.redis.get_secret_value())


def _limits(storage: Any) -> Callable[[str, float, int], Limit]:
    if storage is None:
        return lambda _name, per_second, burst: Buckets(per_second, burst)
    from toolgate.interfaces.server.shared_limits import SharedBuckets

    return lambda name, per_second, burst: SharedBuckets(name, storage, per_second, burst)


def _served(storage: Any) -> Served:
    if storage is None:
        return ServedHere()
    from toolgate.interfaces.server.shared_served import SharedServed

    return SharedServed(storage)


def _jwt(settings: ServerSettings) -> JwtReader | None:
    if not settings.accepts_jwt:
        return None
    from toolgate.interfaces.server.jwts import OidcReader  # cryptography loads slowly

    return OidcReader(settings)
