"""The ids of calls, runs and sessions as they come over the wire: the kernel's grammar, with its own words."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Annotated, Any

from pydantic import AfterValidator, Field, ValidationError
from pydantic_core import PydanticCustomError

from toolgate.errors import InvalidIdError
from toolgate.kernel.ids import MAX_ID, PATTERN, fault_of

CODE = InvalidIdError.code
KINDS = {"tool_id": "call id", "run_id": "run id", "session_id": "session id"}
"""What the ids in paths are ids of."""


def _of(kind: str) -> Any:
    return AfterValidator(_check(kind))


def _check(kind: str) -> Callable[[str], str]:
    def check(given: str) -> str:
        fault = fault_of(given, kind)
        if fault is not None:
            raise PydanticCustomError(CODE, "{fault}", {"fault": fault})
        return given

    return check


_SCHEMA: dict[str, Any] = {"minLength": 1, "maxLength": MAX_ID, "pattern": PATTERN}
CallId = Annotated[str, _of("call id"), Field(json_schema_extra=_SCHEMA)]
RunId = Annotated[str, _of("run id"), Field(json_schema_extra=_SCHEMA)]
StepId = Annotated[str, _of("step id"), Field(json_schema_extra=_SCHEMA)]
SessionId = Annotated[str, _of("session id"), Field(json_schema_extra=_SCHEMA)]


def fault_in(error: ValidationError) -> str | None:
    """What a body or query says wrongly of an id, where that is what is wrong with it."""
    found: Iterable[Any] = error.errors(include_url=False, include_input=False, include_context=False)
    return next((str(one["msg"]) for one in found if one["type"] == CODE), None)


def check_path(params: dict[str, str]) -> None:
    """Raise InvalidIdError where an id in a path can be none."""
    for name, kind in KINDS.items():
        if name in params and (fault := fault_of(params[name], kind)) is not None:
            raise InvalidIdError(fault)
