"""Every error Toolgate raises, in one tree. Each class has a stable `code`.

    ToolgateError
    |-- ToolError                        what happened to one call
    |   |-- ToolNotFoundError            no such tool
    |   |-- ToolInputError               arguments unparsable or against the schema
    |   |-- ToolDeniedError              a rule said no
    |   |-- ToolApprovalDeniedError      a person said no
    |   |-- ToolApprovalTimeoutError     nobody answered in time
    |   |-- ToolCancelledError           the call was cancelled
    |   |-- ToolExecutionError           the handler failed
    |   |   |-- ToolTimeoutError         it timed out
    |   |   `-- ToolOutputError          what it returned is not usable
    |   |-- ToolUnknownOutcomeError      it may or may not have happened
    |   |   `-- ToolUnknownTimeoutError  it timed out, could not be stopped, and may have happened
    |   `-- ToolUndoError                an undo was refused or failed
    |-- DefinitionError                  a tool, schema or registration is wrong
    |   `-- NotAsyncError                a plain function where only an async one will do
    |-- PolicyError                      a policy file is wrong, or there is none
    |-- NotFoundError                    no such call, approval or run
    |-- ConflictError                    somebody else got there first
    |   |-- DecisionConflictError        the approval is decided, expired or frozen
    |   |-- ModeChangedError             the operator's mode is another one than the rules saw
    |   |-- GrantChangedError            a grant was used up, revoked or used by somebody else meanwhile
    |   |-- StaleFenceError              a result from an execution that lost its claim
    |   `-- RateLimitError               the claim would exceed a rate
    |-- NotAllowedError                  this principal may not do this
    |-- ModelError                       a model could not be asked, or its answer not be used
    |-- DeliveryError                    a channel gave up carrying a question
    |-- SandboxError                     the sandbox cannot be made or used
    |-- StoreError                       the truth cannot be read or written
    |-- GateClosedError                  the gate was closed
    |-- ServerError                      a Toolgate server does not serve this
    |   |-- ServerUnreachableError       nobody answers there
    |   |-- AnswerLostError              the connection ended before the answer came
    |   |-- NotSignedInError             it does not know the token
    |   |-- ServerBusyError              too many requests for now
    |   `-- BadAnswerError               what came is not an answer of Toolgate's
    `-- UsageError                       the API was called in a way it cannot serve
        |-- InvalidIdError               what can be no id of a call, run or session
        `-- UnknownKeywordError          a keyword that there is not

`code` is what programs compare; the text is for people and may change.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, NamedTuple


class ToolgateError(Exception):
    """Base of every error Toolgate raises on purpose."""

    code: str = "toolgate_error"


class ToolError(ToolgateError):
    """Base of everything that can end a call badly."""

    code = "tool_error"
    default_text: ClassVar[str] = "the tool call failed"
    told: ClassVar[tuple[str, ...]] = ()  # the fields of its own that `to_dict` gives

    def __init__(self, message: str | None = None, /, *, tool: str | None = None) -> None:
        self.tool = tool
        super().__init__(message if message is not None else self._describe())

    def to_dict(self) -> dict[str, Any]:
        """Return the error as JSON values: its class, code, text, tool, and what its class has besides."""
        shared = {"error_type": type(self).__name__, "code": self.code, "message": str(self), "tool": self.tool}
        return shared | {name: _as_json(getattr(self, name)) for name in self.told}

    def _describe(self) -> str:
        return self.default_text if self.tool is None else f"Tool `{self.tool}`: {self.default_text}"


class ToolNotFoundError(ToolError):
    """`action_type` is what was looked for; an error made of one text alone takes that for it."""

    code = "tool_not_found"
    default_text = "no tool of this name or action type is registered"
    told = ("action_type",)

    @property
    def action_type(self) -> str | None:
        return self.tool if self.tool is not None or self.args[0] == self._describe() else str(self.args[0])


class ToolInputError(ToolError):
    """The arguments cannot be parsed, exceed a limit or violate the schema.

    `location` is a JSON Pointer into the arguments where one is known.
    """

    code = "invalid_arguments"
    default_text = "the arguments are not valid"
    told = ("location",)

    def __init__(self, message: str | None = None, /, *, tool: str | None = None, location: str | None = None) -> None:
        self.location = location
        super().__init__(message, tool=tool)


class ToolDeniedError(ToolError):
    """A rule refused the call. `allowed` and `allowed_behaviors` are the same."""

    code = "denied"
    told = ("behavior", "allowed_behaviors", "reason")

    def __init__(
        self,
        message: str | None = None,
        /,
        *,
        tool: str | None = None,
        behavior: str | None = None,
        allowed: Iterable[str] | None = None,
        allowed_behaviors: Iterable[str] | None = None,
        reason: str | None = None,
    ) -> None:
        self.behavior = behavior
        named = allowed_behaviors if allowed_behaviors is not None else allowed
        self.allowed_behaviors: tuple[str, ...] = (named,) if isinstance(named, str) else tuple(named or ())
        self.reason = reason
        super().__init__(message, tool=tool)

    @property
    def allowed(self) -> tuple[str, ...]:
        return self.allowed_behaviors

    def _describe(self) -> str:
        name = f"Tool `{self.tool}`" if self.tool else "The tool"
        if self.reason:
            return f"{name} was denied: {self.reason}"
        if self.allowed_behaviors:
            allowed = ", ".join(self.allowed_behaviors)
            return f"{name} is not allowed in behavior '{self.behavior}'; it is allowed in: {allowed}."
        return f"{name} was denied."


class _ReasonedToolError(ToolError):
    """A tool error that carries the reason somebody gave."""

    told: ClassVar[tuple[str, ...]] = ("reason",)
    usual_reason: ClassVar[str | None] = None  # of an error given neither text nor reason

    def __init__(self, message: str | None = None, /, *, tool: str | None = None, reason: str | None = None) -> None:
        self.reason = self.usual_reason if message is None and reason is None else reason
        super().__init__(message, tool=tool)

    def _describe(self) -> str:
        text = super()._describe()
        return f"{text}: {self.reason}" if self.reason and self.reason != self.usual_reason else text


class ToolApprovalDeniedError(_ReasonedToolError):
    """A person said no. `request_id` is the approval's id where the raiser knows it."""

    code = "approval_denied"
    default_text = "approval was denied"
    usual_reason = "user_denied"
    told = ("request_id", "reason")

    def __init__(
        self,
        message: str | None = None,
        /,
        *,
        tool: str | None = None,
        reason: str | None = None,
        request_id: object = None,
    ) -> None:
        self.request_id = request_id
        super().__init__(message, tool=tool, reason=reason)


