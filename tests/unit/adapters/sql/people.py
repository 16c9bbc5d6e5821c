"""Running a program as somebody who may not do everything."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

from toolgate.testing.patience import PATIENCE_S

PRELUDE = """
import atexit, os, pwd
from pathlib import Path
import toolgate.adapters.sql.migrate, toolgate.adapters.sqlite.store, toolgate.adapters.sqlite.upkeep
from toolgate.errors import StoreError

folder = Path({folder!r})
if os.geteuid() == 0:
    nobody = pwd.getpwnam("nobody")
    os.chown(folder, nobody.pw_uid, nobody.pw_gid)
    for above in folder.parents:
        if above.stat().st_uid == 0:
            above.chmod(above.stat().st_mode | 0o011)
    os.setgroups([])
    os.setegid(nobody.pw_gid)
    os.seteuid(nobody.pw_uid)
    atexit.register(os.seteuid, 0)  # whatever measures this program may write again
"""


def as_nobody(folder: Path, program: str) -> str:
    """Run a program that knows `folder`, without root's rights; return what it printed."""
    source = PRELUDE.format(folder=str(folder)) + textwrap.dedent(program)
    done = subprocess.run(
        [sys.executable, "-c", source], capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
