"""A workspace that the sandbox's user can reach, and a sandbox of each kind."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from toolgate.adapters.runners.sandbox.backend import NOBODY, Backend, Files, sandbox_user
from toolgate.adapters.runners.sandbox.bubblewrap import Bubblewrap
from toolgate.adapters.runners.sandbox.landlock import Landlock


@pytest.fixture
def workspace() -> Iterator[Path]:
    """A directory outside pytest's own, which nobody else may enter; the sandbox's user owns it."""
    path = Path(tempfile.mkdtemp(prefix="toolgate-test-"))
    path.chmod(0o755)
    (path / "file.txt").write_text("inside")
    (path / ".env").write_text("SECRET")
    if os.geteuid() == 0:
        for each in (path, *path.iterdir()):
            os.chown(each, NOBODY, NOBODY)
    yield path
    shutil.rmtree(path)


@pytest.fixture(scope="session")
def files() -> Iterator[Files]:
    made = Files()
    yield made
    made.close()


@pytest.fixture(scope="session", params=["bubblewrap", "landlock"])
def backend(request: pytest.FixtureRequest, files: Files) -> Backend:
    user = sandbox_user(None, None)
    made: Backend = Bubblewrap(user, files) if request.param == "bubblewrap" else Landlock(user, files)
    problem = made.problem()
    if problem is not None:
        pytest.skip(f"{request.param}: {problem}")
    return made
