"""What really happened, kept outside the database: one line per effect and per acknowledgement, fsynced."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

Line = dict[str, Any]


class Ledger:
    """A file that is only appended to. A line is there wholly or not at all, whoever dies when."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def add(self, what: str, *, sync: bool = True, **fields: Any) -> None:
        """Append one line and return when it is on the disk (`sync`) or at least outlives the process."""
        line = json.dumps({"what": what, **fields}).encode() + b"\n"
        descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(descriptor, line)
            if sync:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def lines(self, what: str | None = None) -> list[Line]:
        """Every line, or those of one kind, in the order they were written."""
        if not self.path.exists():
            return []
        found = [json.loads(line) for line in self.path.read_text(encoding="utf-8").splitlines()]
        return [line for line in found if what is None or line["what"] == what]

    def effects_of(self, call_id: str) -> int:
        """How often the effect of this call happened."""
        return sum(line["call"] == call_id for line in self.lines("effect"))
