"""What a client of a Toolgate server meets."""

from __future__ import annotations

from toolgate.errors.calls import ToolgateError


class ServerError(ToolgateError):
    """A Toolgate server refused or failed. `status` is its HTTP status, `problem` the code it gave."""

    code = "server_error"

    def __init__(
        self,
        message: str,
        /,
        *,
        status: int | None = None,
        problem: str | None = None,
        retry_after_s: float | None = None,
        is_lasting: bool = False,
    ) -> None:
        self.status, self.problem, self.retry_after_s = status, problem, retry_after_s
        self.is_lasting = is_lasting
        super().__init__(message)


class ServerUnreachableError(ServerError):
    """Nothing was sent. `is_lasting` says that trying again cannot help: a wrong name or certificate."""

    code = "server_unreachable"


class AnswerLostError(ServerError):
    """The request may or may not have been carried out."""

    code = "answer_lost"


class NotSignedInError(ServerError):
    """The server knows no such token, or no more."""

    code = "not_signed_in"


class ServerBusyError(ServerError):
    """Too many requests or streams; `retry_after_s` says when to come back, where the server did."""

    code = "server_busy"


class BadAnswerError(ServerError):
    """What came back is not an answer of a Toolgate server, or larger than allowed."""

    code = "bad_answer"
