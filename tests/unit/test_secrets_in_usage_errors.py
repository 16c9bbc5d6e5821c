"""Errors about how our models are used never quote what was given: it may be a secret."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from toolgate import governance, hitl
from toolgate.interfaces.server.settings import ServerSettings

CANARY = "CANARY-9d1f"


@pytest.mark.parametrize(
    ("model", "given"),
    [
        (governance.ToolResult, {"output": CANARY, "eror": None}),
        (hitl.HITLToolResult, {"tool_args": CANARY}),
        (hitl.HITLConfig, {"auto_threshold": CANARY}),
        (ServerSettings, {"ring_frames": CANARY}),
    ],
)
def test_no_model_quotes_what_it_was_given(model: Any, given: dict[str, Any]) -> None:
    with pytest.raises(ValidationError) as raised:
        model(**given)
    assert CANARY not in str(raised.value)
