"""The console: the pages people decide on, served by the server beside its API.

`mount` adds them: the shell at `/`, `/login`, the modules under `/console/`, and pages that need no script. The
console has no way to the gate of its own: whatever it does is a request anybody could make.
"""

from __future__ import annotations

from fastapi import FastAPI
from starlette.routing import Route

from toolgate.interfaces.console.assets import Assets
from toolgate.interfaces.console.pages import Pages
from toolgate.interfaces.console.plain import Plain
from toolgate.interfaces.server.services import Services


def mount(app: FastAPI, services: Services) -> None:
    """Serve the console from this application."""
    assets = Assets.load()
    pages = Pages(services, assets)
    plain = Plain(pages)
    app.router.routes.extend(
        [
            Route("/", pages.shell, methods=["GET"], include_in_schema=False),
            Route("/login", pages.login, methods=["GET"], include_in_schema=False),
            Route("/login", pages.sign_in, methods=["POST"], include_in_schema=False),
            Route("/approvals/plain", plain.index, methods=["GET"], include_in_schema=False),
            Route("/approvals/brake", plain.brake, methods=["POST"], include_in_schema=False),
            Route("/approvals/{approval_id}/plain", plain.show, methods=["GET"], include_in_schema=False),
            Route("/approvals/{approval_id}/plain", plain.answer, methods=["POST"], include_in_schema=False),
            Route("/console/{version}/{path:path}", assets.serve, methods=["GET"], include_in_schema=False),
        ]
    )
