"""Ask a policy text about a call nobody makes."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import pytest

from toolgate.errors import PolicyError
from toolgate.kernel.context import Context, Mode
from toolgate.kernel.ruling import Ruling
from toolgate.kernel.tool import ToolDefinition
from toolgate.policy.compile import FilePolicy
from toolgate.policy.examples import ruling_of, stand_in
from toolgate.policy.loader import read_policy


def policy(text: str, workspace: str | Path | None = None, home: str | Path | None = None) -> FilePolicy:
    return read_policy(textwrap.dedent(text), name="p.yaml", workspace=workspace, home=home)


def ask(
    text: str | FilePolicy,
    arguments: dict[str, Any] | None = None,
    *,
    tool: str | ToolDefinition = "act",
    mode: str = "NORMAL",
    workspace: str | Path | None = None,
    **who: Any,
) -> Ruling:
    """Return the ruling of a policy on one call."""
    found = text if isinstance(text, FilePolicy) else policy(text, workspace)
    asked = tool if isinstance(tool, ToolDefinition) else stand_in(tool)
    return ruling_of(found, asked, arguments or {}, Context(**who), Mode(mode))


def word(*args: Any, **options: Any) -> str:
    return ask(*args, **options).word.value


def problems(text: str | bytes, **options: Any) -> list[str]:
    """Return what is wrong with a policy text, each as `line:column: message`."""
    with pytest.raises(PolicyError) as caught:
        read_policy(textwrap.dedent(text) if isinstance(text, str) else text, name="p.yaml", **options)
    return [f"{one.line}:{one.column}: {one.message}" for one in caught.value.problems]
