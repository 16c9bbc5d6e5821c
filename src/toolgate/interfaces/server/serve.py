"""From settings to a running server: opens what it needs, serves, and on a signal drains and parks."""

from __future__ import annotations

import errno
import logging
import socket as sockets
from collections.abc import Callable, Iterable
from typing import Any

import uvicorn

from toolgate import bootstrap
from toolgate.adapters.runners.client import ClientRunner
from toolgate.agent.build import build_agent
from toolgate.agent.limits import Limits as AgentLimits
from toolgate.bootstrap import tools_at
from toolgate.catalog.client import client_tools
from toolgate.errors import UsageError
from toolgate.gate import Gate
from toolgate.interfaces.server.app import create_app, drain
from toolgate.interfaces.server.connections import Connections, allow_more_files
from toolgate.interfaces.server.dispatch import Application
from toolgate.interfaces.server.settings import LOCAL_HOSTS, ServerSettings
from toolgate.interfaces.server.socket import MAX_MESSAGE
from toolgate.kernel.text.canonical import Limits
from toolgate.kernel.tool import ToolDefinition
from toolgate.policy.loader import find_policy
from toolgate.ports.agent import Agent, ResidentAgent

log = logging.getLogger("toolgate.server")
MOST_TOLD = 10
"""Accounts and tokens named at the start; there may be thousands."""


def build(settings: ServerSettings, *, agent: Agent | ResidentAgent | None = None) -> Application:
    """Open the gate and the directory of these settings and return their server; nothing opens without a policy."""
    policy: Any = settings.policy if settings.policy is not None else _found()
    gate = bootstrap.open(
        settings.database,
        tools=_tools(settings),
        policy=policy,
        project_policies=settings.project_policies,
        workspace=settings.workspace,
        limits=Limits(max_bytes=settings.max_argument_bytes),
        runners={"client": ClientRunner()},
        workers=not settings.database.startswith("memory://"),
        accept_policy=settings.accept_policy,
        redis=None if settings.redis is None else settings.redis.get_secret_value(),
    )
    try:
        directory = bootstrap.directory(settings.database)
        _warn_of_accounts(settings.database)
        if agent is None and settings.agent:
            agent = agent_of(settings, gate)
    except BaseException:
        gate.close()
        raise
    return create_app(gate, directory, settings=settings, agent=agent, owns_gate=True)


def agent_of(settings: ServerSettings, gate: Gate) -> ResidentAgent:
    """Return the agent of these settings on a gate; ModelError where its model cannot be used."""
    limits = AgentLimits(
        steps=settings.agent_max_steps,
        seconds=settings.agent_max_seconds,
        tokens=settings.agent_max_tokens,
        cost=settings.agent_max_cost,
        repeats=settings.agent_max_repeats,
    )
    return build_agent(
        gate,
        bootstrap.threads(settings.database),
        model=settings.agent_model,
        base_url=settings.agent_base_url,
        key=None if settings.agent_key is None else settings.agent_key.get_secret_value(),
        instructions=settings.agent_instructions,
        limits=limits,
        timeout_s=settings.agent_timeout_s,
        retries=settings.agent_retries,
    )


def _found() -> str:
    find_policy(".")  # says what to do where there is none
    return "."


def _tools(settings: ServerSettings) -> Iterable[ToolDefinition]:
    found = {tool.name: tool for tool in (client_tools() if settings.client_tools else [])}
    for where in settings.tools:
        for name, tool in tools_at(where).items():
            if name in found:
                raise UsageError(f"Tool `{name}` is defined twice; leave one of them out, or set client_tools=false.")
            found[name] = tool
    return found.values()


class Server(uvicorn.Server):
    """A uvicorn server that lets its streams go before it waits for them, and says where it serves."""

    def __init__(
        self, app: Application, config: uvicorn.Config, said: Callable[[str], None], connections: Connections
    ) -> None:
        super().__init__(config)
        self._served = app
        self._said = said
        self._connections = connections

    async def on_tick(self, counter: int) -> bool:
        self._connections.look(self.server_state.connections)
        return await super().on_tick(counter)

    async def startup(self, sockets: list[sockets.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        if self.started:
            for server in self.servers:
                for one in server.sockets:
                    host, port = one.getsockname()[:2]
                    self._said(f"http://{f'[{host}]' if ':' in host else host}:{port}")

    async def shutdown(self, sockets: list[sockets.socket] | None = None) -> None:
        await drain(self._served)
        await super().shutdown(sockets=sockets)


def server_of(app: Application, settings: ServerSettings, *, said: Callable[[str], None] = lambda _url: None) -> Server:
    """Return a server for the application, not started yet. Requests are not logged: URLs may hold tickets."""
    connections = Connections(head_s=settings.head_s, slow_s=settings.slow_s, most_idle=settings.max_idle_connections)
    made: Any = connections.protocol  # all that is done with it is to call it
    config = uvicorn.Config(
        app,
        http=made,
        backlog=512,
        host=settings.host,
        port=settings.port,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        lifespan="on",
        ws_max_size=4 * MAX_MESSAGE,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=max(1, round(settings.drain_s)),
    )
    return Server(app, config, said, connections)


def _warn_of_accounts(database: str) -> None:
    """Say at the start which accounts and tokens count as absent: nobody can sign in with them."""
    found = bootstrap.account_differences(database)
    for one in found[:MOST_TOLD]:
        log.warning("%s %r: %s", one.kind, one.id[:128], one.what)
    if found:
        log.warning(
            "%d accounts and tokens differ from the record: `toolgate audit verify` names all of them. Where they are "
            "of a version without marks, `toolgate db upgrade` takes them over.",
            len(found),
        )


def check_address(host: str, port: int) -> None:
    """Raise UsageError where nobody could listen there; before anything is opened."""
    try:
        found = sockets.getaddrinfo(host or None, port, type=sockets.SOCK_STREAM, flags=sockets.AI_PASSIVE)
    except OSError as error:
        raise UsageError(f"{host[:100]!r} is not an address to listen on ({error.strerror}); see --host.") from None
    for family, kind, _, _, address in found:
        with sockets.socket(family, kind) as probe:
            probe.setsockopt(sockets.SOL_SOCKET, sockets.SO_REUSEADDR, 1)
            try:
                probe.bind(address)
            except OSError as error:
                raise UsageError(_unusable(host, port, error)) from None


def _unusable(host: str, port: int, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        why, then = "another program listens there already", "End it, or choose another port with --port"
    else:
        why, then = error.strerror or "unknown error", "Choose another address with --host, or port with --port"
    return f"Cannot listen on {host[:100]} port {port}: {why}. {then}; 0 takes a free one."


def run(settings: ServerSettings, *, said: Callable[[str], None]) -> bool:
    """Serve until a signal; False where it could not start."""
    check_address(settings.host, settings.port)
    allow_more_files()
    server = server_of(build(settings), settings, said=said)
    server.run()
    return server.started


def is_exposed(settings: ServerSettings) -> bool:
    """Whether others than this machine can reach the server; they then should do so through TLS."""
    return settings.host not in LOCAL_HOSTS
