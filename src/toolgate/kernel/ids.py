"""What can be the id of a call, run or session: one grammar, asked wherever one comes in.

Ids are written into events in the clear, shown, logged and put into addresses as they are. So they are short, hold
nothing that a path or a terminal would read as something else, and nothing that would have to be hidden.
"""

from __future__ import annotations

from toolgate.errors import InvalidIdError
from toolgate.kernel.context import Context
from toolgate.kernel.text.masking import Masker

MAX_ID = 128
PATTERN = r"^[^/\x00-\x1f\x7f]+$"
"""The grammar as far as a JSON Schema can say it."""
MAX_LABEL = 256
"""The most characters of what else a context says in words: who asks, for whom, in which behavior and trace."""
_IDS = (
    ("session_id", "session id"),
    ("run_id", "run id"),
    ("step_id", "step id"),
    ("parent_call_id", "call id"),
)
_QUOTED = ("request_id", "behavior")
_NAMES = ("principal", "user", "project", "trace_id", "span_id")


def fault_of(id: object, kind: str = "id") -> str | None:
    """Why this can be no id, in a sentence that does not repeat it; None where it can."""
    what = "An id" if kind == "id" else f"A {kind}"
    if not isinstance(id, str):
        return f"{what} is text, not {type(id).__name__}."
    if not id:
        return f"{what} is not empty."
    if len(id) > MAX_ID:
        return f"{what} has at most {MAX_ID} characters; this one has {len(id)}."
    if not id.isprintable():
        return f"{what} has no control characters; use plain text."
    if "/" in id or id in (".", ".."):
        return f"{what} is a part of addresses: it has no `/`, and is neither `.` nor `..`."
    return None


def check_id(id: object, kind: str = "id", masker: Masker | None = None) -> None:
    """Raise InvalidIdError for what can be no id; with a masker also for what it would hide. Ids are told as is."""
    fault = fault_of(id, kind)
    if fault is None and masker is not None and isinstance(id, str) and masker.hides(id):
        fault = f"The {kind} holds a secret, or what looks like one, and ids are shown to everybody; choose another."
    if fault is not None:
        raise InvalidIdError(fault)


def check_label(label: str, what: str) -> None:
    """Raise InvalidIdError where a name, which is no id, is too long or would break a line."""
    if len(label) > MAX_LABEL or not label.isprintable():
        raise InvalidIdError(f"A {what} has at most {MAX_LABEL} characters, none of them control; use plain words.")


def check_context(context: Context, masker: Masker) -> None:
    """Raise InvalidIdError where an id of a context can be none, or a name in it is too long or would break a line."""
    for field, kind in _IDS:
        if (given := getattr(context, field)) is not None:
            check_id(given, kind, masker)
    for field in (*_QUOTED, *_NAMES):
        given = getattr(context, field)
        if not isinstance(given, str):
            continue
        check_label(given, f"context's `{field}`")
        if field in _QUOTED and masker.hides(given):
            raise InvalidIdError(f"A context's `{field}` holds a secret, or what looks like one; choose another.")
