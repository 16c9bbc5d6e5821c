"""The numbered documents the doors are built after, where their folder stands beside the checkout.

They are read, never copied. A checkout that is not beside the folder may name it in TOOLGATE_DOCUMENTS.
"""

from __future__ import annotations

import ast
import inspect
import os
import re
from pathlib import Path
from types import CodeType
from typing import Any

BESIDE = Path(__file__).resolve().parents[3] / "shared" / "seeds"
FOLDER = Path(os.environ.get("TOOLGATE_DOCUMENTS") or BESIDE)


def document(number: int) -> Path | None:
    """Return the file of a document, or None where the folder is not there."""
    return next(iter(sorted(FOLDER.glob(f"{number:03d}_*.txt"))), None)


def python_blocks(number: int) -> list[str]:
    """Return a document's Python code blocks as they are written, with the import lines mapped."""
    path = document(number)
    assert path is not None
    text = path.read_text(encoding="utf-8")
    return [_mapped(code) for code in re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)]


def _mapped(code: str) -> str:
    return re.sub(r"^(\s*)from stageflow(\.tools)? import", r"\1from toolgate\2 import", code, flags=re.MULTILINE)


async def run(code: str, names: dict[str, Any]) -> Any:
    """Run a block in a namespace. A block that awaits is awaited; one that returns gives what it returns."""
    if re.search(r"^return\b", code, re.MULTILINE):
        lines = "\n".join("    " + line for line in code.splitlines())
        exec(compile(f"async def block():\n{lines}\n", "block", "exec", dont_inherit=True), names)
        return await names.pop("block")()
    compiled = compile(code, "block", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    assert isinstance(compiled, CodeType)
    going_on = eval(compiled, names)
    return await going_on if inspect.iscoroutine(going_on) else going_on
