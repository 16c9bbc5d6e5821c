"""What the wire looks like for the policy: what a call gets, its text, another one to try, a grant not given yet."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from toolgate.wire.schemas import Answer, Body, Id

PolicyText = Annotated[str, StringConstraints(max_length=1024 * 1024)]


class PolicyAnswer(Answer):
    success: bool = True
    revision: str
    default: str


class ExplainBody(Body):
    """A call that is not made."""

    tool_name: Annotated[str, StringConstraints(min_length=1, max_length=128)]
    tool_params: dict[str, Any] = Field(default_factory=dict)
    behavior: Id | None = None
    mode: Literal["NORMAL", "ALERT", "DEGRADED", "LOCKDOWN", "RECOVERY"] | None = None


class ExplainAnswer(Answer):
    success: bool = True
    explanation: dict[str, Any]


class PolicyFile(Answer):
    """One file of the policy, as it is written but for what must not be shown."""

    name: str
    layer: str
    text: str
    is_masked: bool = Field(description="Something in it is hidden, so it cannot be sent back as it is.")


class ToolStance(Answer):
    """What the policy says of one tool: its word in each mode, as far as nothing else decides, and every rule."""

    tool_name: str
    risk_level: str
    modes: dict[str, Literal["allow", "ask", "deny"]]
    rules: list[dict[str, str]] = Field(
        description="Each `rule` and `where` it stands; one that says for itself who must approve also whom it `asks`."
    )
    rates: list[dict[str, Any]]


class PolicySourceAnswer(Answer):
    """The policy in force. `files` is empty where it comes from no file."""

    success: bool = True
    revision: str
    default: str
    files: list[PolicyFile]
    tools: list[ToolStance]


class SimulateBody(Body):
    """A changed policy to try on recorded calls."""

    files: dict[str, PolicyText] = Field(
        min_length=1, max_length=64, description="New texts of the policy's files, by name; the others stay."
    )
    against: Literal["current", "recorded"] = Field(
        default="current", description="Compare with the policy in force, or with what was decided at the time."
    )
    since_seconds: Annotated[float, Field(gt=0, le=366 * 86400)] = 30 * 86400.0
    after: Id | None = Field(default=None, description="The `next` of the answer before.")
    limit: Annotated[int, Field(ge=1, le=2000, description="How many calls to replay at most.")] = 500


class PolicyProblemRecord(Answer):
    """What is wrong with a text, and where."""

    file: str
    line: int
    column: int
    path: str
    message: str


class SimulateAnswer(Answer):
    """Which calls would be decided differently, newest first; add up the answers until `next` is null.

    `problems`: the texts are no policy, and nothing was replayed. `changes` is what the texts say otherwise.
    """

    success: bool = True
    revision: str | None = None
    problems: list[PolicyProblemRecord] = Field(default_factory=list)
    changes: list[dict[str, Any]] = Field(default_factory=list)
    shifts: list[dict[str, Any]] = Field(default_factory=list)
    calls: int = 0
    changed: int = 0
    groups: list[dict[str, Any]] = Field(default_factory=list)
    skipped: dict[str, int] = Field(default_factory=dict)
    next: str | None = None
    reached: datetime | None = None


class GrantPreviewAnswer(Answer):
    """Which past calls a grant would have covered: `matched` of `looked_at`, back to `since`."""

    success: bool = True
    matched: int
    asked: int = Field(description="About how many of them a person was asked.")
    looked_at: int
    since: datetime | None = None
    examples: list[str]
    pattern: dict[str, Any]
