"""How the end of a call is put to the model: what happened, why, and what it can do about it."""

from __future__ import annotations

from typing import Any

import orjson

from toolgate.agent.history import Made, Outcome
from toolgate.errors import ToolOutputError
from toolgate.kernel.call import Call, Status
from toolgate.kernel.output import Result
from toolgate.kernel.payload import encode

AGAIN = "You made this very call before and it ended the same way. Do something else, or say what you need."

JOINED = "This call had been made before; this is how that one ended, and nothing ran a second time."

_ADVICE: dict[Status, str] = {
    Status.DENIED: "The policy does not allow this, and asking again will not change that. Reach the goal another way, "
    "or tell the person what is not allowed.",
    Status.REJECTED: "A person said no. Do not make this call again unless the person asks for it; take the reason "
    "into account, or ask what they would rather have.",
    Status.TIMEOUT: "Nobody answered in time, so it did not run. Tell the person; ask again only if they want it.",
    Status.CANCELLED: "The call was cancelled and did not finish. Do not repeat it unless the person asks.",
    Status.UNKNOWN: "It is not known whether this took effect: the process died or lost contact while it ran. Do not "
    "repeat it. Look at the current state first, and tell the person.",
}
_BY_CODE = {
    "invalid_arguments": "The arguments do not fit the tool's schema. Correct them and call again.",
    "tool_not_found": "There is no such tool. Use one of the tools you were given.",
    "rate_limited": "A limit is used up for now. Do without, or tell the person when it can be tried again.",
    "timeout": "It timed out and was stopped. Try less at once.",
    "effect_held": "Another call has this effect already, or may have it. Do not try to have it another way. Look at "
    "that call, and tell the person.",
    "no_runner": "Nobody is connected who could run this. Tell the person to connect a runner.",
}
_TIMED_OUT = (
    "It timed out, and it is not known whether it took effect. Do not repeat it. Look at the current state first, and "
    "tell the person."
)
_FAILED = "The tool failed. Read the error; correct the call or go another way."
_ANSWERED = "A person answered instead of letting the call run. Their answer is in `answer`; go on with it."
_EDITED = "A person changed the arguments before approving; `arguments` is what really ran."


def outcome_of(made: Made, result: Result, call: Call | None) -> Outcome:
    """What the model and people are told of a call that ended. `call` is its row, where there is one.

    Of one that joined an earlier call, result and row are that one's.
    """
    value, shown = _told(made, result, call)
    is_joined = result.call_id != made.call_id
    return Outcome(
        call_id=made.call_id,
        ref=made.ref,
        name=made.name,
        status=result.status.value.lower(),
        value=value,
        shown=shown,
        is_error=not result.success,
        note=JOINED if is_joined else None,
        joined=result.call_id if is_joined else None,
    )


def _told(made: Made, result: Result, call: Call | None) -> tuple[Any, Any]:
    masked = None if call is None else call.shown_result
    if result.success:
        data = _usable(result.data)
        edit = _edit(made, call)
        if edit is None:
            return data, masked
        return {"result": data, "note": _EDITED, "arguments": edit[0]}, {
            "result": masked,
            "note": _EDITED,
            "arguments": edit[1],
        }
    status = result.status
    value: dict[str, Any] = {"status": status.value.lower(), "error": result.error or "The call did not succeed."}
    if result.error_code:
        value["code"] = result.error_code
    value["advice"] = _advice(result)
    shown = dict(value)
    if result.data is not None:
        is_answer = status is Status.REJECTED
        value["answer" if is_answer else "data"] = _usable(result.data)
        shown["answer" if is_answer else "data"] = masked
        if is_answer:
            value["advice"] = shown["advice"] = _ANSWERED
    return value, shown


def _advice(result: Result) -> str:
    if result.timed_out and result.status is Status.UNKNOWN:
        return _TIMED_OUT
    by_code = _BY_CODE.get(result.error_code or "")
    return by_code or _ADVICE.get(result.status, _FAILED)


def _edit(made: Made, call: Call | None) -> tuple[Any, Any] | None:
    """The arguments that ran and their masked view, where they are others than the model wrote."""
    if call is None or call.approval_id is None:
        return None
    ran = orjson.loads(call.arguments)
    try:
        wrote = orjson.loads(made.arguments or "{}")
    except orjson.JSONDecodeError:
        return None
    return None if ran == wrote else (ran, call.shown)


def _usable(data: Any) -> Any:
    try:
        return orjson.loads(encode(data))
    except ToolOutputError as error:
        return {"error": f"The tool ran, but its result cannot be shown. {error}"}


def conflict(made: Made, error: str) -> Outcome:
    """What is told of a call that could not be made."""
    value = {"status": "failed", "error": error, "advice": _FAILED}
    return Outcome(
        call_id=made.call_id, ref=made.ref, name=made.name, status="failed", value=value, shown=value, is_error=True
    )
