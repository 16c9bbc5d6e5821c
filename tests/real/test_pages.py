"""Every tutorial, how-to and the README followed as printed, in an environment made by the page's own install line."""

from __future__ import annotations

import os
import subprocess
from contextlib import nullcontext
from pathlib import Path

import pytest
from tests.docs.pages import SHELLS, blocks, extras_of, followed, name_of
from tests.docs.reader import SERVES, Reader, the_port
from tests.postgres import KEY
from tests.real.environments import shared_environment

pytestmark = [pytest.mark.real, pytest.mark.timeout(1200)]
BY_HAND = ("agent-that-asks", "first-governed-call")
"""Followed in test_tutorials.py, from the install step on."""


def has_something_to_do(page: Path) -> bool:
    return any(block.language in ("python", *SHELLS) and block.is_run for block in blocks(page))


def serves(page: Path) -> bool:
    return any(SERVES.search(block.code) for block in blocks(page) if block.language in SHELLS and block.is_run)


def of_this_run(folder: Path) -> Path:
    """The folder all test processes of this run share, and no other run."""
    return folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder


def key_file(folder: Path) -> str:
    """The sealing key of the test's database, as `toolgate db key` writes one."""
    file = folder / "seal.key"
    file.write_text(KEY + "\n", encoding="utf-8")
    file.chmod(0o600)
    return str(file)


PAGES = [page for page in followed() if page.stem not in BY_HAND and has_something_to_do(page)]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_the_page_works_as_printed(
    page: Path, request: pytest.FixtureRequest, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    made = shared_environment(of_this_run(tmp_path_factory.getbasetemp()) / "real", extras_of(page)[0])
    told = made.variables
    folder = tmp_path / "reader"
    folder.mkdir()
    if 'environ["DATABASE_URL"]' in page.read_text(encoding="utf-8"):
        told |= {"DATABASE_URL": request.getfixturevalue("postgres_url"), "TOOLGATE_KEY_FILE": key_file(tmp_path)}

    def run_file(path: Path) -> str:
        command = [made.python, "-W", "error", path.name]
        ran = subprocess.run(command, cwd=folder, env=told, capture_output=True, text=True, check=False)
        is_quiet = "Traceback" not in ran.stderr  # a log may say what the page is about
        assert (ran.returncode, is_quiet) == (0, True), f"{name_of(page)}: {path.name}:\n{ran.stdout}{ran.stderr}"
        return ran.stdout

    with the_port() if serves(page) else nullcontext(), Reader(page, folder, told, run_file) as reader:
        reader.follow(types=True)
