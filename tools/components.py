"""Install the programs that tests run for real, where this is root on a Debian; otherwise say what is missing.

Owns the list of those programs. Standard library alone; `make test` runs it. A plain user without them gets the
tests that need them skipped by name, and in CI a skip is a failure.
"""

from __future__ import annotations

import glob
import os
import shutil
import subprocess
import sys

COMPONENTS = {
    "bwrap": "bubblewrap",
    "chromium": "chromium",
    "curl": "curl",
    "git": "git",
    "initdb": "postgresql",
    "pgbouncer": "pgbouncer",
    "patch": "patch",
    "prlimit": "util-linux",
    "redis-server": "redis-server",
    "sshd": "openssh-server",
}
"""The Debian package of each program."""

DEBIAN_POSTGRESQL = "/usr/lib/postgresql/*/bin"  # where Debian keeps what only the server's own scripts call


def is_there(program: str) -> bool:
    """Whether a program can be run; servers are also looked for where Debian puts them."""
    places = ("/usr/sbin", DEBIAN_POSTGRESQL)
    return shutil.which(program) is not None or any(glob.glob(f"{place}/{program}") for place in places)


def missing() -> list[str]:
    """Return the packages of the programs that are not there."""
    return [package for program, package in COMPONENTS.items() if not is_there(program)]


def install(packages: list[str]) -> bool:
    """Install packages by apt; False where that does not work."""
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    steps = (["apt-get", "update", "-qq"], ["apt-get", "install", "-qq", "--yes", "--no-install-recommends", *packages])
    return all(subprocess.run(step, env=environment, check=False).returncode == 0 for step in steps)


def main(*wanted: str) -> int:
    packages = missing()
    if "--missing" in wanted:
        print(*packages)
        return 0
    if not packages:
        return 0
    names = " ".join(packages)
    if os.geteuid() == 0 and shutil.which("apt-get") is not None:
        print(f"components: installing {names}", flush=True)
        if install(packages) and not missing():
            return 0
    print(
        f"components: {names} missing; the tests that need them are skipped. To have them:\n"
        f"    apt-get update && apt-get install --yes {names}",
        file=sys.stderr,
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
