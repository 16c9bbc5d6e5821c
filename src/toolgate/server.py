"""The server by the names an application that embeds it types: `from toolgate.server import create_app`."""

from __future__ import annotations

from toolgate.bootstrap import uninstalled

try:
    from toolgate.adapters.runners.client import ClientRunner
    from toolgate.interfaces.server.app import create_app
    from toolgate.interfaces.server.sessions import login_link
    from toolgate.interfaces.server.settings import ServerSettings
    from toolgate.interfaces.server.tokens import new_token
    from toolgate.ports.agent import ResidentAgent, Turn
    from toolgate.ports.directory import Account
except ModuleNotFoundError as error:
    missing = uninstalled(error)
    if missing is None:
        raise
    raise ImportError(str(missing), name=error.name) from error

__all__ = [
    "Account",
    "ClientRunner",
    "ResidentAgent",
    "ServerSettings",
    "Turn",
    "create_app",
    "login_link",
    "new_token",
]
