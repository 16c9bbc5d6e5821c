"""Make `.venv` hold what is locked and this project, editable: `bootstrap.py demo` for the demo, or everything.

Owns the development environment, with the standard library alone; the Makefile runs it before every target. The demo's
lock is a part of the other, so going from one to the other only adds, and the demo is content with everything. It
returns at once, offline too, when the stamp in `.venv` says that nothing changed. Exit codes: 1, a step failed; 2, a
person has to do something first, and the message says what.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
LOCKS = {"demo": ROOT / "requirements-demo.lock", "everything": ROOT / "requirements.lock"}
PYPROJECT = ROOT / "pyproject.toml"
VENV = ROOT / ".venv"
VENV_PYTHON = VENV / "bin" / "python"
STAMP = VENV / "bootstrap.stamp"
GUARD = ROOT / ".venv.lock"
# The interpreter under any virtual environment: one activated here may be the .venv about to be replaced.
PYTHON: str = getattr(sys, "_base_executable", sys.executable)
OLDEST = (3, 11)
DEBIAN_PACKAGE = "python3-venv"

# Settings of the caller's that would send packages, or Python's own search, somewhere else.
UNWANTED_ENV = ("PYTHONHOME", "PYTHONPATH", "PIP_USER", "PIP_TARGET", "PIP_PREFIX", "PIP_REQUIRE_HASHES")
# What pip calls the certificates to trust; SSL_CERT_FILE, which all the others know, it does not read.
PIP_CERTIFICATES = ("PIP_CERT", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")


class Stop(Exception):
    """The environment cannot be made; `code` becomes the exit code."""

    def __init__(self, message: str, *, code: int) -> None:
        super().__init__(message)
        self.code = code


class Stamp(NamedTuple):
    """What an environment was made from: its packages, and the project's own metadata."""

    packages: str
    project: str


def say(message: str) -> None:
    print(f"bootstrap: {message}", flush=True)


def wanted_stamp(level: str) -> Stamp:
    """Return the stamp of an environment that is up to date at a level.

    The checkout's path counts: the scripts in `.venv/bin` hold it, so a moved checkout is made anew.
    """
    interpreter = f"{sys.version}\n{sys.base_prefix}\n{ROOT}\n".encode()
    return Stamp(
        packages=hashlib.sha256(interpreter + LOCKS[level].read_bytes()).hexdigest(),
        project=hashlib.sha256(PYPROJECT.read_bytes()).hexdigest(),
    )


def present_stamp() -> Stamp | None:
    """Return what `.venv` was made from, or None where it is missing, half made or broken."""
    try:
        packages, project = STAMP.read_text(encoding="ascii").split()
    except (OSError, ValueError):
        return None
    probe = "import importlib.util, sys; sys.exit(importlib.util.find_spec('toolgate') is None)"
    try:
        healthy = subprocess.run([VENV_PYTHON, "-c", probe], cwd=VENV, check=False).returncode == 0
    except OSError:
        return None
    return Stamp(packages, project) if healthy else None


def run(step: str, command: Sequence[str | Path]) -> None:
    """Run one step's command; its output goes to the terminal only when the command writes any."""
    env = {name: value for name, value in os.environ.items() if name not in UNWANTED_ENV}
    env["PIP_DISABLE_PIP_VERSION_CHECK"] = "1"
    if "SSL_CERT_FILE" in env and not any(name in env for name in PIP_CERTIFICATES):
        env["PIP_CERT"] = env["SSL_CERT_FILE"]
    try:
        code = subprocess.run(command, cwd=ROOT, env=env, check=False).returncode
    except OSError as error:
        raise Stop(f"{step} failed: {error}", code=1) from error
    if code != 0:
        raise Stop(f"{step} failed with exit code {code}; its output is above.", code=1)


def has_ensurepip() -> bool:
    importlib.invalidate_caches()
    return importlib.util.find_spec("ensurepip") is not None


