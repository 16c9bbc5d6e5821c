"""What the console's scripts put into texts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import toolgate.interfaces.console

STATIC = Path(toolgate.interfaces.console.__file__).parent / "static"
MAKE_ELEMENTS = {"h", "ago", "said", "left", "stopButton", "pulledHere"}


@pytest.mark.parametrize("path", sorted(STATIC.rglob("*.js")), ids=lambda path: path.name)
def test_no_element_is_written_into_a_text(path: Path) -> None:
    """It would be shown as `[object HTMLElement]`."""
    put_in = re.findall(r"\$\{(\w+)\(", path.read_text(encoding="utf-8"))
    assert not MAKE_ELEMENTS & set(put_in)
