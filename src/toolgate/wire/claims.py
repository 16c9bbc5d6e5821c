"""Calls that whoever made them runs: how one is taken, and what is to run then."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, StringConstraints

from toolgate.wire.schemas import Answer, Body


class ClaimBody(Body):
    """Take an approved call of one's own to run it."""

    claim_id: Annotated[str, StringConstraints(min_length=16, max_length=128)] = Field(
        description="A random token of the caller's own: claiming again with it is answered alike, and reports name it."
    )


class ClaimAnswer(Answer):
    """What is to run, and how long its result is waited for."""

    tool_id: str
    tool_name: str
    tool_params: Any
    lease_seconds: float
