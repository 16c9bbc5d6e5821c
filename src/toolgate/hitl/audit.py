"""The log record of a call that ran without a person. The gate's events are the audit; this is its line in the log."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final

from toolgate.kernel.text.masking import MASK, Masker

SENSITIVE: Final = ("password", "secret", "token", "api_key", "credential", "auth")
log = logging.getLogger("toolgate.hitl")


def is_sensitive_key(key: object) -> bool:
    """Whether a key names something that no log may quote."""
    return any(word in str(key).lower() for word in SENSITIVE)


def log_auto_execution(
    tool_name: str,
    args: Mapping[str, Any],
    confidence: int,
    context: Mapping[str, Any] | None = None,
    *,
    masker: Masker | None = None,
    error: BaseException | None = None,
) -> None:
    """Log an automatic execution: tool, confidence, user, masked arguments, and the kind of error if it failed."""
    told = context or {}
    record = {
        "tool_name": tool_name,
        "confidence_score": confidence,
        "user_id": told.get("user_id"),
        "workspace_id": told.get("workspace_id"),
        "tool_args": hide((masker or Masker())(dict(args))),
        "outcome": "completed" if error is None else f"failed: {type(error).__name__}",
    }
    log.log(logging.INFO if error is None else logging.WARNING, "hitl_auto_execution %s", record)


def hide(value: Any) -> Any:
    """Return a value without what stands under sensitive keys."""
    if isinstance(value, Mapping):
        return {key: MASK if is_sensitive_key(key) else hide(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [hide(item) for item in value]
    return value
