"""The tests that come with document 002, as they are written there.

They are read from `../shared/seeds/` beside the checkout, so they run where that folder is; nothing of it is copied.
Only the import lines are mapped to this package.
"""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

SEEDS = Path(__file__).resolve().parents[3].parent / "shared" / "seeds"
PRELUDE = """
import pytest
from pydantic import ValidationError
from toolgate.hitl import *
"""


def documented() -> list[tuple[str, Callable[[], Any]]]:
    found = sorted(SEEDS.glob("002_*.txt"))
    if not found:
        return []
    blocks = re.findall(r"```python\n(class Test\w+.*?)```", found[0].read_text(encoding="utf-8"), re.DOTALL)
    namespace: dict[str, Any] = {}
    exec(PRELUDE + "\n".join(blocks), namespace)
    tests = []
    for name, owner in namespace.items():
        if inspect.isclass(owner) and name.startswith("Test"):
            tests += [(f"{name}.{test}", getattr(owner(), test)) for test in dir(owner) if test.startswith("test_")]
    return tests


TESTS = documented()

if TESTS:

    @pytest.mark.parametrize("test", [test for _, test in TESTS], ids=[name for name, _ in TESTS])
    async def test_as_documented(test: Callable[[], Any]) -> None:
        outcome = test()
        if asyncio.iscoroutine(outcome):
            await outcome

    def test_there_are_ten_of_them() -> None:
        assert len(TESTS) == 10
