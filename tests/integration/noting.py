"""Tools whose effects a test can count from outside their process: they write into the folder NOTES names."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import toolgate

NOTES = "TEST_NOTES"


def folder() -> Path:
    return Path(os.environ[NOTES])


def _write(text: str) -> None:
    with (folder() / "notes.txt").open("a", encoding="utf-8") as file:
        file.write(text + "\n")


@toolgate.tool(risk_level="medium", effects="irreversible")
async def note(text: str) -> str:
    """Write something down, after a person agreed."""
    _write(text)
    return f"noted {text}"


@toolgate.tool(effects="irreversible", risk_level="low")
async def stall(text: str) -> str:
    """Write something down and never come back."""
    _write(text)
    await asyncio.Event().wait()
    return "never"


TOOLS = [note, stall]
