"""Clean environments with what a user installs: the wheel of this checkout and some of its extras, nothing else."""

from __future__ import annotations

import fcntl
import os
import re
import subprocess
import sys
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tools.bootstrap import index_is_chosen

ROOT = Path(__file__).parents[2]
LEFT_OUT = re.compile(r"COV|PYTEST|PYTHON|TOOLGATE|VIRTUAL_ENV")
"""Variables of this process that a user's would not have."""


def build_wheel(folder: Path) -> Path:
    """Build the wheel of this checkout into a folder."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    run(command, cwd=ROOT)
    return next(folder.glob("*.whl"))


def run(command: Collection[str], *, cwd: Path, env: Mapping[str, str] | None = None) -> str:
    """Run a command to its end and return what it printed; where it fails, what it printed is in the failure."""
    ended = subprocess.run(list(command), cwd=cwd, env=env, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, f"{list(command)} ended with {ended.returncode}:\n{ended.stdout}{ended.stderr}"
    return ended.stdout


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """A virtual environment of its own."""

    folder: Path

    @property
    def python(self) -> str:
        return str(self.folder / "bin" / "python")

    @property
    def variables(self) -> dict[str, str]:
        """What a shell has in which this environment was activated."""
        kept = {name: value for name, value in os.environ.items() if not LEFT_OUT.match(name)}
        return {**kept, "PATH": f"{self.folder / 'bin'}:{kept['PATH']}", "VIRTUAL_ENV": str(self.folder)}

    def run(self, *command: str, cwd: Path, **more: str) -> str:
        """Run a command that finds this environment's programs first, with further variables."""
        return run(command, cwd=cwd, env=self.variables | more)

    def install(self, *what: str, cwd: Path) -> None:
        """Install with uv, or with pip where pip was told which index to use: uv would not know."""
        pip = [self.python, "-m", "pip", "install", "--quiet", "--no-input"]
        if index_is_chosen([sys.executable, "-m", "pip", "install"]):
            self.run(self.python, "-m", "ensurepip", cwd=cwd)
            self.run(*pip, *what, cwd=cwd)
        else:
            uv = [str(Path(sys.executable).parent / "uv"), "pip", "install", "--quiet", "--no-config", "--system-certs"]
            self.run(*uv, "--python", self.python, *what, cwd=cwd)


def new_environment(folder: Path) -> Environment:
    """Make an environment with nothing in it, not even pip."""
    run([sys.executable, "-m", "venv", "--without-pip", str(folder)], cwd=folder.parent)
    return Environment(folder=folder)


def shared_environment(shared: Path, extras: str) -> Environment:
    """Make an environment with the wheel and its extras (`""` or such as `[server]`), once for all test processes."""
    folder = shared / f"environment-{extras.strip('[]').replace(',', '-') or 'base'}"
    with _only_one(shared / "wheel.lock"):
        wheel = next((shared / "wheel").glob("*.whl"), None) or build_wheel(shared / "wheel")
    with _only_one(folder.with_suffix(".lock")):
        made = Environment(folder=folder)
        if not (folder / "complete").exists():
            new_environment(folder).install(f"{wheel}{extras}", cwd=shared)
            (folder / "complete").touch()
    return made


@contextmanager
def _only_one(lock: Path) -> Iterator[None]:
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("a") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield
