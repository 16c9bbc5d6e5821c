"""What the wire looks like for the policy: what a call gets, its text, another one to try, a grant not given yet."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from toolgate.wire.schemas import Answer, Body, Id

PolicyText = Annotated[str, StringConstraints(max_length=1024 * 1024)]


Revision = Annotated[str, StringConstraints(min_length=12, max_length=128)]


class PolicyAnswer(Answer):
    success: bool = True
    revision: str
    default: str
    held: str | None = Field(
        default=None,
        description="The revision that the policy files say now and that waits for a person's word, since a sandboxed "
        "run could have written them.",
    )


class ChangedFile(Answer):
    """One file of a policy that waits: what it says now, against what it said before. Safe to show."""

    name: str
    diff: str
    warnings: list[str] = Field(default_factory=list)


class HeldPolicy(Answer):
    """What a person looks at before it takes effect. Who may not accept it sees the files of the project alone."""

    revision: str
    kept: str = Field(description="The revision that stays in force meanwhile.")
    files: list[ChangedFile] = Field(description="Empty where the text from before is not known any more.")
    hidden: int = Field(description="How many more changed files are none of the project's.")
    may_accept: bool = Field(description="Whether who asks may accept it.")


class HeldPolicyAnswer(Answer):
    success: bool = True
    held: HeldPolicy | None = None


class AcceptPolicyBody(Body):
    revision: Revision = Field(description="What was looked at, or at least the first 12 characters of it.")


class AcceptPolicyAnswer(Answer):
    """The policy that is followed from now on. It is the same answer for the second of two presses."""

    success: bool = True
    revision: str


class LearnAnswer(Answer):
    """The narrowest change of the policy that would have allowed a call. Nothing is changed yet."""

    success: bool = True
    diff: str = Field(description="Safe to show.")
    lines: list[str] = Field(description="The command lines that are known then, to the letter.")
    then: Literal["allow", "ask", "deny"] = Field(description="What the changed policy says of the same call.")
    because: str
    files: list[str]
    revision: str = Field(description="The policy that the change is made for.")
    revised: str = Field(description="The policy that it would be.")
    may_write: bool = Field(description="Whether who asks may have it written, and this server can write the files.")


class LearnBody(Body):
    revised: Revision = Field(description="The `revised` of the change that was looked at.")


class LearnedAnswer(Answer):
    """`is_followed`: it is in force. Else a sandboxed run that could write the files is on, and it waits for a word."""

    success: bool = True
    files: list[str]
    is_followed: bool


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
