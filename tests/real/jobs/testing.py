"""With `testing`: a conformance class runs on somebody's store."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

TESTS = """
import pytest

from toolgate.adapters.memory.store import MemoryStore
from toolgate.testing.conformance import StoreConformance


class TestMyStore(StoreConformance):
    @pytest.fixture
    def store(self):
        return MemoryStore()
"""

Path("test_my_store.py").write_text(TESTS, encoding="utf-8")
command = [sys.executable, "-m", "pytest", "-q", "-o", "asyncio_mode=auto"]
ended = subprocess.run(command, capture_output=True, text=True, check=False)
assert ended.returncode == 0, ended.stdout + ended.stderr
assert " passed" in ended.stdout
