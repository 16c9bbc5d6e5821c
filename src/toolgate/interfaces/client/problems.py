"""What went wrong, as an error that says what to do: connections that fail and answers that refuse.

A server is somebody else's: what it says is shortened and stripped of control characters before anybody sees it.
"""

from __future__ import annotations

import errno
import socket
import ssl
from collections.abc import Iterator
from typing import Any

import httpx2
import orjson

from toolgate import errors
from toolgate.errors import (
    AnswerLostError,
    BadAnswerError,
    ConflictError,
    NotSignedInError,
    ServerBusyError,
    ServerError,
    ServerUnreachableError,
    ToolgateError,
)
from toolgate.kernel.ids import MAX_ID

MAX_TEXT = 2000
_UNSENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)
_CONFLICTS: dict[str, type[ConflictError]] = {
    kind.code: kind
    for kind in (
        errors.ConflictError,
        errors.DecisionConflictError,
        errors.ModeChangedError,
        errors.GrantChangedError,
        errors.StaleFenceError,
    )
}
_ADVICE = {
    413: "Send less, or raise the server's max_body_bytes.",
    421: "Use the name the server knows itself by, or add this one to its allowed_hosts.",
    501: "Configure it on the server.",
    503: "Try again in a moment.",
}


def plain(text: object, limit: int = MAX_TEXT) -> str:
    """A server's words as one line of printable text."""
    shown = "".join(char if char.isprintable() else " " for char in str(text)[: limit * 2])
    return " ".join(shown.split())[:limit]


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    found: BaseException | None = error
    while found is not None and id(found) not in seen:
        seen.add(id(found))
        yield found
        found = found.__cause__ or found.__context__


def of_transport(error: httpx2.TransportError | TimeoutError, url: str) -> ServerError:
    """The error of a connection that could not be made, or that ended too early."""
    if not isinstance(error, _UNSENT):
        slow = isinstance(error, httpx2.TimeoutException | TimeoutError)
        why = "did not answer in time" if slow else "closed the connection before its answer was complete"
        return AnswerLostError(
            f"The server at {url} {why}. The request may have been carried out: look before you repeat it."
        )
    for cause in _causes(error):
        if isinstance(cause, ssl.SSLCertVerificationError):
            return ServerUnreachableError(
                f"The certificate of {url} is not trusted: {plain(cause.verify_message)}. Give the certificate of "
                "who signed it as `ca_file` (--ca-file).",
                is_lasting=True,
            )
        if isinstance(cause, ssl.SSLError):
            return ServerUnreachableError(
                f"{url} does not answer with valid TLS ({plain(cause.reason)}). If it serves plain HTTP, "
                "write http:// instead of https://.",
                is_lasting=True,
            )
        if isinstance(cause, socket.gaierror):
            return ServerUnreachableError(
                f"The host name in {url} cannot be resolved. Check the address.",
                is_lasting=cause.errno != socket.EAI_AGAIN,
            )
        if isinstance(cause, OSError) and cause.errno == errno.ECONNREFUSED:
            return ServerUnreachableError(
                f"Nothing listens at {url}. Start the server with `toolgate serve`, or check the address."
            )
    return ServerUnreachableError(f"{url} cannot be reached ({type(error).__name__}). Check address and network.")


def _told(raw: bytes) -> dict[str, Any]:
    try:
        told = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return {}
    return told if isinstance(told, dict) else {}


def of_answer(status: int, headers: httpx2.Headers, raw: bytes, url: str) -> ToolgateError:
    """The error an answer that refuses stands for: the same class the gate itself would raise, where there is one."""
    told = _told(raw)
    code = told.get("code")
    if 300 <= status < 400:
        return BadAnswerError(
            f"{url} sends requests elsewhere (status {status}), which is not followed. Give the final address.",
            status=status,
        )
    if not isinstance(code, str):
        return _foreign(status, url)
    detail = plain(told.get("detail") or told.get("title") or code)
    advice = _ADVICE.get(status)
    text = f"{detail} {advice}" if advice else detail
    return _of_problem(status, plain(code, 100), text, told, retry_after(headers))


def _foreign(status: int, url: str) -> ServerError:
    if status >= 500:
        return ServerError(f"{url} answered {status} without saying why. Try again, or see its log.", status=status)
    return BadAnswerError(
        f"What answers at {url} is not a Toolgate server (status {status}). Check the address.", status=status
    )


def _of_problem(status: int, code: str, text: str, told: dict[str, Any], retry_s: float | None) -> ToolgateError:
    if status == 409 and code == "in_progress":
        return ServerBusyError(text, status=status, problem=code, retry_after_s=retry_s)
    if status == 409:
        if code == errors.ToolUndoError.code:
            return errors.ToolUndoError(text)
        if code == errors.EffectHeldError.code:
            holder = told.get("holder")
            return errors.EffectHeldError(text, holder=plain(holder, MAX_ID) if isinstance(holder, str) else None)
        kind = _CONFLICTS.get(code, ConflictError)
        decided, where = told.get("decided"), told.get("tool_status")
        return kind(
            text,
            decided={str(key): value for key, value in decided.items()} if isinstance(decided, dict) else None,
            tool_status=where if isinstance(where, str) else None,
        )
    if status == 401:
        return NotSignedInError(text, status=status, problem=code)
    if status == 429:
        return ServerBusyError(text, status=status, problem=code, retry_after_s=retry_s)
    if code == errors.InvalidIdError.code:
        return errors.InvalidIdError(text)
    plain_kinds: dict[int, type[ToolgateError]] = {
        400: errors.UsageError,
        403: errors.NotAllowedError,
        404: errors.NotFoundError,
        413: errors.UsageError,
        422: errors.UsageError,
    }
    if status in plain_kinds:
        return plain_kinds[status](text)
    return ServerError(text, status=status, problem=code, retry_after_s=retry_s)


def retry_after(headers: httpx2.Headers) -> float | None:
    """The seconds of a `Retry-After`, at most a minute: a server does not get to stop us for longer."""
    text = headers.get("retry-after", "")
    return min(float(text), 60.0) if text.isascii() and text.isdigit() and len(text) < 10 else None
