"""With `worker`: a process of its own runs a call that another made."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

TOOLS = """
import os
import toolgate


@toolgate.tool(placement="worker", effects="read")
def who() -> int:
    return os.getpid()


TOOLS = [who]
"""

Path("whoami.py").write_text(TOOLS, encoding="utf-8")
sys.path.insert(0, "")
import whoami  # type: ignore[import-not-found]  # noqa: E402

import toolgate  # noqa: E402

database = os.environ["POSTGRESQL"]
Path("toolgate.yaml").write_text("version: 1\ndefault: by_risk\n", encoding="utf-8")
program = Path(sys.executable).with_name("toolgate")
options = ["--database", database, "--tools", "whoami:TOOLS", "--plain"]
with (
    toolgate.open(database, tools=whoami.TOOLS) as gate,
    subprocess.Popen([program, "worker", *options], stdout=subprocess.PIPE, text=True) as worker,
):
    assert worker.stdout is not None
    try:
        assert worker.stdout.readline(), "the worker ended without a word"
        result = gate.sync.call("who", "{}")
    finally:
        worker.terminate()
assert (result.status, result.data) == ("COMPLETED", worker.pid), result
