"""What the wire says of brakes."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import Field

from toolgate.wire.ids import RunId
from toolgate.wire.schemas import Answer, Body, Id, Text

ModeName = Literal["NORMAL", "ALERT", "DEGRADED", "LOCKDOWN", "RECOVERY"]


class BrakeBody(Body):
    """A mode for this project, or for an agent or a run in it."""

    mode: ModeName
    agent: Id | None = Field(default=None, description="Who asks, or whom calls are for.")
    run: RunId | None = None
    reason: Text = ""


class BrakeRecord(Answer):
    """A brake that is pulled. `project` None: over everybody."""

    mode: ModeName
    project: str | None = None
    agent: str | None = None
    run: str | None = None
    by: str = ""
    at: datetime | None = None
    reason: str = ""
    holds: list[str] = Field(default=[], description="Accounts that are held with a run they named themselves.")


class BrakesAnswer(Answer):
    """The brakes over this project and in it, everybody's first. `fault`: why the stored modes are not believed."""

    success: bool = True
    mode: ModeName
    brakes: list[BrakeRecord]
    fault: str | None = None