class ToolApprovalTimeoutError(_ReasonedToolError):
    """Nobody decided before the approval expired. Not a denial: asking again is fair."""

    code = "approval_timeout"
    default_text = "approval timed out"
    usual_reason = "timeout"
    told = ("request_id", "reason", "timeout_seconds")

    def __init__(
        self,
        message: str | None = None,
        /,
        *,
        tool: str | None = None,
        reason: str | None = None,
        request_id: object = None,
        timeout_seconds: float | None = None,
    ) -> None:
        self.request_id = request_id
        self.timeout_seconds = timeout_seconds
        super().__init__(message, tool=tool, reason=reason)


class ToolCancelledError(_ReasonedToolError):
    code = "cancelled"
    default_text = "the call was cancelled"


class ToolExecutionError(ToolError):
    """The handler raised or reported failure; `__cause__` is the original where it is at hand.

    `is_transient` says whether trying again may help; None where only the cause can tell.
    """

    code = "execution_failed"
    is_transient: bool | None = None
    default_text = "the handler failed"
    told = ("action_id",)

    def __init__(
        self,
        message: str | None = None,
        /,
        *,
        tool: str | None = None,
        action_id: object = None,
        cause: BaseException | None = None,
    ) -> None:
        self.action_id = action_id
        self.cause = cause
        super().__init__(message, tool=tool)
        if cause is not None:
            self.__cause__ = cause

    def _describe(self) -> str:
        text = super()._describe()
        return f"{text}: {text_of(self.cause)}" if self.cause is not None else text

    def to_dict(self) -> dict[str, Any]:
        # A cause may say what is masked in the text: its words are told only where the text has them too.
        words = None if self.cause is None else text_of(self.cause)
        known = words is None or words in str(self)
        return super().to_dict() | {"cause": words if known else type(self.cause).__name__}


class ToolTimeoutError(ToolExecutionError):
    code = "timeout"
    default_text = "the handler timed out and was stopped"


class ToolOutputError(ToolExecutionError):
    """The handler ran, but its output has the wrong type, cannot be serialised or breaks its schema."""

    code = "invalid_output"
    default_text = "the handler returned something unusable"


class ToolUnknownOutcomeError(ToolError):
    """The handler started and nobody can tell whether its effect happened."""

    code = "unknown"
    default_text = "the outcome is unknown"


class ToolUnknownTimeoutError(ToolUnknownOutcomeError, ToolTimeoutError):
    """The handler timed out and could not be stopped: a timeout whose effect may have happened, or yet happen."""

    default_text = "the handler timed out and could not be stopped; the outcome is unknown"


