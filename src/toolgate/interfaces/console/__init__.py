"""The console: the pages people decide on, served by the server beside its API.

`mount` adds them: the shell at `/`, `/login`, the modules under `/console/`, and pages that need no script. The
console has no way to the gate of its own: whatever it does is a request anybody could make.
"""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.routing import Route

from toolgate.interfaces.console.assets import Assets
from toolgate.interfaces.console.pages import Pages
from toolgate.interfaces.console.plain import Plain
from toolgate.interfaces.server.services import Services


def mount(app: Starlette, services: Services) -> None:
    """Serve the console from this application."""
    assets = Assets.load()
    pages = Pages(services, assets)
    plain = Plain(pages)
    app.router.routes.extend(
        [
            Route("/", pages.shell, methods=["GET"]),
            Route("/login", pages.login, methods=["GET"]),
            Route("/login", pages.sign_in, methods=["POST"]),
            Route("/login/whose", pages.whose, methods=["POST"]),
            Route("/pages/{key}/approvals", plain.index, methods=["GET"]),
            Route("/pages/{key}/approvals/{approval_id}", plain.show, methods=["GET"]),
            Route("/pages/{key}/approvals/{approval_id}", plain.answer, methods=["POST"]),
            Route("/pages/{key}/brake", plain.brake, methods=["POST"]),
            Route("/pages/{key}/sign-out", plain.sign_out, methods=["POST"]),
            Route("/console/{version}/{path:path}", assets.serve, methods=["GET"]),
        ]
    )
