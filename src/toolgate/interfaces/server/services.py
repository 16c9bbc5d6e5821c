"""What every request needs, made once: the gate, the directory, who is connected, and the limits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from toolgate.adapters.runners.client import ClientRunner
from toolgate.gate import Gate
from toolgate.interfaces.server.hub import Hub
from toolgate.interfaces.server.identity import Authenticator, JwtReader
from toolgate.interfaces.server.limits import Buckets
from toolgate.interfaces.server.metrics import ServerMetrics
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
    authenticator: Authenticator = field(init=False)
    requests: Buckets = field(init=False)
    metrics: ServerMetrics = field(default_factory=ServerMetrics)

    def __post_init__(self) -> None:
        settings = self.settings
        self.hub = Hub(self.gate, self.directory, settings, now=self.now)
        self.requests = Buckets(settings.requests_per_second, settings.request_burst)
        self.authenticator = Authenticator(
            self.directory,
            failures=Buckets(settings.failures_per_second, settings.failure_burst),
            jwt=_jwt(settings),
            now=self.now,
        )


def _jwt(settings: ServerSettings) -> JwtReader | None:
    if not settings.accepts_jwt:
        return None
    from toolgate.interfaces.server.jwts import OidcReader  # cryptography loads slowly

    return OidcReader(settings)
