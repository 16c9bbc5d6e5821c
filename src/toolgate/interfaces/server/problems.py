"""Every error of the server in one shape (RFC 9457), and which error of ours is which status."""

from __future__ import annotations

import logging
from typing import Any

import orjson
from starlette.responses import Response

from toolgate import errors
from toolgate.errors import ToolgateError

MEDIA_TYPE = "application/problem+json"
NOTHING_HERE = "There is nothing of this name or id here."
"""One text for what does not exist and for what is somebody else's: nobody learns which."""

log = logging.getLogger("toolgate.server")

_STATUSES: tuple[tuple[type[ToolgateError], int], ...] = (
    (errors.NotFoundError, 404),
    (errors.RateLimitError, 429),
    (errors.ConflictError, 409),
    (errors.PolicyHeldError, 409),
    (errors.NotAllowedError, 403),
    (errors.ToolDeniedError, 403),
    (errors.UsageError, 400),
    (errors.ToolInputError, 400),
    (errors.DefinitionError, 400),
    (errors.ToolUndoError, 409),
    (errors.StoreError, 503),
    (errors.GateClosedError, 503),
)
_TITLES = {
    400: "Bad request",
    401: "Not signed in",
    403: "Not allowed",
    404: "Not found",
    405: "Method not allowed",
    409: "Conflict",
    413: "Too large",
    421: "Wrong host",
    422: "Another request",
    429: "Too many requests",
    500: "Server error",
    501: "Not configured",
    503: "Unavailable",
}


class ProblemError(Exception):
    """A request that ends here. `more` is added to the answer."""

    def __init__(self, status: int, code: str, detail: str, *, headers: dict[str, str] | None = None, **more: Any):
        super().__init__(detail)
        self.status, self.code, self.detail = status, code, detail
        self.headers, self.more = headers, more

    @property
    def content(self) -> dict[str, Any]:
        """The problem as JSON."""
        return {
            "type": f"urn:toolgate:problem:{self.code}",
            "title": _TITLES.get(self.status, "Error"),
            "status": self.status,
            "code": self.code,
            "detail": self.detail,
            "success": False,
            **self.more,
        }

    def response(self) -> Response:
        """The problem as an answer."""
        return Response(orjson.dumps(self.content), self.status, self.headers, MEDIA_TYPE)


def not_found() -> ProblemError:
    return ProblemError(404, "not_found", NOTHING_HERE)


def problem_of(error: ToolgateError) -> ProblemError:
    """The problem an error of ours is. What does not exist is told without naming it."""
    status = next((status for kind, status in _STATUSES if isinstance(error, kind)), 500)
    if status == 404:
        return not_found()
    headers = {"Retry-After": "1"} if status == 503 else None
    problem = ProblemError(status, error.code, str(error), headers=headers)
    if isinstance(error, errors.EffectHeldError) and error.holder is not None and error.key is None:
        problem.more["holder"] = error.holder  # with a key it is a store's word, and not for everybody
    return problem


def unexpected(error: BaseException, where: str) -> ProblemError:
    """The problem of an error that is a defect of ours: logged by its type, told without its text."""
    log.error("%s failed with %s", where, type(error).__name__, exc_info=error)
    return ProblemError(500, "server_error", "The server failed; nothing more is known here. See its log.")
