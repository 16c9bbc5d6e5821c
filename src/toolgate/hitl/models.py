"""The data of document 002: how a tool is approved, and what a front end gets when a person must answer."""

from __future__ import annotations

from typing import Any, Final, Self
from uuid import uuid4

from pydantic import BaseModel, ConfigDict, Field, model_validator

from toolgate.kernel.assessment import ApprovalLevel
from toolgate.kernel.misuse import explained
from toolgate.kernel.spelling import check_fields

DEFAULT_QUICK: Final = 60


class Spelled(BaseModel):
    """A model that names the field that was meant where one is unknown."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    @model_validator(mode="before")
    @classmethod
    def _known(cls, given: object) -> object:
        if isinstance(given, dict):
            check_fields(cls.__name__, given, cls.model_fields)
        return given


class HITLConfig(Spelled):
    """How a tool's calls are approved. A `quick_threshold` that is not given never exceeds `auto_threshold`."""

    model_config = ConfigDict(validate_assignment=True)

    auto_threshold: int = Field(default=85, ge=0, le=100)
    quick_threshold: int = Field(default=DEFAULT_QUICK, ge=0, le=100)
    approval_type: str = "general"
    risk_level: str = "medium"
    requires_reason: bool = False
    approve_label: str = "Approve"
    reject_label: str = "Reject"
    description_template: str | None = None

    @model_validator(mode="after")
    def _check_thresholds(self) -> Self:
        if "quick_threshold" not in self.model_fields_set:
            self.__dict__["quick_threshold"] = min(DEFAULT_QUICK, self.auto_threshold)
        if self.auto_threshold < self.quick_threshold:
            raise ValueError(
                f"auto_threshold ({self.auto_threshold}) must not be below quick_threshold ({self.quick_threshold})"
            )
        return self


class HITLToolResult(Spelled):
    """A call that waits for a person. `tool_args` are masked; `approval_id` is what `resume` takes."""

    requires_approval: bool
    approval_level: ApprovalLevel
    confidence_score: int
    tool_name: str
    tool_args: dict[str, Any]
    config: HITLConfig
    approval_id: str | None = None
    request_id: str = Field(default_factory=lambda: str(uuid4()))


@explained
def determine_approval_level(confidence: int, config: HITLConfig | None = None) -> ApprovalLevel:
    """Return AUTO, QUICK or FULL: at or above `auto_threshold`, at or above `quick_threshold`, or below."""
    config = HITLConfig() if config is None else config
    if confidence >= config.auto_threshold:
        return ApprovalLevel.AUTO
    return ApprovalLevel.QUICK if confidence >= config.quick_threshold else ApprovalLevel.FULL
