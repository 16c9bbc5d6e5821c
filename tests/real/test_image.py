"""What the image does, done by hand: its install line, its command and its health check. No Docker is needed."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.docs.pages import ROOT
from tests.docs.test_deploy import INSTRUCTIONS
from tests.postgres import free_port
from tests.real.environments import LEFT_OUT, run

from toolgate.testing.patience import until_sync

pytestmark = pytest.mark.real

HOME = "/opt/toolgate"


def instruction(kind: str) -> str:
    """Return the words of the last instruction of a kind."""
    return [words for name, words in INSTRUCTIONS if name == kind][-1]


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the environment the first stage makes, from the files it copies."""
    folder = tmp_path_factory.mktemp("image")
    source = folder / "src"
    for words in (words for kind, words in INSTRUCTIONS if kind == "COPY" and "--from" not in words):
        *names, target = words.split()
        (source / target).mkdir(parents=True, exist_ok=True)
        for name in names:
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, source / target, dirs_exist_ok=True)
            else:
                shutil.copy(ROOT / name, source / target)
    installs = [words for kind, words in INSTRUCTIONS if kind == "RUN" and "pip install" in words]
    assert len(installs) == 1
    run(["sh", "-c", installs[0].replace(HOME, str(folder / "opt"))], cwd=source)
    return folder / "opt"


@pytest.fixture
def environment(image: Path) -> dict[str, str]:
    plain = {name: value for name, value in os.environ.items() if not LEFT_OUT.match(name)}
    return plain | {"PATH": f"{image}/bin:{plain['PATH']}", "TOOLGATE_PORT": str(free_port())}


@pytest.fixture
def serving(environment: dict[str, str], tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The image's command, on a policy that `toolgate init` wrote."""
    run(["sh", "-c", "toolgate init"], cwd=tmp_path, env=environment)
    with subprocess.Popen(["sh", "-c", f"exec {words_of('CMD')}"], cwd=tmp_path, env=environment) as server:
        yield server
        server.terminate()


def words_of(kind: str) -> str:
    """Return an instruction's command as a line for the shell."""
    words = instruction(kind)
    return shlex.join(json.loads(words[words.index("[") :]))


def healthy(environment: dict[str, str]) -> bool:
    check = ["sh", "-c", words_of("HEALTHCHECK")]
    return subprocess.run(check, env=environment, capture_output=True, check=False).returncode == 0


def test_the_command_serves_and_the_health_check_sees_it(
    environment: dict[str, str], serving: subprocess.Popen[bytes]
) -> None:
    until_sync(lambda: healthy(environment) or serving.poll() is not None, within_s=120)
    assert serving.poll() is None
    assert healthy(environment)


def test_the_health_check_fails_where_nothing_serves(environment: dict[str, str]) -> None:
    assert not healthy(environment)


def test_the_image_can_also_work(environment: dict[str, str], tmp_path: Path) -> None:
    assert "--queue" in run(["sh", "-c", "toolgate worker --help"], cwd=tmp_path, env=environment)