def has_pip() -> bool:
    """Whether this interpreter's pip can install into another environment (`--python`, pip 22.3)."""
    command = [PYTHON, "-m", "pip", "--python", PYTHON, "--version"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def install_debian_package() -> None:
    """Bring ensurepip where there is neither it nor pip, as on a stock Debian: by apt, as root."""
    advice = f"apt-get update && apt-get install --yes {DEBIAN_PACKAGE}"
    if shutil.which("apt-get") is None:
        raise Stop(f"{PYTHON} has neither ensurepip nor pip. Install one of them.", code=2)
    if os.geteuid() != 0:
        raise Stop(
            f"{PYTHON} has neither ensurepip nor pip, and only root may install them.\n"
            f"Run this once as root, then try again:\n\n    {advice}\n",
            code=2,
        )
    say(f"installing the Debian package {DEBIAN_PACKAGE}")
    os.environ["DEBIAN_FRONTEND"] = "noninteractive"
    run("apt-get update", ["apt-get", "update", "-qq"])
    install = ["apt-get", "install", "-qq", "--yes", "--no-install-recommends", DEBIAN_PACKAGE]
    run("apt-get install", install)
    if not has_ensurepip():
        raise Stop(
            f"{DEBIAN_PACKAGE} is installed but {PYTHON} still has no ensurepip: "
            "it is not Debian's Python. Choose that one with `make PYTHON=/usr/bin/python3`.",
            code=2,
        )


def make_venv() -> None:
    """Create an empty `.venv`, with a pip of its own where Python brings one."""
    own_pip = has_ensurepip()
    if not own_pip and not has_pip():
        install_debian_package()
        own_pip = True
    say(f"creating .venv with Python {sys.version.split()[0]}")
    if VENV.is_symlink() or VENV.is_file():
        VENV.unlink()
    elif VENV.exists():
        STAMP.unlink(missing_ok=True)
        shutil.rmtree(VENV)
    options = [] if own_pip else ["--without-pip"]
    run("venv", [PYTHON, "-m", "venv", *options, VENV])


def pip_install() -> Sequence[str | Path]:
    """Return the start of a command that installs into `.venv`: by its own pip, else this interpreter's."""
    quiet = ["--quiet", "--no-input", "--progress-bar", "off"]
    if (VENV / "bin" / "pip").exists():
        return [VENV_PYTHON, "-m", "pip", "install", *quiet]
    return [PYTHON, "-m", "pip", "--python", VENV_PYTHON, "install", *quiet]


def index_is_chosen(pip: Sequence[str | Path]) -> bool:
    """Whether pip was told which index to use: uv would not know, and ask another."""
    listing = [*pip[: pip.index("install")], "config", "list"]
    settings = subprocess.run(listing, capture_output=True, text=True, check=False).stdout
    return re.search(r"\.(index-url|no-index)=", settings) is not None


def install_packages(lock: Path) -> None:
    """Install a lock: uv, where it is in it, takes a tenth of pip's time; pip does what uv cannot."""
    pip = pip_install()
    locked_uv = re.search(r"^uv==.*(\n +--hash.*)+", lock.read_text(encoding="utf-8"), re.MULTILINE)
    if locked_uv is not None and not index_is_chosen(pip):
        only_uv = VENV / "uv.lock.txt"
        only_uv.write_text(locked_uv[0].rstrip("\\\n ") + "\n", encoding="utf-8")
        run("pip install uv", [*pip, "--require-hashes", "-r", only_uv])
        options = ["--quiet", "--no-config", "--system-certs", "--require-hashes"]
        uv_install: list[str | Path] = [VENV / "bin" / "uv", "pip", "install", "--python", VENV_PYTHON]
        with contextlib.suppress(Stop):
            run("uv pip install", [*uv_install, *options, "-r", lock])
            return
        say("uv could not; installing with pip")
    run("pip install", [*pip, "--require-hashes", "-r", lock])


def is_enough(present: Stamp | None, level: str) -> bool:
    """Whether an environment has all a level wants; one with everything is enough for the demo."""
    return present is not None and present in {wanted_stamp(level), wanted_stamp("everything")}


def build(present: Stamp | None, level: str) -> None:
    """Bring `.venv` to a level; the stamp is taken away first and comes back last."""
    held = {name for name in LOCKS if present is not None and wanted_stamp(name).packages == present.packages}
    if "everything" in held:
        level = "everything"  # only the project changed; what is there stays
    wanted = wanted_stamp(level)
    if held:
        STAMP.unlink()
    else:
        make_venv()
    if level not in held:
        say(f"installing the locked packages of {LOCKS[level].name}")
        install_packages(LOCKS[level])
    if present is None or not held or present.project != wanted.project:
        say("installing toolgate, editable")
        run("pip install", [*pip_install(), "--no-deps", "--no-build-isolation", "--editable", ROOT])
    STAMP.write_text("\n".join(wanted) + "\n", encoding="ascii")


@contextlib.contextmanager
def only_one() -> Iterator[None]:
    """Hold the checkout's bootstrap lock; the kernel drops it when the process dies."""
    with GUARD.open("w") as guard:
        try:
            fcntl.flock(guard, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("waiting for another bootstrap of this checkout")
            fcntl.flock(guard, fcntl.LOCK_EX)
        yield


def bootstrap(level: str) -> None:
    if sys.version_info < OLDEST:
        raise Stop(
            f"Python {sys.version.split()[0]} is too old, 3.11 is the oldest that works. "
            "Name a newer one: `make PYTHON=/path/to/python3.11`.",
            code=2,
        )
    if is_enough(present_stamp(), level):
        return
    try:
        with only_one():
            # Read again: the one we waited for may have done the work.
            present = present_stamp()
            if not is_enough(present, level):
                build(present, level)
                say("ready")
    except PermissionError as error:
        raise Stop(
            f"cannot write {error.filename}: the checkout or its .venv belongs to another user. "
            "Run as that user, or work in a clone of your own.",
            code=2,
        ) from error


def main() -> int:
    try:
        level = sys.argv[1] if sys.argv[1:] else "everything"
        if level not in LOCKS:
            raise Stop(f"there is no level {level!r}; write {' or '.join(LOCKS)}, or nothing for everything.", code=2)
        bootstrap(level)
    except Stop as stop:
        print(f"bootstrap: {stop}", file=sys.stderr)
        return stop.code
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
