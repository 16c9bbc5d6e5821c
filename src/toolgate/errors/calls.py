"""What can happen to one call, and the base of every error."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar


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

    `is_transient` says whether trying again may help; None where only the cause can tell. `kinds` are the names of what
    it was an instance of in another process, where it was raised there.
    """

    code = "execution_failed"
    is_transient: bool | None = None
    kinds: frozenset[str] | None = None
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


class NotExecuted(ToolExecutionError):  # what a handler raises to say so, not what went wrong
    """Raised by a handler that failed before it did anything: the call ends FAILED, whatever its effects."""

    code = "not_executed"
    default_text = "nothing was executed"


class ToolTimeoutError(ToolExecutionError):
    code = "timeout"
    default_text = "the handler timed out and was stopped"


class ToolOutputError(ToolExecutionError):
    """The handler ran, but its output has the wrong type, cannot be serialised or breaks its schema."""

    code = "invalid_output"
    default_text = "the handler returned something unusable"


class ToolUnknownOutcomeError(ToolExecutionError):
    """The handler started and nobody can tell whether its effect happened. A handler may raise it, too."""

    code = "unknown"
    default_text = "the outcome is unknown"


class ToolUnknownTimeoutError(ToolUnknownOutcomeError, ToolTimeoutError):
    """The handler timed out: its effect may have happened or, where it could not be stopped, may yet happen."""

    default_text = "the handler timed out; the outcome is unknown"


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


def text_of(error: BaseException) -> str:
    """Return what somebody else's error says; its kind, where it says nothing or fails even at that."""
    try:
        return str(error) or type(error).__name__
    except Exception:  # noqa: BLE001  # its `__str__` is code of its own, and what failed must be told all the same
        return type(error).__name__


def _as_json(value: object) -> object:
    plain = list(value) if isinstance(value, tuple) else value
    return plain if isinstance(plain, str | int | float | list | None) else str(plain)  # an id
