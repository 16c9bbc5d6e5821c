"""What verbs of a gate are given besides arguments of tools, checked before anything is made of it."""

from __future__ import annotations

from toolgate.errors import UsageError
from toolgate.kernel.context import Mode
from toolgate.kernel.ids import check_id
from toolgate.kernel.text.masking import Masker
from toolgate.pipeline.plan import Options
from toolgate.ports.channel import Decision


def checked(asked: Options, masker: Masker) -> Options:
    """Return the options with their words masked; raise UsageError for what cannot be one."""
    if asked.approval_timeout_s is not None and not 0 < asked.approval_timeout_s < float("inf"):
        raise UsageError("approval_timeout_s must be a positive number of seconds.")
    if asked.repeat_of is not None:
        check_id(asked.repeat_of, "call id", masker)
    if asked.held_key is not None and not isinstance(asked.held_key, str):
        raise UsageError(f"`held_key` is text, not {type(asked.held_key).__name__}.")
    message, claim = asked.message, asked.claim
    message, claim = None if message is None else masker.text(message), None if claim is None else masker.text(claim)
    return asked._replace(message=message, claim=claim)


def decision_of(decision: Decision | str) -> Decision:
    """Return what somebody decided; raise UsageError for what is neither a yes nor a no."""
    try:
        return Decision(decision)
    except ValueError:
        raise UsageError(f"A decision is 'approve' or 'deny', not {str(decision)[:40]!r}.") from None


def mode_of(mode: Mode | str) -> Mode:
    """Return a mode; raise UsageError that names them all for what is none."""
    try:
        return Mode(mode)
    except ValueError:
        raise UsageError(f"{str(mode)[:40]!r} is not a mode; modes are: {', '.join(Mode)}.") from None