class ToolUndoError(_ReasonedToolError):
    code = "undo_failed"
    default_text = "undo failed"
    told = ("action_id", "reason")

    def __init__(
        self,
        message: str | None = None,
        /,
        *,
        tool: str | None = None,
        action_id: object = None,
        reason: str | None = None,
    ) -> None:
        self.action_id = action_id
        super().__init__(message, tool=tool, reason=reason)

    def _describe(self) -> str:
        text = super()._describe()
        return text if self.action_id is None else f"{text} (action {self.action_id})"


class DefinitionError(ToolgateError):
    """A tool definition, a schema or a registration is refused."""

    code = "invalid_definition"


class NotAsyncError(DefinitionError, TypeError):
    """A plain function was given where only an async one will do."""

    code = "not_async"


class PolicyProblem(NamedTuple):
    """One thing wrong with a policy file: where it stands (counted from one), under which keys, and what it is."""

    file: str
    line: int
    column: int
    path: str
    message: str

    def __str__(self) -> str:
        where = f"{self.path}: " if self.path else ""
        return f"{self.file}:{self.line}:{self.column}: {where}{self.message}"


class PolicyError(ToolgateError):
    """A policy file cannot be used. `problems` has everything found wrong, in the order of the file."""

    code = "invalid_policy"

    def __init__(self, problems: Iterable[PolicyProblem] | str) -> None:
        self.problems: tuple[PolicyProblem, ...] = () if isinstance(problems, str) else tuple(problems)
        super().__init__(problems if isinstance(problems, str) else "\n".join(map(str, self.problems)))


class NotFoundError(ToolgateError):
    """No such call, approval or run in this project."""

    code = "not_found"


class ConflictError(ToolgateError):
    """The row changed since it was read; nothing was written.

    Where a server says so, `decided` is what was decided, by whom and when, and `tool_status` where the call stands.
    """

    code = "conflict"

    def __init__(self, *args: object, decided: dict[str, Any] | None = None, tool_status: str | None = None) -> None:
        self.decided = decided
        self.tool_status = tool_status
        super().__init__(*args)


class DecisionConflictError(ConflictError):
    """The approval cannot take this decision: it is decided, expired, frozen or not what was shown."""

    code = "decision_conflict"


class ModeChangedError(ConflictError):
    """The stored mode is not the one the rules were asked under; ask them again."""

    code = "mode_changed"


class GrantChangedError(ConflictError):
    """The grant is not as it was read: used, revoked or used up; nothing was written."""

    code = "grant_changed"


class StaleFenceError(ConflictError):
    """A result arrived from an execution that no longer holds the claim; it is kept as evidence only."""

    code = "stale_result"


class RateLimitError(ConflictError):
    """The claim would exceed a rate limit; nothing ran."""

    code = "rate_limited"


class NotAllowedError(ToolgateError):
    """This principal may not do this."""

    code = "not_allowed"


class ModelError(ToolgateError):
    """A model could not be asked, or its answer not be used. Where it can be tried again, `retry_after_s` says when."""

    code = "model_unavailable"

    def __init__(self, message: str, /, *, reason: str = "failed", retry_after_s: float | None = None) -> None:
        self.reason = reason
        self.retry_after_s = retry_after_s
        super().__init__(message)


class DeliveryError(ToolgateError):
    """A channel gave up carrying a question to people; the question stays open."""

    code = "undelivered"

    def __init__(self, message: str, /, *, attempts: int = 1) -> None:
        self.attempts = attempts
        super().__init__(message)


class SandboxError(ToolgateError):
    """The sandbox cannot be made here; nothing ran, and nothing runs outside it instead."""

    code = "sandbox_unavailable"


class StoreError(ToolgateError):
    """The store cannot be read or written; nothing runs until it can."""

    code = "store_unavailable"


class GateClosedError(ToolgateError):
    """The gate was closed; open a new one."""

    code = "gate_closed"


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


def text_of(error: BaseException) -> str:
    """Return what somebody else's error says; its kind, where it says nothing or fails even at that."""
    try:
        return str(error) or type(error).__name__
    except Exception:  # noqa: BLE001  # its `__str__` is code of its own, and what failed must be told all the same
        return type(error).__name__


def _as_json(value: object) -> object:
    plain = list(value) if isinstance(value, tuple) else value
    return plain if isinstance(plain, str | int | float | list | None) else str(plain)  # an id


class UsageError(ToolgateError):
    """The API was called in a way it cannot serve; the text says how to call it."""

    code = "usage"


class InvalidIdError(UsageError):
    """What was given as the id of a call, run or session can be none; the text does not repeat it."""

    code = "invalid_id"


class UnknownKeywordError(UsageError, TypeError):
    """A function or class was given a keyword that it does not have; the text names the nearest one."""

    code = "unknown_keyword"
