"""One virtual environment per peer, built from exact pins and reused while the pins stay the same.

Peers never share an environment with Toolgate or with each other, so no peer's dependency slows another.
pydantic is pinned alike everywhere, because most contenders spend their time in it. An earlier commit of this
repository is a peer like any other: installed from its own tree, with the dependencies that are locked today, so that
the difference is its code's alone.
"""

import io
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

PYDANTIC = "pydantic==2.14.3"
REPOSITORY = Path(__file__).resolve().parent.parent
LOCK = REPOSITORY / "requirements.lock"
ROOT = Path(__file__).resolve().parent / ".envs"
INSTALL_LIMIT_S = 900


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """A peer's environment: its folder name, and what is installed in it, from an index or from one of our commits."""

    name: str
    requirements: tuple[str, ...] = ()
    commit: str | None = None


ENVIRONMENTS = {
    environment.name: environment
    for environment in (
        Environment(name="stageflow", requirements=("stageflow-core==1.2.0", PYDANTIC)),
        Environment(name="pydantic_ai", requirements=("pydantic-ai-slim==2.66.0", PYDANTIC)),
        Environment(name="openai_agents", requirements=("openai-agents==0.24.0", PYDANTIC)),
        Environment(name="langchain", requirements=("langchain==1.4.7", "langchain-core==1.7.2", PYDANTIC)),
        Environment(name="agno", requirements=("agno==3.1.10", PYDANTIC)),
        Environment(name="aiosqlite", requirements=("aiosqlite==0.22.1",)),
        Environment(name="cedarpy", requirements=("cedarpy==4.12.2",)),
        Environment(name="pycasbin", requirements=("pycasbin==2.8.0",)),
        Environment(name="fastmcp", requirements=("fastmcp==4.1.2", PYDANTIC)),
        Environment(name="google_adk", requirements=("google-adk==2.13.0",)),
        Environment(name="agent_framework", requirements=("agent-framework-core==1.23.0",)),
        Environment(name="humanlayer", requirements=("humanlayer==0.7.9",)),
        Environment(name="toolgate_2e57217", commit="2e57217"),
    )
}


class EnvironmentFailedError(Exception):
    """A peer's environment could not be built; the message is the installer's last words."""


def ensure(environment: Environment, *, say: Callable[[str], None]) -> Path:
    """Return the environment's interpreter, building the environment when its pins changed.

    A half-built environment has no stamp and is built again next time.
    """
    folder = ROOT / environment.name
    python = folder / "bin" / "python"
    stamp = folder / "requirements.stamp"
    wanted = "\n".join((f"python {sys.version.split()[0]}", *_pins(environment))) + "\n"
    if python.exists() and stamp.exists() and stamp.read_text() == wanted:
        return python
    what = ", ".join(environment.requirements) or f"commit {environment.commit}"
    say(f"{environment.name}: installing {what}")
    shutil.rmtree(folder, ignore_errors=True)
    _run([sys.executable, "-m", "venv", str(folder)])
    install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    if environment.commit is None:
        _run([*install, *environment.requirements])
    else:
        with tempfile.TemporaryDirectory() as place:
            tree, constraints = Path(place) / "tree", Path(place) / "constraints.txt"
            unpack(REPOSITORY, environment.commit, tree)
            constraints.write_text("\n".join(locked(LOCK.read_text(encoding="utf-8"))) + "\n", encoding="utf-8")
            _run([*install, "--constraint", str(constraints), str(tree)])
    stamp.write_text(wanted)
    return python


def unpack(repository: Path, commit: str, folder: Path) -> None:
    """Put the tree of a commit into a new folder; the repository's own checkout is not touched."""
    command = ["git", "-C", str(repository), "archive", "--format=zip", commit]
    try:
        done = subprocess.run(command, capture_output=True, timeout=INSTALL_LIMIT_S, check=False)
    except OSError as error:
        raise EnvironmentFailedError(f"git cannot be run: {error}") from error
    if done.returncode != 0:
        raise EnvironmentFailedError(f"commit {commit} is not in this repository; a whole clone has it")
    with zipfile.ZipFile(io.BytesIO(done.stdout)) as archive:
        archive.extractall(folder)


def locked(lock: str) -> list[str]:
    """Return the pins of a lock file without their hashes, which pip would ask of our own tree as well."""
    return re.findall(r"^[\w.-]+==[^\s\\;]+(?: ; [^\\\n]*[^\s\\])?", lock, re.MULTILINE)


def _pins(environment: Environment) -> tuple[str, ...]:
    """Return all that an environment is made from: another of these, and it is built anew."""
    if environment.commit is None:
        return environment.requirements
    return (f"commit {environment.commit}", *locked(LOCK.read_text(encoding="utf-8")))


def _run(command: list[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_LIMIT_S, check=False)
    except subprocess.TimeoutExpired as error:
        raise EnvironmentFailedError(f"it took longer than {INSTALL_LIMIT_S} s") from error
    if done.returncode == 0:
        return
    lines = [line for line in (done.stderr or done.stdout).splitlines() if not line.startswith("WARNING")]
    raise EnvironmentFailedError(lines[-1][:300] if lines else f"exit code {done.returncode}")
