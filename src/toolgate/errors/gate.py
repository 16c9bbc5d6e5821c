"""What the gate itself refuses or cannot do: definitions, policies, conflicts, rights, stores, usage."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from toolgate.errors.calls import ToolgateError


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


class PolicyHeldError(ToolgateError):
    """The policy files changed during a sandboxed run that could write them; they count once a person accepts them.

    `revision` is what they say now, `files` are those that changed.
    """

    code = "policy_held"

    def __init__(self, revision: str, files: Iterable[str]) -> None:
        self.revision = revision
        self.files = tuple(files)
        super().__init__(
            f"The policy is held: {', '.join(self.files)} changed while a sandboxed command ran that could write it, "
            "so nobody knows whose change it is. Look at it and accept it with `toolgate policy accept "
            f"{revision[:12]}`, or put the file back; a start that nobody attends names it with `--accept-policy`."
        )


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


class AlreadyToldError(ConflictError):
    """The call's events tell already what this change would tell first: its row was put back. Nothing was written."""

    code = "already_told"


class GrantChangedError(ConflictError):
    """The grant is not as it was read: used, revoked or used up; nothing was written."""

    code = "grant_changed"


class EffectHeldError(ConflictError):
    """Another call holds the key of this effect; nothing was written, and nothing ran.

    `holder` is that call's id, where whoever asks may know it. `key` is what it holds, between a store and the gate.
    """

    code = "effect_held"

    def __init__(self, *args: object, holder: str | None = None, key: str | None = None) -> None:
        self.holder = holder
        self.key = key
        super().__init__(*args)


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
    """The sandbox cannot be made here, and nothing runs outside it instead.

    Nothing ran inside either, unless `may_have_run`: it failed at a time when its program may have been at work.
    """

    code = "sandbox_unavailable"

    def __init__(self, message: str, /, *, may_have_run: bool = False) -> None:
        self.may_have_run = may_have_run
        super().__init__(message)


class StoreError(ToolgateError):
    """The store cannot be read or written; nothing runs until it can."""

    code = "store_unavailable"


class GateClosedError(ToolgateError):
    """The gate was closed; open a new one."""

    code = "gate_closed"


class UsageError(ToolgateError):
    """The API was called in a way it cannot serve; the text says how to call it."""

    code = "usage"


class InvalidIdError(UsageError):
    """What was given as the id of a call, run or session can be none; the text does not repeat it."""

    code = "invalid_id"


class UnknownKeywordError(UsageError, TypeError):
    """A function or class was given a keyword that it does not have; the text names the nearest one."""

    code = "unknown_keyword"
