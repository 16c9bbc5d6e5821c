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
    |   |   |-- NotExecuted              it did, and says that nothing happened
    |   |   |-- ToolTimeoutError         it timed out
    |   |   |-- ToolOutputError          what it returned is not usable
    |   |   `-- ToolUnknownOutcomeError  it may or may not have happened
    |   |       `-- ToolUnknownTimeoutError  it timed out, and may have happened
    |   `-- ToolUndoError                an undo was refused or failed
    |-- DefinitionError                  a tool, schema or registration is wrong
    |   `-- NotAsyncError                a plain function where only an async one will do
    |-- PolicyError                      a policy file is wrong, or there is none
    |-- PolicyHeldError                  policy files changed during a run that could write them
    |-- NotFoundError                    no such call, approval or run
    |-- ConflictError                    somebody else got there first
    |   |-- DecisionConflictError        the approval is decided, expired or frozen
    |   |-- ModeChangedError             the operator's mode is another one than the rules saw
    |   |-- GrantChangedError            a grant was used up, revoked or used by somebody else meanwhile
    |   |-- AlreadyToldError             the call's events tell what its row says has not happened
    |   |-- EffectHeldError              another call holds the key of its effect
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

from toolgate.errors.calls import (
    NotExecuted,
    ToolApprovalDeniedError,
    ToolApprovalTimeoutError,
    ToolCancelledError,
    ToolDeniedError,
    ToolError,
    ToolExecutionError,
    ToolgateError,
    ToolInputError,
    ToolNotFoundError,
    ToolOutputError,
    ToolTimeoutError,
    ToolUndoError,
    ToolUnknownOutcomeError,
    ToolUnknownTimeoutError,
    text_of,
)
from toolgate.errors.gate import (
    AlreadyToldError,
    ConflictError,
    DecisionConflictError,
    DefinitionError,
    DeliveryError,
    EffectHeldError,
    GateClosedError,
    GrantChangedError,
    InvalidIdError,
    ModeChangedError,
    ModelError,
    NotAllowedError,
    NotAsyncError,
    NotFoundError,
    PolicyError,
    PolicyHeldError,
    PolicyProblem,
    RateLimitError,
    SandboxError,
    StaleFenceError,
    StoreError,
    UnknownKeywordError,
    UsageError,
)
from toolgate.errors.server import (
    AnswerLostError,
    BadAnswerError,
    NotSignedInError,
    ServerBusyError,
    ServerError,
    ServerUnreachableError,
)

__all__ = [
    "AlreadyToldError",
    "AnswerLostError",
    "BadAnswerError",
    "ConflictError",
    "DecisionConflictError",
    "DefinitionError",
    "DeliveryError",
    "EffectHeldError",
    "GateClosedError",
    "GrantChangedError",
    "InvalidIdError",
    "ModeChangedError",
    "ModelError",
    "NotAllowedError",
    "NotAsyncError",
    "NotExecuted",
    "NotFoundError",
    "NotSignedInError",
    "PolicyError",
    "PolicyHeldError",
    "PolicyProblem",
    "RateLimitError",
    "SandboxError",
    "ServerBusyError",
    "ServerError",
    "ServerUnreachableError",
    "StaleFenceError",
    "StoreError",
    "ToolApprovalDeniedError",
    "ToolApprovalTimeoutError",
    "ToolCancelledError",
    "ToolDeniedError",
    "ToolError",
    "ToolExecutionError",
    "ToolInputError",
    "ToolNotFoundError",
    "ToolOutputError",
    "ToolTimeoutError",
    "ToolUndoError",
    "ToolUnknownOutcomeError",
    "ToolUnknownTimeoutError",
    "ToolgateError",
    "UnknownKeywordError",
    "UsageError",
    "text_of",
]
